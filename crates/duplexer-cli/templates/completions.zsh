#compdef duplexer
# Completions of `duplexer` for zsh. To use them, add this line to ~/.zshrc, behind `compinit`:
#   source <(duplexer completions zsh)
_duplexer() {
    local word help
    local -a ready readyHelp open openHelp
    while IFS=$'\t' read -r word help; do
        # More follows behind the sign of an argument.
        if [[ $word == *= ]]; then
            open+=("$word")
            openHelp+=("$word  $help")
        else
            ready+=("$word")
            readyHelp+=("$word  $help")
        fi
    done < <("${(Q)words[1]}" complete-line zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    if (( ${#ready} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#ready} )) && compadd -l -d readyHelp -a ready
    (( ${#open} )) && compadd -l -S '' -d openHelp -a open
    return 0
}
compdef _duplexer duplexer
