//! STF source to statements, one a line.
//!
//! The format is that of the reference compiler's test runner: keywords in any case, `#` comments to the end of the
//! line, and the commands of the reference switch's command line as they are.

/// One line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Add {
        table: String,
        priority: Option<u32>,
        matches: Vec<(String, String)>,
        action: Call,
        handle: Option<String>,
    },
    SetDefault {
        table: String,
        action: Call,
    },
    /// `remove all`, or the entry that `add ... = HANDLE` named.
    Remove(Option<String>),
    Packet {
        port: u32,
        bytes: Vec<u8>,
    },
    Expect {
        port: u32,
        /// `None`: a packet with any content.
        pattern: Option<Pattern>,
    },
    /// No packet may come out that is not expected, whatever its port.
    NoPacket,
    Wait,
    CheckCounter {
        counter: String,
        index: Index,
        check: Option<Check>,
    },
    CheckRegister {
        register: String,
        index: u32,
        check: Check,
    },
    /// A line for the command language.
    Command(String),
}

/// Which cell of a counter is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    Number(u32),
    /// The entry that `add ... = HANDLE` named, of the table that a direct counter belongs to.
    Handle(String),
}

/// `ACTION(name:value, ...)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub args: Vec<(String, String)>,
}

/// Hexadecimal digits and `*` for any digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Upper case.
    pub digits: Vec<u8>,
    /// `$`: nothing may follow.
    pub exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Else packets; of a register: false.
    pub bytes: bool,
    pub comparison: Comparison,
    pub value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    pub fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }
}

/// Keywords whose lines go to the command language.
const COMMANDS: &[&str] =
    &["mirroring_", "mc_", "counter_", "register_", "meter_", "act_prof_", "table_", "pvs_", "set_crc"];

type Parsed<T> = Result<T, String>;

/// Line numbers (from 1) and statements; the error has its line.
pub fn parse(text: &str) -> Result<Vec<(usize, Statement)>, (usize, String)> {
    let mut statements = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            statements.push((i + 1, statement(line).map_err(|why| (i + 1, why))?));
        }
    }
    Ok(statements)
}

fn statement(line: &str) -> Parsed<Statement> {
    let (keyword, rest) = word(line);
    match keyword.to_ascii_lowercase().as_str() {
        "add" => add(rest),
        "setdefault" => {
            let (table, rest) = word(rest);
            let (before, action, after) = call(rest)?;
            if table.is_empty() || !before.is_empty() || !after.is_empty() {
                return Err("expected `setdefault TABLE ACTION(NAME:VALUE, ...)`".into());
            }
            Ok(Statement::SetDefault { table: table.to_owned(), action })
        }
        "remove" => match rest {
            "" => Err("expected `remove all`, or `remove HANDLE`".into()),
            _ if rest.eq_ignore_ascii_case("all") => Ok(Statement::Remove(None)),
            handle => Ok(Statement::Remove(Some(handle_name(handle)?))),
        },
        "packet" => {
            let (port, data) = port(rest)?;
            Ok(Statement::Packet { port, bytes: bytes(data)? })
        }
        "expect" => {
            let (port, data) = port(rest)?;
            Ok(Statement::Expect { port, pattern: if data.is_empty() { None } else { Some(pattern(data)?) } })
        }
        "no_packet" if rest.is_empty() => Ok(Statement::NoPacket),
        "no_packet" => Err(format!("`no_packet` is for all ports and stands alone; `{rest}` follows it")),
        "wait" if rest.is_empty() => Ok(Statement::Wait),
        "wait" => Err(format!("`wait` is a millisecond and stands alone; `{rest}` follows it")),
        "check_counter" => check_counter(rest),
        "check_register" => check_register(rest),
        other if COMMANDS.iter().any(|c| other.starts_with(c)) => {
            Ok(Statement::Command(format!("{other} {rest}").trim_end().to_owned()))
        }
        _ => Err(format!(
            "no statement `{keyword}`; a line starts with add, setdefault, packet, expect, no_packet, wait, remove, \
             check_counter, check_register or a command of the switch (mirroring_add, mc_mgrp_create, register_write ...)"
        )),
    }
}

