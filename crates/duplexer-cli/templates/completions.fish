# Completions of `duplexer` for fish. To use them:
#   duplexer completions fish > ~/.config/fish/completions/duplexer.fish
complete -c duplexer -a '(duplexer complete-line fish -- (commandline -opc) (commandline -ct) 2>/dev/null)'
