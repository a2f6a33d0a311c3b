//! What the compiler asks of an architecture: a file of declarations, a package, and what its names mean.
//!
//! A program says which architecture it is for by the package that its `main` is made of; the declarations come from the file
//! that it includes. Everything else in the compiler is the language's or core.p4's. The trait is held against a second
//! architecture (`ebpf`) and, on paper, a third (docs/architectures.md).

use super::expr::Value;
use super::instance::{InstanceId, Object};
use super::{Lowered, Lowerer};
use crate::hir::{Call, Construct, TableDef, TableProperty, Type};
use crate::ir::{self, MatchKind};

/// One architecture. `None` and `false` in answers: it has nothing of that name, and the caller says so to the user.
pub(super) trait Architecture: Sync {
    /// As P4Info and messages name it.
    fn name(&self) -> &'static str;

    /// The file that programs include, and its text.
    fn declarations(&self) -> (&'static str, &'static str);

    /// Name of the package that `main` is made of.
    fn package(&self) -> &'static str;

    /// The package's parsers and controls, in the order of its parameters.
    fn roles(&self) -> &'static [Role];

    /// What the blocks share; [`Param::Shared`] counts in it.
    fn shared(&self) -> &'static [Shared];

    /// The match kinds that it has, and what their keys are for.
    fn match_kinds(&self) -> &'static [(&'static str, KeyUse)];

    /// A call of an extern function.
    fn function(&self, l: &mut Lowerer<'_>, name: &str, call: &Call) -> Lowered<Option<Value>>;

    /// The object that a constructor call of an extern makes.
    fn object(
        &self,
        l: &mut Lowerer<'_>,
        name: &str,
        made: (&Construct, &Type),
        info: ir::Info,
    ) -> Lowered<Option<Object>>;

    /// A call of a method of an object that [`Architecture::object`] made.
    fn method(
        &self,
        l: &mut Lowerer<'_>,
        object: InstanceId,
        name: &str,
        call: &Call,
    ) -> Lowered<Option<Value>>;

    /// Bits of the widest amount by which the reference compiler shifts for it; `None`: of any.
    fn shift_bits(&self) -> Option<u32> {
        None
    }

    /// A table property that the language does not define.
    fn property(&self, l: &mut Lowerer<'_>, property: &TableProperty, table: &mut ir::Table)
    -> Lowered<bool>;

    /// After a table's properties: what must hold of the whole table.
    fn table(&self, _l: &mut Lowerer<'_>, _declared: &TableDef, _table: &mut ir::Table) -> Lowered<()> {
        Ok(())
    }

    /// After the package: what the path of packets needs beside the blocks.
    fn package_end(&self, _l: &mut Lowerer<'_>) {}
}

/// A block of the package.
pub(super) struct Role {
    pub name: &'static str,
    pub params: &'static [Param],
}

/// What a parameter of a block stands for.
#[derive(PartialEq)]
pub(super) enum Param {
    /// `packet_in` or `packet_out`.
    Packet,
    /// By number in [`Architecture::shared`].
    Shared(usize),
}

/// Something that lives as long as the packet and is a parameter of several blocks.
pub(super) struct Shared {
    pub name: &'static str,
    /// The role whose parameter gives its type, and its name for those who read the program's variables.
    pub named_by: usize,
    /// Whether the data plane reads or sets it ([`ir::Package::intrinsic`]).
    pub intrinsic: bool,
}

/// What a key of a match kind is for.
#[derive(Clone, Copy)]
pub(super) enum KeyUse {
    Match(MatchKind),
    /// It feeds the hash of an action selector.
    Selector,
}