/// The first word and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.find(char::is_whitespace) {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, ""),
    }
}

/// A handle with or without its `$`.
fn handle_name(text: &str) -> Parsed<String> {
    let name = text.strip_prefix('$').unwrap_or(text);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("`{text}` is not a handle; give one word"));
    }
    Ok(name.to_owned())
}

fn port(text: &str) -> Parsed<(u32, &str)> {
    let (port, rest) = word(text);
    // What a port's 9 bits can say.
    let number = port.parse().ok().filter(|number| *number < 1 << 9);
    Ok((number.ok_or_else(|| format!("`{port}` is not a port number; they are 0 to 511"))?, rest))
}

/// The characters of a packet but for blanks.
fn characters(data: &str) -> impl Iterator<Item = char> {
    data.chars().filter(|c| !c.is_whitespace())
}

fn bytes(data: &str) -> Parsed<Vec<u8>> {
    let digit = |c: char| match c.to_digit(16) {
        Some(digit) => Ok(digit as u8),
        None => Err(format!("`{c}` is not a hexadecimal digit; a packet is written as pairs of them")),
    };
    let digits = characters(data).map(digit).collect::<Parsed<Vec<u8>>>()?;
    if digits.is_empty() {
        return Err("the packet has no bytes".into());
    }
    if !digits.len().is_multiple_of(2) {
        return Err(format!("the packet has {} hexadecimal digits, an odd number", digits.len()));
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn pattern(data: &str) -> Parsed<Pattern> {
    let (data, exact) = match data.trim_end().strip_suffix('$') {
        Some(before) => (before, true),
        None => (data, false),
    };
    let digit = |c: char| match c {
        '*' => Ok(b'*'),
        '$' => Err("`$` stands at the end of a packet".to_owned()),
        c if c.is_ascii_hexdigit() => Ok(c.to_ascii_uppercase() as u8),
        c => Err(format!("`{c}` is neither a hexadecimal digit nor `*`")),
    };
    Ok(Pattern { digits: characters(data).map(digit).collect::<Parsed<Vec<u8>>>()?, exact })
}

/// What stands before an action call, the call, and what stands after it.
fn call(text: &str) -> Parsed<(&str, Call, &str)> {
    let open = opening(text).ok_or("expected an action with parentheses: `ACTION(NAME:VALUE, ...)`")?;
    let close = text[open..].find(')').ok_or("the parenthesis of the action is not closed")? + open;
    let head = text[..open].trim_end();
    let start = head.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let name = &head[start..];
    if name.is_empty() {
        return Err("the action has no name".into());
    }
    let mut args: Vec<(String, String)> = Vec::new();
    for part in text[open + 1..close].split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) =
            part.split_once(':').ok_or_else(|| format!("expected `NAME:VALUE`, not `{part}`"))?;
        let name = name.trim();
        if args.iter().any(|(other, _)| other == name) {
            return Err(format!("`{name}` has a value twice"));
        }
        args.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok((head[..start].trim(), Call { name: name.to_owned(), args }, text[close + 1..].trim()))
}

/// The parenthesis that opens the values of an action: not that of a key `h.isValid()`, which a colon follows.
fn opening(text: &str) -> Option<usize> {
    text.match_indices('(').map(|(at, _)| at).find(|at| {
        let key = text[..*at].ends_with("isValid") && text[*at..].starts_with("()");
        !(key && text[at + 2..].trim_start().starts_with(':'))
    })
}

fn add(rest: &str) -> Parsed<Statement> {
    let (table, rest) = word(rest);
    let (before, action, after) = call(rest)?;
    let handle = match after.strip_prefix('=') {
        Some(name) => Some(handle_name(name.trim())?),
        None if after.is_empty() => None,
        None => return Err(format!("`{after}` follows the action; only `= HANDLE` may")),
    };
    // `key : value` may have blanks around the colon.
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for part in before.split_whitespace() {
        match words.last_mut() {
            Some(last) if open || part.starts_with(':') => last.push_str(part),
            _ => words.push(part.to_owned()),
        }
        open = part.ends_with(':');
    }
    let mut priority = None;
    let mut matches = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let colon = separator(word);
        match colon {
            None if i == 0 && word.bytes().all(|b| b.is_ascii_digit()) => {
                priority = Some(word.parse().map_err(|_| format!("the priority {word} is too large"))?);
            }
            None => return Err(format!("expected `KEY:VALUE`, not `{word}`")),
            Some(at) => matches.push((word[..at].to_owned(), word[at + 1..].to_owned())),
        }
    }
    if table.is_empty() {
        return Err("expected `add TABLE [PRIORITY] KEY:VALUE ... ACTION(NAME:VALUE, ...)`".into());
    }
    Ok(Statement::Add { table: table.to_owned(), priority, matches, action, handle })
}

