//! The checked program: names resolved, every expression typed, implicit casts made explicit.
//!
//! The checker (`check`) produces it from the syntax tree, the lowering (`lower`) consumes it. What holds here:
//!
//! - Every [`Expr`] has its final type. No implicit conversion is left: where a value of one type meets another the
//!   checker put a [`ExprKind::Cast`]; integer literals have got the type that their context gives them.
//! - Typedefs are resolved away; names are [`DefId`]s; named and defaulted arguments are in parameter order, and an
//!   [`Order`] says in which they are evaluated.
//! - Generic declarations stay generic: their bodies mention [`Type::Param`], uses carry type arguments, and the
//!   lowering substitutes. Type arguments are always complete (inference is done).
//! - Constant expressions are folded where they don't depend on constructor parameters.

use std::collections::HashSet;

use num_bigint::BigInt;

use crate::ast::{Annotation, BinaryOp, Direction, Name, UnaryOp};
use crate::source::Span;

/// Index into [`Hir::defs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub u32);

/// Index into [`Hir::type_params`]; unique over the whole program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeParamId(pub u32);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    Void,
    Bool,
    /// Arbitrary-precision `int`; compile-time only.
    Int,
    Bits {
        width: u32,
        signed: bool,
    },
    /// Maximum width in bits.
    Varbit(u32),
    String,
    Error,
    MatchKind,
    /// Struct, header or header union, with type arguments.
    Struct(DefId, Vec<Type>),
    Header(DefId, Vec<Type>),
    Union(DefId, Vec<Type>),
    /// Plain and serializable enums ([`EnumDef::underlying`]).
    Enum(DefId),
    /// `type T N;`
    New(DefId),
    Stack(Box<Type>, u32),
    Tuple(Vec<Type>),
    /// `list<T>`; compile-time only.
    List(Box<Type>),
    /// `set<T>`: the type of a keyset.
    Set(Box<Type>),
    Extern(DefId, Vec<Type>),
    /// An instance of a parser or control, or a parser/control type in a package's parameters.
    Parser(DefId, Vec<Type>),
    Control(DefId, Vec<Type>),
    Package(DefId, Vec<Type>),
    /// The type of a value set name.
    ValueSet(Box<Type>),
    Table(DefId),
    /// Result of `t.apply()`.
    ApplyResult(DefId),
    /// `t.apply().action_run`.
    ActionRun(DefId),
    Action,
    /// `_`: unknown and unused.
    DontCare,
    Param(TypeParamId),
    /// The type of something in error; compatible with everything, reported once. Never in a successful Hir.
    Unknown,
}

impl Type {
    /// Whether no variable, parameter of an action or part of another type has this type.
    pub fn has_no_values(&self) -> bool {
        matches!(
            self,
            Type::Void
                | Type::DontCare
                | Type::Extern(..)
                | Type::Parser(..)
                | Type::Control(..)
                | Type::Package(..)
        )
    }
}

#[derive(Debug, Clone, Default)]
pub struct Hir {
    pub defs: Vec<Def>,
    /// Names of type parameters, for messages.
    pub type_params: Vec<Name>,
    /// Top-level definitions in source order (built-in ones included).
    pub top: Vec<DefId>,
    /// All error members; index is the code (core.p4's first).
    pub errors: Vec<Name>,
    /// All match kinds in order.
    pub match_kinds: Vec<Name>,
    /// The instance called `main`.
    pub main: Option<DefId>,
}

impl Hir {
    pub fn def(&self, id: DefId) -> &Def {
        &self.defs[id.0 as usize]
    }
}

#[derive(Debug, Clone)]
pub struct Def {
    pub name: Name,
    pub span: Span,
    pub annotations: Vec<Annotation>,
    /// The enclosing parser, control, table, extern or function.
    pub parent: Option<DefId>,
    pub kind: DefKind,
}

