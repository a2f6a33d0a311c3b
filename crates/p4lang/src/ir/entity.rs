//! What the control plane sees: tables, actions and stateful objects, with their names, ids and annotations.
//! P4Info is made from these and nothing else.

use num_bigint::BigUint;

use super::{ActionId, Block, Expr, Place, ProfileId, VarId};
use crate::source::Span;

/// An annotation, for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotation {
    /// As written: `@brief("...")`.
    Free(String),
    /// `@name[...]` (P4_16 section 20.2).
    Structured { name: String, body: StructuredBody },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StructuredBody {
    List(Vec<AnnotationValue>),
    Pairs(Vec<(String, AnnotationValue)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationValue {
    Int(i64),
    String(String),
    Bool(bool),
}

impl Annotation {
    /// What stands between the parentheses, if this is a free annotation that begins with `name` and a parenthesis:
    /// `@brief(`.
    pub fn inside(&self, name: &str) -> Option<&str> {
        match self {
            Annotation::Free(text) => Some(text.strip_prefix(name)?.strip_suffix(')')?.trim()),
            Annotation::Structured { .. } => None,
        }
    }

    /// Bytes, about.
    pub fn weight(&self) -> usize {
        const EACH: usize = 64;
        let value = |value: &AnnotationValue| match value {
            AnnotationValue::String(text) => EACH + text.len(),
            AnnotationValue::Int(_) | AnnotationValue::Bool(_) => EACH,
        };
        EACH + match self {
            Annotation::Free(text) => text.len(),
            Annotation::Structured { name, body: StructuredBody::List(items) } => {
                name.len() + items.iter().map(value).sum::<usize>()
            }
            Annotation::Structured { name, body: StructuredBody::Pairs(pairs) } => {
                name.len() + pairs.iter().map(|(key, e)| key.len() + value(e)).sum::<usize>()
            }
        }
    }
}

/// Identity of an object in the control plane.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// Fully qualified control-plane name, `@name` applied: `MyIngress.ipv4_lpm`.
    pub name: String,
    /// From `@id`; else `None`, and P4Info makes one.
    pub id: Option<u32>,
    /// `@hidden`: left out of P4Info.
    pub hidden: bool,
    /// But for `@name`, `@id` and `@hidden`.
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Table {
    pub info: Info,
    /// Whether any code applies it. A table that none applies is not in P4Info.
    pub applied: bool,
    /// Runs before the keys are evaluated (calls hoisted out of key expressions).
    pub prelude: Block,
    pub keys: Vec<Key>,
    /// Fields that feed an action selector, in order (match kind `selector`); not part of the match.
    pub selector: Vec<Expr>,
    pub actions: Vec<TableAction>,
    /// Places in `actions`.
    pub action_names: super::ByName,
    pub default_action: ActionCall,
    pub const_default: bool,
    /// In order of priority already resolved: `priority` is filled in for ternary, range and optional tables.
    pub entries: Vec<Entry>,
    /// `const entries`: the control plane may not change them.
    pub const_entries: bool,
    /// Whether a numerically larger priority wins among the program's own entries; entries keep their number as
    /// given, executors order by this.
    pub largest_priority_wins: bool,
    pub size: u64,
    pub implementation: Option<ProfileId>,
    /// Counts every hit, before the action runs.
    pub direct_counter: Option<DirectCounter>,
    /// Executed on every hit, before the action runs.
    pub direct_meter: Option<DirectMeter>,
    pub support_timeout: bool,
}

impl Table {
    /// Kind and width of each key.
    pub fn kinds(&self) -> Vec<(MatchKind, u32)> {
        self.keys.iter().map(|key| (key.kind, key.expr.width)).collect()
    }
}

#[derive(Debug, Clone)]
pub struct Key {
    /// `@name` or the expression as written.
    pub name: String,
    pub expr: Expr,
    pub kind: MatchKind,
    pub annotations: Vec<Annotation>,
    /// Name of the `type` (new type) of the key, if it has one.
    pub type_name: Option<String>,
    /// Bits of its values in the control plane before translation; 0 where they are names (`error`).
    pub shown_width: u32,
    /// From `@id`.
    pub id: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
}

#[derive(Debug, Clone)]
pub struct TableAction {
    pub action: ActionId,
    pub default_only: bool,
    pub table_only: bool,
    pub annotations: Vec<Annotation>,
}

/// An action and its action data.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCall {
    /// Index in the table's action list.
    pub action: u32,
    /// One per [`Action::params`].
    pub args: Vec<BigUint>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub matches: Vec<EntryMatch>,
    /// Absent in tables without ternary, range or optional keys.
    pub priority: Option<u32>,
    pub action: ActionCall,
    pub is_const: bool,
    pub annotations: Vec<Annotation>,
}

/// What one key of one entry matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryMatch {
    Exact(BigUint),
    Lpm {
        value: BigUint,
        prefix_len: u32,
    },
    Ternary {
        value: BigUint,
        mask: BigUint,
    },
    /// Inclusive, unsigned.
    Range {
        lo: BigUint,
        hi: BigUint,
    },
    /// `None` matches anything.
    Optional(Option<BigUint>),
}

#[derive(Debug, Clone)]
pub struct Action {
    pub info: Info,
    /// Control-plane parameters; [`super::VarHome::Local`] variables that are set before `body` runs.
    pub params: Vec<ActionParam>,
    pub body: Block,
}

#[derive(Debug, Clone)]
pub struct ActionParam {
    pub name: String,
    pub var: VarId,
    pub annotations: Vec<Annotation>,
    pub type_name: Option<String>,
    /// As [`Key::shown_width`]; 0 for an enum without a representation.
    pub shown_width: u32,
    pub id: Option<u32>,
}

