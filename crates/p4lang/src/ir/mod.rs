//! The lowered program: what executors run.
//!
//! The meeting point of the compiler and everything that executes P4 (interpreter, JIT, later eBPF). It is small:
//! every control, parser, function and action call is inlined, every generic instantiated, every struct flattened
//! into scalar variables, every name gone but for display. What is left is
//!
//! - a flat list of scalar [`Var`]s, some of which are the fields of [`Header`] instances;
//! - pure scalar [`Expr`]essions over them (evaluating one changes nothing and cannot fail);
//! - structured [`Stmt`]s with labelled blocks, loops and breaks;
//! - parsers as states, tables, actions, and the architecture's externs ([`ExternCall`]).
//!
//! # Meaning that both executors share
//!
//! - **Initial state.** At the start of a packet all [`VarHome::Global`] variables, header fields and validity bits
//!   are zero. [`VarHome::Local`] variables and local headers are always written (or [`Stmt::ResetHeader`]) before they are read.
//! - **Invalid headers** have storage: reading a field gives what is stored there, writing stores.
//! - **Element out of range** ([`Place::Elem`], [`HeaderRef::Elem`]): a read gives 0, a write or copy does nothing.
//! - **Division by zero** gives 0, as does the remainder.
//! - **Shifts** by the width or more give 0 (or all sign bits for an arithmetic right shift).
//! - **Work** that a packet causes is limited: each start of an iteration of a **loop**, and more, takes from the packet's budget
//!   (the data plane says how much); when it runs out the packet is dropped with the reason "work budget". **Parsers** may make
//!   [`PARSER_BUDGET`] transitions, then `error.ParserTimeout`.
//! - **Order.** Statements run in order; nothing inside an expression has an effect, so its order does not matter.
//!
//! Units: widths are bits, lengths are bytes unless named otherwise.

mod entity;
mod names;
pub mod print;

pub use entity::*;
pub use names::{ByName, Names};

use std::sync::Arc;

use num_bigint::BigUint;

use crate::source::Span;

/// Parser transitions that one packet may make in one pass through the parser.
pub const PARSER_BUDGET: u32 = 65_536;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident => $ty:ty, $field:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            pub fn index(self) -> usize { self.0 as usize }
        }
        impl std::ops::Index<$name> for Program {
            type Output = $ty;
            fn index(&self, id: $name) -> &$ty { &self.$field[id.0 as usize] }
        }
    )*};
}

ids! {
    VarId => Var, vars;
    HeaderTypeId => HeaderType, header_types;
    HeaderId => Header, headers;
    StackId => Stack, stacks;
    ParserId => Parser, parsers;
    ControlId => Control, controls;
    ActionId => Action, actions;
    TableId => Table, tables;
    ProfileId => ActionProfile, profiles;
    CounterId => Counter, counters;
    MeterId => Meter, meters;
    RegisterId => Register, registers;
    DigestId => Digest, digests;
    ValueSetId => ValueSet, value_sets;
}

/// Unique within one parser, control or action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// Index of a state in its parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateRef {
    Accept,
    Reject,
    State(u32),
}

#[derive(Debug, Clone, Default)]
pub struct Program {
    pub package: Package,
    pub vars: Vec<Var>,
    pub header_types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    /// `error` members; the index is the code that variables hold. 0 is NoError.
    pub errors: Vec<String>,
    pub parsers: Vec<Parser>,
    pub controls: Vec<Control>,
    pub actions: Vec<Action>,
    /// Actions that controls call directly. They are inlined where they are called; P4Info lists them, without
    /// parameters.
    pub direct_actions: Vec<Info>,
    pub tables: Vec<Table>,
    pub profiles: Vec<ActionProfile>,
    pub counters: Vec<Counter>,
    pub meters: Vec<Meter>,
    pub registers: Vec<Register>,
    pub digests: Vec<Digest>,
    pub value_sets: Vec<ValueSet>,
    /// `@field_list(n)` sets: what the preserving forms of clone, resubmit and recirculate keep.
    pub field_lists: Vec<FieldList>,
    /// `@controller_header` types.
    pub controller_headers: Vec<ControllerHeader>,
    /// For P4Info's type_info.
    pub p4_types: Vec<P4Type>,
    /// Package-level annotations on `main`, for pkg_info.
    pub package_annotations: Vec<Annotation>,
    pub names: Names,
    /// [`crate::Limits::queue_bytes`].
    pub queue_bytes: u64,
    /// Bytes that [`crate::Limits::state_bytes`] leaves beside the declared sizes, for what is added at run time.
    pub room: u64,
    /// Where a data plane lays out registers by how a program uses them: they lie as those of this program, which declares the same ones,
    /// and whose state is to be kept.
    pub registers_as: Option<Arc<Program>>,
}

