//! Says of each packet of a capture what its headers hold, one line a packet, `name=value` with spaces between; the last is whether
//! the packet, written anew from these fields, has the same bytes. `refused=REASON` in place of all that.
//!
//!     cargo run --package wire --example describe -- FILE.pcap

#[path = "../tests/layers/mod.rs"]
mod layers;

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use layers::{Layers, Network, Transport};
use wire::options::OptionList;
use wire::tcp::Segment;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("which capture? give a file")?);
    let mut reader = wire::pcap::Reader::open(&path)?;
    let (mut bytes, mut out) = (Vec::new(), String::new());
    while reader.next(&mut bytes)?.is_some() {
        match Layers::parse(&bytes) {
            Err(error) => writeln!(out, "refused={}", error.to_string().replace(' ', "_"))?,
            Ok(layers) => {
                describe(&layers, &mut out)?;
                writeln!(out, "same={}", layers.fits() && layers.emit() == bytes)?;
            }
        }
    }
    print!("{out}");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn options(list: &OptionList) -> String {
    let options: Vec<_> = list.iter().map(|(kind, data)| format!("{kind}:{}", hex(data))).collect();
    options.join(",")
}

fn describe(layers: &Layers, out: &mut String) -> std::fmt::Result {
    for tag in &layers.tags {
        write!(out, "vlan={}:{}:{} ", tag.priority, u8::from(tag.drop_eligible), tag.id)?;
    }
    match &layers.network {
        Network::Arp(p) => {
            write!(out, "arp={} sender={} ", p.operation, hex(&p.sender.1))?;
            write!(out, "target={} ", hex(&p.target.1))
        }
        Network::Ipv4(h, above) => {
            write!(
                out,
                "ip=4 from={} to={} protocol={} ttl={} ",
                hex(&h.from),
                hex(&h.to),
                h.protocol,
                h.ttl
            )?;
            write!(out, "dscp={} ecn={} id={} df={} ", h.dscp, h.ecn as u8, h.id, u8::from(h.dont_fragment))?;
            write!(out, "ip_options={} ", options(&h.options))?;
            transport(above, out)
        }
        Network::Ipv6(h, above) => {
            write!(out, "ip=6 from={} to={} ", hex(&h.from), hex(&h.to))?;
            write!(out, "protocol={} ttl={} dscp={} ecn={} ", h.protocol, h.hop_limit, h.dscp, h.ecn as u8)?;
            let extensions: Vec<_> = h.extensions.iter().map(|e| e.kind().to_string()).collect();
            write!(out, "flow={} extensions={} ", h.flow_label, extensions.join(","))?;
            transport(above, out)
        }
        Network::Other(_) => Ok(()),
    }
}

fn transport(above: &Transport, out: &mut String) -> std::fmt::Result {
    match above {
        Transport::Tcp { ports, segment, others, payload } => {
            write!(out, "sport={} dport={} payload={} ", ports.0, ports.1, payload.len())?;
            tcp(segment, others, out)
        }
        Transport::Udp(h, payload) => {
            write!(out, "sport={} dport={} payload={} ", h.port_from, h.port_to, payload.len())
        }
        Transport::Icmp(h, payload) | Transport::Icmpv6(h, payload) => {
            write!(out, "type={} code={} rest={} payload={} ", h.kind, h.code, hex(&h.rest), payload.len())
        }
        Transport::Other(_) => Ok(()),
    }
}

fn tcp(segment: &Segment, others: &OptionList, out: &mut String) -> std::fmt::Result {
    write!(out, "seq={} ack={} flags={} ", segment.seq, segment.ack, segment.flags.0)?;
    write!(out, "window={} others={} ", segment.window, options(others))?;
    if let Some(syn) = segment.syn {
        let scale = syn.window_scale.map_or(-1, i32::from);
        write!(out, "mss={} scale={scale} sack_ok={} ", syn.mss, u8::from(syn.sack_permitted))?;
    }
    if let Some((val, ecr)) = segment.timestamps {
        write!(out, "stamps={val}:{ecr} ")?;
    }
    let blocks: Vec<_> =
        segment.sack.as_slice().iter().map(|(left, right)| format!("{left}-{right}")).collect();
    write!(out, "sack={} ", blocks.join(","))
}
