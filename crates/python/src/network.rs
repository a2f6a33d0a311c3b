//! The simulator: a network that is built object by object, run until a time, and asked. Times are picoseconds, rates bit/s,
//! sizes bytes; ids count from 0 in the order of making.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sim::{
    BuildError, FlowId, FlowSamples, GilbertElliott, Link, Network, NodeId, Pattern, PortId, QueueLimit,
    QueueSamples, TcpFlow, UdpFlow,
};
use tools::commands::Session;
use transport::segment::Ecn;
use transport::tcp::{Config, EcnMode};
use units::{Bytes, Rate, Time};

use crate::TidegateError;
use crate::engine::Program;

fn refuse(error: BuildError) -> PyErr {
    TidegateError::new_err(error.to_string())
}

fn wrong(text: String) -> PyErr {
    TidegateError::new_err(text)
}

/// One direction of a link, as `tidegate.network.Link` resolves it.
#[derive(FromPyObject)]
pub struct LinkSpec {
    rate: u64,
    delay: u64,
    packets: Option<u64>,
    bytes: Option<u64>,
    mark_above: Option<u64>,
    framing: u32,
    loss: f64,
    burst_loss: Option<(f64, f64, f64, f64)>,
    jitter: u64,
    reorder: f64,
    reorder_by: u64,
    duplicate: f64,
    mtu: u32,
}

impl LinkSpec {
    fn link(&self) -> Link {
        Link {
            limit: QueueLimit { packets: self.packets, bytes: self.bytes.map(Bytes::new) },
            mark_above: self.mark_above,
            framing: self.framing,
            loss: self.loss,
            burst_loss: self.burst_loss.map(|(to_bad, to_good, loss_good, loss_bad)| GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            }),
            jitter: Time::from_ps(self.jitter),
            reorder: self.reorder,
            reorder_by: Time::from_ps(self.reorder_by),
            duplicate: self.duplicate,
            mtu: self.mtu,
            ..Link::new(Rate::from_bps(self.rate), Time::from_ps(self.delay))
        }
    }
}

/// A TCP flow, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct TcpSpec {
    source: u32,
    target: u32,
    start: u64,
    stop: Option<u64>,
    size: Option<u64>,
    congestion_control: String,
    mss: u32,
    ecn: String,
    initial_cwnd: u32,
    rto_min: u64,
    delayed_ack: u64,
    segmentation_offload: Option<u64>,
    receive_buffer_max: u64,
    sack: bool,
    timestamps: bool,
    pacing: bool,
}

impl TcpSpec {
    fn config(&self) -> PyResult<Config> {
        let ecn = match self.ecn.as_str() {
            "off" => EcnMode::Off,
            "passive" => EcnMode::Passive,
            "on" => EcnMode::On,
            "accurate" => EcnMode::Accurate,
            other => {
                return Err(wrong(format!(
                    "there is no ECN mode `{other}`; known: off, passive, on, accurate"
                )));
            }
        };
        Ok(Config {
            mss: self.mss,
            ecn,
            initial_cwnd: self.initial_cwnd,
            rto_min: Time::from_ps(self.rto_min),
            delayed_ack_min: Time::from_ps(self.delayed_ack),
            segmentation_offload: self.segmentation_offload.map(Bytes::new),
            receive_buffer_max: Bytes::new(self.receive_buffer_max),
            sack: self.sack,
            timestamps: self.timestamps,
            pacing: self.pacing,
            ..Config::default()
        })
    }
}

/// A UDP flow, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct UdpSpec {
    source: u32,
    target: u32,
    start: u64,
    stop: Option<u64>,
    rate: u64,
    payload: u32,
    pattern: String,
    on: u64,
    off: u64,
    ecn: u8,
}

/// A network in virtual time.
#[pyclass]
pub struct Simulation {
    network: Network,
    nodes: Vec<NodeId>,
    ports: Vec<PortId>,
    flows: Vec<FlowId>,
}

impl Simulation {
    fn node(&self, id: u32) -> PyResult<NodeId> {
        self.nodes.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no node {id}")))
    }

