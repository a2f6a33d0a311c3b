# Completion of tidegate in fish. Made by: tidegate completion fish
function __tidegate_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
    for line in $lines
        switch "$line"
            case ':dirs'
                __fish_complete_directories "$current" ''
            case ':files *'
                __fish_complete_suffix "$current" .(string replace ':files ' '' -- $line)
            case ':files'
                __fish_complete_path "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c tidegate -f -a '(__tidegate_complete)'
