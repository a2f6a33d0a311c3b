//! Operations from Python: the dataclasses of `tidegate.control.operations`, field by field. Values are bytes, numbers, or text
//! as the reference switch's command line has it.

use std::cell::OnceCell;
use std::sync::Arc;

use commands::value::{cli, cli_match};
use control::ops::Source;
use control::{
    At, Call, Choice, CrcParameters, EntryRef, Error, Generator, Leads, Match, MeterRates, Mirror, Name, Op,
    PortConfig, Put, QueueConfig, QueueLimit, Scheduler, Shaping, Share, Value, Words, check,
};
use p4lang::diag::counted;
use p4lang::ir::{MatchKind, Program, TableId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};
use units::{Bytes, Rate, Time};

use crate::errors::raise;

/// Something that runs a program, whose names operations mean.
pub trait Runs {
    /// # Errors
    /// The run has failed.
    fn program(&self, py: Python<'_>) -> PyResult<Arc<Program>>;
}

pub struct PythonSource<'a, 'py> {
    op: &'a Bound<'py, PyAny>,
    target: &'a dyn Runs,
    /// Asked for once in a batch, and only if a name has to be looked up.
    program: &'a OnceCell<Arc<Program>>,
    of_value_set: bool,
    /// The operation's table, once it has been looked up.
    table: Option<TableId>,
}

impl<'a, 'py> PythonSource<'a, 'py> {
    /// # Errors
    /// It is no operation, or a field is not what it must be.
    pub fn read(
        op: &'a Bound<'py, PyAny>,
        target: &'a dyn Runs,
        program: &'a OnceCell<Arc<Program>>,
    ) -> PyResult<Op> {
        let no_operation = || {
            let text = op.repr().map_or_else(|_| String::new(), |r| r.to_string());
            let error = Error::invalid(format!("{text} is not an operation"));
            raise(op.py(), &error.cure("see docs/operations.md for those there are"))
        };
        let name = op.getattr(intern!(op.py(), "op")).map_err(|_| no_operation())?;
        let name = name.cast::<PyString>().map_err(|_| no_operation())?.to_str()?;
        let mut source =
            PythonSource { op, target, program, of_value_set: name.starts_with("value_set_"), table: None };
        Op::read(name, &mut source).unwrap_or_else(|| Err(no_operation()))
    }

    fn py(&self) -> Python<'py> {
        self.op.py()
    }

