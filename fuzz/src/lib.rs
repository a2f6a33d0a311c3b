//! What each fuzzer does with its bytes. The targets in `fuzz_targets` call these with bytes of libFuzzer's, and
//! `crates/dataplane/tests/fuzz_corpus.rs` with those of the corpora, on any toolchain.
//!
//! | module | bytes are |
//! |---|---|
//! | `programs` | P4 source: whole, among macros, as words |
//! | `lower` | the ingress of a program, which then runs |
//! | `packets` | packets through both engines |
//! | `writes` | what a P4Runtime client writes: operations, alone and in batches |
//! | `captures` | a capture file, plain or packed |
//! | `frames` | a frame, read and written by the protocols' modules |

pub mod captures;
pub mod frames;
#[cfg(feature = "engines")]
pub mod lower;
#[cfg(feature = "engines")]
pub mod packets;
pub mod programs;
#[cfg(feature = "engines")]
pub mod writes;
