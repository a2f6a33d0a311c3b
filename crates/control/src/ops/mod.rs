//! Every operation on a switch, a file for each family. An operation is defined here once, with a line for each of its fields;
//! its effect stands where the compiler asks for it: in [`crate::Target`] or [`crate::FixedParts`]. The dataclasses of Python,
//! the text form and the table in the documentation are made from the definitions (`describe.rs`).
//!
//! | file | family |
//! |---|---|
//! | `table` | tables and their entries |
//! | `profile` | members and groups of action profiles |
//! | `array` | registers, counters, meters |
//! | `value_set` | parser value sets |
//! | `copies` | multicast groups, their nodes, mirror sessions |
//! | `state` | digests, counts of drops, hashes, all state |
//! | `fixed` | ports, queues, packet generators, packets from and to the controller |

mod array;
mod copies;
mod field;
mod fixed;
mod profile;
mod state;
mod table;
mod value_set;

pub use array::ArrayOp;
pub use copies::CopiesOp;
pub use field::{Described, Field, FieldDoc, Source};
pub use fixed::FixedOp;
pub use profile::ProfileOp;
pub use state::StateOp;
pub use table::TableOp;
pub use value_set::ValueSetOp;

/// Defines a family: an enum with a variant for each operation, what is said of each, and how one is read from a [`Source`].
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        $Family:ident in $Wrap:ident {
            $(
                $(#[doc = $doc:literal])+
                $Variant:ident $name:literal -> $answer:ident {
                    $( $(#[doc = $field_doc:literal])+ $field:ident: $Type:ty, )*
                }
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $Family {
            $( $(#[doc = $doc])+ $Variant { $( $(#[doc = $field_doc])+ $field: $Type, )* }, )+
        }

        impl $Family {
            /// What is said of each operation.
            pub const OPERATIONS: &'static [$crate::ops::Described] = &[ $( $crate::ops::Described {
                name: $name,
                doc: concat!($($doc),+),
                answer: stringify!($answer),
                fields: &[ $( $crate::ops::FieldDoc {
                    name: stringify!($field),
                    doc: concat!($($field_doc),+),
                    python: <$Type as $crate::ops::Field>::PYTHON,
                    default: <$Type as $crate::ops::Field>::DEFAULT,
                    parts: <$Type as $crate::ops::Field>::PARTS,
                } ),* ],
            } ),+ ];

            #[allow(unused_variables)]
            pub(crate) fn read<S: $crate::ops::Source>(
                name: &str,
                source: &mut S,
            ) -> Option<std::result::Result<Self, S::Error>> {
                match name {
                    $( $name => {
                        let read = |source: &mut S| Ok($Family::$Variant {
                            $( $field: <$Type as $crate::ops::Field>::take(source, stringify!($field))?, )*
                        });
                        Some(read(source))
                    } )+
                    _ => None,
                }
            }

            /// Its name in text and in Python.
            pub fn name(&self) -> &'static str {
                match self { $( $Family::$Variant { .. } => $name, )+ }
            }
        }

        impl From<$Family> for $crate::ops::Op {
            fn from(op: $Family) -> $crate::ops::Op {
                $crate::ops::Op::$Wrap(op)
            }
        }
    };
}
pub(crate) use family;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Table(TableOp),
    Profile(ProfileOp),
    Array(ArrayOp),
    ValueSet(ValueSetOp),
    Copies(CopiesOp),
    State(StateOp),
    Fixed(FixedOp),
}

impl Op {
    /// What is said of every operation.
    pub fn operations() -> impl Iterator<Item = &'static Described> {
        let families: [&'static [Described]; 7] = [
            TableOp::OPERATIONS,
            ProfileOp::OPERATIONS,
            ArrayOp::OPERATIONS,
            ValueSetOp::OPERATIONS,
            CopiesOp::OPERATIONS,
            StateOp::OPERATIONS,
            FixedOp::OPERATIONS,
        ];
        families.into_iter().flatten()
    }

    /// The operation of a name, with its fields from a source; `None`: there is no such operation.
    pub fn read<S: Source>(name: &str, source: &mut S) -> Option<std::result::Result<Op, S::Error>> {
        fn some<T: Into<Op>, E>(
            read: Option<std::result::Result<T, E>>,
        ) -> Option<std::result::Result<Op, E>> {
            read.map(|done| done.map(Into::into))
        }
        some(TableOp::read(name, source))
            .or_else(|| some(ArrayOp::read(name, source)))
            .or_else(|| some(ProfileOp::read(name, source)))
            .or_else(|| some(ValueSetOp::read(name, source)))
            .or_else(|| some(CopiesOp::read(name, source)))
            .or_else(|| some(StateOp::read(name, source)))
            .or_else(|| some(FixedOp::read(name, source)))
    }

    /// Its name in text and in Python.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Table(op) => op.name(),
            Op::Profile(op) => op.name(),
            Op::Array(op) => op.name(),
            Op::ValueSet(op) => op.name(),
            Op::Copies(op) => op.name(),
            Op::State(op) => op.name(),
            Op::Fixed(op) => op.name(),
        }
    }
}
