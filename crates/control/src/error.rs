//! Why something was refused. The text names what is wrong and, where there is one, the cure; the parts can be read one by one.

/// What kind of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    /// A number is beyond its width, an index beyond its array.
    OutOfRange,
    NotFound,
    Exists,
    Full,
    /// The program declares it unchangeable.
    Denied,
    /// Something else refers to it.
    InUse,
    /// What is asked cannot do it, or cannot do it in this way.
    Unsupported,
}

impl Kind {
    /// As Python has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::OutOfRange => "out of range",
            Kind::NotFound => "not found",
            Kind::Exists => "exists",
            Kind::Full => "full",
            Kind::Denied => "denied",
            Kind::InUse => "in use",
            Kind::Unsupported => "unsupported",
        }
    }
}

/// A refusal. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}{cure}", if cure.is_empty() { "" } else { "; " })]
pub struct Error {
    pub kind: Kind,
    /// What it is about: ``table `routes` ``, `port 3`; empty if it is about no object.
    pub object: String,
    /// Which part of the object: a key, a parameter, a setting.
    pub field: Option<String>,
    /// What is wrong.
    pub why: String,
    /// What would be right; empty if `why` says it.
    pub cure: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(kind: Kind, why: impl Into<String>) -> Error {
        Error { kind, object: String::new(), field: None, why: why.into(), cure: String::new() }
    }

    pub fn invalid(why: impl Into<String>) -> Error {
        Error::new(Kind::Invalid, why)
    }

    #[must_use]
    pub fn of(self, object: impl Into<String>) -> Error {
        Error { object: object.into(), ..self }
    }

    #[must_use]
    pub fn field(self, field: impl Into<String>) -> Error {
        Error { field: Some(field.into()), ..self }
    }

    #[must_use]
    pub fn cure(self, cure: impl Into<String>) -> Error {
        Error { cure: cure.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_is_wrong_and_the_cure() {
        let error = Error::invalid("no such port").of("port 9").field("port");
        assert_eq!(error.to_string(), "no such port");
        assert_eq!(error.cure("ports are 0 to 7").to_string(), "no such port; ports are 0 to 7");
    }
}
