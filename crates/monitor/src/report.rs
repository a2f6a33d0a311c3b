//! What the monitor answers.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::capture::{Options, Watched};
use crate::packet::Endpoint;
use crate::table::Flow;
use crate::taps::{Passage, Side};

const MS: f64 = 1e6;

/// `most`: flows, those with the most bytes of the ones that have `text` in what [`describe`] says.
pub fn answer(watched: &Watched, options: &Options, most: usize, text: Option<&str>) -> Value {
    let seconds = watched.last.saturating_sub(watched.first) as f64 / 1e9;
    let files: Vec<String> = options.files.iter().map(|path| path.display().to_string()).collect();
    let mut chosen: Vec<_> = watched.table.flows().collect();
    let count = chosen.len();
    if let Some(text) = text {
        let mut described = String::new();
        chosen.retain(|(tcp, ends, _)| {
            describe(&mut described, *tcp, ends);
            described.contains(text)
        });
    }
    if chosen.len() > most {
        chosen.select_nth_unstable_by_key(most, |(_, _, flow)| std::cmp::Reverse(flow.bytes));
        chosen.truncate(most);
    }
    let flows: Vec<Value> = chosen
        .into_iter()
        .map(|(tcp, ends, flow)| {
            let mut row = row(tcp, ends, flow, watched.first);
            if let (Some(taps), Some(fields)) = (&watched.taps, row.as_object_mut()) {
                fields.extend(between_taps(taps.from_to(ends[0], ends[1], tcp)));
            }
            row
        })
        .collect();
    let mut answer = json!({
        "files": files,
        "rtt_rule": options.rule.name(),
        "packets": watched.packets,
        "other_packets": watched.others,
        "cut_packets": watched.cut,
        "untracked_packets": watched.table.untracked,
        "unsampled_segments": watched.table.room.unsampled,
        "samples_without_detail": watched.table.room.without_detail,
        "start_s": watched.first as f64 / 1e9,
        "duration_s": seconds,
        "flow_count": count,
        "flows": flows,
        "interrupted": watched.interrupted,
        "warnings": watched.warnings,
    });
    if let (Some(taps), Some(second), Some(fields)) = (&watched.taps, &options.second, answer.as_object_mut())
    {
        let files: Vec<String> = second.files.iter().map(|path| path.display().to_string()).collect();
        fields.insert("after_files".into(), files.into());
        fields.insert("after_packets".into(), taps.packets[Side::After as usize].into());
        fields.insert("after_offset_ms".into(), (second.offset as f64 / MS).into());
        fields.insert("packets_at_both".into(), taps.pairs.into());
        fields.insert("unsettled_packets".into(), taps.unsettled.into());
    }
    answer
}

/// What two taps say of a flow.
fn between_taps(passage: Option<&Passage>) -> Map<String, Value> {
    let known = passage.filter(|one| one.first.is_some());
    let ms = |ns: f64| ns / MS;
    let quantiles = known.and_then(|one| one.delays.quantiles([0.5, 0.95, 0.99]));
    let at = |place: usize| quantiles.map(|found| ms(found[place] as f64)).into();
    let named: [(&str, Value); 9] = [
        ("first_tap", known.and_then(|one| one.first).map(Side::name).into()),
        ("queue_delay_samples", known.map_or(0, |one| one.delays.count()).into()),
        ("queue_delay_ms_min", known.map(|one| ms(one.least as f64)).into()),
        ("queue_delay_ms_p50", at(0)),
        ("queue_delay_ms_p95", at(1)),
        ("queue_delay_ms_p99", at(2)),
        ("queue_delay_ms_max", known.and_then(|one| one.delays.most()).map(|ns| ms(ns as f64)).into()),
        ("negative_queue_delays", known.map_or(0, |one| one.negative).into()),
        ("lost_at_router", known.and_then(Passage::lost).into()),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Protocol and ends of a flow, as people write them: `tcp 10.0.0.1:1024 [2001:db8::1]:80`.
fn describe(into: &mut String, tcp: bool, ends: &[Endpoint; 2]) {
    into.clear();
    into.push_str(if tcp { "tcp" } else { "udp" });
    for end in ends {
        let (address, port) = (end.address(), end.port);
        // A string takes all that is written.
        let _ = match address.is_ipv6() {
            true => write!(into, " [{address}]:{port}"),
            false => write!(into, " {address}:{port}"),
        };
    }
}

/// What was seen of a flow.
fn row(tcp: bool, [from, to]: [Endpoint; 2], flow: &Flow, begin: u64) -> Value {
    let seconds = flow.last.saturating_sub(flow.first) as f64 / 1e9;
    let rate = if seconds > 0.0 { Some(flow.bytes as f64 * 8.0 / seconds / 1e6) } else { None };
    let ms = flow.rtt.quantiles([0.5, 0.95, 0.99]).map(|found| found.map(|ns| ns as f64 / MS));
    let at = |place: usize| ms.map(|found| found[place]);
    let of_tcp = |count: u64| if tcp { Some(count) } else { None };
    json!({
        "protocol": if tcp { "tcp" } else { "udp" },
        "src": from.address().to_string(),
        "src_port": from.port,
        "dst": to.address().to_string(),
        "dst_port": to.port,
        "packets": flow.packets,
        "bytes": flow.bytes,
        "payload_bytes": flow.payload,
        "first_s": flow.first.saturating_sub(begin) as f64 / 1e9,
        "duration_s": seconds,
        "throughput_mbps": rate,
        "syn": of_tcp(flow.syn),
        "fin": of_tcp(flow.fin),
        "rst": of_tcp(flow.rst),
        "retransmissions": of_tcp(flow.retransmissions),
        "rtt_samples": flow.rtt.count(),
        "rtt_ms_min": flow.rtt.least().map(|ns| ns as f64 / MS),
        "rtt_ms_p50": at(0),
        "rtt_ms_p95": at(1),
        "rtt_ms_p99": at(2),
    })
}
