#!/bin/sh
# Whether fuzz/Cargo.lock, which is not the workspace's, agrees with what the crates depend on. A dependency that is added to a crate
# that the fuzzers use has to be added there, too, and so does a new version.
set -eu
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

agrees() { cargo metadata --locked --manifest-path fuzz/Cargo.toml --format-version 1 "$@" >/dev/null 2>"$said"; }
is_stale() { grep -q -e '--locked was passed' "$said"; }

# Where Cargo has no index of the registry, it has to fetch that.
if agrees --offline || { ! is_stale && agrees; }; then exit 0; fi
if is_stale; then
    echo "fuzz/Cargo.lock does not agree with the crates: run 'cargo update --workspace --manifest-path fuzz/Cargo.toml' and commit it" >&2
else
    cat "$said" >&2
fi
exit 1
