//! Types of an operation's fields, and where the fields can be read from.

use crate::{
    At, Call, CrcParameters, EntryRef, Extras, Generator, Leads, Match, MeterRates, Mirror, Name, PortConfig,
    Put, Share, Value, Words,
};

/// What is said of an operation.
#[derive(Debug)]
pub struct Described {
    /// In text; Python's class is this in capitals and small letters.
    pub name: &'static str,
    pub doc: &'static str,
    /// Variant of [`crate::Answer`].
    pub answer: &'static str,
    pub fields: &'static [FieldDoc],
}

/// What is said of a field.
#[derive(Debug)]
pub struct FieldDoc {
    pub name: &'static str,
    pub doc: &'static str,
    /// Python's type.
    pub python: &'static str,
    /// Python's text of what it is if it is not given.
    pub default: Option<&'static str>,
    /// The fields that stand in its place, if it is several.
    pub parts: &'static [FieldDoc],
}

/// Gives the fields of one operation by name. A source knows the program: what a match or a value means follows from the object
/// that another field of the same operation names.
pub trait Source {
    type Error;
    /// Whether the field is given, and is not `None`.
    fn has(&mut self, field: &str) -> bool;
    fn name(&mut self, field: &str) -> Result<Name, Self::Error>;
    fn number(&mut self, field: &str) -> Result<u64, Self::Error>;
    fn small(&mut self, field: &str) -> Result<u32, Self::Error>;
    fn flag(&mut self, field: &str) -> Result<bool, Self::Error>;
    fn numbers(&mut self, field: &str) -> Result<Vec<u32>, Self::Error>;
    fn pairs(&mut self, field: &str) -> Result<Vec<(u32, u32)>, Self::Error>;
    fn counts(&mut self, field: &str) -> Result<(u64, u64), Self::Error>;
    fn bytes(&mut self, field: &str) -> Result<Vec<u8>, Self::Error>;
    fn words(&mut self, field: &str) -> Result<Words, Self::Error>;
    /// Of a register's cell.
    fn value(&mut self, field: &str) -> Result<Value, Self::Error>;
    /// One match for each key of the `table`, or for each field of the `value_set`.
    fn matches(&mut self, field: &str) -> Result<Vec<Match>, Self::Error>;
    fn members(&mut self, field: &str) -> Result<Vec<Vec<Match>>, Self::Error>;
    fn entry(&mut self, field: &str) -> Result<EntryRef, Self::Error>;
    fn leads(&mut self, field: &str) -> Result<Leads, Self::Error>;
    /// Of an action of the `profile`.
    fn call(&mut self, field: &str) -> Result<Call, Self::Error>;
    fn shares(&mut self, field: &str) -> Result<Vec<Share>, Self::Error>;
    /// None of them: nothing is limited.
    fn rates(&mut self, field: &str) -> Result<Option<MeterRates>, Self::Error>;
    fn at(&mut self, field: &str) -> Result<At, Self::Error>;
    fn put(&mut self, field: &str) -> Result<Put, Self::Error>;
    fn mirror(&mut self, field: &str) -> Result<Mirror, Self::Error>;
    fn port(&mut self, field: &str) -> Result<PortConfig, Self::Error>;
    fn generator(&mut self, field: &str) -> Result<Generator, Self::Error>;
    fn crc(&mut self, field: &str) -> Result<CrcParameters, Self::Error>;
}

/// A type that a field can have.
pub trait Field: Sized {
    const PYTHON: &'static str;
    const DEFAULT: Option<&'static str> = None;
    const PARTS: &'static [FieldDoc] = &[];
    /// # Errors
    /// The source has no such value.
    fn take<S: Source>(source: &mut S, field: &str) -> Result<Self, S::Error>;
}

macro_rules! fields {
    ($( $Type:ty: $python:literal by $method:ident; )+) => { $(
        impl Field for $Type {
            const PYTHON: &'static str = $python;

            fn take<S: Source>(source: &mut S, field: &str) -> Result<Self, S::Error> {
                source.$method(field)
            }
        }
    )+ };
}

fields! {
    Name: "str" by name;
    u64: "int" by number;
    u32: "int" by small;
    bool: "bool" by flag;
    Vec<u32>: "Sequence[int]" by numbers;
    Vec<(u32, u32)>: "Sequence[tuple[int, int]]" by pairs;
    (u64, u64): "tuple[int, int]" by counts;
    Vec<u8>: "bytes" by bytes;
    Words: "bytes" by words;
    Value: "Bits" by value;
    Vec<Match>: "Sequence[Key]" by matches;
    Vec<Vec<Match>>: "Sequence[Sequence[Key]]" by members;
    EntryRef: "Entry" by entry;
    Leads: "Leads" by leads;
    Call: "Call" by call;
    Vec<Share>: "Sequence[Share]" by shares;
    At: "int | tuple[int, int] | None" by at;
    Put: "Put" by put;
    Mirror: "MirrorSpec" by mirror;
    PortConfig: "PortSpec" by port;
    Generator: "GeneratorSpec" by generator;
    CrcParameters: "Crc" by crc;
}

impl Field for Option<MeterRates> {
    const PYTHON: &'static str = "Rates";

    fn take<S: Source>(source: &mut S, field: &str) -> Result<Self, S::Error> {
        source.rates(field)
    }
}

macro_rules! optional {
    ($( $Type:ty: $python:literal; )+) => { $(
        impl Field for Option<$Type> {
            const PYTHON: &'static str = $python;
            const DEFAULT: Option<&'static str> = Some("None");

            fn take<S: Source>(source: &mut S, field: &str) -> Result<Self, S::Error> {
                if source.has(field) { <$Type>::take(source, field).map(Some) } else { Ok(None) }
            }
        }
    )+ };
}

optional! {
    Name: "str | None";
    u32: "int | None";
    EntryRef: "Entry | None";
    Leads: "Leads | None";
    Vec<u8>: "bytes | None";
}

impl Field for Extras {
    const PYTHON: &'static str = "";
    const PARTS: &'static [FieldDoc] = &[
        FieldDoc {
            name: "counter",
            doc: " Packets and bytes of the direct counter; `None` leaves them.",
            python: "tuple[int, int] | None",
            default: Some("None"),
            parts: &[],
        },
        FieldDoc {
            name: "meter",
            doc: " Rates of the direct meter, `()` for none; `None` leaves them.",
            python: "Rates | None",
            default: Some("None"),
            parts: &[],
        },
        FieldDoc {
            name: "idle_timeout",
            doc: " Picoseconds without a packet, 0 for none; `None` leaves it.",
            python: "int | None",
            default: Some("None"),
            parts: &[],
        },
        FieldDoc {
            name: "note",
            doc: " The control plane's own note; `None` leaves it.",
            python: "bytes | None",
            default: Some("None"),
            parts: &[],
        },
    ];

    fn take<S: Source>(source: &mut S, _: &str) -> Result<Self, S::Error> {
        Ok(Extras {
            counter: if source.has("counter") { Some(source.counts("counter")?) } else { None },
            meter: if source.has("meter") { Some(source.rates("meter")?) } else { None },
            idle_timeout: if source.has("idle_timeout") {
                Some(source.number("idle_timeout")?)
            } else {
                None
            },
            note: <Option<Vec<u8>> as Field>::take(source, "note")?,
        })
    }
}
