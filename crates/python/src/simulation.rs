//! The simulator: a network that is built object by object, run until a time, and asked. Times are picoseconds, rates bit/s,
//! sizes bytes; ids count from 0 in the order of making.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use dataplane::clock::Clock;
use live::{Settings, Wiring};
use network::{
    BuildError, FlowId, FlowSamples, Network, NodeId, PageFlow, PageId, Pattern, PortId, QueueSamples,
    TcpFlow, UdpFlow,
};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use transport::segment::Ecn;
use units::{Bytes, Rate, Time};

use crate::answers::queue_out;
use crate::arrow::Columns;
use crate::engine::Program;
use crate::errors::refused;
use crate::live::Running;
use crate::specs::{LinkSpec, PageSpec, TcpSpec, UdpSpec};

/// What Python's numbers stand for.
#[derive(Default)]
struct Ids {
    nodes: Vec<NodeId>,
    ports: Vec<PortId>,
    flows: Vec<FlowId>,
    pages: Vec<PageId>,
}

/// Events of one call: some tenths of a second.
const EVENTS: u64 = 1 << 20;

/// A network in virtual time; or, from `go_live` to `end_live`, in real time.
#[pyclass(frozen)]
pub struct Simulation {
    network: Arc<Mutex<Network>>,
    ids: Mutex<Ids>,
    live: Running,
}

