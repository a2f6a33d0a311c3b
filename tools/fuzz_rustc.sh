#!/bin/sh
# As cargo's RUSTC_WRAPPER: the compiler, with what libFuzzer asks of our own crates (as cargo-fuzz asks for it): where they have been and
# what they have compared. Libraries of others are compiled as ever.
case " $* " in
*" --crate-name tidegate_fuzz "* | *" fuzz_targets/"* | *" --crate-name "*"/crates/"*)
    set -- "$@" -Cpasses=sancov-module
    for option in level=4 inline-8bit-counters pc-table trace-compares; do
        set -- "$@" "-Cllvm-args=-sanitizer-coverage-$option"
    done
    ;;
esac
exec "$@"
