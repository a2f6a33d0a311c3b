#!/bin/sh
# What a build needs that a package registry does not give: says what is missing, a line each with what to install, and fails.
#
#     tools/needs.sh [PYTHON]

python=${1:-python3}
need_mb=3000
missing=0

lacks() {
    echo "missing: $1" >&2
    missing=1
}

# as_number 1.88.0 -> 1088
as_number() {
    echo "$1" | sed -n 's/^\([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p' | { read -r major minor && echo $((major * 1000 + minor)); }
}

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Python 3.11 or newer ($python is not found): apt install python3 python3-venv, or give another with PYTHON=python3.x"
else
    has=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    if [ "$(as_number "${has:-0.0}")" -lt 3011 ]; then
        lacks "Python 3.11 or newer ($python is ${has:-broken}): install it, and give it with PYTHON=python3.x"
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        lacks "Python's modules venv and ensurepip: apt install python3-venv"
    fi
fi

if ! command -v cargo >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
    lacks "a Rust toolchain, 1.88 or newer (cargo and rustc are not found): see https://rustup.rs, or apt install rustup && rustup toolchain install stable"
else
    has=$(rustc --version 2>/dev/null | cut -d' ' -f2)
    if [ "$(as_number "${has:-0.0}")" -lt 1088 ]; then
        lacks "Rust 1.88 or newer (rustc is ${has:-broken}): rustup update, or rustup toolchain install stable"
    fi
fi

if ! command -v cc >/dev/null 2>&1; then
    lacks "a C compiler (cc is not found): apt install gcc libc6-dev"
fi

free_mb=$(df -Pm . 2>/dev/null | awk 'NR == 2 { print $4 }')
# What is built already need not fit again.
if [ ! -e .venv/.built ] && [ "${free_mb:-$need_mb}" -lt "$need_mb" ]; then
    lacks "room on the disk: a build takes $need_mb MB, and $(pwd) has $free_mb MB; make room, or build elsewhere"
fi

exit $missing