    fn port(&self, id: u32) -> PyResult<PortId> {
        self.ports.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no port {id}")))
    }

    fn flow(&self, id: u32) -> PyResult<FlowId> {
        self.flows.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no flow {id}")))
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(seed: u64) -> Simulation {
        Simulation { network: Network::new(seed), nodes: Vec::new(), ports: Vec::new(), flows: Vec::new() }
    }

    fn host(&mut self, name: &str) -> u32 {
        self.nodes.push(self.network.host(name));
        self.nodes.len() as u32 - 1
    }

    fn router(&mut self, name: &str) -> u32 {
        self.nodes.push(self.network.router(name));
        self.nodes.len() as u32 - 1
    }

    /// A P4 switch with so many queues a port.
    fn switch(&mut self, name: &str, program: &Program, queues: usize) -> u32 {
        self.nodes.push(self.network.switch(name, program.0.clone(), queues));
        self.nodes.len() as u32 - 1
    }

    /// A command for a switch, in the language of `simple_switch_CLI`; gives its answer.
    fn command(&mut self, node: u32, line: &str) -> PyResult<String> {
        let (node, now) = (self.node(node)?, self.network.now().as_ps());
        let pipeline = self.network.pipeline(node).map_err(refuse)?;
        match (Session { pipeline, now }).execute(line) {
            None => Ok(String::new()),
            Some(answer) => answer.map_err(wrong),
        }
    }

    /// What waits at a switch's port, and its queues' counts since the start, summed; `None` for a port of another node.
    fn switch_queue<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Option<Bound<'py, PyDict>>> {
        let id = self.port(port)?;
        let all: Vec<_> = (0..).map_while(|queue| self.network.switch_queue(id, queue)).collect();
        if all.is_empty() {
            return Ok(None);
        }
        let sum = |f: fn(&switch::QueueStatistics) -> u64| all.iter().map(|(_, s)| f(s)).sum::<u64>();
        let out = PyDict::new(py);
        out.set_item("packets", sum(|s| s.packets))?;
        out.set_item("dropped", sum(|s| s.dropped))?;
        out.set_item("dropped_in_egress", sum(|s| s.dropped_in_egress))?;
        out.set_item("wait_sum", all.iter().map(|(_, s)| s.wait_ps).sum::<u128>() as f64)?;
        out.set_item("wait_max", all.iter().map(|(_, s)| s.wait_max_ps).max())?;
        Ok(Some(out))
    }

    /// Connects two nodes; gives the ports at `a` and at `b`.
    fn link(&mut self, a: u32, b: u32, there: LinkSpec, back: LinkSpec) -> PyResult<(u32, u32)> {
        let (a, b) = (self.node(a)?, self.node(b)?);
        let (there, back) = self.network.link(a, b, there.link(), back.link()).map_err(refuse)?;
        self.ports.extend([there, back]);
        Ok((self.ports.len() as u32 - 2, self.ports.len() as u32 - 1))
    }

    fn change_link(&mut self, at: u64, port: u32, link: LinkSpec) -> PyResult<()> {
        let port = self.port(port)?;
        self.network.change_link(Time::from_ps(at), port, link.link()).map_err(refuse)
    }

    fn set_route(&mut self, router: u32, to: u32, port: u32) -> PyResult<()> {
        let (router, to, port) = (self.node(router)?, self.node(to)?, self.port(port)?);
        self.network.set_route(router, to, port).map_err(refuse)
    }

    fn tcp(&mut self, flow: TcpSpec) -> PyResult<u32> {
        let config = flow.config()?;
        let id = self.network.tcp(TcpFlow {
            from: self.node(flow.source)?,
            to: self.node(flow.target)?,
            start: Time::from_ps(flow.start),
            size: flow.size.map(Bytes::new),
            stop: flow.stop.map(Time::from_ps),
            congestion_control: flow.congestion_control.clone(),
            receiver_config: config.clone(),
            config,
        });
        self.flows.push(id.map_err(refuse)?);
        Ok(self.flows.len() as u32 - 1)
    }

