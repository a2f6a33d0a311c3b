//! The command language of the reference switch (`simple_switch_CLI`), for `--commands` files and within STF files.
//!
//! Each command is read as a [`control::Op`], and the answer written as text.
//!
//! One command a line, words apart by blanks, `#` starts a comment and so does a word that begins with `//`. A command either does all that it says and gives
//! back its answer (empty if there is nothing to say), or changes nothing and gives back the reason.
//!
//! | file | commands |
//! |---|---|
//! | `table.rs` | `table_*`, `table_indirect_*`: what they write |
//! | `dump.rs` | `table_*` and `show_*`: what they read |
//! | `value_set.rs` | `pvs_*` |
//! | `profile.rs` | `act_prof_*` |
//! | `objects.rs` | `register_*`, `counter_*`, `meter_*`, `set_crc*_parameters` |
//! | `replication.rs` | `mirroring_*`, `mc_*` |
//! | `op.rs` | `op`: every operation there is |
//! | `answer.rs` | answers of `op` as text |

mod answer;
mod dump;
mod objects;
mod op;
mod profile;
mod replication;
mod table;
mod value_set;

use std::path::Path;

use control::{Op, StateOp, Target};
use dataplane::pipeline::Pipeline;
use serde_json::{Value, json};
use units::Time;

pub use answer::answer as answer_text;
pub use op::operation;

use crate::load::read_text;
use crate::{Failure, Result};

/// The answer of a command, or why it was refused.
pub type Answer = std::result::Result<String, String>;

/// A switch and the time that commands happen at.
pub struct Session<'a> {
    pub pipeline: &'a mut Pipeline,
    /// Picoseconds.
    pub now: u64,
}

/// Names of commands that only look.
const READS: &[&str] = &[
    "act_prof_dump",
    "act_prof_dump_group",
    "act_prof_dump_member",
    "counter_read",
    "mc_dump",
    "meter_get_rates",
    "mirroring_get",
    "pvs_get",
    "register_read",
    "show_actions",
    "show_pvs",
    "show_tables",
    "table_dump",
    "table_dump_entry",
    "table_dump_entry_from_key",
    "table_info",
    "table_num_entries",
    "table_show_actions",
];

const NO_QUEUES: &str = "queues are not set by commands here; `tidegate switch` has --rate and --queue-limit";

/// Commands that do nothing here, and why that is all right.
const NO_EFFECT: &[(&str, &str)] = &[
    ("set_queue_depth", NO_QUEUES),
    ("set_queue_rate", NO_QUEUES),
    ("port_add", "every port exists"),
    ("show_ports", "every port exists"),
    ("switch_info", "there is no server to ask"),
    ("get_time_elapsed", "time here is that of the packets"),
    ("get_time_since_epoch", "time here is that of the packets"),
];

/// Commands whose effect would be missed, and that cannot have it here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("mc_set_lag_membership", "link aggregation groups are not supported; give the ports to the node"),
    ("port_remove", "ports cannot be removed: every port exists"),
    ("load_new_config_file", "give the program on the command line"),
    ("swap_configs", "give the program on the command line"),
    ("serialize_state", "state cannot be saved"),
    ("write_config_to_file", "the configuration is the program's source"),
];

/// Operations that only look and are not called `..._read`.
const OP_READS: &[&str] = &["digests_lost", "table_totals"];

/// Whether a line only looks.
pub fn is_read(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("op") => words.next().is_some_and(|name| name.ends_with("_read") || OP_READS.contains(&name)),
        Some(command) => READS.contains(&command),
        None => false,
    }
}

/// What a command without effect says of itself.
fn no_effect(command: &str) -> Option<String> {
    let (_, why) = NO_EFFECT.iter().find(|(name, _)| *name == command)?;
    Some(format!("`{command}` has no effect: {why}"))
}

/// A line without its comment.
fn code(line: &str) -> &str {
    let line = line.split('#').next().unwrap_or("");
    let comment =
        line.match_indices("//").find(|(at, _)| line[..*at].ends_with(char::is_whitespace) || *at == 0);
    line[..comment.map_or(line.len(), |(at, _)| at)].trim()
}

/// The words behind `op`, if a line is that.
pub fn operation_words(line: &str) -> Option<Vec<&str>> {
    let mut words = code(line).split_whitespace();
    (words.next() == Some("op")).then(|| words.collect())
}

