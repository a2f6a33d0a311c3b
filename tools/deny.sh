#!/bin/sh
# What deny.toml demands of the crates that are built in, and of the fuzzers': licences, sources and bans, which need no network, then
# known vulnerabilities, for which cargo-deny fetches the RustSec database. Without the program, or without the database, it says so in
# a line and goes on.
#   tools/deny.sh CARGO_DENY
set -eu
cd "$(dirname "$0")/.."
deny=$1

if [ ! -x "$deny" ]; then
    echo "crates are not checked: there is no cargo-deny at $deny (cargo install --locked cargo-deny, or give another with DENY=PATH)" >&2
    exit 0
fi
# The fuzzers have not all that is allowed: that is nothing to say.
check() {
    "$deny" --locked check "$@" && "$deny" --locked --log-level error --manifest-path fuzz/Cargo.toml --config deny.toml check "$@"
}

check bans licenses sources
said=$(mktemp)
trap 'rm -f "$said"' EXIT
if check advisories >"$said" 2>&1; then
    cat "$said"
elif grep -q 'failed to fetch advisory database' "$said"; then
    echo "crates are not checked for known vulnerabilities: the RustSec database cannot be reached" >&2
else
    cat "$said" >&2
    exit 1
fi