impl Simulation {
    /// Does something to the network, between packets if it is live. Other threads of Python go on meanwhile; so a lock on
    /// `ids` must not be held across it.
    pub(crate) fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Network) -> T + Send) -> T {
        py.detach(|| self.between(act))
    }

    /// As [`Simulation::with`], for a thread that is detached from Python already.
    pub(crate) fn between<T>(&self, act: impl FnOnce(&mut Network) -> T) -> T {
        let Some(shared) = self.live.shared() else { return act(&mut self.network.lock()) };
        let mut network = shared.enter();
        let result = act(&mut network);
        shared.leave(network);
        result
    }

    fn add_node(&self, py: Python<'_>, add: impl FnOnce(&mut Network) -> NodeId + Send) -> u32 {
        let node = self.with(py, add);
        let mut ids = self.ids.lock();
        ids.nodes.push(node);
        ids.nodes.len() as u32 - 1
    }

    fn add_flow(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut Network) -> Result<FlowId, BuildError> + Send,
    ) -> PyResult<u32> {
        let flow = self.with(py, add).map_err(refused)?;
        let mut ids = self.ids.lock();
        ids.flows.push(flow);
        Ok(ids.flows.len() as u32 - 1)
    }

    fn tcp_flow(&self, flow: &TcpSpec) -> PyResult<TcpFlow> {
        let config = flow.config()?;
        Ok(TcpFlow {
            from: self.node(flow.source)?,
            to: self.node(flow.target)?,
            start: Time::from_ps(flow.start),
            size: flow.size.map(Bytes::new),
            stop: flow.stop.map(Time::from_ps),
            resets: flow.ends.as_deref() == Some("reset"),
            congestion_control: flow.congestion_control.clone(),
            control_options: flow.control_options.as_slice().into(),
            receiver_config: config.clone(),
            config,
            extra_delay: Time::from_ps(flow.extra_delay),
        })
    }

    pub(crate) fn node(&self, id: u32) -> PyResult<NodeId> {
        self.ids
            .lock()
            .nodes
            .get(id as usize)
            .copied()
            .ok_or_else(|| refused(format!("there is no node {id}")))
    }

    pub(crate) fn port(&self, id: u32) -> PyResult<PortId> {
        self.ids
            .lock()
            .ports
            .get(id as usize)
            .copied()
            .ok_or_else(|| refused(format!("there is no port {id}")))
    }

    pub(crate) fn flow(&self, id: u32) -> PyResult<FlowId> {
        self.ids
            .lock()
            .flows
            .get(id as usize)
            .copied()
            .ok_or_else(|| refused(format!("there is no flow {id}")))
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(seed: u64) -> Simulation {
        let network = Arc::new(Mutex::new(Network::new(seed)));
        Simulation { network, ids: Mutex::default(), live: Running::default() }
    }

    fn host(&self, py: Python<'_>, name: &str) -> u32 {
        self.add_node(py, |network| network.host(name))
    }

    fn router(&self, py: Python<'_>, name: &str) -> u32 {
        self.add_node(py, |network| network.router(name))
    }

    /// A P4 switch with so many queues a port.
    fn switch(
        &self,
        py: Python<'_>,
        name: &str,
        program: &Program,
        queues: usize,
        cpu_port: Option<u32>,
        nanoseconds: bool,
    ) -> u32 {
        self.add_node(py, |network| {
            let node = network.switch(name, program.0.clone(), queues, cpu_port);
            if nanoseconds {
                network.clock(node, Clock::Nanoseconds);
            }
            node
        })
    }

    /// Has all packets that wait in a switch within its program's limit `queue_bytes`, and its state's memory before they come.
    fn harden(&self, py: Python<'_>, node: u32) -> PyResult<()> {
        let node = self.node(node)?;
        self.with(py, |network| network.harden(node));
        Ok(())
    }

    /// Whether a run ends early whenever this switch has digests or packets for its controller.
    fn watch(&self, py: Python<'_>, node: u32) -> PyResult<()> {
        let node = self.node(node)?;
        self.with(py, |network| network.watch(node)).map_err(refused)
    }

    /// The queues of a P4 switch's port, or of a router's that has queues by class: what waits, and the counts since the start; empty
    /// for other ports.
    fn port_queues<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let id = self.port(port)?;
        let queues: Vec<_> =
            self.with(py, |network| (0..).map_while(|queue| network.queue_state(id, queue)).collect());
        queues.iter().map(|queue| queue_out(py, queue)).collect()
    }

    /// Connects two nodes, by a port of this number at `b` if one is given; gives the ports at `a` and at `b`.
    #[pyo3(signature = (a, b, there, back, b_number=None))]
    fn link(
        &self,
        py: Python<'_>,
        a: u32,
        b: u32,
        there: LinkSpec,
        back: LinkSpec,
        b_number: Option<u32>,
    ) -> PyResult<(u32, u32)> {
        let (a, b) = (self.node(a)?, self.node(b)?);
        let (there, back) = (there.link()?, back.link()?);
        let link = |network: &mut Network| network.link_at(a, b, there, back, [None, b_number]);
        let (there, back) = self.with(py, link).map_err(refused)?;
        let mut ids = self.ids.lock();
        ids.ports.extend([there, back]);
        Ok((ids.ports.len() as u32 - 2, ids.ports.len() as u32 - 1))
    }

    fn change_link(&self, py: Python<'_>, at: u64, port: u32, link: LinkSpec) -> PyResult<()> {
        let port = self.port(port)?;
        let link = link.link()?;
        self.with(py, |network| network.change_link(Time::from_ps(at), port, link)).map_err(refused)
    }

    fn set_route(&self, py: Python<'_>, router: u32, to: u32, port: u32) -> PyResult<()> {
        let (router, to, port) = (self.node(router)?, self.node(to)?, self.port(port)?);
        self.with(py, |network| network.set_route(router, to, port)).map_err(refused)
    }

    fn tcp(&self, py: Python<'_>, flow: TcpSpec) -> PyResult<u32> {
        let flow = self.tcp_flow(&flow)?;
        self.add_flow(py, |network| network.tcp(flow))
    }

    /// A page; gives its number. Its flows are the next ones, as many as it has connections.
    fn page(&self, py: Python<'_>, page: PageSpec) -> PyResult<usize> {
        let flow = self.tcp_flow(&page.connection)?;
        let page = PageFlow {
            flow,
            request: Bytes::new(page.request),
            response: Bytes::new(page.response),
            objects: page.objects,
            think: Time::from_ps(page.think),
            persistent: page.persistent,
        };
        let (id, flows) = self.with(py, |network| network.page(page)).map_err(refused)?;
        let mut ids = self.ids.lock();
        ids.flows.extend(flows);
        ids.pages.push(id);
        Ok(ids.pages.len() - 1)
    }

    /// Of a page so far, for each question its flow, when it was asked, and when it was answered.
    fn exchanges(&self, py: Python<'_>, page: usize) -> PyResult<Vec<(usize, u64, Option<u64>)>> {
        let id = self.ids.lock().pages.get(page).copied();
        let id = id.ok_or_else(|| refused(format!("there is no page {page}")))?;
        self.with(py, |network| {
            let all = network.exchanges(id).iter();
            Ok(all.map(|e| (e.flow.index(), e.asked.as_ps(), e.answered.map(Time::as_ps))).collect())
        })
    }

    fn udp(&self, py: Python<'_>, flow: UdpSpec) -> PyResult<u32> {
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
                return Err(refused(format!("there is no pattern `{other}`; known: {known}")));
            }
        };
        let flow = UdpFlow {
            from: self.node(flow.source)?,
            to: self.node(flow.target)?,
            start: Time::from_ps(flow.start),
            stop: flow.stop.map(Time::from_ps),
            rate: Rate::from_bps(flow.rate),
            payload: flow.payload,
            pattern,
            ecn: Ecn::from_bits(flow.ecn),
        };
        self.add_flow(py, |network| network.udp(flow))
    }

    fn record(&self, py: Python<'_>, period: u64, flows: bool, ports: Vec<u32>) -> PyResult<()> {
        let ports: Vec<PortId> = ports.into_iter().map(|p| self.port(p)).collect::<PyResult<_>>()?;
        self.with(py, |network| network.record(Time::from_ps(period), flows, &ports)).map_err(refused)
    }

    fn record_waits(&self, py: Python<'_>, port: u32) -> PyResult<()> {
        let port = self.port(port)?;
        self.with(py, |network| network.record_waits(port));
        Ok(())
    }

    /// Captures what goes over a port, both ways, to a pcap file: of each packet its first `snap` bytes.
    fn capture(&self, py: Python<'_>, port: u32, path: PathBuf, snap: u32) -> PyResult<()> {
        let port = self.port(port)?;
        // The name is one that nobody has; a link there is somebody else's.
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| refused(format!("{}: cannot be written: {e}", path.display())))?;
        self.with(py, |network| network.capture(port, Box::new(file), snap)).map_err(refused)
    }

    /// Ends the capture of a port.
    fn end_capture(&self, py: Python<'_>, port: u32) -> PyResult<()> {
        let port = self.port(port)?;
        self.with(py, |network| network.end_capture(port)).map_err(refused)
    }

    /// A copy of each packet that comes over a port's wire goes into a switch, by its port of this number; a flow's in one of `every` seconds.
    fn tap(&self, py: Python<'_>, port: u32, switch: u32, number: u32, every: u32) -> PyResult<()> {
        let (port, switch) = (self.port(port)?, self.node(switch)?);
        self.with(py, |network| network.tap(port, switch, number, every)).map_err(refused)
    }

    /// Writes out what was captured until now; gives for each capture what went wrong, if anything did.
    fn flush_captures(&self, py: Python<'_>) -> Vec<Option<String>> {
        let done = self.with(py, Network::flush_captures);
        done.into_iter().map(|done| done.err().map(|e| e.to_string())).collect()
    }

    /// Lets a run have so many threads; what comes of it is the same.
    fn set_threads(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        self.with(py, |network| network.set_threads(threads)).map_err(refused)
    }

    /// On how many threads it runs, and why on fewer than asked for.
    fn threads(&self, py: Python<'_>) -> (usize, Option<String>) {
        self.with(py, |network| {
            let (used, why) = network.threads();
            (used, why.map(str::to_owned))
        })
    }

    /// Runs until `end`, until a watched switch has news, or for a while: a signal may have come. Gives the time reached.
    fn run_until(&self, py: Python<'_>, end: u64) -> PyResult<u64> {
        if self.live.shared().is_some() {
            return Err(refused("the network is live, and runs by itself; wait with live_until".to_owned()));
        }
        py.detach(|| self.network.lock().run_some(Time::from_ps(end), EVENTS))
            .map(Time::as_ps)
            .map_err(refused)
    }

    /// Lets the network run by the clock, between real hosts: of each port the host that it stands for, the file of its network
    /// namespace (`None`: this process's), its interface, and its kind. With `merge`, segments of a TCP flow that leave together
    /// are handed to the kernel as one packet. `profile` is `latency` or `throughput`. `processor` is where its thread stays.
    /// `napi_threads`: the kernel receives on threads of its own; `None`: as the profile says. There are as many `threads`, at most one
    /// for each port; further ones stay on the next processors.
    #[pyo3(signature = (ports, merge=false, profile="latency", processor=None, napi_threads=None, threads=1))]
    #[allow(clippy::too_many_arguments)]
    fn go_live(
        &self,
        py: Python<'_>,
        ports: Vec<(u32, Option<PathBuf>, String, String)>,
        merge: bool,
        profile: &str,
        processor: Option<usize>,
        napi_threads: Option<bool>,
        threads: usize,
    ) -> PyResult<()> {
        let settings =
            Settings { merge, profile: profile.parse().map_err(refused)?, processor, napi_threads };
        let wiring = |(host, netns, interface, kind): (u32, Option<PathBuf>, String, String)| {
            let (host, kind) = (self.node(host)?, kind.parse().map_err(refused)?);
            Ok(Wiring { host, netns, interface, kind })
        };
        let ports = ports.into_iter().map(wiring).collect::<PyResult<_>>()?;
        self.live.start(py, &self.network, ports, threads, settings)
    }

    /// Waits until `end`, or until a watched switch has news; gives the time reached.
    fn live_until(&self, py: Python<'_>, end: u64) -> PyResult<u64> {
        self.live.until(py, Time::from_ps(end))
    }

    /// What the ports have done, how late frames left, and how often the threads have woken up.
    fn live_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.live.statistics(py)
    }

    /// What has happened that an operator should know, since the last time: interfaces that have gone and come back.
    fn live_messages(&self) -> Vec<String> {
        self.live.shared().map_or_else(Vec::new, |shared| shared.take_messages())
    }

    /// Ends what `go_live` began; the network stays as it is.
    fn end_live(&self, py: Python<'_>) {
        self.live.end(py);
    }

    fn now(&self, py: Python<'_>) -> u64 {
        self.with(py, |network| network.now()).as_ps()
    }

    /// Events handled, and packets carried over links.
    fn work(&self, py: Python<'_>) -> (u64, u64) {
        self.with(py, |network| network.work())
    }

    /// What came of a flow so far.
    fn outcome<'py>(&self, py: Python<'py>, flow: u32) -> PyResult<Bound<'py, PyDict>> {
        let id = self.flow(flow)?;
        let (outcome, udp) = self.with(py, |network| (network.outcome(id), network.udp_statistics(id)));
        let out = PyDict::new(py);
        out.set_item("started", outcome.started.map(Time::as_ps))?;
        out.set_item("finished", outcome.finished.map(Time::as_ps))?;
        out.set_item("ideal", outcome.ideal.map(Time::as_ps))?;
        out.set_item("bytes_received", outcome.bytes_received)?;
        let s = outcome.statistics;
        out.set_item("segments_sent", s.segments_sent)?;
        out.set_item("retransmits", s.retransmits)?;
        out.set_item("timeouts", s.timeouts)?;
        out.set_item("fast_recoveries", s.fast_recoveries)?;
        out.set_item("tail_loss_probes", s.probes)?;
        out.set_item("undos", s.undos)?;
        out.set_item("ece_received", s.ece_received)?;
        if let Some(udp) = udp {
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
        let (s, backlog) = self.with(py, |network| (*network.queue(id), network.backlog(id)));
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
        out.set_item("backlog", backlog.as_ps())?;
        Ok(out)
    }

    /// The waiting time in one of a port's queues that a share of the packets did not exceed; `None` if it was not recorded or
    /// nothing came.
    fn wait_quantile(&self, py: Python<'_>, port: u32, queue: usize, share: f64) -> PyResult<Option<u64>> {
        let id = self.port(port)?;
        let wait = self.with(py, |network| network.waits(id, queue).and_then(|w| w.quantile(share)));
        Ok(wait.map(Time::as_ps))
    }

    /// What the recorders have, for flows and for queues.
    fn samples(&self, py: Python<'_>) -> (Vec<Columns>, Vec<Columns>) {
        let (mut flows, mut queues) = (Vec::new(), Vec::new());
        self.with(py, |network| {
            for (flow, queue) in network.recorded() {
                flows.extend(flow.map(flow_columns));
                queues.push(queue_columns(queue));
            }
        });
        (flows, queues)
    }
}

