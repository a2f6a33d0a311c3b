//! Every operation as a line of text: `op NAME FIELD=VALUE...`, in the order that one likes.
//!
//! | field | is written |
//! |---|---|
//! | matches | as the reference switch's command line has them, `,` between keys; `*` for anything |
//! | where an entry leads | `ACTION(VALUE,...)`, `member:1`, `group:1`; a set of actions: `ACTION(VALUE,...)*WEIGHT;...` |
//! | an entry | its handle, or matches, with `@PRIORITY` at the end if it has one |
//! | cells | values with `,` between them; which one: its index, or `all` |
//! | rates | `RATE:BURST,RATE:BURST` per microsecond, or `none` |
//! | copies, ports, members | numbers with `,` between them; `PORT:RID`, `MEMBER:WEIGHT`, and `@HEX` for a port that is watched |
//! | a mirror session | `port:1,group:5,priority:1,truncate:128,copy:PORT:RID`, of which what there is |
//! | packets and notes | hexadecimal digits |
//! | a packet generator | `PORT:PERIOD:PACKET` |
//! | a CRC | `WIDTH:POLYNOMIAL:INITIAL:FINAL_XOR:REFLECT_DATA:REFLECT_REMAINDER` |
//! | a port | `scheduler:NAME,quantum:SIZE,shaper:RATE:BURST`, then for each queue `;` and `packets:N,bytes:SIZE,weight:N,shift:TIME,shaper:RATE:BURST` |

use control::ops::Source;
use control::{
    At, Call, Choice, CrcParameters, EntryRef, Generator, Leads, Match, MeterRates, Mirror, Name, Op,
    PortConfig, Put, QueueConfig, Scheduler, Shaping, Share, Value, Words, check,
};
use p4lang::ir::{Program, TableId};
use units::Bytes;

use super::answer::answer;
use super::objects::rates;
use super::table::{call, key};
use super::{Answer, Session};
use crate::value::{cli, cli_match, number, small};

type Text<T> = Result<T, String>;

impl Session<'_> {
    pub(super) fn operation(&mut self, args: &[&str]) -> Answer {
        let op = operation(self.pipeline.program(), args)?;
        self.act(op).map(|done| answer(&done))
    }
}

/// The operation that the words behind `op` say.
///
/// # Errors
/// There is no such operation, or a field is not what it must be.
pub fn operation(program: &Program, args: &[&str]) -> Result<Op, String> {
    let Some((name, fields)) = args.split_first() else {
        return Err("expected `op NAME FIELD=VALUE...`; see docs/operations.md".into());
    };
    let mut source = TextSource { program, fields: Vec::new() };
    for field in fields {
        let Some((name, value)) = field.split_once('=') else {
            return Err(format!("`{field}`: expected `FIELD=VALUE`"));
        };
        source.fields.push((name, value, false));
    }
    let op = Op::read(name, &mut source).unwrap_or_else(|| {
        Err(format!("no operation `{name}`; see docs/operations.md for those there are"))
    })?;
    if let Some((odd, ..)) = source.fields.iter().find(|(.., used)| !used) {
        return Err(format!("operation `{name}` has no field `{odd}`; see docs/operations.md"));
    }
    Ok(op)
}

struct TextSource<'a> {
    program: &'a Program,
    /// Name, value, and whether the operation has such a field.
    fields: Vec<(&'a str, &'a str, bool)>,
}