impl Session<'_> {
    /// Does what one line says. `None` for a line with nothing on it.
    pub fn execute(&mut self, line: &str) -> Option<Answer> {
        let words: Vec<&str> = code(line).split_whitespace().collect();
        let (command, args) = words.split_first()?;
        Some(self.command(command, args))
    }

    /// Does an operation.
    pub(crate) fn act(&mut self, op: impl Into<Op>) -> std::result::Result<control::Answer, String> {
        self.pipeline.act(Time::from_ps(self.now), &op.into()).map_err(|error| error.to_string())
    }

    /// Does an operation of which there is nothing to say.
    fn done(&mut self, op: impl Into<Op>) -> Answer {
        self.act(op).map(|_| String::new())
    }

    /// Does an operation that gives a handle.
    pub(crate) fn handle(&mut self, op: impl Into<Op>) -> std::result::Result<u32, String> {
        match self.act(op)? {
            control::Answer::Handle(handle) => Ok(handle),
            other => Err(unexpected(&other)),
        }
    }

    fn command(&mut self, command: &str, args: &[&str]) -> Answer {
        if let Some((_, why)) = ELSEWHERE.iter().find(|(name, _)| *name == command) {
            return Err(format!("`{command}` is not possible: {why}"));
        }
        if let Some(note) = no_effect(command) {
            return Ok(note);
        }
        if command == "reset_state" {
            count(args, 0, 0, "reset_state")?;
            return self.done(StateOp::Reset {});
        }
        let family = command.split('_').next().unwrap_or("");
        let done = match family {
            "table" => self.table_command(command, args),
            "pvs" => self.value_set_command(command, args),
            "show" => self.show_command(command, args),
            "act" => self.profile_command(command, args),
            "mirroring" | "mc" => self.replication_command(command, args),
            "op" => Some(self.operation(args)),
            _ => self.object_command(command, args),
        };
        done.unwrap_or_else(|| {
            Err(format!("no command `{command}`; see docs/commands.md for those there are"))
        })
    }
}

/// `expected` says what the words of a command are.
pub(crate) fn count(
    args: &[&str],
    least: usize,
    most: usize,
    expected: &str,
) -> std::result::Result<(), String> {
    if args.len() < least || args.len() > most {
        return Err(format!("expected `{expected}`"));
    }
    Ok(())
}

/// An answer that is not of the operation it came of.
pub(crate) fn unexpected(answer: &control::Answer) -> String {
    format!("unexpected answer {answer:?}")
}

/// A command file's line that only looks, and what it saw.
#[derive(Debug, Clone)]
pub struct Reading {
    pub line: usize,
    pub command: String,
    pub answer: String,
}

impl Reading {
    pub fn json(&self) -> Value {
        json!({"line": self.line, "command": self.command, "answer": self.answer})
    }
}

/// A file of commands.
pub struct Script {
    name: String,
    lines: Vec<(usize, String)>,
}

impl Script {
    pub fn read(path: &Path) -> Result<Script> {
        Ok(Script::parse(&path.display().to_string(), &read_text(path)?))
    }

    pub fn parse(name: &str, text: &str) -> Script {
        let lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, code(line).to_owned()))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        Script { name: name.to_owned(), lines }
    }

    /// Lines with something on them, with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().map(|(line, text)| (*line, text.as_str()))
    }

    /// Which commands have no effect, and why.
    pub fn notes(&self) -> Vec<String> {
        let note = |(line, text): (usize, &str)| {
            let command = text.split_whitespace().next().unwrap_or("");
            no_effect(command).map(|note| format!("{}:{line}: {note}", self.name))
        };
        self.lines().filter_map(note).collect()
    }

    /// A refusal with the line's place.
    pub fn refused(&self, line: usize, why: &str) -> Failure {
        Failure(format!("{}:{line}: {why}", self.name))
    }

    /// Runs everything, in order; the first refusal ends it. Gives what the reading commands saw, and notes which
    /// commands had no effect.
    pub fn run(&self, pipeline: &mut Pipeline, now: u64, notes: &mut Vec<String>) -> Result<Vec<Reading>> {
        notes.extend(self.notes());
        let mut session = Session { pipeline, now };
        let mut readings = Vec::new();
        for (line, text) in &self.lines {
            match session.execute(text) {
                Some(Ok(answer)) if is_read(text) => {
                    readings.push(Reading { line: *line, command: text.clone(), answer });
                }
                Some(Err(why)) => return Err(self.refused(*line, &why)),
                _ => {}
            }
        }
        Ok(readings)
    }

    /// Runs the commands that only look, once more. What one looks at may be gone by now: then its answer says so.
    pub fn look(&self, pipeline: &mut Pipeline, now: u64) -> Vec<Reading> {
        let mut session = Session { pipeline, now };
        let looks = self.lines.iter().filter(|(_, text)| is_read(text));
        looks
            .filter_map(|(line, text)| {
                let answer = session.execute(text)?.unwrap_or_else(|why| why);
                Some(Reading { line: *line, command: text.clone(), answer })
            })
            .collect()
    }
}