    fn get(&self, field: &str) -> PyResult<Bound<'py, PyAny>> {
        // Python finds attributes by names that it has interned without comparing text.
        self.op.getattr(PyString::intern(self.py(), field))
    }

    /// A field that Python can turn into such a value, or what it should be.
    fn take<T: for<'o> FromPyObject<'o, 'py>>(&self, field: &str, wanted: &str) -> PyResult<T> {
        let value = self.get(field)?;
        value.extract::<T>().map_err(|_| self.not(field, &value, wanted))
    }

    fn not(&self, field: &str, value: &Bound<'py, PyAny>, wanted: &str) -> PyErr {
        let shown = value.repr().map_or_else(|_| String::new(), |r| r.to_string());
        let why = format!("the {} {shown} is not {wanted}", field.replace('_', " "));
        raise(self.py(), &Error::invalid(why).field(field))
    }

    fn wrong(&self, why: impl Into<String>) -> PyErr {
        raise(self.py(), &Error::invalid(why))
    }

    fn program(&self) -> PyResult<&'a Program> {
        if self.program.get().is_none() {
            let program = self.target.program(self.py())?;
            let _ = self.program.set(program);
        }
        self.program.get().map(|program| &**program).ok_or_else(|| self.wrong("there is no program"))
    }

    fn checked<T>(&self, done: control::Result<T>) -> PyResult<T> {
        done.map_err(|error| raise(self.py(), &error))
    }

    fn table(&mut self) -> PyResult<TableId> {
        if let Some(table) = self.table {
            return Ok(table);
        }
        let name = self.name("table")?;
        let table = self.checked(name.table(self.program()?))?;
        self.table = Some(table);
        Ok(table)
    }

    /// A value of so many bits; `what` it is for.
    fn one_value(&self, given: &Bound<'py, PyAny>, width: u32, what: &str) -> PyResult<Value> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Value::from_bytes(bytes.as_bytes()));
        }
        if let Some(number) = whole(given) {
            return Ok(Value::from(number));
        }
        let text = given.str()?;
        let value = cli(text.to_str()?, width).map_err(|why| self.wrong(format!("`{what}`: {why}")))?;
        Ok(Value::from(&value))
    }

    fn one_match(
        &self,
        given: &Bound<'py, PyAny>,
        kind: MatchKind,
        width: u32,
        what: &str,
    ) -> PyResult<Match> {
        if given.is_none() {
            return Ok(Match::Any);
        }
        if let Ok(two) = given.cast::<PyTuple>() {
            let (first, second): (Bound<'_, PyAny>, Bound<'_, PyAny>) = two.extract()?;
            let (first, second) =
                (self.one_value(&first, width, what)?, self.one_value(&second, width, what)?);
            return Ok(match kind {
                // Longer than any key; what is too long for this one is refused where the entry is checked.
                MatchKind::Lpm => Match::Lpm(first, second.to_u32().unwrap_or(u32::MAX)),
                MatchKind::Ternary => Match::Ternary(first, second),
                MatchKind::Range => Match::Range(first, second),
                MatchKind::Exact | MatchKind::Optional => {
                    return Err(self.wrong(format!("key `{what}`: this is not a match of kind {kind:?}")));
                }
            });
        }
        let plain = given.is_instance_of::<PyBytes>() || whole(given).is_some();
        match kind {
            MatchKind::Exact if plain => Ok(Match::Exact(self.one_value(given, width, what)?)),
            MatchKind::Optional if plain => Ok(Match::Optional(self.one_value(given, width, what)?)),
            kind => {
                let text = given.str()?;
                let found = cli_match(text.to_str()?, kind, width);
                found.map(|m| Match::from(&m)).map_err(|why| self.wrong(format!("key `{what}`: {why}")))
            }
        }
    }

    fn key(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Vec<Match>> {
        let given = given.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        if self.of_value_set {
            return self.member(&given);
        }
        let id = self.table()?;
        let table = &self.program()?[id];
        self.checked(check::demand_keys(table, given.len()))?;
        let each = table.keys.iter().zip(&given);
        each.map(|(key, one)| self.one_match(one, key.kind, key.expr.width, &key.name)).collect()
    }

    fn member(&mut self, given: &[Bound<'py, PyAny>]) -> PyResult<Vec<Match>> {
        let name = self.name("value_set")?;
        let program = self.program()?;
        let set = self.checked(name.value_set(program))?;
        let fields = &program.value_sets[set].fields;
        if fields.len() != given.len() {
            return Err(self.wrong(format!(
                "a member of value set `{name}` has {}, not {}",
                counted(fields.len(), "field"),
                given.len()
            )));
        }
        let each = fields.iter().zip(given);
        each.map(|((field, width, kind), one)| self.one_match(one, *kind, *width, field)).collect()
    }

    fn one_call(
        &self,
        table: TableId,
        action: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Call> {
        let name: String = action.extract().map_err(|_| self.not("action", action, "a name"))?;
        let action = Name::from(name);
        let program = self.program()?;
        let index = self.checked(action.action(program, table))?;
        let values = values.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        self.checked(check::demand_values(program, table, index, values.len()))?;
        let params = &program[program[table].actions[index as usize].action].params;
        let each = params.iter().zip(&values);
        let values = each.map(|(param, value)| self.one_value(value, program[param.var].width, &param.name));
        Ok(Call { action, values: values.collect::<PyResult<_>>()? })
    }

    fn one_choice(&self, table: TableId, choice: &Bound<'py, PyAny>) -> PyResult<Choice> {
        type Parts<'py> = ((Bound<'py, PyAny>, Bound<'py, PyAny>), u32, Vec<u8>);
        let ((action, values), weight, watch): Parts<'py> =
            choice.extract().map_err(|_| self.not("to", choice, "an action with a weight and a port"))?;
        Ok(Choice { call: self.one_call(table, &action, &values)?, weight, watch })
    }
}

/// A whole number from 0 to 2^64 - 1.
fn whole(given: &Bound<'_, PyAny>) -> Option<u64> {
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBool>() {
        return None;
    }
    given.extract().ok()
}

type ShaperSpec = Option<(u64, u64)>;
type QueueSpec = (Option<u64>, Option<u64>, u32, u64, ShaperSpec);

fn shaping(spec: ShaperSpec) -> Option<Shaping> {
    spec.map(|(rate, burst)| Shaping { rate: Rate::from_bps(rate), burst: Bytes::new(burst) })
}

const WHOLE: &str = "a whole number from 0 to 18446744073709551615";
const SMALL: &str = "a whole number from 0 to 4294967295";

impl Source for PythonSource<'_, '_> {
    type Error = PyErr;

    fn has(&mut self, field: &str) -> bool {
        self.get(field).is_ok_and(|value| !value.is_none())
    }

    fn name(&mut self, field: &str) -> PyResult<Name> {
        self.take::<String>(field, "a name").map(Name::from)
    }

    fn number(&mut self, field: &str) -> PyResult<u64> {
        self.take(field, WHOLE)
    }

    fn small(&mut self, field: &str) -> PyResult<u32> {
        self.take(field, SMALL)
    }

    fn flag(&mut self, field: &str) -> PyResult<bool> {
        self.take(field, "true or false")
    }

    fn numbers(&mut self, field: &str) -> PyResult<Vec<u32>> {
        self.take(field, "whole numbers")
    }

    fn pairs(&mut self, field: &str) -> PyResult<Vec<(u32, u32)>> {
        self.take(field, "pairs of whole numbers")
    }

    fn counts(&mut self, field: &str) -> PyResult<(u64, u64)> {
        self.take(field, "packets and bytes")
    }

    fn bytes(&mut self, field: &str) -> PyResult<Vec<u8>> {
        let value = self.get(field)?;
        let bytes = value.cast::<PyBytes>().map_err(|_| self.not(field, &value, "bytes"))?;
        Ok(bytes.as_bytes().to_vec())
    }

    fn words(&mut self, field: &str) -> PyResult<Words> {
        self.bytes(field).map(Words)
    }

    fn value(&mut self, field: &str) -> PyResult<Value> {
        let name = self.name("register")?;
        let program = self.program()?;
        let register = self.checked(name.register(program))?;
        self.one_value(&self.get(field)?, program.registers[register].width, field)
    }

    fn matches(&mut self, field: &str) -> PyResult<Vec<Match>> {
        let given = self.get(field)?;
        self.key(&given)
    }

    fn members(&mut self, field: &str) -> PyResult<Vec<Vec<Match>>> {
        let given = self.get(field)?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        given.iter().map(|member| self.key(member)).collect()
    }

    fn entry(&mut self, field: &str) -> PyResult<EntryRef> {
        let given = self.get(field)?;
        if given.is_instance_of::<PyInt>() {
            return given.extract().map(EntryRef::Handle).map_err(|_| self.not(field, &given, SMALL));
        }
        let (key, priority): (Bound<'_, PyAny>, Option<u32>) =
            given.extract().map_err(|_| self.not(field, &given, "a handle, or a key with a priority"))?;
        Ok(EntryRef::Key(self.key(&key)?, priority))
    }

    fn leads(&mut self, field: &str) -> PyResult<Leads> {
        let given = self.get(field)?;
        let table = self.table()?;
        if let Ok(choices) = given.cast::<PyList>() {
            let choices = choices.iter().map(|choice| self.one_choice(table, &choice));
            return choices.collect::<PyResult<_>>().map(Leads::Set);
        }
        let (what, to): (Bound<'_, PyAny>, Bound<'_, PyAny>) = given
            .extract()
            .map_err(|_| self.not(field, &given, "an action with values, a member or a group"))?;
        if !to.is_instance_of::<PyInt>() {
            return self.one_call(table, &what, &to).map(Leads::Action);
        }
        let number = to.extract().map_err(|_| self.not(field, &to, SMALL))?;
        match what.extract::<String>()?.as_str() {
            "member" => Ok(Leads::Member(number)),
            "group" => Ok(Leads::Group(number)),
            _ => Err(self.not(field, &what, "`member` or `group`")),
        }
    }

    fn call(&mut self, field: &str) -> PyResult<Call> {
        let name = self.name("profile")?;
        let program = self.program()?;
        let profile = self.checked(name.profile(program))?;
        let table = self.checked(check::profile_table(program, profile))?;
        let (action, values): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            self.take(field, "an action with values")?;
        self.one_call(table, &action, &values)
    }

    fn shares(&mut self, field: &str) -> PyResult<Vec<Share>> {
        let shares: Vec<(u32, u32, Vec<u8>)> = self.take(field, "members with weights and ports")?;
        Ok(shares.into_iter().map(|(member, weight, watch)| Share { member, weight, watch }).collect())
    }

    fn rates(&mut self, field: &str) -> PyResult<Option<MeterRates>> {
        let rates: Vec<u64> = self.take(field, "four whole numbers, or none")?;
        match rates[..] {
            [] => Ok(None),
            [committed_rate, committed_burst, peak_rate, peak_burst] => {
                Ok(Some(MeterRates { committed_rate, committed_burst, peak_rate, peak_burst }))
            }
            _ => Err(self.not(field, &self.get(field)?, "four whole numbers, or none")),
        }
    }

    fn at(&mut self, field: &str) -> PyResult<At> {
        let found = self.get(field)?;
        if let Ok((start, count)) = found.extract::<(u32, u32)>() {
            return Ok(At::Cells { start, count });
        }
        Ok(self.take::<Option<u32>>(field, SMALL)?.map_or(At::All, At::Index))
    }

    fn put(&mut self, field: &str) -> PyResult<Put> {
        let name: String = self.take(field, "`new`, `known` or `either`")?;
        let found = Put::NAMES.iter().find(|(known, _)| *known == name);
        let put = found.map(|(_, put)| *put);
        put.ok_or_else(|| self.wrong(format!("`{name}` is not `new`, `known` or `either`")))
    }

    fn mirror(&mut self, field: &str) -> PyResult<Mirror> {
        type Parts = (Option<u32>, Option<u32>, Vec<(u32, u32)>, u32, Option<u32>);
        let (port, group, copies, priority, truncate): Parts =
            self.take(field, "a port, a group, copies, a queue and a length")?;
        Ok(Mirror { port, group, copies, priority, truncate })
    }

    fn port(&mut self, field: &str) -> PyResult<PortConfig> {
        type Parts = (String, u64, ShaperSpec, Vec<QueueSpec>);
        let (scheduler, quantum, shaper, queues): Parts = self.take(field, "the settings of a port")?;
        let scheduler = self.checked(Scheduler::named(&scheduler, Bytes::new(quantum)))?;
        let queue = |(packets, bytes, weight, shift, shaper): QueueSpec| QueueConfig {
            limit: QueueLimit { packets, bytes: bytes.map(Bytes::new) },
            weight,
            time_shift: Time::from_ps(shift),
            shaping: shaping(shaper),
        };
        let queues = queues.into_iter().map(queue).collect();
        Ok(PortConfig { queues, scheduler, shaping: shaping(shaper) })
    }

    fn generator(&mut self, field: &str) -> PyResult<Generator> {
        let (port, template, period): (u32, Vec<u8>, u64) =
            self.take(field, "a port, a packet and a period in picoseconds")?;
        Ok(Generator { port, template, period: Time::from_ps(period) })
    }

    fn crc(&mut self, field: &str) -> PyResult<CrcParameters> {
        let (width, polynomial, initial, final_xor, reflect_data, reflect_remainder): (
            u32,
            u32,
            u32,
            u32,
            bool,
            bool,
        ) = self.take(field, "width, polynomial, initial value, last exclusive or, and what is reflected")?;
        if width != 16 && width != 32 {
            return Err(self.wrong(format!("a CRC of {width} bits cannot be set; give 16 or 32")));
        }
        Ok(CrcParameters { width, polynomial, initial, final_xor, reflect_data, reflect_remainder })
    }
}
