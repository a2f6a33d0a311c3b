//! Why a capture cannot be read or written.

use std::io;
use std::path::Path;

/// One message with the file and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CaptureError(pub String);

pub(super) type Result<T> = std::result::Result<T, CaptureError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(CaptureError(message.into()))
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> CaptureError {
    CaptureError(format!("{}: cannot be written: {}", path.display(), plain(error)))
}

/// Why a file cannot be read, with its name.
pub fn unreadable(path: &Path, error: &io::Error) -> String {
    let why = if path.is_dir() { "it is a directory".to_owned() } else { plain(error) };
    format!("{}: cannot be read: {why}", path.display())
}

/// What the system says of an error, without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}
