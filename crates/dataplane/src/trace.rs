//! What happened to one packet, step by step.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::drops::DropReason;

/// One step. Values are in hexadecimal, `0x...`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A packet enters the parser.
    Receive {
        port: u32,
        bytes: usize,
        instance: &'static str,
    },
    /// A block starts.
    Block {
        name: String,
    },
    State {
        name: String,
    },
    Extract {
        header: String,
        bytes: String,
        fields: Vec<(String, String)>,
    },
    Lookahead {
        bits: u32,
        value: String,
    },
    Advance {
        bits: u64,
    },
    Select {
        keys: Vec<String>,
        next: String,
    },
    ParserError {
        error: String,
    },
    Apply {
        table: String,
        keys: Vec<(String, String)>,
        hit: bool,
        entry: Option<u32>,
    },
    Action {
        name: String,
        args: Vec<(String, String)>,
    },
    Extern {
        call: String,
    },
    Emit {
        header: String,
        bytes: String,
    },
    Drop {
        reason: DropReason,
    },
    Transmit {
        port: u32,
        bytes: usize,
    },
    /// Copies and returns: clone, multicast, resubmit, recirculate.
    Copy {
        what: String,
    },
}

/// The steps of one packet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    pub events: Vec<Event>,
}

impl Trace {
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }
}

fn pairs(list: &[(String, String)]) -> String {
    list.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Event::Receive { port, bytes, instance } => {
                write!(f, "packet of {bytes} bytes on port {port} ({instance})")
            }
            Event::Block { name } => write!(f, "  {name}"),
            Event::State { name } => write!(f, "    state {name}"),
            Event::Extract { header, bytes, fields } => {
                write!(f, "      extract {header} <- {bytes}")?;
                if !fields.is_empty() {
                    write!(f, "\n        {}", pairs(fields))?;
                }
                Ok(())
            }
            Event::Lookahead { bits, value } => write!(f, "      lookahead {bits} bits: {value}"),
            Event::Advance { bits } => write!(f, "      advance {bits} bits"),
            Event::Select { keys, next } => write!(f, "      select ({}) -> {next}", keys.join(", ")),
            Event::ParserError { error } => write!(f, "      error.{error} -> reject"),
            Event::Apply { table, keys, hit, entry } => {
                write!(f, "    table {table} ({}): ", pairs(keys))?;
                match entry {
                    Some(entry) if *hit => write!(f, "hit entry {entry}"),
                    _ => f.write_str("miss, default action"),
                }
            }
            Event::Action { name, args } => write!(f, "      action {name}({})", pairs(args)),
            Event::Extern { call } => write!(f, "      {call}"),
            Event::Emit { header, bytes } => write!(f, "    emit {header} -> {bytes}"),
            Event::Drop { reason } => write!(f, "  dropped: {}", reason.name()),
            Event::Transmit { port, bytes } => write!(f, "  sent {bytes} bytes on port {port}"),
            Event::Copy { what } => write!(f, "  {what}"),
        }
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

/// Bytes as `01020a`.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// Notes what happens to a packet, if that is recorded.
pub(crate) fn note(trace: &mut Option<&mut Trace>, what: impl FnOnce() -> String) {
    if let Some(trace) = trace {
        trace.push(Event::Copy { what: what() });
    }
}
