//! What is made from the definitions of operations.

use std::fmt::Write;

use crate::Op;
use crate::ops::{Described, FieldDoc};

/// Types of `python/tidegate/control/objects.py` that fields can have.
const OBJECTS: [&str; 12] = [
    "Bits",
    "Call",
    "Crc",
    "Entry",
    "GeneratorSpec",
    "Key",
    "Leads",
    "MirrorSpec",
    "PortSpec",
    "Put",
    "Rates",
    "Share",
];

/// The fields of an operation, those that stand for several taken apart.
fn fields(operation: &'static Described) -> Vec<&'static FieldDoc> {
    let parts = |field: &'static FieldDoc| match field.parts {
        [] => std::slice::from_ref(field),
        parts => parts,
    };
    operation.fields.iter().flat_map(parts).collect()
}

/// Name of an operation's class in Python: `TableAdd` for `table_add`.
fn class(operation: &Described) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    operation.name.split('_').map(word).collect()
}

/// A line of prose as a docstring has it.
fn prose(doc: &str) -> String {
    doc.trim().to_owned()
}

/// `python/tidegate/control/operations.py`.
pub fn python() -> String {
    let mut out = String::from(
        r#"# Made from crates/control/src/ops by `cargo run -p control --example generate`. Do not edit.
"""Every operation on a switch, as `SwitchApi.act` and `PipelineApi.batch` take it: what `docs/operations.md` lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.control.objects import (
@IMPORTS@)


class Operation:
    """What can be asked of a switch."""

    __slots__ = ()
    op: ClassVar[str]
"#,
    );
    for operation in Op::operations() {
        let _ = write!(
            out,
            "\n\n@dataclass(slots=True)\nclass {}(Operation):\n    \"\"\"{}\"\"\"\n\n    op: ClassVar[str] = \"{}\"\n",
            class(operation),
            prose(operation.doc),
            operation.name
        );
        let mut fields = fields(operation);
        fields.sort_by_key(|field| field.default.is_some());
        for field in fields {
            let default = field.default.map(|text| format!(" = {text}")).unwrap_or_default();
            let _ = write!(
                out,
                "    {}: {}{default}\n    \"\"\"{}\"\"\"\n",
                field.name,
                field.python,
                prose(field.doc)
            );
        }
    }
    let words = |text: &'static str| text.split(|c: char| !c.is_alphanumeric());
    let mut types: Vec<&str> = Op::operations()
        .flat_map(fields)
        .flat_map(|field| words(field.python))
        .filter(|word| OBJECTS.contains(word))
        .collect();
    types.sort_unstable();
    types.dedup();
    out += &methods();
    out.replace("@IMPORTS@", &types.iter().map(|name| format!("    {name},\n")).collect::<String>())
}

/// Operations whose methods in `control/switch.py` take units, arrays or other things that suit people better.
const WRITTEN: [&str; 19] = [
    "table_add",
    "table_delete",
    "member_add",
    "group_add",
    "register_read",
    "register_write",
    "counter_read",
    "meter_set",
    "multicast_set",
    "multicast_delete",
    "mirror_set",
    "port_read",
    "queue_read",
    "generator_set",
    "generator_stop",
    "packet_out",
    // Of what control planes share by `control/delivery.py`: `SwitchApi.act` has them.
    "digests_take",
    "packet_take",
    "table_idle_take",
];
/// Characters of a line of Python.
const LINE: usize = 110;

/// A definition with its parameters, in as many lines as Python's formatter makes of it.
fn definition(name: &str, parameters: &[String], answer: &str) -> String {
    let all = parameters.join(", ");
    let short = format!("    def {name}({all}) -> {answer}:\n");
    if short.trim_end().len() <= LINE {
        return short;
    }
    if all.len() + 8 <= LINE {
        return format!("    def {name}(\n        {all}\n    ) -> {answer}:\n");
    }
    let each: String = parameters.iter().map(|one| format!("        {one},\n")).collect();
    format!("    def {name}(\n{each}    ) -> {answer}:\n")
}

/// A method of Python for each operation that has none of its own.
fn methods() -> String {
    let mut out = String::from(
        r#"

class Methods:
    """A method for each operation but those that `control/switch.py` writes with units and arrays."""

    def act(self, operation: Operation) -> Any:
        """Do an operation; return its answer."""
        raise NotImplementedError
"#,
    );
    for operation in Op::operations().filter(|operation| !WRITTEN.contains(&operation.name)) {
        let mut fields = fields(operation);
        fields.sort_by_key(|field| field.default.is_some());
        let parameter = |field: &&FieldDoc| {
            let default = field.default.map(|text| format!(" = {text}")).unwrap_or_default();
            format!("{}: {}{default}", field.name, field.python)
        };
        let parameters: Vec<String> =
            std::iter::once("self".to_owned()).chain(fields.iter().map(parameter)).collect();
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let act = format!("self.act({}({}))", class(operation), names.join(", "));
        let (answer, body) = match operation.answer {
            "Done" => ("None", act),
            "Handle" | "Count" => ("int", format!("found: int = {act}\n        return found")),
            _ => ("Any", format!("return {act}")),
        };
        let doc = prose(operation.doc);
        let definition = definition(operation.name, &parameters, answer);
        let _ = write!(out, "\n{definition}        \"\"\"{doc}\"\"\"\n        {body}\n");
    }
    out
}

/// `docs/operations.md`.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Operations on a switch\n\n\
         What can be asked of a switch, in the simulator and live. The table is made from the definitions in `crates/control`.\n\
         In Python each is a dataclass of `tidegate.control.operations` (`TableAdd` for `table_add`) that `act` and `batch` take.\n\
         Most are methods of `SwitchApi` too (`table_set`); those with units and arrays are in [control.md](control.md).\n\
         In files of commands each is a line `op NAME FIELD=VALUE...`, see [commands.md](commands.md#op).\n\
         Its messages of P4Runtime are in [p4runtime.md](p4runtime.md#what-is-supported).\n\n\
         | operation | does | fields | answer |\n|---|---|---|---|\n",
    );
    for operation in Op::operations() {
        let field = |f: &&FieldDoc| {
            let optional = if f.default.is_some() { ", optional" } else { "" };
            format!("`{}`{optional}: {}", f.name, prose(f.doc))
        };
        let fields: Vec<String> = fields(operation).iter().map(field).collect();
        let answer = if operation.answer == "Done" { "" } else { operation.answer };
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            operation.name,
            prose(operation.doc),
            fields.join("<br>"),
            answer
        );
    }
    out
}
