//! Any bytes as what a control plane asks of a program with an object of each kind: operations by themselves, and batches that
//! are done whole or leave everything as it was. Between them packets come, after which both engines have the same state.

use std::convert::Infallible;
use std::sync::Arc;

use control::ops::Source;
use control::{
    At, Call, Choice, CrcParameters, EntryRef, Generator, Leads, Match, MeterRates, Mirror, Name, Op,
    PortConfig, Put, QueueConfig, Share, Target, Value, Words,
};
use dataplane::pipeline::Pipeline;
use p4lang::ir::{MatchKind, Program, TableId};
use units::Time;

/// Operations that one input asks for; more would only be slow.
const MOST: usize = 64;

pub fn writes(bytes: &[u8]) {
    let program = super::packets::program();
    let mut one = Pipeline::interpreted(program.clone(), 1).expect("a program of the tests");
    let mut other = Pipeline::interpreted(program.clone(), 1).expect("the same");
    let mut fields = Fields { bytes, program: program.clone(), table: None };
    let mut done = 0;
    while done < MOST && !fields.bytes.is_empty() {
        let now = Time::from_ms(u64::from(fields.byte()));
        match fields.byte() % 4 {
            0 => {
                let packet = fields.some_bytes();
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                one.process(now.as_ps(), 1, &packet, &mut expected);
                other.process(now.as_ps(), 1, &packet, &mut found);
                assert_eq!(expected, found);
                done += 1;
            }
            1 | 2 => {
                let op = fields.op();
                assert_eq!(one.act(now, &op), other.act(now, &op));
                done += 1;
            }
            _ => {
                let batch: Vec<Op> = (0..fields.byte() % 8).map(|_| fields.op()).collect();
                done += batch.len() + 1;
                let before = kept(&one);
                match one.act_all(now, &batch) {
                    Ok(answers) => {
                        for (op, answer) in batch.iter().zip(answers) {
                            assert_eq!(other.act(now, op), Ok(answer));
                        }
                    }
                    Err((at, _)) => {
                        assert!(at < batch.len());
                        assert_eq!(kept(&one), before, "{batch:?}");
                    }
                }
            }
        }
    }
    assert_eq!(kept(&one), kept(&other));
}

/// All that a pipeline keeps between packets, in one form: how a table finds its entries may differ.
fn kept(pipeline: &Pipeline) -> String {
    let state = &pipeline.state;
    let tables: Vec<_> = state
        .tables
        .iter()
        .map(|t| (t.len(), t.iter().collect::<Vec<_>>(), t.default_target(), t.default_note()))
        .collect();
    let arrays = (&state.registers, &state.counters, &state.meters);
    let others = (&state.profiles, &state.value_sets, &state.digests, state.digests_lost, &state.hashes);
    format!("{tables:?} {arrays:?} {others:?} {:?}", pipeline.replication)
}

/// Reads fields from bytes; where they end, zeros follow.
struct Fields<'a> {
    bytes: &'a [u8],
    program: Arc<Program>,
    /// The table that the operation's last name is of, or the first.
    table: Option<TableId>,
}

type Read<T> = Result<T, Infallible>;

impl Fields<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// Small ones are likely, and the largest.
    fn any_number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => u64::from(u32::MAX),
            253 => u64::from_be_bytes([0; 8].map(|_: u8| self.byte())),
            small => u64::from(small),
        }
    }

    fn any_small(&mut self) -> u32 {
        self.any_number().min(u64::from(u32::MAX)) as u32
    }

    fn few<T>(&mut self, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % 5).map(|_| one(self)).collect()
    }

    fn some_bytes(&mut self) -> Vec<u8> {
        (0..self.byte() % 64).map(|_| self.byte()).collect()
    }

    fn any_value(&mut self) -> Value {
        match self.byte() {
            255 => Value::from_bytes(&self.some_bytes()),
            small => u64::from(small).into(),
        }
    }

    fn op(&mut self) -> Op {
        self.table = None;
        let names: Vec<_> = Op::operations().map(|known| known.name).collect();
        let name = names[usize::from(self.byte()) % names.len()];
        let Some(Ok(op)) = Op::read(name, self) else { panic!("`{name}` is an operation") };
        op
    }

    fn any_call(&mut self) -> Call {
        let program = self.program.clone();
        let actions = &program.actions;
        let action = &actions[usize::from(self.byte()) % actions.len()];
        // The right number of values, but for one time in sixteen.
        let count = action.params.len() + usize::from(self.byte() % 16 == 15);
        Call {
            action: action.info.name.as_str().into(),
            values: (0..count).map(|_| self.any_value()).collect(),
        }
    }

    fn any_match(&mut self, kind: MatchKind) -> Match {
        let kinds =
            [MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        let kind = match self.byte() {
            0 => return Match::Any,
            other @ 1..8 => kinds[usize::from(other) % kinds.len()],
            _ => kind,
        };
        match kind {
            MatchKind::Exact => Match::Exact(self.any_value()),
            MatchKind::Lpm => Match::Lpm(self.any_value(), self.any_small()),
            MatchKind::Ternary => Match::Ternary(self.any_value(), self.any_value()),
            MatchKind::Range => Match::Range(self.any_value(), self.any_value()),
            _ => Match::Optional(self.any_value()),
        }
    }

    fn pair(&mut self) -> (u32, u32) {
        (self.any_small(), self.any_small())
    }
}

