#compdef tidegate
# Completion of tidegate in zsh. Made by: tidegate completion zsh
_tidegate() {
    local line value files=''
    local -a lines plain open described
    lines=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -z $lines[1] ]] && return 1
    for line in $lines; do
        value=${line%%$'\t'*}
        if [[ $line == :* ]]; then
            files=$line
        elif [[ $value == *[=:/] ]]; then
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
    [[ -n $files && $words[CURRENT] == --*=* ]] && compset -P '*='
    case $files in
    :dirs) _files -/ ;;
    :files\ *) _files -g "*.${files#:files }" ;;
    :files) _files ;;
    esac
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _tidegate "$@"
else
    compdef _tidegate tidegate
fi
