//! What is refused when a network is built.

/// A network that makes no sense; names the object and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub(crate) String);

pub(crate) fn refuse<T>(why: String) -> Result<T, BuildError> {
    Err(BuildError(why))
}
