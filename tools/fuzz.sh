#!/bin/sh
# Runs each fuzzer of fuzz/ for so many seconds, from the corpora in the repository on; what it adds to them stays in
# target/fuzz-corpus. A fault is written to fuzz/artifacts: mend it, and put the file into fuzz/corpus/TARGET.
# `messages`, P4Runtime's to the server, is in Python (python/tidegate/p4runtime/fuzzing.py) and has no corpus: a fault names its round.
#   tools/fuzz.sh SECONDS [TARGET...]            one after another under AddressSanitizer: needs nightly Rust and cargo-fuzz
#   tools/fuzz.sh --stable SECONDS [TARGET...]   without it, on any compiler, as many at once as there are processors: what
#                                                continuous integration runs, with one seed, from the repository's corpora on, so that
#                                                what one run finds the next one does; 0 s: only builds
set -eu
cd "$(dirname "$0")/.."
stable=
if [ "$1" = --stable ]; then
    stable=yes
    shift
fi
seconds=$1
shift

[ $# -gt 0 ] || set -- captures frames preprocess parse source lower packets writes messages
native=
messages=
for target in "$@"; do
    if [ "$target" = messages ]; then
        messages=messages
    elif [ -f "fuzz/fuzz_targets/$target.rs" ]; then
        native="$native $target"
    else
        echo "no fuzzer is called $target; there are: $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g') messages" >&2
        exit 1
    fi
done
# shellcheck disable=SC2086
set -- $native
python=${PYTHON:-.venv/bin/python}
if [ "$messages" ] && [ "$seconds" -gt 0 ] && [ ! -x "$python" ]; then
    echo "the fuzzer of messages needs the package: make setup" >&2
    exit 1
fi

# One input takes at most 10 s and 2 GiB.
limits="-timeout=10 -rss_limit_mb=2048 -max_len=4096 -verbosity=0 -print_final_stats=1"

if [ $# -eq 0 ]; then
    [ "$seconds" -gt 0 ] || exit 0
    exec "$python" -m tidegate.p4runtime.fuzzing --seconds "$seconds"
fi

if [ "$stable" ]; then
    target=${CARGO_TARGET_DIR:-target}
    RUSTC_WRAPPER=$PWD/tools/fuzz_rustc.sh CARGO_TARGET_DIR=$target \
        cargo build --locked --quiet --manifest-path fuzz/Cargo.toml --profile ci --bins
    [ "$seconds" -gt 0 ] || exit 0
    said=$(mktemp -d)
    trap 'rm -rf "$said"' EXIT
    for name in "$@"; do mkdir -p "$said/found/$name" "fuzz/artifacts/$name"; done
    # shellcheck disable=SC2016
    printf '%s\n' "$@" $messages | xargs -P "$(nproc)" -I TARGET sh -c '
        if [ TARGET = messages ]; then exec "$5" -m tidegate.p4runtime.fuzzing --seconds "$2"; fi
        artifacts=fuzz/artifacts/TARGET
        fuzz() {
            "$1/ci/TARGET" "$4/found/TARGET" "fuzz/corpus/TARGET" -seed=1 \
                -artifact_prefix="$artifacts/" -max_total_time="$2" $3 >"$4/TARGET" 2>&1
        }
        # Only times that an input takes again are its own: a machine that stands still for seconds makes any input too long.
        held_up() {
            for file in "$artifacts"/*; do
                case $file in "$artifacts"/timeout-*) "$1/ci/TARGET" "$file" $3 >>"$4/TARGET" 2>&1 || return 1 ;; *) return 1 ;; esac
            done
            echo "TARGET: an input took more than 10 s, and less when it was tried again: from the beginning"
            rm "$artifacts"/timeout-*
        }
        if fuzz "$@" || { held_up "$@" && fuzz "$@"; }; then
            echo "TARGET: $(sed -n "s/^stat::number_of_executed_units: *//p" "$4/TARGET") inputs in $2 s, no fault"
        else
            echo "TARGET: a fault:"
            tail -n 60 "$4/TARGET"
            for file in "$artifacts"/*; do echo "$file in base64:" && base64 "$file"; done
            exit 1
        fi' sh "$target" "$seconds" "$limits" "$said" "$python"
    exit
fi

unset RUSTUP_TOOLCHAIN
if ! command -v rustup >/dev/null || ! rustup toolchain list | grep -q '^nightly'; then
    echo "fuzzing needs a nightly compiler: rustup toolchain install nightly --profile minimal" >&2
    exit 1
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzzing needs cargo-fuzz: cargo install --locked cargo-fuzz" >&2
    exit 1
fi
echo "building (the first time about ten minutes)"
cargo +nightly fuzz build
for target in "$@"; do
    found=target/fuzz-corpus/$target
    mkdir -p "$found"
    echo "$target: $seconds s"
    # shellcheck disable=SC2086
    cargo +nightly fuzz run "$target" "$found" "fuzz/corpus/$target" -- -max_total_time="$seconds" $limits
done
if [ "$messages" ]; then "$python" -m tidegate.p4runtime.fuzzing --seconds "$seconds"; fi