fn widened(column: &[u32]) -> Vec<u64> {
    column.iter().map(|v| u64::from(*v)).collect()
}

fn flow_columns(s: &FlowSamples) -> Columns {
    Columns::new(vec![
        ("time", s.time.clone()),
        ("flow", widened(&s.flow)),
        ("bytes_received", s.bytes_received.clone()),
        ("cwnd", widened(&s.cwnd)),
        ("ssthresh", widened(&s.ssthresh)),
        ("in_flight", widened(&s.in_flight)),
        ("srtt", s.srtt.clone()),
        ("rto", s.rto.clone()),
        ("pacing_rate", s.pacing_rate.clone()),
        ("retransmits", s.retransmits.clone()),
        ("timeouts", s.timeouts.clone()),
        ("delivered_ce", s.delivered_ce.clone()),
    ])
}

fn queue_columns(s: &QueueSamples) -> Columns {
    Columns::new(vec![
        ("time", s.time.clone()),
        ("port", widened(&s.port)),
        ("queue", widened(&s.queue)),
        ("packets", s.packets.clone()),
        ("bytes", s.bytes.clone()),
        ("delay", s.delay.clone()),
        ("sent_bytes", s.sent_bytes.clone()),
        ("dropped", s.dropped.clone()),
        ("marked", s.marked.clone()),
        ("busy", s.busy.clone()),
        ("stalled", s.stalled.clone()),
    ])
}
