//! The syntax tree: a P4_16 program as written, names unresolved (P4_16 1.2.5, appendix "P4 grammar").
//!
//! Nothing here has been checked beyond the grammar. Every node carries its span.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::source::Span;

pub type Name = Arc<str>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    pub name: Name,
    pub span: Span,
}

/// A possibly rooted name: `x` or `.x` (section 6.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub rooted: bool,
    pub ident: Ident,
}

#[derive(Debug, Clone)]
pub struct Program {
    pub decls: Vec<Decl>,
}

/// `@name(...)`, `@name[...]` or `@name` (section 20).
#[derive(Debug, Clone)]
pub struct Annotation {
    pub name: Ident,
    pub body: AnnotationBody,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum AnnotationBody {
    None,
    /// Unstructured: the tokens between the parentheses as text, and, where they parse as a comma-separated
    /// list of expressions, those too.
    Free {
        text: String,
        exprs: Option<Vec<Expr>>,
    },
    /// `@a[e, e]`.
    List(Vec<Expr>),
    /// `@a[k=e, k=e]`.
    KeyValue(Vec<(Ident, Expr)>),
}

#[derive(Debug, Clone)]
pub struct Decl {
    pub annotations: Vec<Annotation>,
    pub kind: DeclKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum DeclKind {
    Const {
        ty: TypeRef,
        name: Ident,
        value: Expr,
    },
    /// Local variable.
    Variable {
        ty: TypeRef,
        name: Ident,
        init: Option<Expr>,
    },
    /// `Type(args) name;`, with an optional abstract-method block.
    Instantiation {
        ty: TypeRef,
        args: Vec<Arg>,
        name: Ident,
        body: Option<Vec<Decl>>,
    },
    Function(Function),
    Action {
        name: Ident,
        params: Vec<Param>,
        body: Block,
    },
    Table(Table),
    Parser(Parser),
    ParserType {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
    },
    Control(Control),
    ControlType {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
    },
    Package {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
    },
    Extern {
        name: Ident,
        type_params: Vec<Ident>,
        methods: Vec<Method>,
    },
    ExternFunction(Prototype),
    Header(StructLike),
    HeaderUnion(StructLike),
    Struct(StructLike),
    /// `underlying` present: serializable enum, every member with a value (section 7.2.1).
    Enum {
        name: Ident,
        underlying: Option<TypeRef>,
        members: Vec<(Ident, Option<Expr>, Vec<Annotation>)>,
    },
    Typedef {
        name: Ident,
        ty: TypeSource,
    },
    /// `type T N;`
    NewType {
        name: Ident,
        ty: TypeSource,
    },
    Error {
        members: Vec<Ident>,
    },
    MatchKind {
        members: Vec<(Ident, Option<Expr>)>,
    },
    ValueSet {
        ty: TypeRef,
        size: Expr,
        name: Ident,
    },
    /// A lone `;`.
    Empty,
}

/// What a typedef names: another type, or a struct-like declared in place.
#[derive(Debug, Clone)]
pub enum TypeSource {
    Type(TypeRef),
    Decl(Box<Decl>),
}

#[derive(Debug, Clone)]
pub struct StructLike {
    pub name: Ident,
    pub type_params: Vec<Ident>,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub annotations: Vec<Annotation>,
    pub ty: TypeRef,
    pub name: Ident,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Prototype {
    /// `None` for a constructor of an extern.
    pub return_type: Option<TypeRef>,
    pub name: Ident,
    pub type_params: Vec<Ident>,
    pub params: Vec<Param>,
}

#[derive(Debug, Clone)]
pub struct Method {
    pub annotations: Vec<Annotation>,
    pub is_abstract: bool,
    pub proto: Prototype,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Function {
    pub proto: Prototype,
    pub body: Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    None,
    In,
    Out,
    InOut,
}

impl Direction {
    /// As messages name it: "an `out` argument".
    pub fn with_article(self) -> &'static str {
        match self {
            Direction::None => "a",
            Direction::In => "an `in`",
            Direction::Out => "an `out`",
            Direction::InOut => "an `inout`",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Param {
    pub annotations: Vec<Annotation>,
    pub direction: Direction,
    pub ty: TypeRef,
    pub name: Ident,
    pub default: Option<Expr>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Parser {
    pub name: Ident,
    pub type_params: Vec<Ident>,
    pub params: Vec<Param>,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    pub locals: Vec<Decl>,
    pub states: Vec<State>,
}

#[derive(Debug, Clone)]
pub struct State {
    pub annotations: Vec<Annotation>,
    pub name: Ident,
    pub body: Vec<Stmt>,
    /// `None`: no transition statement, which means `reject` (section 13.5).
    pub transition: Option<Transition>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum Transition {
    Direct(Ident),
    Select { keys: Vec<Expr>, cases: Vec<SelectCase>, span: Span },
}

#[derive(Debug, Clone)]
pub struct SelectCase {
    /// One keyset (a tuple keyset is an [`ExprKind::List`]); `default` and `_` are [`ExprKind::Default`] and
    /// [`ExprKind::DontCare`].
    pub keyset: Expr,
    pub next: Ident,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Control {
    pub name: Ident,
    pub type_params: Vec<Ident>,
    pub params: Vec<Param>,
    pub ctor_params: Vec<Param>,
    pub locals: Vec<Decl>,
    pub apply: Block,
}

#[derive(Debug, Clone)]
pub struct Table {
    pub name: Ident,
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone)]
pub struct Property {
    pub annotations: Vec<Annotation>,
    pub is_const: bool,
    pub kind: PropertyKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum PropertyKind {
    Key(Vec<KeyElement>),
    Actions(Vec<ActionRef>),
    Entries(Vec<Entry>),
    /// Every other property, `default_action` and `size` among them: `name = expr;`
    Other {
        name: Ident,
        value: Expr,
    },
}

#[derive(Debug, Clone)]
pub struct KeyElement {
    pub annotations: Vec<Annotation>,
    pub expr: Expr,
    pub match_kind: Ident,
    pub span: Span,
}

/// `a`, `.a`, `a(args)` in a table's action list.
#[derive(Debug, Clone)]
pub struct ActionRef {
    pub annotations: Vec<Annotation>,
    pub path: Path,
    /// `None`: written without parentheses.
    pub args: Option<Vec<Arg>>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub annotations: Vec<Annotation>,
    pub is_const: bool,
    pub priority: Option<Expr>,
    pub keyset: Expr,
    pub action: ActionRef,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct TypeRef {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum TypeKind {
    Bool,
    Error,
    MatchKind,
    String,
    Void,
    /// Arbitrary-precision `int`.
    Int,
    /// `bit<w>` or `bit` (one bit); the width is an expression.
    Bit(Option<Box<Expr>>),
    /// `int<w>`.
    IntN(Box<Expr>),
    Varbit(Box<Expr>),
    /// A named type, with type arguments if there are any.
    Named {
        path: Path,
        args: Vec<TypeRef>,
    },
    Stack {
        element: Box<TypeRef>,
        size: Box<Expr>,
    },
    Tuple(Vec<TypeRef>),
    List(Box<TypeRef>),
    /// `_` as a type argument.
    DontCare,
}

/// An argument of a call or constructor.
#[derive(Debug, Clone)]
pub struct Arg {
    pub name: Option<Ident>,
    /// [`ExprKind::DontCare`] for `_`.
    pub value: Expr,
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Neg,
    /// Unary `+`.
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Mul,
    Div,
    Mod,
    Add,
    Sub,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    BitAnd,
    BitXor,
    BitOr,
    /// `++`
    Concat,
    And,
    Or,
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `width` absent: arbitrary precision. `8w255`: width 8; `8s127`: signed.
    Int {
        value: BigInt,
        width: Option<u32>,
        signed: bool,
    },
    Bool(bool),
    Str(String),
    Name(Path),
    /// A type where an expression may stand, as in `E.a`, `T.apply()`, `bit<8>.minSizeInBits()`. A plain type
    /// name may also arrive as [`ExprKind::Name`].
    Type(TypeRef),
    /// `error.X`: `Member` of `Type(Error)`.
    Member {
        base: Box<Expr>,
        name: Ident,
    },
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    Slice {
        base: Box<Expr>,
        hi: Box<Expr>,
        lo: Box<Expr>,
    },
    /// `base[lo +: width]`.
    PlusSlice {
        base: Box<Expr>,
        lo: Box<Expr>,
        width: Box<Expr>,
    },
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Ternary {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Cast {
        ty: TypeRef,
        operand: Box<Expr>,
    },
    /// `f(args)`, `f<T>(args)`, `a.b(args)`; also a constructor call, whose callee is a `Type` or `Name`.
    Call {
        callee: Box<Expr>,
        type_args: Vec<TypeRef>,
        args: Vec<Arg>,
    },
    /// `{ e, e }`, `{ e, ... }`, and a tuple keyset `(k, k)`.
    List {
        items: Vec<Expr>,
        ellipsis: bool,
    },
    /// `{ f = e, f = e }`, with a trailing `...` if `ellipsis`.
    StructInit {
        fields: Vec<(Ident, Expr)>,
        ellipsis: bool,
    },
    /// `{#}`
    Invalid,
    /// `...` as an initialiser (section 8.26, default values).
    Ellipsis,
    /// `e &&& m`
    Mask {
        value: Box<Expr>,
        mask: Box<Expr>,
    },
    /// `lo .. hi`
    Range {
        lo: Box<Expr>,
        hi: Box<Expr>,
    },
    /// `_`
    DontCare,
    /// `default` in a keyset or switch label.
    Default,
    This,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub annotations: Vec<Annotation>,
    pub stmts: Vec<Stmt>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum StmtKind {
    Empty,
    Block(Block),
    /// `op` present: `left op= right`.
    Assign {
        left: Expr,
        op: Option<BinaryOp>,
        right: Expr,
    },
    /// A method call, function call, table or control application, or direct application (`C.apply()`,
    /// whose callee is a member of a type).
    Call(Expr),
    Decl(Box<Decl>),
    If {
        cond: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    Switch {
        on: Expr,
        cases: Vec<SwitchCase>,
    },
    For {
        annotations: Vec<Annotation>,
        init: Vec<Stmt>,
        cond: Expr,
        update: Vec<Stmt>,
        body: Box<Stmt>,
    },
    /// `for (T x in e)` (declares `x`) or `for (x in e)`.
    ForIn {
        annotations: Vec<Annotation>,
        ty: Option<TypeRef>,
        name: Ident,
        over: Expr,
        body: Box<Stmt>,
    },
    Break,
    Continue,
    Return(Option<Expr>),
    Exit,
}

#[derive(Debug, Clone)]
pub struct SwitchCase {
    /// [`ExprKind::Default`] for `default`.
    pub label: Expr,
    /// `None`: falls through to the next case.
    pub body: Option<Block>,
    pub span: Span,
}