impl<'a> TextSource<'a> {
    fn text(&mut self, field: &str) -> Text<&'a str> {
        let found = self.fields.iter_mut().find(|(name, ..)| *name == field);
        let (_, value, used) = found.ok_or_else(|| format!("`{field}` is missing; give `{field}=...`"))?;
        *used = true;
        Ok(value)
    }

    /// Parts with commas between them, of which there may be none.
    fn list(&mut self, field: &str) -> Text<Vec<&'a str>> {
        let text = self.text(field)?;
        Ok(if text.is_empty() { Vec::new() } else { text.split(',').collect() })
    }

    fn table(&mut self) -> Text<TableId> {
        self.name("table")?.table(self.program).map_err(|e| e.to_string())
    }

    fn key(&mut self, text: &str) -> Text<Vec<Match>> {
        let words: Vec<&str> = text.split(',').collect();
        if self.fields.iter().any(|(name, ..)| *name == "value_set") {
            let set = self.name("value_set")?.value_set(self.program).map_err(|e| e.to_string())?;
            let fields = &self.program.value_sets[set].fields;
            if fields.len() != words.len() {
                return Err(format!("a member has {} fields, not {}", fields.len(), words.len()));
            }
            let each = fields.iter().zip(words);
            return each.map(|((_, width, kind), text)| one_match(text, *kind, *width)).collect();
        }
        let id = self.table()?;
        let table = &self.program[id];
        if !words.contains(&"*") {
            return key(table, &words);
        }
        check::demand_keys(table, words.len()).map_err(|e| e.to_string())?;
        table.keys.iter().zip(words).map(|(key, text)| one_match(text, key.kind, key.expr.width)).collect()
    }

    fn call_in(&self, table: TableId, text: &str) -> Text<Call> {
        let inside = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (action, values) = inside.ok_or_else(|| format!("`{text}`: expected `ACTION(VALUE,...)`"))?;
        let values: Vec<&str> = if values.is_empty() { Vec::new() } else { values.split(',').collect() };
        call(self.program, table, action, &values)
    }
}

fn one_match(text: &str, kind: p4lang::ir::MatchKind, width: u32) -> Text<Match> {
    if text == "*" {
        return Ok(Match::Any);
    }
    cli_match(text, kind, width).map(|m| Match::from(&m))
}

fn pair<'t>(text: &'t str, expected: &str) -> Text<(&'t str, &'t str)> {
    text.split_once(':').ok_or_else(|| format!("`{text}`: expected `{expected}`"))
}

fn long(text: &str) -> Text<u64> {
    u64::try_from(number(text)?).map_err(|_| format!("`{text}` is more than 64 bits"))
}