#[derive(Debug, Clone)]
pub enum DefKind {
    Const {
        ty: Type,
        value: Expr,
    },
    /// Local variable. `init` is evaluated where the declaration stands.
    Variable {
        ty: Type,
        init: Option<Expr>,
    },
    /// A parameter of anything callable, or a constructor parameter.
    Param(ParamDef),
    /// `Ctor<targs>(args) name;` at top level or in a parser or control.
    Instance(InstanceDef),
    Function(FunctionDef),
    Action(ActionDef),
    Table(Box<TableDef>),
    Parser(Box<ParserDef>),
    Control(Box<ControlDef>),
    /// `parser P<..>(..);` and `control C<..>(..);`
    ParserType(SignatureDef),
    ControlType(SignatureDef),
    Package(SignatureDef),
    Extern(ExternDef),
    /// An extern function, or a method or constructor of an extern (with `parent`).
    ExternFn(SignatureDef),
    Struct(StructDef),
    Header(StructDef),
    Union(StructDef),
    Enum(EnumDef),
    NewType {
        ty: Type,
    },
    ValueSet {
        ty: Type,
        size: u64,
    },
    Typedef {
        ty: Type,
    },
    /// `error` and `match_kind` blocks, kept for order only.
    Other,
}

impl DefKind {
    /// Whether its name is one of a type.
    pub fn is_type(&self) -> bool {
        use DefKind as K;
        matches!(
            self,
            K::Struct(_)
                | K::Header(_)
                | K::Union(_)
                | K::Enum(_)
                | K::NewType { .. }
                | K::Typedef { .. }
                | K::Extern(_)
                | K::Parser(_)
                | K::Control(_)
                | K::ParserType(_)
                | K::ControlType(_)
                | K::Package(_)
        )
    }
}

#[derive(Debug, Clone)]
pub struct ParamDef {
    pub direction: Direction,
    pub ty: Type,
    pub default: Option<Expr>,
    /// `@optional`.
    pub optional: bool,
}

#[derive(Debug, Clone)]
pub struct SignatureDef {
    pub type_params: Vec<TypeParamId>,
    /// Every one a [`DefKind::Param`].
    pub params: Vec<DefId>,
    pub returns: Type,
}

#[derive(Debug, Clone)]
pub struct InstanceDef {
    pub ty: Type,
    pub value: Construct,
    /// Implementations of abstract methods.
    pub body: Vec<DefId>,
}

/// A constructor call with its compile-time arguments, in parameter order.
#[derive(Debug, Clone)]
pub struct Construct {
    /// A parser, control, package or extern.
    pub def: DefId,
    pub type_args: Vec<Type>,
    /// For an extern with several constructors, the one chosen.
    pub ctor: Option<DefId>,
    /// `None`: optional parameter left out, or `_`.
    pub args: Vec<Option<Expr>>,
}

#[derive(Debug, Clone)]
pub struct FunctionDef {
    pub signature: SignatureDef,
    pub body: Block,
}

#[derive(Debug, Clone)]
pub struct ActionDef {
    pub params: Vec<DefId>,
    pub body: Block,
}

#[derive(Debug, Clone)]
pub struct ExternDef {
    pub type_params: Vec<TypeParamId>,
    pub constructors: Vec<DefId>,
    pub methods: Vec<DefId>,
}

#[derive(Debug, Clone)]
pub struct StructDef {
    pub type_params: Vec<TypeParamId>,
    pub fields: Vec<FieldDef>,
}

