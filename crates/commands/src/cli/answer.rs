//! Answers as text: a number for a handle or a count, else JSON in one line. What an operation can take is written as `op` takes
//! it (see `op.rs`), so that what was read can be written again.

use control::{
    Answer, Call, Generator, Leads, Match, MeterRates, Mirror, PortConfig, QueueConfig, QueueState, Row,
    Scheduler, Shaping, Share,
};
use serde_json::{Map, Value, json};

/// Nothing, if there is nothing to say.
pub fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Done => String::new(),
        Answer::Handle(number) => number.to_string(),
        Answer::Count(number) => number.to_string(),
        answer => json_of(answer).to_string(),
    }
}

fn json_of(answer: &Answer) -> Value {
    match answer {
        Answer::Done => Value::Null,
        Answer::Handle(number) => json!(number),
        Answer::Count(number) => json!(number),
        Answer::Rows { rows, next } => {
            json!({"rows": rows.iter().map(|row| row_of(row, &[])).collect::<Vec<_>>(), "next": next})
        }
        Answer::Idle(rows) => {
            rows.iter().map(|(table, row)| row_of(row, &[("table", json!(table))])).collect()
        }
        Answer::Default { to, note } => json!({"to": leads(to), "note": hex(note)}),
        Answer::Totals(totals) => totals
            .iter()
            .map(|t| {
                let (packets, bytes) = t.counts.unzip();
                json!({
                    "table": t.table, "size": t.size, "entries": t.entries,
                    "packets": packets, "bytes": bytes, "next": t.next,
                })
            })
            .collect(),
        Answer::Matches(members) => members.iter().map(|member| json!(key(member))).collect(),
        Answer::Members(members) => {
            members.iter().map(|(member, to)| json!({"member": member, "to": call(to)})).collect()
        }
        Answer::Groups(groups) => groups
            .iter()
            .map(|g| {
                let shares = list(&g.shares, share);
                json!({"group": g.group, "shares": shares, "max_size": g.max_size})
            })
            .collect(),
        Answer::Words { words, words_per_cell } => {
            let cell = |cell: &[u8]| {
                let big_endian: Vec<u8> = cell.iter().rev().copied().collect();
                json!(control::Value::from_bytes(&big_endian).to_string())
            };
            words.0.chunks_exact(8 * *words_per_cell as usize).map(cell).collect()
        }
        Answer::Counts(counts) => {
            counts.iter().map(|(packets, bytes)| json!({"packets": packets, "bytes": bytes})).collect()
        }
        Answer::Rates(cells) => cells.iter().map(|one| json!(rates(one.as_ref()))).collect(),
        Answer::Multicast(groups) => groups
            .iter()
            .map(|(group, nodes)| {
                let node = |n: &control::Node| json!({"node": n.node, "rid": n.rid, "ports": n.ports});
                json!({"group": group, "nodes": nodes.iter().map(node).collect::<Vec<_>>()})
            })
            .collect(),
        Answer::Mirrors(sessions) => sessions
            .iter()
            .map(|s| {
                let copies = list(&s.copies, |(port, rid)| format!("{port}:{rid}"));
                json!({"session": s.session, "to": mirror(&s.to), "copies": copies})
            })
            .collect(),
        Answer::Digests(digests) => digests
            .iter()
            .map(|d| {
                let fields: Map<_, _> =
                    d.fields.iter().map(|(name, value)| (name.clone(), json!(value.to_string()))).collect();
                json!({"name": d.name, "fields": fields})
            })
            .collect(),
        Answer::Drops(drops) => counts(drops),
        Answer::Packet(packet) => packet
            .as_ref()
            .map_or(Value::Null, |p| json!({"at": p.at.as_ps(), "packet": hex(&p.bytes), "more": p.more})),
        Answer::Statistics(s) => json!({
            "received": s.received, "generated": s.generated, "packet_outs": s.packet_outs, "made": s.made,
            "transmitted": s.transmitted, "packet_ins": s.packet_ins, "dropped": counts(&s.dropped), "held": s.held,
        }),
        Answer::Port(to) => json!(port(to)),
        Answer::Queue(state) => queue_state(state),
        Answer::Generator(found) => found.as_ref().map_or(Value::Null, |g| json!(generator(g))),
    }
}

