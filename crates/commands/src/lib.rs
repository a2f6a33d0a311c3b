//! What stands around the engine: programs and tests from files, the reference switch's command language, captures.
//!
//! Everything here works on files and gives back values: a [`serde_json::Value`] that is a command's `--json` answer
//! with the text for people in it, or a [`Failure`], which is the one message that the user gets to see. Nothing prints.

#![forbid(unsafe_code)]

pub mod check;
pub mod cli;
pub mod load;
pub mod replay;
pub mod stf;
pub mod value;

/// Why a command could not do its work: one message with the place and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<wire::pcap::CaptureError> for Failure {
    fn from(error: wire::pcap::CaptureError) -> Failure {
        Failure(error.0)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure(message.into()))
}

/// Asked now and then by whatever may take long; an error ends it cleanly.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> Result<()>;