    fn udp(&mut self, flow: UdpSpec) -> PyResult<u32> {
        let pattern = match flow.pattern.as_str() {
            "constant" => Pattern::Constant,
            "poisson" => Pattern::Poisson,
            "on-off" | "on-off exponential" => Pattern::OnOff {
                on: Time::from_ps(flow.on),
                off: Time::from_ps(flow.off),
                exponential: flow.pattern != "on-off",
            },
            other => {
                let known = "constant, poisson, on-off, on-off exponential";
                return Err(wrong(format!("there is no pattern `{other}`; known: {known}")));
            }
        };
        let id = self.network.udp(UdpFlow {
            from: self.node(flow.source)?,
            to: self.node(flow.target)?,
            start: Time::from_ps(flow.start),
            stop: flow.stop.map(Time::from_ps),
            rate: Rate::from_bps(flow.rate),
            payload: flow.payload,
            pattern,
            ecn: Ecn::from_bits(flow.ecn),
        });
        self.flows.push(id.map_err(refuse)?);
        Ok(self.flows.len() as u32 - 1)
    }

    fn record(&mut self, period: u64, flows: bool, ports: Vec<u32>) -> PyResult<()> {
        let ports: Vec<PortId> = ports.into_iter().map(|p| self.port(p)).collect::<PyResult<_>>()?;
        self.network.record(Time::from_ps(period), flows, &ports).map_err(refuse)
    }

    fn record_waits(&mut self, port: u32) -> PyResult<()> {
        let port = self.port(port)?;
        self.network.record_waits(port);
        Ok(())
    }

    /// Runs until `end`.
    fn run_until(&mut self, py: Python<'_>, end: u64) -> PyResult<()> {
        py.detach(|| self.network.run_until(Time::from_ps(end))).map_err(refuse)
    }

    fn now(&self) -> u64 {
        self.network.now().as_ps()
    }

    /// Events handled, and packets carried over links.
    fn work(&self) -> (u64, u64) {
        self.network.work()
    }

    /// What came of a flow so far.
    fn outcome<'py>(&self, py: Python<'py>, flow: u32) -> PyResult<Bound<'py, PyDict>> {
        let id = self.flow(flow)?;
        let outcome = self.network.outcome(id);
        let out = PyDict::new(py);
        out.set_item("started", outcome.started.map(Time::as_ps))?;
        out.set_item("finished", outcome.finished.map(Time::as_ps))?;
        out.set_item("bytes_received", outcome.bytes_received)?;
        let s = outcome.statistics;
        out.set_item("segments_sent", s.segments_sent)?;
        out.set_item("retransmits", s.retransmits)?;
        out.set_item("timeouts", s.timeouts)?;
        out.set_item("fast_recoveries", s.fast_recoveries)?;
        out.set_item("tail_loss_probes", s.probes)?;
        out.set_item("undos", s.undos)?;
        out.set_item("ece_received", s.ece_received)?;
        if let Some(udp) = self.network.udp_statistics(id) {
            out.set_item("datagrams_sent", udp.sent)?;
            out.set_item("datagrams_received", udp.received)?;
            out.set_item("reordered", udp.reordered)?;
            out.set_item("delay_sum", udp.delay_ps as f64)?;
            out.set_item("delay_max", udp.delay_max_ps)?;
            out.set_item("ce_received", udp.ce_received)?;
        }
        Ok(out)
    }

    /// Counts of a port's queue since the start.
    fn queue<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Bound<'py, PyDict>> {
        let id = self.port(port)?;
        let s = self.network.queue(id);
        let out = PyDict::new(py);
        out.set_item("packets", s.packets)?;
        out.set_item("bytes", s.bytes)?;
        out.set_item("dropped", s.dropped)?;
        out.set_item("too_large", s.too_large)?;
        out.set_item("lost", s.lost)?;
        out.set_item("marked", s.marked)?;
        out.set_item("wait_sum", s.wait_ps as f64)?;
        out.set_item("wait_max", s.wait_max_ps)?;
        out.set_item("busy", s.busy_ps as f64)?;
        out.set_item("backlog", self.network.backlog(id).as_ps())?;
        Ok(out)
    }

    /// The waiting time that a share of the packets did not exceed; `None` if it was not recorded or nothing came.
    fn wait_quantile(&self, port: u32, share: f64) -> PyResult<Option<u64>> {
        let id = self.port(port)?;
        Ok(self.network.waits(id).and_then(|w| w.quantile(share)).map(Time::as_ps))
    }

    /// What the recorders have: for flows and for queues the columns by name, 64-bit little-endian words.
    #[allow(clippy::type_complexity)]
    fn samples<'py>(
        &self,
        py: Python<'py>,
    ) -> (Vec<HashMap<&'static str, Bound<'py, PyBytes>>>, Vec<HashMap<&'static str, Bound<'py, PyBytes>>>)
    {
        let (mut flows, mut queues) = (Vec::new(), Vec::new());
        for (flow, queue) in self.network.recorded() {
            flows.extend(flow.map(|f| flow_columns(py, f)));
            queues.push(queue_columns(py, queue));
        }
        (flows, queues)
    }
}