fn counts(counts: &[(&'static str, u64)]) -> Value {
    counts.iter().map(|(what, count)| ((*what).to_owned(), json!(count))).collect::<Map<_, _>>().into()
}

fn row_of(row: &Row, more: &[(&str, Value)]) -> Value {
    let mut made = json!({
        "handle": row.handle, "key": key(&row.matches), "priority": row.priority, "to": leads(&row.to),
        "counter": format!("{}:{}", row.packets, row.bytes), "meter": rates(row.rates.as_ref()),
        "idle_timeout": row.idle_timeout, "idle_for": row.idle_for, "const": row.is_const, "note": hex(&row.note),
    });
    for (name, value) in more {
        made[*name] = value.clone();
    }
    made
}

fn queue_state(q: &QueueState) -> Value {
    json!({
        "waiting_packets": q.waiting_packets, "waiting_bytes": q.waiting_bytes, "head_wait": q.head_wait.as_ps(),
        "packets": q.packets, "bytes": q.bytes, "dropped": q.dropped, "dropped_in_egress": q.dropped_in_egress,
        "wait_sum": q.wait_sum.to_string(), "wait_max": q.wait_max,
    })
}

fn list<T>(items: &[T], one: impl Fn(&T) -> String) -> String {
    items.iter().map(one).collect::<Vec<_>>().join(",")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(matches: &[Match]) -> String {
    list(matches, |found| match found {
        Match::Any => "*".to_owned(),
        Match::Exact(value) | Match::Optional(value) => value.to_string(),
        Match::Lpm(value, length) => format!("{value}/{length}"),
        Match::Ternary(value, mask) => format!("{value}&&&{mask}"),
        Match::Range(first, last) => format!("{first}->{last}"),
    })
}

fn call(call: &Call) -> String {
    format!("{}({})", call.action, list(&call.values, ToString::to_string))
}

/// The port that a member depends on, if it does.
fn watch(watch: &[u8]) -> String {
    if watch.is_empty() { String::new() } else { format!("@{}", hex(watch)) }
}

fn share(share: &Share) -> String {
    format!("{}:{}{}", share.member, share.weight, watch(&share.watch))
}

fn leads(to: &Leads) -> String {
    match to {
        Leads::Action(to) => call(to),
        Leads::Member(member) => format!("member:{member}"),
        Leads::Group(group) => format!("group:{group}"),
        Leads::Set(choices) => {
            let one = |c: &control::Choice| format!("{}*{}{}", call(&c.call), c.weight, watch(&c.watch));
            choices.iter().map(one).collect::<Vec<_>>().join(";")
        }
    }
}

fn rates(rates: Option<&MeterRates>) -> String {
    // Thousandths a second are 10^-9 a microsecond.
    let per_microsecond = |rate: u64| rate as f64 / 1e9;
    rates.map_or_else(
        || "none".to_owned(),
        |r| {
            let (committed, peak) = (per_microsecond(r.committed_rate), per_microsecond(r.peak_rate));
            format!("{committed}:{},{peak}:{}", r.committed_burst, r.peak_burst)
        },
    )
}

fn mirror(to: &Mirror) -> String {
    let mut parts = Vec::new();
    let mut part = |name: &str, value: Option<u32>| {
        parts.extend(value.map(|value| format!("{name}:{value}")));
    };
    part("port", to.port);
    part("group", to.group);
    part("priority", (to.priority != 0).then_some(to.priority));
    part("truncate", to.truncate);
    parts.extend(to.copies.iter().map(|(rid, port)| format!("copy:{port}:{rid}")));
    parts.join(",")
}

fn generator(generator: &Generator) -> String {
    format!("{}:{}ps:{}", generator.port, generator.period.as_ps(), hex(&generator.template))
}

fn shaper(shaping: Option<Shaping>) -> Option<String> {
    shaping.map(|s| format!("shaper:{}bit/s:{}B", s.rate.as_bps(), s.burst.get()))
}

fn queue(queue: &QueueConfig) -> String {
    let mut parts = Vec::new();
    parts.extend(queue.limit.packets.map(|packets| format!("packets:{packets}")));
    parts.extend(queue.limit.bytes.map(|bytes| format!("bytes:{}B", bytes.get())));
    parts.push(format!("weight:{}", queue.weight));
    parts.push(format!("shift:{}ps", queue.time_shift.as_ps()));
    parts.extend(shaper(queue.shaping));
    parts.join(",")
}

fn port(port: &PortConfig) -> String {
    let mut first = vec![format!("scheduler:{}", port.scheduler.name().replace(' ', "_"))];
    if !matches!(port.scheduler, Scheduler::StrictPriority | Scheduler::TimeShiftedFifo) {
        first.push(format!("quantum:{}B", port.scheduler.quantum().get()));
    }
    first.extend(shaper(port.shaping));
    let parts = std::iter::once(first.join(",")).chain(port.queues.iter().map(queue));
    parts.collect::<Vec<_>>().join(";")
}
