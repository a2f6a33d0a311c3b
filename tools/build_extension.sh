#!/bin/sh
# Run a command that builds the extension, and note beside it which Rust sources it is of (rust_sources.sh), with its digest:
# `tidegate compare rev:HASH` takes it for revisions with these sources. Without git, or where sources change meanwhile, nothing is noted.

tools=$(dirname "$0")
package=$tools/../python/tidegate
before=$("$tools/rust_sources.sh" 2>/dev/null)
rm -f "$package/_core.sources"
"$@" || exit
if [ -n "$before" ] && [ "$("$tools/rust_sources.sh" 2>/dev/null)" = "$before" ]; then
    digest=$(sha256sum <"$package/_core.abi3.so" | cut -d ' ' -f 1)
    echo "$before $digest" >"$package/_core.sources"
fi
