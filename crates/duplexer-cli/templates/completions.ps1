# Completions of `duplexer` for PowerShell. To use them, add this line to $PROFILE:
#   duplexer completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName duplexer -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString()
    # The position counts from the start of the input, which can hold other commands before this one.
    $end = $cursorPosition - $commandAst.Extent.StartOffset
    if ($line.Length -gt $end) { $line = $line.Substring(0, $end) }
    $line = $line.PadRight($end)
    duplexer complete-line powershell -- $line 2>$null | ForEach-Object {
        $word, $help = $_ -split "`t", 2
        if (-not $help) { $help = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $help)
    }
}
