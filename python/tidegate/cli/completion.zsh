#compdef tidegate
# Completion of tidegate in zsh. Made by: tidegate completion zsh
_tidegate() {
    local line value
    local -a lines plain open described
    lines=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -z $lines[1] ]] && return 1
    case $lines[1] in
    :dirs) [[ $words[CURRENT] == --*=* ]] && compset -P '*='; _files -/; return ;;
    :files\ *) [[ $words[CURRENT] == --*=* ]] && compset -P '*='; _files -g "*.${lines[1]#:files }"; return ;;
    :files) [[ $words[CURRENT] == --*=* ]] && compset -P '*='; _files; return ;;
    esac
    for line in $lines; do
        value=${line%%$'\t'*}
        if [[ $value == *= ]]; then
            open+=("$value")
        elif [[ $line == *$'\t'* ]]; then
            described+=("${value//:/\\:}:${line#*$'\t'}")
        else
            plain+=("$value")
        fi
    done
    (( $#open )) && compadd -S '' -- $open
    (( $#plain )) && compadd -- $plain
    (( $#described )) && _describe tidegate described
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _tidegate "$@"
else
    compdef _tidegate tidegate
fi
