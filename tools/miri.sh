#!/bin/sh
# Runs under Miri what compiled code calls with raw addresses, the pool of buffers, and addresses in AF_XDP's memory: every access beside
# the memory that they were given is an error. Compiled code itself and most system calls cannot run there.
set -eu
cd "$(dirname "$0")/.."
unset RUSTUP_TOOLCHAIN

if ! command -v rustup >/dev/null || ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "this needs Miri: rustup toolchain install nightly --profile minimal -c miri -c rust-src" >&2
    exit 1
fi
export CARGO_TARGET_DIR=target/miri MIRIFLAGS=-Zmiri-disable-isolation
cargo +nightly miri test --locked --package live --lib -- xdp_socket::
cargo +nightly miri test --locked --package dataplane --lib -- bits:: pool:: state::lines jit::helpers jit::tests::memory jit::tests::services
