//! Answers as Python's objects: what each is, `_core.pyi` says.

use control::{
    Answer, Call, Choice, Group, Leads, Match, MeterRates, MirrorState, Node, PortConfig, QueueConfig,
    QueueState, Row, Shaping, Share, Statistics, TableTotals, Value,
};
use p4lang::ir::MatchKind;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

type PyOut<'py> = PyResult<Bound<'py, PyAny>>;

pub fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
    }
}

fn bytes<'py>(py: Python<'py>, value: &Value) -> Bound<'py, PyBytes> {
    PyBytes::new(py, value.bytes())
}

/// `None` matches anything.
pub fn match_out<'py>(py: Python<'py>, found: &Match) -> PyOut<'py> {
    let two = |a: &Value, b: &Value| (bytes(py, a), bytes(py, b)).into_pyobject(py).map(Bound::into_any);
    match found {
        Match::Any => Ok(py.None().into_bound(py)),
        Match::Exact(value) | Match::Optional(value) => Ok(bytes(py, value).into_any()),
        Match::Lpm(value, prefix_len) => two(value, &u64::from(*prefix_len).into()),
        Match::Ternary(value, mask) => two(value, mask),
        Match::Range(lo, hi) => two(lo, hi),
    }
}

fn matches_out<'py>(py: Python<'py>, found: &[Match]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    found.iter().map(|m| match_out(py, m)).collect()
}

fn call_out<'py>(py: Python<'py>, call: &Call) -> PyOut<'py> {
    let values: Vec<_> = call.values.iter().map(|value| bytes(py, value)).collect();
    Ok((call.action.as_str(), values).into_pyobject(py)?.into_any())
}

fn leads_out<'py>(py: Python<'py>, to: &Leads) -> PyOut<'py> {
    match to {
        Leads::Action(call) => call_out(py, call),
        Leads::Member(member) => Ok(("member", *member).into_pyobject(py)?.into_any()),
        Leads::Group(group) => Ok(("group", *group).into_pyobject(py)?.into_any()),
        Leads::Set(choices) => {
            let choice = |c: &Choice| Ok((call_out(py, &c.call)?, c.weight, PyBytes::new(py, &c.watch)));
            choices.iter().map(choice).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
    }
}

type Rates = (u64, u64, u64, u64);

fn rates_out(rates: MeterRates) -> Rates {
    (rates.committed_rate, rates.committed_burst, rates.peak_rate, rates.peak_burst)
}

fn row_out<'py>(py: Python<'py>, row: &Row) -> PyOut<'py> {
    let out = (
        row.handle,
        matches_out(py, &row.matches)?,
        row.priority,
        leads_out(py, &row.to)?,
        (row.packets, row.bytes),
        row.rates.map(rates_out),
        row.idle_timeout,
        row.idle_for,
        row.is_const,
        PyBytes::new(py, &row.note),
    );
    Ok(out.into_pyobject(py)?.into_any())
}

/// Entries of a table as they were; each becomes an object of Python when it is asked for.
#[pyclass(frozen, module = "tidegate._core", name = "TableEntries")]
pub struct Entries {
    pub rows: Vec<Row>,
}

#[pymethods]
impl Entries {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyOut<'py> {
        match self.rows.get(index) {
            Some(row) => row_out(py, row),
            None => Err(PyIndexError::new_err(format!("there are {} entries", self.rows.len()))),
        }
    }
}

fn totals_out(totals: TableTotals) -> (String, u64, u64, Option<u64>, Option<u64>, Option<u32>) {
    let (packets, bytes) = totals.counts.unzip();
    (totals.table, totals.size, totals.entries, packets, bytes, totals.next)
}

fn group_out<'py>(py: Python<'py>, group: &Group) -> PyOut<'py> {
    let share = |s: &Share| (s.member, s.weight, PyBytes::new(py, &s.watch));
    let shares: Vec<_> = group.shares.iter().map(share).collect();
    Ok((group.group, shares, group.max_size).into_pyobject(py)?.into_any())
}

fn node_out(node: Node) -> (u32, u32, Vec<u32>) {
    (node.node, node.rid, node.ports)
}

fn mirror_out<'py>(py: Python<'py>, state: MirrorState) -> PyOut<'py> {
    let to = state.to;
    let set = (to.port, to.group, to.copies, to.priority, to.truncate);
    Ok((state.session, set, state.copies).into_pyobject(py)?.into_any())
}

fn shaper_out(shaping: Option<Shaping>) -> Option<(u64, u64)> {
    shaping.map(|s| (s.rate.as_bps(), s.burst.get()))
}

fn port_out<'py>(py: Python<'py>, port: &PortConfig) -> PyOut<'py> {
    let queue = |q: &QueueConfig| {
        let bytes = q.limit.bytes.map(units::Bytes::get);
        (q.limit.packets, bytes, q.weight, q.time_shift.as_ps(), shaper_out(q.shaping))
    };
    let queues: Vec<_> = port.queues.iter().map(queue).collect();
    let (scheduler, quantum) = (port.scheduler.name(), port.scheduler.quantum().get());
    Ok((scheduler, quantum, shaper_out(port.shaping), queues).into_pyobject(py)?.into_any())
}

