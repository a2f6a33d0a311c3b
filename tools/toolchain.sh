#!/bin/sh
# For RUSTUP_TOOLCHAIN: what the toolchain of rust-toolchain.toml is called here. It may be installed by another name, such as stable.
# Where it is not installed, the default toolchain, so that a build fetches none. Nothing where there is no rustup.

cd "$(dirname "$0")/.." || exit 1
if [ -n "$RUSTUP_TOOLCHAIN" ]; then
    echo "$RUSTUP_TOOLCHAIN"
    exit
fi
command -v rustup >/dev/null 2>&1 || exit 0
wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
installed=$(rustup toolchain list 2>/dev/null | grep -v '^no ' | cut -d ' ' -f 1)
for name in $installed; do
    case $(RUSTUP_TOOLCHAIN=$name rustc --version 2>/dev/null) in
    "rustc $wanted "*)
        echo "$name"
        exit
        ;;
    esac
done
default=$(cd / && rustup default 2>/dev/null | cut -d ' ' -f 1)
if [ -n "$default" ]; then
    echo "Rust $wanted is not installed, which the results are of: building with $default" >&2
    echo "$default"
fi
