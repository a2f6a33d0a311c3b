//! Writes what is made from the definitions of operations; `tests/generated.rs` compares it.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::write(root.join("python/tidegate/control/operations.py"), control::describe::python())?;
    std::fs::write(root.join("docs/operations.md"), control::describe::markdown())
}