#[derive(Debug, Clone)]
pub struct FieldDef {
    pub name: Name,
    pub ty: Type,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct EnumDef {
    /// `Some` for a serializable enum.
    pub underlying: Option<Type>,
    /// Values are given for serializable enums; others have none.
    pub members: Vec<(Name, Option<BigInt>)>,
}

#[derive(Debug, Clone)]
pub struct ParserDef {
    pub signature: SignatureDef,
    pub ctor_params: Vec<DefId>,
    /// Constants, variables, instances, value sets, in order; variables with their initialisers.
    pub locals: Vec<DefId>,
    /// Index 0.. are the declared states.
    pub states: Vec<State>,
    /// Index of `start`.
    pub start: usize,
}

#[derive(Debug, Clone)]
pub struct State {
    pub name: Name,
    pub annotations: Vec<Annotation>,
    pub span: Span,
    pub body: Vec<Stmt>,
    pub transition: Transition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateRef {
    Accept,
    Reject,
    State(usize),
}

#[derive(Debug, Clone)]
pub enum Transition {
    Direct(StateRef),
    Select {
        keys: Vec<Expr>,
        /// In order; the first that matches wins; none: `error.NoMatch`.
        cases: Vec<(Keyset, StateRef)>,
        span: Span,
    },
}

/// One keyset per key; or a single [`KeysetElem::Any`] / [`KeysetElem::ValueSet`] for all keys together.
#[derive(Debug, Clone)]
pub struct Keyset {
    pub elems: Vec<KeysetElem>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum KeysetElem {
    Any,
    Value(Expr),
    Mask(Expr, Expr),
    Range(Expr, Expr),
    /// A [`DefKind::ValueSet`].
    ValueSet(DefId),
}

#[derive(Debug, Clone)]
pub struct ControlDef {
    pub signature: SignatureDef,
    pub ctor_params: Vec<DefId>,
    /// Constants, variables, instances, actions and tables, in order.
    pub locals: Vec<DefId>,
    pub body: Block,
}

#[derive(Debug, Clone)]
pub struct TableDef {
    pub keys: Vec<TableKey>,
    pub actions: Vec<TableAction>,
    /// Index into `actions` and all of the action's arguments (`None` where the list already bound one with a
    /// direction). Absent: NoAction.
    pub default_action: Option<EntryAction>,
    pub const_default: bool,
    pub entries: Vec<TableEntry>,
    pub const_entries: bool,
    /// Every key and action of the source is here: none was refused.
    pub complete: bool,
    /// Known at compile time, once constructor arguments are.
    pub size: Option<Expr>,
    /// Default true; `largest_priority_wins = false` reverses.
    pub largest_priority_wins: bool,
    /// Default 1.
    pub priority_delta: u32,
    /// Every other property by name (`implementation`, `counters`, `meters`, `support_timeout`, ...), checked
    /// against the architecture by the lowering.
    pub properties: Vec<TableProperty>,
}

#[derive(Debug, Clone)]
pub struct TableProperty {
    pub name: Name,
    pub annotations: Vec<Annotation>,
    pub value: Expr,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct TableKey {
    pub expr: Expr,
    pub match_kind: Name,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct TableAction {
    pub action: DefId,
    /// One per action parameter: `Some` for those bound in the action list (all with a direction).
    pub bound: Vec<Option<Expr>>,
    /// Of the bound ones.
    pub order: Order,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct EntryAction {
    pub index: usize,
    /// One per action parameter; `Some` for the directionless ones.
    pub args: Vec<Option<Expr>>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct TableEntry {
    pub keyset: Keyset,
    pub action: EntryAction,
    pub priority: Option<BigInt>,
    pub is_const: bool,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum StmtKind {
    Block(Block),
    /// The left side is an l-value: Ref, Field, Index, Slice of one. Compound assignment arrives as
    /// `op: Some`, with both sides already of the operand types; the left side is evaluated once.
    Assign {
        left: Expr,
        op: Option<BinaryOp>,
        right: Expr,
    },
    /// The result, if any, is thrown away.
    Call(Call),
    /// A variable, constant or instance declared here.
    Decl(DefId),
    If {
        cond: Expr,
        then: Block,
        otherwise: Block,
    },
    /// On `action_run`: labels are indices into the table's action list. An empty list of labels never occurs.
    SwitchAction {
        table: Call,
        cases: Vec<(Vec<usize>, Block)>,
        default: Option<Block>,
    },
    /// Labels are constants of the type of `on`. Fall-through is resolved.
    Switch {
        on: Expr,
        cases: Vec<(Vec<Expr>, Block)>,
        default: Option<Block>,
    },
    For {
        init: Vec<Stmt>,
        cond: Expr,
        update: Vec<Stmt>,
        body: Block,
    },
    /// `var` is a [`DefKind::Variable`] that takes each value in turn.
    ForRange {
        var: DefId,
        lo: Expr,
        hi: Expr,
        body: Block,
    },
    /// Over a list/tuple expression or a header stack.
    ForIn {
        var: DefId,
        over: Expr,
        body: Block,
    },
    Break,
    Continue,
    Return(Option<Expr>),
    Exit,
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub ty: Type,
    pub kind: ExprKind,
    pub span: Span,
}

/// The order in which parts are evaluated, if they are not written in their own: a permutation of them.
#[derive(Debug, Clone, Default)]
pub struct Order(Vec<usize>);

impl Order {
    /// `written`: which of `len` parts are written, in the order of the text. The others are constants, and come last.
    pub fn new(mut written: Vec<usize>, len: usize) -> Order {
        if written.is_sorted() {
            return Order::default();
        }
        let known: HashSet<usize> = written.iter().copied().collect();
        written.extend((0..len).filter(|index| !known.contains(index)));
        Order(written)
    }

    /// The indices of all of `len` parts.
    pub fn indices(&self, len: usize) -> impl Iterator<Item = usize> {
        (0..len).map(move |at| self.0.get(at).copied().unwrap_or(at))
    }
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    /// Of type Int, Bits, or a serializable enum or new type over bits.
    Int(BigInt),
    Bool(bool),
    Str(String),
    /// Index into [`Hir::errors`].
    Error(usize),
    /// Index into [`EnumDef::members`].
    EnumMember(DefId, usize),
    /// Variable, parameter, constant (only where it depends on a constructor parameter), or instance.
    Ref(DefId),
    /// Field of a struct, header or union, by index; element of a tuple too.
    Field(Box<Expr>, usize),
    Index(Box<Expr>, Box<Expr>),
    /// `e[hi:lo]`, constant bounds.
    Slice {
        base: Box<Expr>,
        hi: u32,
        lo: u32,
    },
    StackNext(Box<Expr>),
    StackLast(Box<Expr>),
    StackLastIndex(Box<Expr>),
    /// Both operands have the operand type that the operator wants; shifts may differ in width.
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// To `self.ty`.
    Cast(Box<Expr>),
    /// One per field, in order; of a header, valid. `None`: default value (from `...`).
    Struct(Vec<Option<Expr>>, Order),
    /// Tuple, list or header-stack value. `None` as above.
    List(Vec<Option<Expr>>),
    /// `{#}` of a header or union type.
    Invalid,
    /// `...`: the default value of the type.
    Default,
    /// `_` as an argument for an `out` parameter or of a generic call; evaluated to nothing.
    DontCare,
    Call(Box<Call>),
    /// `t.apply().hit` / `.miss`.
    TableHit {
        apply: Box<Call>,
        miss: bool,
    },
    Construct(Box<Construct>),
    /// An action named as a value (table properties).
    ActionRef(DefId),
}

#[derive(Debug, Clone)]
pub struct Call {
    pub callee: Callee,
    /// Complete, in the order of the callee's type parameters.
    pub type_args: Vec<Type>,
    /// In parameter order. `None`: optional parameter left out.
    pub args: Vec<Option<Expr>>,
    /// Of the arguments.
    pub order: Order,
    /// Result type.
    pub ty: Type,
    pub span: Span,
}

impl Call {
    /// Parameters with their arguments, as these are evaluated and results copied back.
    pub fn arguments(&self, params: &[DefId]) -> Vec<(DefId, Option<&Expr>)> {
        let each = self.order.indices(self.args.len());
        each.filter_map(|index| Some((*params.get(index)?, self.args[index].as_ref()))).collect()
    }
}

#[derive(Debug, Clone)]
pub enum Callee {
    Function(DefId),
    /// A direct call of an action; every parameter has an argument.
    Action(DefId),
    ExternFn(DefId),
    /// A method of an extern object (an instance, or a parameter such as `packet_in`).
    Method {
        object: Expr,
        method: DefId,
    },
    /// `t.apply()`.
    Table(DefId),
    /// `instance.apply(args)`; the object is a Ref to an Instance or constructor parameter.
    Apply(Expr),
    /// `C.apply(args)`: direct application of a parser or control type; a fresh instance, named after the type.
    DirectApply(DefId),
    /// Header or union: isValid, setValid, setInvalid; stack: push_front, pop_front (constant count).
    IsValid(Expr),
    SetValid(Expr),
    SetInvalid(Expr),
    PushFront(Expr, u32),
    PopFront(Expr, u32),
}