/// The colon between a key and its value; one inside brackets belongs to a slice.
fn separator(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ':' if depth <= 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// `NAME(INDEX)` and what follows.
fn cell(rest: &str) -> Option<(&str, &str, &str)> {
    let open = rest.find('(')?;
    let close = rest[open..].find(')')? + open;
    let (name, index) = (rest[..open].trim(), rest[open + 1..close].trim());
    (!name.is_empty() && !index.is_empty()).then(|| (name, index, rest[close + 1..].trim()))
}

fn check_register(rest: &str) -> Parsed<Statement> {
    let expected = "expected `check_register NAME(INDEX) ==|!=|<|<=|>|>= NUMBER`";
    let (register, index, after) = cell(rest).ok_or(expected)?;
    let (comparison, value) = compared(after, expected)?;
    let index = crate::value::small("index", index)?;
    let check = Check { bytes: false, comparison, value };
    Ok(Statement::CheckRegister { register: register.to_owned(), index, check })
}

fn check_counter(rest: &str) -> Parsed<Statement> {
    let expected = "expected `check_counter NAME(INDEX) [[packets|bytes] ==|!=|<|<=|>|>= NUMBER]`";
    let (counter, index, after) = cell(rest).ok_or(expected)?;
    let check = if after.is_empty() {
        None
    } else {
        let split = after.find(|c: char| !c.is_ascii_alphabetic()).ok_or(expected)?;
        let unit = after[..split].to_ascii_lowercase();
        if !["packets", "bytes", ""].contains(&unit.as_str()) {
            return Err(expected.into());
        }
        let (comparison, value) = compared(after[split..].trim(), expected)?;
        Some(Check { bytes: unit == "bytes", comparison, value })
    };
    let index = if index.starts_with(|c: char| c.is_ascii_digit()) {
        Index::Number(crate::value::small("index", index)?)
    } else {
        Index::Handle(handle_name(index)?)
    };
    Ok(Statement::CheckCounter { counter: counter.to_owned(), index, check })
}

/// `OP NUMBER`
fn compared(text: &str, expected: &str) -> Parsed<(Comparison, u64)> {
    let split = text.find(|c: char| !"=!<>".contains(c)).ok_or(expected)?;
    let comparison = match &text[..split] {
        "==" | "=" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return Err(expected.into()),
    };
    let value = crate::value::number(text[split..].trim())?;
    let value = u64::try_from(&value).map_err(|_| format!("{value} is more than 64 bits"))?;
    Ok((comparison, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Statement {
        let mut all = parse(line).unwrap();
        assert_eq!(all.len(), 1, "{line}");
        all.remove(0).1
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    }

    #[test]
    fn add_in_all_its_forms() {
        let call = |name: &str, args: &[(&str, &str)]| Call { name: name.into(), args: pairs(args) };
        let add =
            |table: &str, priority, matches: &[(&str, &str)], action, handle: Option<&str>| Statement::Add {
                table: table.into(),
                priority,
                matches: pairs(matches),
                action,
                handle: handle.map(str::to_owned),
            };
        for (line, want) in [
            ("add t k:1 a()", add("t", None, &[("k", "1")], call("a", &[]), None)),
            (
                "ADD c.t 100 data.f2:0x04** h.$valid$:1 c.a(v:0x4, w:2) # comment",
                add(
                    "c.t",
                    Some(100),
                    &[("data.f2", "0x04**"), ("h.$valid$", "1")],
                    call("c.a", &[("v", "0x4"), ("w", "2")]),
                    None,
                ),
            ),
            (
                "add t k : 1/8 a ( x : 2 ) = H",
                add("t", None, &[("k", "1/8")], call("a", &[("x", "2")]), Some("H")),
            ),
            ("add t h.x[0].f:1 a()", add("t", None, &[("h.x[0].f", "1")], call("a", &[]), None)),
            ("add t h.f[7:0]:1 a()", add("t", None, &[("h.f[7:0]", "1")], call("a", &[]), None)),
            ("add t a()", add("t", None, &[], call("a", &[]), None)),
            (
                "add t h.isValid() :1 g.isValid():0 isValid(x:1)",
                add(
                    "t",
                    None,
                    &[("h.isValid()", "1"), ("g.isValid()", "0")],
                    call("isValid", &[("x", "1")]),
                    None,
                ),
            ),
        ] {
            assert_eq!(one(line), want, "{line}");
        }
    }

    #[test]
    fn the_other_statements() {
        assert_eq!(one("packet 3 0A 0b"), Statement::Packet { port: 3, bytes: vec![10, 11] });
        assert_eq!(
            one("expect 1 0a** ff $"),
            Statement::Expect { port: 1, pattern: Some(Pattern { digits: b"0A**FF".to_vec(), exact: true }) }
        );
        // Blanks of other kinds come with text that is copied from a page.
        assert_eq!(one("packet 3 0A\u{a0}0b\u{b}"), Statement::Packet { port: 3, bytes: vec![10, 11] });
        assert_eq!(
            one("expect 1 0a\u{a0}** ff $"),
            Statement::Expect { port: 1, pattern: Some(Pattern { digits: b"0A**FF".to_vec(), exact: true }) }
        );
        assert_eq!(one("expect 5"), Statement::Expect { port: 5, pattern: None });
        assert_eq!(one("no_packet"), Statement::NoPacket);
        assert_eq!(one("Wait"), Statement::Wait);
        assert_eq!(one("remove ALL"), Statement::Remove(None));
        assert_eq!(one("mc_node_create 0 1 2"), Statement::Command("mc_node_create 0 1 2".into()));
        assert_eq!(
            one("check_counter c.d(0x3) >= 2"),
            Statement::CheckCounter {
                counter: "c.d".into(),
                index: Index::Number(3),
                check: Some(Check { bytes: false, comparison: Comparison::GreaterOrEqual, value: 2 })
            }
        );
        assert_eq!(
            one("check_counter d($A)"),
            Statement::CheckCounter { counter: "d".into(), index: Index::Handle("A".into()), check: None }
        );
        assert_eq!(
            one("check_register c.r(0x10) != 0"),
            Statement::CheckRegister {
                register: "c.r".into(),
                index: 16,
                check: Check { bytes: false, comparison: Comparison::NotEqual, value: 0 }
            }
        );
    }

    #[test]
    fn what_is_refused() {
        for line in [
            "frobnicate 1",
            "packet",
            "packet x 00",
            "packet 512 00",
            "expect 512 00",
            "packet 0 0",
            "packet 0 0g",
            "packet 0",
            "expect 0 0$0",
            "expect 0 zz",
            "add t k:1",
            "add t k:1 a(x",
            "add t 1 2 a()",
            "add t k:1 a(x)",
            "add t k:1 a() b",
            "setdefault t",
            "check_counter c",
            "check_counter c(1) packets 3",
            "check_register r",
            "check_register r(1)",
            "check_register r(1) bytes == 3",
            "check_register r($A) == 3",
            "check_register r(1) =< 3",
            "remove",
            "remove a b",
            "no_packet 1",
            "wait forever",
            "packet 0 0\u{a0}1\u{b}2",
            "expect 0 0\u{2013}",
            "add t k:1 a() =",
            "add t k:1 a() = b c",
            "add t k:1 a(x:1, x:2)",
            "check_counter c($)",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("wait\n\nbogus").unwrap_err().0, 3);
    }
}