impl Source for TextSource<'_> {
    type Error = String;

    fn has(&mut self, field: &str) -> bool {
        self.fields.iter().any(|(name, ..)| *name == field)
    }

    fn name(&mut self, field: &str) -> Text<Name> {
        self.text(field).map(Name::from)
    }

    fn number(&mut self, field: &str) -> Text<u64> {
        long(self.text(field)?)
    }

    fn small(&mut self, field: &str) -> Text<u32> {
        small(field, self.text(field)?)
    }

    fn flag(&mut self, field: &str) -> Text<bool> {
        flag(self.text(field)?)
    }

    fn numbers(&mut self, field: &str) -> Text<Vec<u32>> {
        self.list(field)?.into_iter().map(|text| small(field, text)).collect()
    }

    fn pairs(&mut self, field: &str) -> Text<Vec<(u32, u32)>> {
        let one = |text| {
            let (port, rid) = pair(text, "PORT:RID")?;
            Ok((small("port", port)?, small("replication id", rid)?))
        };
        self.list(field)?.into_iter().map(one).collect()
    }

    fn counts(&mut self, field: &str) -> Text<(u64, u64)> {
        let (packets, bytes) = pair(self.text(field)?, "PACKETS:BYTES")?;
        Ok((long(packets)?, long(bytes)?))
    }

    fn bytes(&mut self, field: &str) -> Text<Vec<u8>> {
        hex(self.text(field)?)
    }

    fn words(&mut self, field: &str) -> Text<Words> {
        let register = self.name("register")?.register(self.program).map_err(|e| e.to_string())?;
        let width = self.program.registers[register].width;
        let mut bytes = Vec::new();
        for text in self.list(field)? {
            let mut cell = cli(text, width)?.to_bytes_le();
            cell.resize(8 * width.div_ceil(64) as usize, 0);
            bytes.extend(cell);
        }
        Ok(Words(bytes))
    }

    fn value(&mut self, field: &str) -> Text<Value> {
        let register = self.name("register")?.register(self.program).map_err(|e| e.to_string())?;
        cli(self.text(field)?, self.program.registers[register].width).map(|value| Value::from(&value))
    }

    fn matches(&mut self, field: &str) -> Text<Vec<Match>> {
        let text = self.text(field)?;
        self.key(text)
    }

    fn members(&mut self, field: &str) -> Text<Vec<Vec<Match>>> {
        let text = self.text(field)?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        text.split(';').map(|member| self.key(member)).collect()
    }

    fn entry(&mut self, field: &str) -> Text<EntryRef> {
        let text = self.text(field)?;
        let (key, priority) = match text.rsplit_once('@') {
            Some((key, priority)) => (key, Some(small("priority", priority)?)),
            None if text.bytes().all(|b| b.is_ascii_digit()) => {
                return small("handle", text).map(EntryRef::Handle);
            }
            None => (text, None),
        };
        Ok(EntryRef::Key(self.key(key)?, priority))
    }

    fn leads(&mut self, field: &str) -> Text<Leads> {
        let text = self.text(field)?;
        match text.split_once(':') {
            Some(("member", number)) => small("member", number).map(Leads::Member),
            Some(("group", number)) => small("group", number).map(Leads::Group),
            _ => {
                let table = self.table()?;
                if !text.contains(")*") {
                    return self.call_in(table, text).map(Leads::Action);
                }
                let one = |text: &str| {
                    let (call, rest) = text
                        .rsplit_once('*')
                        .ok_or_else(|| format!("`{text}`: expected `ACTION(VALUE,...)*WEIGHT`"))?;
                    let (weight, watch) = weight(rest)?;
                    Ok(Choice { call: self.call_in(table, call)?, weight, watch })
                };
                text.split(';').map(one).collect::<Text<_>>().map(Leads::Set)
            }
        }
    }

    fn call(&mut self, field: &str) -> Text<Call> {
        let profile = self.name("profile")?.profile(self.program).map_err(|e| e.to_string())?;
        let table = check::profile_table(self.program, profile).map_err(|e| e.to_string())?;
        let text = self.text(field)?;
        self.call_in(table, text)
    }

    fn shares(&mut self, field: &str) -> Text<Vec<Share>> {
        let one = |text| {
            let (member, rest) = pair(text, "MEMBER:WEIGHT")?;
            let (weight, watch) = weight(rest)?;
            Ok(Share { member: small("member", member)?, weight, watch })
        };
        self.list(field)?.into_iter().map(one).collect()
    }

    fn rates(&mut self, field: &str) -> Text<Option<MeterRates>> {
        match self.text(field)? {
            "none" => Ok(None),
            text => rates(&text.split(',').collect::<Vec<_>>()).map(Some),
        }
    }

    fn at(&mut self, field: &str) -> Text<At> {
        match self.text(field)? {
            "all" => Ok(At::All),
            text => match text.split_once(':') {
                None => small("index", text).map(At::Index),
                Some((start, count)) => {
                    Ok(At::Cells { start: small("index", start)?, count: small("number of cells", count)? })
                }
            },
        }
    }

    fn put(&mut self, field: &str) -> Text<Put> {
        let text = self.text(field)?;
        let found = Put::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, put)| *put).ok_or_else(|| format!("`{text}` is not `new`, `known` or `either`"))
    }

    fn mirror(&mut self, field: &str) -> Text<Mirror> {
        let mut to = Mirror::default();
        for part in self.list(field)? {
            match pair(part, "port:1")? {
                ("port", port) => to.port = Some(small("port", port)?),
                ("group", group) => to.group = Some(small("group", group)?),
                ("priority", priority) => to.priority = small("priority", priority)?,
                ("truncate", length) => to.truncate = Some(small("length", length)?),
                ("copy", copy) => {
                    let (port, rid) = pair(copy, "PORT:RID")?;
                    to.copies.push((small("replication id", rid)?, small("port", port)?));
                }
                (other, _) => {
                    return Err(format!(
                        "`{other}` is not `port`, `group`, `priority`, `truncate` or `copy`"
                    ));
                }
            }
        }
        Ok(to)
    }

    fn port(&mut self, field: &str) -> Text<PortConfig> {
        let mut parts = self.text(field)?.split(';');
        let (mut name, mut quantum, mut shaping) = (Scheduler::NAMES[0].to_owned(), Bytes::new(1514), None);
        for part in parts.next().unwrap_or("").split(',').filter(|part| !part.is_empty()) {
            match pair(part, "scheduler:NAME")? {
                ("scheduler", given) => name = given.replace('_', " "),
                ("quantum", size) => quantum = quantity(size)?,
                ("shaper", given) => shaping = Some(shaper(given)?),
                (other, _) => return Err(format!("`{other}` is not `scheduler`, `quantum` or `shaper`")),
            }
        }
        // As Python's ports have it: names of schedulers that are in several words have them apart by blanks or `_`.
        let known = Scheduler::NAMES.iter().find(|known| known.replace('-', " ") == name.replace('-', " "));
        let scheduler = Scheduler::named(known.map_or(name.as_str(), |known| *known), quantum);
        let queues = parts.map(queue).collect::<Text<_>>()?;
        Ok(PortConfig { queues, scheduler: scheduler.map_err(|e| e.to_string())?, shaping })
    }

    /// `1:20ms:0a0b0c`
    fn generator(&mut self, field: &str) -> Text<Generator> {
        let (port, rest) = pair(self.text(field)?, "PORT:PERIOD:PACKET")?;
        let (period, packet) = pair(rest, "PERIOD:PACKET")?;
        Ok(Generator { port: small("port", port)?, template: hex(packet)?, period: quantity(period)? })
    }

    /// `16:0x1021:0xffff:0:false:false`
    fn crc(&mut self, field: &str) -> Text<CrcParameters> {
        let text = self.text(field)?;
        let parts: Vec<&str> = text.split(':').collect();
        let [width, polynomial, initial, final_xor, data, remainder] = parts[..] else {
            let form = "WIDTH:POLYNOMIAL:INITIAL:FINAL_XOR:REFLECT_DATA:REFLECT_REMAINDER";
            return Err(format!("`{text}`: expected `{form}`"));
        };
        let width = small("width", width)?;
        if width != 16 && width != 32 {
            return Err(format!("a CRC of {width} bits cannot be set; give 16 or 32"));
        }
        Ok(CrcParameters {
            width,
            polynomial: small("polynomial", polynomial)?,
            initial: small("initial value", initial)?,
            final_xor: small("final exclusive or", final_xor)?,
            reflect_data: flag(data)?,
            reflect_remainder: flag(remainder)?,
        })
    }
}

