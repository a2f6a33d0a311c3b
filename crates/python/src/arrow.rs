//! Tables for Python by the Arrow PyCapsule interface: whatever understands Arrow takes them over without a copy.

use std::sync::Arc;

use arrow_array::ffi::to_ffi;
use arrow_array::{Array, ArrayRef, StructArray, UInt64Array};
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::TidegateError;

/// Columns of unsigned 64-bit numbers, all of one length.
#[pyclass(frozen, module = "tidegate._core")]
pub struct Columns(StructArray);

impl Columns {
    pub fn new(columns: Vec<(&'static str, Vec<u64>)>) -> Columns {
        let fields = columns.into_iter().map(|(name, values)| {
            let field = Arc::new(Field::new(name, DataType::UInt64, false));
            (field, Arc::new(UInt64Array::from(values)) as ArrayRef)
        });
        Columns(fields.collect::<Vec<_>>().into())
    }
}

#[pymethods]
impl Columns {
    /// The Arrow PyCapsule interface; there is one schema, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let (array, schema) =
            to_ffi(&self.0.to_data()).map_err(|error| TidegateError::new_err(error.to_string()))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}
