//! Refusals as Python sees them: `TidegateError`, with the parts of a refusal as attributes.

use pyo3::prelude::*;

use crate::TidegateError;

pub fn refused(why: impl ToString) -> PyErr {
    TidegateError::new_err(why.to_string())
}

/// A refusal with its parts as attributes.
pub fn raise(py: Python<'_>, error: &control::Error) -> PyErr {
    let made = refused(error);
    let value = made.value(py);
    let set = || -> PyResult<()> {
        value.setattr("kind", error.kind.name())?;
        value.setattr("object", &error.object)?;
        value.setattr("field", error.field.as_deref())?;
        value.setattr("cure", &error.cure)
    };
    set().err().unwrap_or(made)
}