/// What `main` is made of, in the words of its architecture.
#[derive(Debug, Clone, Default)]
pub struct Package {
    /// As P4Info names it: `v1model`.
    pub architecture: &'static str,
    /// By role, in the order of the package's parameters.
    pub blocks: Vec<(&'static str, BlockId)>,
    /// Metadata that the architecture reads or sets, by the architecture's name for it: `standard_metadata.egress_spec`.
    /// [`VarHome::Global`] variables.
    pub intrinsic: Vec<(String, VarId)>,
}

/// A parser or control of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockId {
    Parser(ParserId),
    Control(ControlId),
}

impl Package {
    pub fn parser(&self, role: &str) -> Option<ParserId> {
        self.blocks.iter().find_map(|(name, block)| match block {
            BlockId::Parser(id) if *name == role => Some(*id),
            _ => None,
        })
    }

    pub fn control(&self, role: &str) -> Option<ControlId> {
        self.blocks.iter().find_map(|(name, block)| match block {
            BlockId::Control(id) if *name == role => Some(*id),
            _ => None,
        })
    }

    /// The variable behind intrinsic metadata; `None` where the program's declarations lack it.
    pub fn field(&self, name: &str) -> Option<VarId> {
        self.intrinsic.iter().find(|(known, _)| known == name).map(|(_, var)| *var)
    }
}

