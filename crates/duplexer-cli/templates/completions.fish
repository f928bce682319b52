# Completions of `duplexer` for fish. To use them:
#   duplexer completions fish > ~/.config/fish/completions/duplexer.fish
function __duplexer_complete
    set -l words (commandline -opc)
    set -l found ($words[1] complete-line fish -- $words (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c duplexer -f -a '(__duplexer_complete)'
