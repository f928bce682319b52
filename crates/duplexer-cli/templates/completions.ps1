# Completions of `duplexer` for PowerShell. To use them, add this line to $PROFILE:
#   duplexer completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName duplexer -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString()
    if ($line.Length -gt $cursorPosition) { $line = $line.Substring(0, $cursorPosition) }
    $line = $line.PadRight($cursorPosition)
    duplexer complete-line powershell -- $line 2>$null | ForEach-Object {
        $word, $help = $_ -split "`t", 2
        if (-not $help) { $help = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $help)
    }
}
