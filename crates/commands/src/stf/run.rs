//! Runs a test's statements and judges what came out.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use control::{Call, Cells, EntryRef, Extras, Leads, Match, Name, TableOp, check};
use dataplane::pipeline::{Output, Pipeline};
use dataplane::trace::hex;
use p4lang::ir::{EntryMatch, Program, TableId};
use serde_json::{Value, json};

use super::compare::{Mismatch, differs, pattern_text};
use super::names;
use super::parse::{self, Check, Index, Pattern, Statement};
use crate::cli::Session;
use crate::load::{Engine, pipeline, read_text};
use crate::value::{stf_match, stf_missing, stf_value};
use crate::{Failure, Interrupt, Result};

/// Picoseconds.
const SECOND: u64 = 1_000_000_000_000;
const MILLISECOND: u64 = SECOND / 1000;
/// What the runner takes a priority from, to turn "larger wins" into the switch's "smaller wins".
const PRIORITIES: u32 = u32::MAX;
/// Bytes of memory that what comes out may take: it is kept to the end of the test.
const MOST_RECEIVED: usize = 256 << 20;

#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub engine: Engine,
    pub trace: bool,
    pub seed: u64,
}

struct Expected {
    line: usize,
    pattern: Option<Pattern>,
}

struct Received {
    /// Line of the `packet` that it came of.
    line: usize,
    bytes: Vec<u8>,
}

struct Run {
    pipeline: Pipeline,
    options: Options,
    now: u64,
    /// A command was given since the last packet.
    settled: bool,
    handles: HashMap<String, (TableId, u32)>,
    expected: BTreeMap<u32, Vec<Expected>>,
    received: BTreeMap<u32, Vec<Received>>,
    /// Bytes that these take.
    kept: usize,
    /// Ports that the test mentions.
    ports: Vec<u32>,
    nothing_else: bool,
    packets: usize,
    mismatches: Vec<Mismatch>,
    answers: Vec<Value>,
    traces: Vec<Value>,
    trace_text: String,
    notes: Vec<String>,
}

/// Runs the test in a file. `ok` in the answer says whether it passed; `text` is the report for people.
pub fn run(program: Arc<Program>, test: &Path, options: Options, interrupt: Interrupt<'_>) -> Result<Value> {
    let name = test.display().to_string();
    let text = read_text(test)?;
    let statements = parse::parse(&text).map_err(|(line, why)| Failure(format!("{name}:{line}: {why}")))?;
    let (pipeline, note) = pipeline(program, options.engine, options.seed)?;
    let mut run = Run {
        pipeline,
        options,
        now: SECOND,
        settled: true,
        handles: HashMap::new(),
        expected: BTreeMap::new(),
        received: BTreeMap::new(),
        kept: 0,
        ports: Vec::new(),
        nothing_else: false,
        packets: 0,
        mismatches: Vec::new(),
        answers: Vec::new(),
        traces: Vec::new(),
        trace_text: String::new(),
        notes: note.into_iter().collect(),
    };
    for (line, statement) in &statements {
        interrupt()?;
        run.statement(*line, statement).map_err(|why| Failure(format!("{name}:{line}: {why}")))?;
    }
    Ok(run.judge(&name))
}

