# Completions of `duplexer` for bash. To use them, add this line to ~/.bashrc:
#   source <(duplexer completions bash)
_duplexer() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <("${COMP_WORDS[0]}" complete-line bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    # More follows behind the sign of an argument.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _duplexer duplexer