/// What waits in a queue, and what it has counted.
pub fn queue_out<'py>(py: Python<'py>, queue: &QueueState) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("waiting_packets", queue.waiting_packets)?;
    out.set_item("waiting_bytes", queue.waiting_bytes)?;
    out.set_item("head_wait", queue.head_wait.as_ps())?;
    out.set_item("packets", queue.packets)?;
    out.set_item("bytes", queue.bytes)?;
    out.set_item("dropped", queue.dropped)?;
    out.set_item("dropped_in_egress", queue.dropped_in_egress)?;
    out.set_item("wait_sum", queue.wait_sum as f64)?;
    out.set_item("wait_max", queue.wait_max)?;
    Ok(out)
}

fn statistics_out<'py>(py: Python<'py>, s: &Statistics) -> PyOut<'py> {
    let out = PyDict::new(py);
    out.set_item("received", s.received)?;
    out.set_item("generated", s.generated)?;
    out.set_item("packet_outs", s.packet_outs)?;
    out.set_item("made", s.made)?;
    out.set_item("transmitted", s.transmitted)?;
    out.set_item("packet_ins", s.packet_ins)?;
    out.set_item("dropped", s.dropped.iter().map(|(_, count)| count).sum::<u64>())?;
    out.set_item("held", s.held)?;
    Ok(out.into_any())
}

pub fn into_python(py: Python<'_>, answer: Answer) -> PyOut<'_> {
    match answer {
        Answer::Done => Ok(py.None().into_bound(py)),
        Answer::Handle(handle) => Ok(handle.into_pyobject(py)?.into_any()),
        Answer::Count(count) => Ok(count.into_pyobject(py)?.into_any()),
        Answer::Rows { rows, next } => {
            let rows = rows.iter().map(|row| row_out(py, row)).collect::<PyResult<Vec<_>>>()?;
            Ok((rows, next).into_pyobject(py)?.into_any())
        }
        Answer::Idle(rows) => {
            let row = |(table, row): (String, Row)| Ok((table, row_out(py, &row)?));
            rows.into_iter().map(row).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        Answer::Default { to, note } => {
            Ok((leads_out(py, &to)?, PyBytes::new(py, &note)).into_pyobject(py)?.into_any())
        }
        Answer::Totals(totals) => totals.into_iter().map(totals_out).collect::<Vec<_>>().into_pyobject(py),
        Answer::Matches(members) => {
            let member = |member: &Vec<Match>| matches_out(py, member);
            members.iter().map(member).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        Answer::Members(members) => {
            let member = |(number, call): &(u32, Call)| Ok((*number, call_out(py, call)?));
            members.iter().map(member).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        Answer::Groups(groups) => {
            groups.iter().map(|group| group_out(py, group)).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        Answer::Words { words, words_per_cell } => {
            Ok((PyBytes::new(py, &words.0), words_per_cell).into_pyobject(py)?.into_any())
        }
        Answer::Counts(counts) => {
            let mut words = Vec::with_capacity(16 * counts.len());
            for (packets, bytes) in counts {
                words.extend_from_slice(&packets.to_le_bytes());
                words.extend_from_slice(&bytes.to_le_bytes());
            }
            Ok(PyBytes::new(py, &words).into_any())
        }
        Answer::Rates(rates) => {
            rates.into_iter().map(|rates| rates.map(rates_out)).collect::<Vec<_>>().into_pyobject(py)
        }
        Answer::Multicast(groups) => {
            let group = |(group, nodes): (u32, Vec<Node>)| {
                (group, nodes.into_iter().map(node_out).collect::<Vec<_>>())
            };
            groups.into_iter().map(group).collect::<Vec<_>>().into_pyobject(py)
        }
        Answer::Mirrors(sessions) => sessions
            .into_iter()
            .map(|state| mirror_out(py, state))
            .collect::<PyResult<Vec<_>>>()?
            .into_pyobject(py),
        Answer::Digests(digests) => {
            let digest = |digest: control::Digest| {
                let fields = digest.fields.into_iter().map(|(name, value)| (name, value.number()));
                (digest.name, fields.collect::<Vec<_>>())
            };
            digests.into_iter().map(digest).collect::<Vec<_>>().into_pyobject(py)
        }
        Answer::Drops(drops) => drops.into_pyobject(py),
        Answer::Packet(packet) => {
            let packet = packet.map(|p| (p.at.as_ps(), PyBytes::new(py, &p.bytes), p.more));
            packet.into_pyobject(py)
        }
        Answer::Statistics(statistics) => statistics_out(py, &statistics),
        Answer::Port(port) => port_out(py, &port),
        Answer::Queue(queue) => queue_out(py, &queue).map(Bound::into_any),
        Answer::Generator(generator) => {
            let made = generator.map(|g| (g.port, PyBytes::new(py, &g.template), g.period.as_ps()));
            made.into_pyobject(py)
        }
    }
}