fn hex(text: &str) -> Text<Vec<u8>> {
    let byte = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes = (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>();
    bytes.ok_or_else(|| format!("`{text}`: expected pairs of hexadecimal digits"))
}

fn flag(text: &str) -> Text<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{other}` is neither `true` nor `false`")),
    }
}

/// A weight, and the port that is watched, if one is.
fn weight(text: &str) -> Text<(u32, Vec<u8>)> {
    let (number, watch) = text.split_once('@').unwrap_or((text, ""));
    Ok((small("weight", number)?, hex(watch)?))
}

/// A rate, a size or a time with its unit.
fn quantity<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Text<T> {
    text.parse().map_err(|why: T::Err| why.to_string())
}

fn shaper(text: &str) -> Text<Shaping> {
    let (rate, burst) = pair(text, "RATE:BURST")?;
    Ok(Shaping { rate: quantity(rate)?, burst: quantity(burst)? })
}

fn queue(text: &str) -> Text<QueueConfig> {
    let mut made = QueueConfig::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match pair(part, "packets:100")? {
            ("packets", number) => made.limit.packets = Some(long(number)?),
            ("bytes", size) => made.limit.bytes = Some(quantity(size)?),
            ("weight", number) => made.weight = small("weight", number)?,
            ("shift", time) => made.time_shift = quantity(time)?,
            ("shaper", given) => made.shaping = Some(shaper(given)?),
            (other, _) => {
                return Err(format!("`{other}` is not `packets`, `bytes`, `weight`, `shift` or `shaper`"));
            }
        }
    }
    Ok(made)
}