impl Run {
    fn statement(&mut self, line: usize, statement: &Statement) -> std::result::Result<(), String> {
        match statement {
            Statement::Packet { port, bytes } => self.packet(line, *port, bytes)?,
            Statement::Expect { port, pattern } => {
                self.ports.push(*port);
                self.expected.entry(*port).or_default().push(Expected { line, pattern: pattern.clone() });
            }
            Statement::NoPacket => self.nothing_else = true,
            Statement::Wait => self.now += MILLISECOND,
            Statement::CheckCounter { counter, index, check } => {
                self.check_counter(line, counter, index, check.as_ref())?;
            }
            Statement::CheckRegister { register, index, check } => {
                self.check_register(line, register, *index, check)?;
            }
            Statement::Add { .. } | Statement::SetDefault { .. } | Statement::Remove(_) => {
                self.settled = false;
                self.table_statement(statement)?;
            }
            Statement::Command(text) => {
                self.settled = false;
                if let Some(answer) = self.session().execute(text) {
                    let answer = answer?;
                    if text.starts_with("table_") {
                        self.forget_handles();
                    }
                    if !answer.is_empty() {
                        self.answers.push(json!({"line": line, "command": text, "answer": answer}));
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles whose entries a command has removed: others may get their numbers.
    fn forget_handles(&mut self) {
        let state = &self.pipeline.state;
        self.handles.retain(|_, (table, entry)| state.tables[table.0 as usize].entry(*entry).is_some());
    }

    fn packet(&mut self, line: usize, port: u32, bytes: &[u8]) -> std::result::Result<(), String> {
        self.ports.push(port);
        self.packets += 1;
        self.now += if self.settled { MILLISECOND } else { SECOND };
        self.settled = true;
        let mut outputs: Vec<Output> = Vec::new();
        if self.options.trace {
            let trace = self.pipeline.process_traced(self.now, port, bytes, &mut outputs);
            self.trace_text += &format!("line {line}: {trace}\n");
            self.traces.push(json!({"line": line, "events": trace.events}));
        } else {
            self.pipeline.process(self.now, port, bytes, &mut outputs);
        }
        for Output { port, bytes, .. } in outputs {
            self.kept += size_of::<Received>() + bytes.capacity();
            self.received.entry(port).or_default().push(Received { line, bytes });
        }
        if self.kept > MOST_RECEIVED {
            return Err(format!(
                "what has come out of the packets so far takes more than {} MiB; give fewer packets or copies",
                MOST_RECEIVED >> 20
            ));
        }
        Ok(())
    }

    fn table_statement(&mut self, statement: &Statement) -> std::result::Result<(), String> {
        let program = self.pipeline.program().clone();
        match statement {
            Statement::Add { table, priority, matches, action, handle } => {
                let id = names::table(&program, table)?;
                let declared = &program[id];
                let mut found: Vec<EntryMatch> =
                    declared.keys.iter().map(|k| stf_missing(k.kind, k.expr.width)).collect();
                let mut given = vec![None; declared.keys.len()];
                for (name, text) in matches {
                    let at = names::key(&program, id, name)?;
                    if let Some(before) = given[at].replace(name) {
                        return Err(format!("key `{name}` has a match twice (`{before}` is the same key)"));
                    }
                    let key = &declared.keys[at];
                    found[at] = stf_match(text, key.kind, key.expr.width)
                        .map_err(|e| format!("key `{name}`: {e}"))?;
                }
                let priority = check::prioritised(declared)
                    .then(|| priority.map_or(PRIORITIES, |priority| PRIORITIES - priority));
                let table = full_name(&program, id);
                let key = found.iter().map(Match::from).collect();
                let to = call(&program, id, action)?;
                let op = TableOp::Add { table, key, priority, to, extras: Extras::default() };
                let entry = self.session().handle(op)?;
                if let Some(handle) = handle {
                    self.handles.insert(handle.clone(), (id, entry));
                }
            }
            Statement::SetDefault { table, action } => {
                let id = names::table(&program, table)?;
                let (table, to) = (full_name(&program, id), call(&program, id, action)?);
                self.session().act(TableOp::SetDefault { table, to, note: None })?;
            }
            Statement::Remove(Some(handle)) => {
                let (id, entry) = self.handles.remove(handle).ok_or_else(|| no_entry(handle))?;
                let (table, entry) = (full_name(&program, id), EntryRef::Handle(entry));
                self.session().act(TableOp::Delete { table, entry })?;
            }
            _ => {
                for table in &program.tables {
                    self.session().act(TableOp::Clear { table: table.info.name.as_str().into() })?;
                }
                self.handles.clear();
            }
        }
        Ok(())
    }

    fn session(&mut self) -> Session<'_> {
        Session { pipeline: &mut self.pipeline, now: self.now }
    }

    fn check_counter(
        &mut self,
        line: usize,
        counter: &str,
        index: &Index,
        check: Option<&Check>,
    ) -> std::result::Result<(), String> {
        let (at, index) = match index {
            Index::Number(at) => (*at, at.to_string()),
            Index::Handle(handle) => {
                let (table, entry) = *self.handles.get(handle).ok_or_else(|| no_entry(handle))?;
                match Name::from(counter).counter(self.pipeline.program()) {
                    Ok(Cells::Direct(of)) if of != table => {
                        return Err(format!("entry `{handle}` is not of the table of counter `{counter}`"));
                    }
                    Ok(Cells::Direct(_)) | Err(_) => (entry, handle.clone()),
                    Ok(_) => {
                        return Err(format!(
                            "counter `{counter}` does not belong to a table's entries; give an index, not `{handle}`"
                        ));
                    }
                }
            }
        };
        let (packets, bytes) = self.session().counter(counter, at)?;
        let Some(check) = check else { return Ok(()) };
        let (value, unit) = if check.bytes { (bytes, "bytes") } else { (packets, "packets") };
        self.judge_cell(line, check, value, || format!("counter {counter}({index}) has {value} {unit}"));
        Ok(())
    }

    fn check_register(
        &mut self,
        line: usize,
        register: &str,
        index: u32,
        check: &Check,
    ) -> std::result::Result<(), String> {
        let found = self.pipeline.register_index(register).map_err(|why| why.to_string())?;
        let value = self.pipeline.register_read(found, index as usize).map_err(|why| why.to_string())?;
        let value = u64::try_from(&value).map_err(|_| {
            format!("register {register}({index}) has {value}, which is more than 64 bits; only less can be checked")
        })?;
        self.judge_cell(line, check, value, || format!("register {register}({index}) has {value}"));
        Ok(())
    }

    fn judge_cell(&mut self, line: usize, check: &Check, value: u64, has: impl FnOnce() -> String) {
        if !check.comparison.holds(value, check.value) {
            self.mismatches.push(Mismatch {
                line,
                port: None,
                what: format!("{}, expected {} {}", has(), check.comparison.sign(), check.value),
                expected: None,
                received: None,
                nibble: None,
            });
        }
    }

    fn judge(mut self, name: &str) -> Value {
        let mut notes = std::mem::take(&mut self.notes);
        let expected = std::mem::take(&mut self.expected);
        let received = std::mem::take(&mut self.received);
        for (port, packets) in &received {
            if !self.ports.contains(port) && !self.nothing_else {
                notes.push(format!(
                    "{} packets left by port {port}, which the test does not mention; they are not checked",
                    packets.len()
                ));
            }
        }
        let none = Vec::new();
        let mut ports: Vec<u32> = expected.keys().chain(received.keys()).copied().collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            if self.ports.contains(&port) || self.nothing_else {
                let got = received.get(&port).map_or(&[][..], Vec::as_slice);
                self.judge_port(port, expected.get(&port).unwrap_or(&none), got);
            }
        }
        self.mismatches.sort_by_key(|m| m.line);
        let ok = self.mismatches.is_empty();
        let total: usize = expected.values().map(Vec::len).sum();
        let mut text = std::mem::take(&mut self.trace_text);
        for note in &notes {
            text += &format!("{name}: note: {note}\n");
        }
        for mismatch in &self.mismatches {
            text += &mismatch.text(name);
        }
        text += &if ok {
            format!("{name}: passed ({} packets in, {total} expected)\n", self.packets)
        } else {
            format!("{name}: FAILED: {} of its expectations\n", self.mismatches.len())
        };
        let drops: BTreeMap<&str, u64> = self.pipeline.drops().iter().map(|(r, n)| (r.name(), *n)).collect();
        json!({
            "ok": ok,
            "test": name,
            "packets": self.packets,
            "expected": total,
            "received": received.values().map(Vec::len).sum::<usize>(),
            "failures": self.mismatches.iter().map(Mismatch::json).collect::<Vec<_>>(),
            "notes": notes,
            "answers": self.answers,
            "drops": drops,
            "trace": self.traces,
            "text": text,
        })
    }

    /// Packets are compared in order. If there are fewer or more than expected, the ones that fit each other are
    /// paired, so that the report names the one that is missing or too many.
    fn judge_port(&mut self, port: u32, expected: &[Expected], received: &[Received]) {
        let fits = |e: &Expected, r: &Received| match &e.pattern {
            Some(pattern) => differs(pattern, &r.bytes).is_none(),
            None => true,
        };
        let (mut i, mut j) = (0, 0);
        while i < expected.len() || j < received.len() {
            let (left, right) = (expected.len() - i, received.len() - j);
            match (expected.get(i), received.get(j)) {
                (Some(e), Some(r)) if fits(e, r) => {
                    i += 1;
                    j += 1;
                }
                (Some(e), Some(r)) if left == right => {
                    self.mismatches.push(different(port, e, r));
                    i += 1;
                    j += 1;
                }
                (Some(e), _) if left > right => {
                    self.mismatches.push(missing(port, e));
                    i += 1;
                }
                (_, Some(r)) => {
                    self.mismatches.push(unexpected(port, r));
                    j += 1;
                }
                // Not reached: an expectation without a packet has more on its left.
                (_, None) => i += 1,
            }
        }
    }
}

fn no_entry(handle: &str) -> String {
    format!("there is no entry `{handle}`: none was added with `= {handle}`, or it has been removed")
}

fn full_name(program: &Program, table: TableId) -> Name {
    program[table].info.name.as_str().into()
}

/// An action, with the values of its parameters in their order.
fn call(program: &Program, table: TableId, call: &parse::Call) -> std::result::Result<Leads, String> {
    let index = names::action(program, table, &call.name)?;
    let declared = &program[program[table].actions[index as usize].action];
    let named = |name: &str| call.args.iter().find(|(n, _)| n == name);
    let known: Vec<&str> = declared.params.iter().map(|p| p.name.as_str()).collect();
    if let Some((odd, _)) = call.args.iter().find(|(n, _)| !known.contains(&n.as_str())) {
        return Err(format!(
            "action `{}` has no parameter `{odd}`; {}it has {}",
            declared.info.name,
            names::meant(p4lang::similar(odd, known.iter().copied())),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ));
    }
    let mut values = Vec::new();
    for param in &declared.params {
        let (_, text) = named(&param.name)
            .ok_or_else(|| format!("action `{}` needs a value for `{}`", declared.info.name, param.name))?;
        let value = stf_value(text, program[param.var].width);
        values.push((&value.map_err(|e| format!("parameter `{}`: {e}", param.name))?).into());
    }
    Ok(Leads::Action(Call { action: declared.info.name.as_str().into(), values }))
}

fn different(port: u32, e: &Expected, r: &Received) -> Mismatch {
    let found = e.pattern.as_ref().and_then(|p| differs(p, &r.bytes));
    let (what, nibble) = match found {
        Some((what, nibble)) => (what, Some(nibble)),
        None => ("the packet differs".to_owned(), None),
    };
    Mismatch {
        line: e.line,
        port: Some(port),
        what: format!("{what} (it came of the packet in line {})", r.line),
        expected: e.pattern.as_ref().map(pattern_text),
        received: Some(hex(&r.bytes)),
        nibble,
    }
}

fn missing(port: u32, e: &Expected) -> Mismatch {
    Mismatch {
        line: e.line,
        port: Some(port),
        what: "the expected packet did not come".into(),
        expected: Some(e.pattern.as_ref().map_or("a packet with any content".into(), pattern_text)),
        received: None,
        nibble: None,
    }
}

fn unexpected(port: u32, r: &Received) -> Mismatch {
    Mismatch {
        line: r.line,
        port: Some(port),
        what: "a packet came out that is not expected".into(),
        expected: None,
        received: Some(hex(&r.bytes)),
        nibble: None,
    }
}