/// A scalar. Booleans are 1 bit wide, errors and plain enums 32.
#[derive(Debug, Clone)]
pub struct Var {
    /// As a reader of the program knows it: `hdr.ipv4.ttl`, `meta.color`, `ingress.tmp`.
    pub name: String,
    /// Width in bits, at least 1 (zero-width fields are dropped); the maximum for a varbit.
    pub width: u32,
    pub varbit: bool,
    pub home: VarHome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarHome {
    /// User and standard metadata: kept from ingress to egress, copied with packet copies.
    Global,
    /// Field number `field` of a header.
    Field { header: HeaderId, field: u32 },
    /// A header's validity bit.
    Valid(HeaderId),
    /// A stack's nextIndex (32 bits).
    NextIndex(StackId),
    /// Lives within one run of one block.
    Local,
}

#[derive(Debug, Clone)]
pub struct HeaderType {
    pub name: String,
    pub fields: Vec<HeaderField>,
    /// Sum of the widths of all fixed-width fields.
    pub fixed_bits: u32,
    /// Index of the varbit field, if there is one.
    pub varbit: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct HeaderField {
    pub name: String,
    pub width: u32,
    pub varbit: bool,
    /// From the start of the header, counting a varbit as zero wide.
    pub bit_offset: u32,
}

/// One header instance. Its field variables are contiguous: field i is `first_field + i`.
#[derive(Debug, Clone)]
pub struct Header {
    pub name: String,
    pub ty: HeaderTypeId,
    pub first_field: VarId,
    pub valid: VarId,
    /// A local variable rather than part of the parsed representation.
    pub local: bool,
}

/// A header stack: `len` elements laid out alike. Element i of a variable or header of element 0 is at
/// `+ i * var_stride` / `+ i * header_stride`.
#[derive(Debug, Clone)]
pub struct Stack {
    pub name: String,
    pub len: u32,
    /// Elements are numbers, or structs or tuples of them, whose validity nobody looks at.
    pub plain: bool,
    pub first_header: HeaderId,
    /// Headers per element (more than 1 for a stack of unions).
    pub header_stride: u32,
    pub var_stride: u32,
    pub next: VarId,
}

/// Where a scalar is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Var(VarId),
    /// The variable in element `index` that corresponds to `var` in element 0.
    Elem {
        stack: StackId,
        var: VarId,
        index: Box<Expr>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum HeaderRef {
    Header(HeaderId),
    /// The header in element `index` that corresponds to `header` in element 0.
    Elem {
        stack: StackId,
        header: HeaderId,
        index: Box<Expr>,
    },
}

/// A pure expression. `width` is that of its value, at least 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub width: u32,
    pub kind: ExprKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Less than 2^width.
    Const(BigUint),
    /// Of a varbit variable only as an item of a data list ([`ExternCall`]) or in [`ExprKind::VarbitEq`].
    Read(Place),
    /// Bitwise complement; on one bit, logical not.
    Not(Box<Expr>),
    /// Two's complement negation.
    Neg(Box<Expr>),
    /// Operands as wide as the result, but for shifts (any width on the right) and comparisons (operands alike,
    /// result 1 bit).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Left operand in the high bits.
    Concat(Box<Expr>, Box<Expr>),
    /// Bits hi..=lo; `width == hi - lo + 1`. A narrowing cast is a slice from 0.
    Slice {
        base: Box<Expr>,
        hi: u32,
        lo: u32,
    },
    /// Widen with zeros or with the sign bit.
    ZeroExtend(Box<Expr>),
    SignExtend(Box<Expr>),
    /// Condition is 1 bit.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Equal in length and bits.
    VarbitEq(Place, Place),
    /// Length in bytes of the packet that is being parsed (`packet_in.length()`), 32 bits.
    PacketLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    /// Unsigned.
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    /// Logical.
    Shr,
    /// Arithmetic.
    Sar,
    AddSatU,
    AddSatS,
    SubSatU,
    SubSatS,
    Eq,
    Ne,
    LtU,
    LeU,
    LtS,
    LeS,
}

pub type Block = Vec<Stmt>;

#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Equal widths; never a varbit.
    Assign {
        dst: Place,
        src: Expr,
    },
    CopyVarbit {
        dst: Place,
        src: Place,
    },
    /// Validity and all fields; same header type.
    CopyHeader {
        dst: HeaderRef,
        src: HeaderRef,
    },
    /// Invalid, all fields zero.
    ResetHeader(HeaderRef),
    If {
        cond: Expr,
        then: Block,
        otherwise: Block,
    },
    /// Labels are disjoint constants of the width of `on`.
    Switch {
        on: Expr,
        cases: Vec<(Vec<BigUint>, Block)>,
        default: Block,
    },
    /// `Break(label)` leaves it.
    Labeled {
        label: LabelId,
        body: Block,
    },
    /// Repeats until `Break(label)`; each start of an iteration takes from the packet's work budget.
    Loop {
        label: LabelId,
        body: Block,
    },
    Break(LabelId),
    /// Starts the next iteration of the loop.
    Continue(LabelId),
    /// Evaluates the keys, looks up, runs the action. `hit` gets 0 or 1, `action_run` (32 bits) the index in
    /// [`Table::actions`] of the action that ran.
    Apply {
        table: TableId,
        hit: Option<VarId>,
        action_run: Option<VarId>,
    },
    Extern(ExternCall),

    // In parsers only. Each can fail: the parser error is set and the parser goes to reject.
    /// Reads the header from the packet and makes it valid. `varbit_bits` gives the length of its varbit field in
    /// bits. The first of these that fails gives the error: the header is whole bytes
    /// (`error.ParserInvalidArgument`), the packet has them (`error.PacketTooShort`), and the length is at most the
    /// field's maximum (`error.HeaderTooShort`).
    Extract {
        header: HeaderRef,
        varbit_bits: Option<Expr>,
    },
    /// Reads the next bits into the places in turn (widths add up to the whole) without moving on.
    Lookahead {
        into: Vec<Place>,
    },
    Advance {
        bits: Expr,
    },
    /// Unless `cond`: parser error `error` (a code), to reject.
    Verify {
        cond: Expr,
        error: Expr,
    },