impl Source for Fields<'_> {
    type Error = Infallible;

    fn has(&mut self, _: &str) -> bool {
        self.byte() % 2 == 1
    }

    fn name(&mut self, field: &str) -> Read<Name> {
        let program = self.program.clone();
        let mut names: Vec<(&str, Option<TableId>)> = Vec::new();
        let of_tables = || {
            (0..program.tables.len()).map(|at| {
                let id = TableId(at as u32);
                (program[id].info.name.as_str(), Some(id))
            })
        };
        let infos: Vec<&str> = match field {
            "register" => program.registers.iter().map(|found| found.info.name.as_str()).collect(),
            "counter" => program.counters.iter().map(|found| found.info.name.as_str()).collect(),
            "meter" => program.meters.iter().map(|found| found.info.name.as_str()).collect(),
            "profile" => program.profiles.iter().map(|found| found.info.name.as_str()).collect(),
            "value_set" => program.value_sets.iter().map(|found| found.info.name.as_str()).collect(),
            _ => Vec::new(),
        };
        names.extend(infos.into_iter().map(|name| (name, None)));
        if names.is_empty() || field == "table" {
            names.extend(of_tables());
        }
        names.push(("nobody", None));
        let (name, table) = names[usize::from(self.byte()) % names.len()];
        self.table = table.or(self.table);
        Ok(name.into())
    }

    fn number(&mut self, _: &str) -> Read<u64> {
        Ok(self.any_number())
    }

    fn small(&mut self, _: &str) -> Read<u32> {
        Ok(self.any_small())
    }

    fn flag(&mut self, _: &str) -> Read<bool> {
        Ok(self.byte() % 2 == 1)
    }

    fn numbers(&mut self, _: &str) -> Read<Vec<u32>> {
        Ok(self.few(Self::any_small))
    }

    fn pairs(&mut self, _: &str) -> Read<Vec<(u32, u32)>> {
        Ok(self.few(Self::pair))
    }

    fn counts(&mut self, _: &str) -> Read<(u64, u64)> {
        Ok((self.any_number(), self.any_number()))
    }

    fn bytes(&mut self, _: &str) -> Read<Vec<u8>> {
        Ok(self.some_bytes())
    }

    fn words(&mut self, _: &str) -> Read<Words> {
        Ok(Words(self.some_bytes()))
    }

    fn value(&mut self, _: &str) -> Read<Value> {
        Ok(self.any_value())
    }

    fn matches(&mut self, _: &str) -> Read<Vec<Match>> {
        let program = self.program.clone();
        let kinds: Vec<MatchKind> = match self.table {
            Some(table) => program[table].keys.iter().map(|key| key.kind).collect(),
            None => vec![MatchKind::Exact],
        };
        Ok(kinds.into_iter().map(|kind| self.any_match(kind)).collect())
    }

    fn members(&mut self, field: &str) -> Read<Vec<Vec<Match>>> {
        (0..self.byte() % 6).map(|_| self.matches(field)).collect()
    }

    fn entry(&mut self, field: &str) -> Read<EntryRef> {
        Ok(match self.byte() % 4 {
            3 => {
                let key = self.matches(field)?;
                let priority = self.has(field).then(|| self.any_small());
                EntryRef::Key(key, priority)
            }
            _ => EntryRef::Handle(self.any_small()),
        })
    }

    fn leads(&mut self, _: &str) -> Read<Leads> {
        Ok(match self.byte() % 8 {
            0 => Leads::Member(self.any_small()),
            1 => Leads::Group(self.any_small()),
            2 => Leads::Set(self.few(|fields| Choice {
                call: fields.any_call(),
                weight: fields.any_small(),
                watch: fields.some_bytes(),
            })),
            _ => Leads::Action(self.any_call()),
        })
    }

    fn call(&mut self, _: &str) -> Read<Call> {
        Ok(self.any_call())
    }

    fn shares(&mut self, _: &str) -> Read<Vec<Share>> {
        Ok(self.few(|fields| Share {
            member: fields.any_small(),
            weight: fields.any_small(),
            watch: fields.some_bytes(),
        }))
    }

    fn rates(&mut self, field: &str) -> Read<Option<MeterRates>> {
        Ok(self.has(field).then(|| MeterRates {
            committed_rate: self.any_number(),
            committed_burst: self.any_number(),
            peak_rate: self.any_number(),
            peak_burst: self.any_number(),
        }))
    }

    fn at(&mut self, field: &str) -> Read<At> {
        Ok(if self.has(field) { At::Index(self.any_small()) } else { At::All })
    }

    fn put(&mut self, _: &str) -> Read<Put> {
        Ok([Put::Either, Put::New, Put::Known][usize::from(self.byte() % 3)])
    }

    fn mirror(&mut self, field: &str) -> Read<Mirror> {
        Ok(Mirror {
            port: self.has(field).then(|| self.any_small()),
            group: self.has(field).then(|| self.any_small()),
            copies: self.few(Self::pair),
            priority: self.any_small(),
            truncate: self.has(field).then(|| self.any_small()),
        })
    }

    fn port(&mut self, _: &str) -> Read<PortConfig> {
        Ok(PortConfig::new(Vec::<QueueConfig>::new()))
    }

    fn generator(&mut self, _: &str) -> Read<Generator> {
        let (port, template) = (self.any_small(), self.some_bytes());
        Ok(Generator { port, template, period: Time::from_ps(self.any_number()) })
    }

    fn crc(&mut self, field: &str) -> Read<CrcParameters> {
        Ok(CrcParameters {
            width: if self.has(field) { 16 } else { 32 },
            polynomial: self.any_small(),
            initial: self.any_small(),
            final_xor: self.any_small(),
            reflect_data: self.has(field),
            reflect_remainder: self.has(field),
        })
    }
}
