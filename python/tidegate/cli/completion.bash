# Completion of tidegate in bash. Made by: tidegate completion bash
_tidegate() {
    local line=${COMP_LINE:0:COMP_POINT} last kept='' reply value
    local -a words lines values
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    last=${words[${#words[@]}-1]}
    # Readline begins a new word behind these, and completes that alone.
    [[ $last == *[=:@]* ]] && kept=${last%"${last##*[=:@]}"}
    if [[ -n $kept && $COMP_WORDBREAKS != *"${kept: -1}"* ]]; then kept=''; fi
    mapfile -t lines < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    [[ ${#lines[@]} -eq 0 ]] && return
    value=${last#--*=}
    case ${lines[0]} in
    :dirs)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$value")
        return ;;
    :files*)
        compopt -o filenames
        reply=${lines[0]#:files}
        reply=${reply# }
        if [[ -n $reply ]]; then
            mapfile -t COMPREPLY < <(compgen -d -- "$value"; compgen -f -X "!*.$reply" -- "$value")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$value")
        fi
        return ;;
    esac
    for reply in "${lines[@]}"; do
        reply=${reply%%$'\t'*}
        values+=("${reply#"$kept"}")
    done
    [[ ${#values[@]} -eq 1 && ${values[0]} == *= ]] && compopt -o nospace
    COMPREPLY=("${values[@]}")
}
complete -F _tidegate tidegate
