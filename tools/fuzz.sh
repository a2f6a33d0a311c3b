#!/bin/sh
# Runs each fuzzer of fuzz/ for so many seconds, from the corpora in the repository on; what it adds to them stays in
# target/fuzz-corpus. A fault is written to fuzz/artifacts: mend it, and put the file into fuzz/corpus/TARGET.
#   tools/fuzz.sh SECONDS [TARGET...]
set -eu
cd "$(dirname "$0")/.."
seconds=$1
shift
unset RUSTUP_TOOLCHAIN

if ! command -v rustup >/dev/null || ! rustup toolchain list | grep -q '^nightly'; then
    echo "fuzzing needs a nightly compiler: rustup toolchain install nightly --profile minimal" >&2
    exit 1
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzzing needs cargo-fuzz: cargo install --locked cargo-fuzz" >&2
    exit 1
fi

[ $# -gt 0 ] || set -- captures frames preprocess parse source lower packets writes
for target in "$@"; do
    if [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
        echo "no fuzzer is called $target; there are: $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')" >&2
        exit 1
    fi
done
echo "building (the first time about ten minutes)"
cargo +nightly fuzz build
for target in "$@"; do
    found=target/fuzz-corpus/$target
    mkdir -p "$found"
    echo "$target: $seconds s"
    # One input takes at most 10 s and 2 GiB.
    cargo +nightly fuzz run "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -verbosity=0 -print_final_stats=1
done
