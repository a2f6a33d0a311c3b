//! What is made from the definitions of operations is what is checked in.

use std::collections::HashSet;
use std::path::Path;

use control::Op;

#[test]
fn python_and_documentation_follow_the_definitions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, made) in [
        ("python/tidegate/control/operations.py", control::describe::python()),
        ("docs/operations.md", control::describe::markdown()),
    ] {
        let there = std::fs::read_to_string(root.join(file)).unwrap();
        assert_eq!(there, made, "{file}: run `cargo run -p control --example generate`");
    }
}

#[test]
fn each_operation_has_a_name_of_its_own_and_words_for_each_field() {
    let mut names = HashSet::new();
    for operation in Op::operations() {
        assert!(names.insert(operation.name), "{} is there twice", operation.name);
        assert!(operation.doc.trim().ends_with('.'), "{}", operation.name);
        for field in operation.fields {
            assert!(!field.parts.is_empty() || field.doc.trim().ends_with('.'), "{}", operation.name);
        }
    }
}
