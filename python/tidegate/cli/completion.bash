# Completion of tidegate in bash. Made by: tidegate completion bash
_tidegate() {
    local line=${COMP_LINE:0:COMP_POINT} last kept='' reply value
    local -a words lines values files
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
    for reply in "${lines[@]}"; do
        case $reply in
        :dirs) mapfile -t files < <(compgen -d -- "$value") ;;
        :files) mapfile -t files < <(compgen -f -- "$value") ;;
        :files*) mapfile -t files < <(compgen -d -- "$value"; compgen -f -X "!*.${reply#:files }" -- "$value") ;;
        *)
            reply=${reply%%$'\t'*}
            values+=("${reply#"$kept"}") ;;
        esac
    done
    [[ ${#files[@]} -gt 0 ]] && compopt -o filenames
    [[ ${#values[@]} -eq 1 && ${values[0]} == *[=:/] ]] && compopt -o nospace
    COMPREPLY=("${values[@]}" "${files[@]}")
}
complete -F _tidegate tidegate