fn words<'py>(py: Python<'py>, values: impl Iterator<Item = u64>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &values.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}

fn flow_columns<'py>(py: Python<'py>, s: &FlowSamples) -> HashMap<&'static str, Bound<'py, PyBytes>> {
    let long = |column: &[u64]| words(py, column.iter().copied());
    let short = |column: &[u32]| words(py, column.iter().map(|v| u64::from(*v)));
    HashMap::from([
        ("time", long(&s.time)),
        ("flow", short(&s.flow)),
        ("bytes_received", long(&s.bytes_received)),
        ("cwnd", short(&s.cwnd)),
        ("ssthresh", short(&s.ssthresh)),
        ("in_flight", short(&s.in_flight)),
        ("srtt", long(&s.srtt)),
        ("rto", long(&s.rto)),
        ("pacing_rate", long(&s.pacing_rate)),
        ("retransmits", long(&s.retransmits)),
        ("timeouts", long(&s.timeouts)),
        ("delivered_ce", long(&s.delivered_ce)),
    ])
}

fn queue_columns<'py>(py: Python<'py>, s: &QueueSamples) -> HashMap<&'static str, Bound<'py, PyBytes>> {
    let long = |column: &[u64]| words(py, column.iter().copied());
    HashMap::from([
        ("time", long(&s.time)),
        ("port", words(py, s.port.iter().map(|v| u64::from(*v)))),
        ("packets", long(&s.packets)),
        ("bytes", long(&s.bytes)),
        ("delay", long(&s.delay)),
        ("sent_bytes", long(&s.sent_bytes)),
        ("dropped", long(&s.dropped)),
        ("marked", long(&s.marked)),
        ("busy", long(&s.busy)),
    ])
}

/// Reads `20 ms` as picoseconds.
#[pyfunction]
pub fn parse_time(text: &str) -> PyResult<u64> {
    text.parse().map(Time::as_ps).map_err(|e: units::ParseError| wrong(e.to_string()))
}

/// Reads `500 Mbit/s` as bit/s.
#[pyfunction]
pub fn parse_rate(text: &str) -> PyResult<u64> {
    text.parse().map(Rate::as_bps).map_err(|e: units::ParseError| wrong(e.to_string()))
}

/// Reads `128 KiB` as bytes.
#[pyfunction]
pub fn parse_size(text: &str) -> PyResult<u64> {
    text.parse().map(Bytes::get).map_err(|e: units::ParseError| wrong(e.to_string()))
}

/// Writes picoseconds as `20 ms`.
#[pyfunction]
pub fn show_time(ps: u64) -> String {
    Time::from_ps(ps).to_string()
}

/// Writes bit/s as `500 Mbit/s`.
#[pyfunction]
pub fn show_rate(bps: u64) -> String {
    Rate::from_bps(bps).to_string()
}

/// Names of the congestion controls.
#[pyfunction]
pub fn congestion_controls() -> Vec<&'static str> {
    transport::cc::NAMES.to_vec()
}