/// `action_profile` or, with `selector`, `action_selector`.
#[derive(Debug, Clone)]
pub struct ActionProfile {
    pub info: Info,
    pub size: u64,
    pub selector: Option<Selector>,
}

impl ActionProfile {
    /// What stands between the parentheses of an annotation, `name` being its beginning with the parenthesis.
    fn annotation(&self, name: &str) -> Option<&str> {
        let found = self.info.annotations.iter().find_map(|a| a.inside(name));
        found.map(|text| text.trim_matches('"'))
    }

    /// Whether the program says that a group's size is the sum of its members' weights, which holds as well if it says
    /// nothing (`@selector_size_semantics("sum_of_weights")`).
    pub fn says_sum_of_weights(&self) -> bool {
        self.annotation("@selector_size_semantics(")
            .is_some_and(|said| said.eq_ignore_ascii_case("sum_of_weights"))
    }

    /// Whether a group's size is the number of its members (`@selector_size_semantics("sum_of_members")`), not their
    /// weights; and then how much a member may weigh at most, 0 for as much as it likes.
    pub fn sum_of_members(&self) -> Option<u32> {
        if !self.annotation("@selector_size_semantics(")?.eq_ignore_ascii_case("sum_of_members") {
            return None;
        }
        Some(self.annotation("@max_member_weight(").and_then(|weight| weight.parse().ok()).unwrap_or(0))
    }
}

#[derive(Debug, Clone)]
pub struct Selector {
    pub algorithm: super::HashAlgorithm,
    /// Width of the hash's output in bits.
    pub output_width: u32,
    /// `@max_group_size`; 0 if not given.
    pub max_group_size: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CounterUnit {
    Packets,
    Bytes,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeterUnit {
    Packets,
    Bytes,
}

#[derive(Debug, Clone)]
pub struct Counter {
    pub info: Info,
    pub size: u64,
    pub unit: CounterUnit,
    /// Name of the index's new type, if it has one.
    pub index_type_name: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Meter {
    pub info: Info,
    pub size: u64,
    pub unit: MeterUnit,
    pub index_type_name: Option<String>,
}

#[derive(Debug, Clone)]
pub struct DirectCounter {
    pub info: Info,
    pub unit: CounterUnit,
}

#[derive(Debug, Clone)]
pub struct DirectMeter {
    pub info: Info,
    pub unit: MeterUnit,
    /// Where the colour goes (0 green, 1 yellow, 2 red); `None` if no action reads it.
    pub dst: Option<Place>,
}

#[derive(Debug, Clone)]
pub struct Register {
    pub info: Info,
    pub size: u64,
    /// Bits per element.
    pub width: u32,
    /// What a cell is to the control plane.
    pub data: DataType,
    pub index_type_name: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Digest {
    pub info: Info,
    /// Name of the struct, if the digest's type is one.
    pub type_name: Option<String>,
    /// What the control plane gets.
    pub data: DataType,
    /// Field names and widths.
    pub fields: Vec<(String, u32)>,
}

#[derive(Debug, Clone)]
pub struct ValueSet {
    pub info: Info,
    pub size: u64,
    /// Name, width and match kind of each field.
    pub fields: Vec<(String, u32, MatchKind)>,
    /// What the program says of each field of a struct; nothing for other types, whose fields have no names.
    pub described: Vec<FieldInfo>,
    /// Of each field, the name of its type if that is a new type.
    pub type_names: Vec<Option<String>>,
}

/// What the control plane sees of a struct's field beside its name and type.
#[derive(Debug, Clone, Default)]
pub struct FieldInfo {
    /// From `@id`.
    pub id: Option<u32>,
    pub annotations: Vec<Annotation>,
}

#[derive(Debug, Clone, Default)]
pub struct FieldList {
    pub index: u32,
    pub vars: Vec<VarId>,
    /// Headers in the list are kept whole.
    pub headers: Vec<super::HeaderId>,
}

/// A header type with `@controller_header("packet_in" | "packet_out")`.
#[derive(Debug, Clone)]
pub struct ControllerHeader {
    pub info: Info,
    /// Value of the annotation.
    pub direction: String,
    pub fields: Vec<ControllerField>,
}

#[derive(Debug, Clone)]
pub struct ControllerField {
    pub name: String,
    pub width: u32,
    pub annotations: Vec<Annotation>,
    pub type_name: Option<String>,
    pub id: Option<u32>,
}

/// A type that P4Info's type_info mentions.
#[derive(Debug, Clone)]
pub enum P4Type {
    SerializableEnum {
        name: String,
        width: u32,
        members: Vec<(String, BigUint)>,
    },
    NewType {
        name: String,
        original: DataType,
        annotations: Vec<Annotation>,
        translation: Option<Translation>,
    },
    Struct {
        name: String,
        fields: Vec<(String, DataType)>,
    },
    /// Its fields are bits, those of structs in it among them.
    Header {
        name: String,
        fields: Vec<(String, DataType)>,
    },
    /// Without a representation: the control plane uses the members' names.
    Enum {
        name: String,
        members: Vec<String>,
    },
    /// `error`, with [`super::Program::errors`] as members.
    Error,
}

/// The type of a member, as P4Info has it (`P4DataTypeSpec`).
#[derive(Debug, Clone)]
pub enum DataType {
    Bits {
        width: u32,
        signed: bool,
    },
    Varbit(u32),
    Bool,
    Error,
    Tuple(Vec<DataType>),
    /// By name.
    NewType(String),
    Enum(String),
    SerializableEnum(String),
    Struct(String),
    Header(String),
}

/// `@p4runtime_translation(uri, bits or string)`.
#[derive(Debug, Clone)]
pub struct Translation {
    pub uri: String,
    /// `None`: string.
    pub sdn_width: Option<u32>,
}