    // In deparsers only.
    /// Appends the header if it is valid.
    Emit(HeaderRef),
}

/// A call to something that the architecture provides.
#[derive(Debug, Clone, PartialEq)]
pub enum ExternCall {
    /// Index out of range: no effect, here and in the next ones.
    CounterCount {
        counter: CounterId,
        index: Expr,
    },
    /// `dst`: 0 green, 1 yellow, 2 red. Index out of range: 0.
    MeterExecute {
        meter: MeterId,
        index: Expr,
        dst: Place,
    },
    /// Index out of range: 0.
    RegisterRead {
        register: RegisterId,
        index: Expr,
        dst: Place,
    },
    RegisterWrite {
        register: RegisterId,
        index: Expr,
        value: Expr,
    },
    /// Uniform in lo..=hi; `lo` if hi < lo.
    Random {
        dst: Place,
        lo: Expr,
        hi: Expr,
    },
    /// base + (hash(data) mod max), of which `dst` gets as many low bits as it has; `base` if max is 0. The hash is
    /// the algorithm's whole output, whatever the widths of the operands. Data items are concatenated and padded with zero bits at the end to whole bytes.
    Hash {
        dst: Place,
        algorithm: HashAlgorithm,
        base: Expr,
        data: Vec<Expr>,
        max: Expr,
    },
    /// If `cond` and the checksum differs: sets `flag` to 1.
    VerifyChecksum {
        flag: Option<VarId>,
        cond: Expr,
        data: Vec<Expr>,
        checksum: Expr,
        algorithm: HashAlgorithm,
        payload: bool,
    },
    UpdateChecksum {
        cond: Expr,
        data: Vec<Expr>,
        dst: Place,
        algorithm: HashAlgorithm,
        payload: bool,
    },
    /// Queue digest `digest` with these field values.
    Digest {
        digest: DigestId,
        receiver: Expr,
        fields: Vec<Expr>,
    },
    /// The last call in a pass wins. `field_list`: index of `@field_list`, if any is kept.
    Clone {
        kind: CloneKind,
        session: Expr,
        field_list: Option<u32>,
    },
    Resubmit {
        field_list: Option<u32>,
    },
    Recirculate {
        field_list: Option<u32>,
    },
    /// Bytes of the whole packet when it leaves.
    Truncate {
        bytes: Expr,
    },
    /// `format` with `{}` for each argument; `true` with those that are signed.
    LogMsg {
        format: String,
        args: Vec<(Expr, bool)>,
    },
    /// Unless `cond`: the packet is dropped with the reason "assertion"; executors report the place.
    Assert {
        cond: Expr,
        text: String,
        span: Span,
    },
    /// As `Assert`, but "assumption".
    Assume {
        cond: Expr,
        text: String,
        span: Span,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloneKind {
    IngressToEgress,
    EgressToEgress,
}

/// Hashes and checksums that externs name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    Crc32,
    Crc32Custom,
    Crc16,
    Crc16Custom,
    Random,
    Identity,
    Csum16,
    Xor16,
}

#[derive(Debug, Clone)]
pub struct Parser {
    pub name: String,
    pub states: Vec<State>,
    pub start: StateRef,
}

#[derive(Debug, Clone)]
pub struct State {
    /// Qualified by the sub-parser instance it came from; empty for one that the program does not name.
    pub name: String,
    pub body: Block,
    pub next: Transition,
}

#[derive(Debug, Clone)]
pub enum Transition {
    Direct(StateRef),
    /// The first case whose matches all hold wins; none: `error.NoMatch`, reject.
    Select {
        keys: Vec<Expr>,
        cases: Vec<SelectCase>,
    },
}

#[derive(Debug, Clone)]
pub struct SelectCase {
    /// One per key.
    pub matches: Vec<Match>,
    pub next: StateRef,
}

#[derive(Debug, Clone)]
pub enum Match {
    Any,
    Value(Expr),
    /// key & mask == value & mask
    Mask {
        value: Expr,
        mask: Expr,
    },
    /// lo <= key <= hi; unsigned unless `signed`.
    Range {
        lo: Expr,
        hi: Expr,
        signed: bool,
    },
    /// Field `field` of value set `set`; all keys of one case that name the same set match one member together.
    ValueSet {
        set: ValueSetId,
        field: u32,
    },
}

#[derive(Debug, Clone)]
pub struct Control {
    pub name: String,
    pub body: Block,
}
