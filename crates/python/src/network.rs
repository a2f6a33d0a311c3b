//! The simulator: a network that is built object by object, run until a time, and asked. Times are picoseconds, rates bit/s,
//! sizes bytes; ids count from 0 in the order of making.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use dataplane::pipeline;
use live::Wiring;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sim::{
    Aqm, BuildError, FlowId, FlowSamples, GilbertElliott, Link, Network, NodeId, PageFlow, PageId, Pattern,
    PortId, QueueLimit, QueueSamples, SizeDistribution, TcpFlow, UdpFlow, poisson,
};
use switch::{Generator, PortConfig, QueueConfig, Scheduler, Shaping, Switch};
use tools::commands::Session;
use transport::segment::Ecn;
use transport::tcp::{Config, EcnMode};
use units::{Bytes, Rate, Time};

use crate::TidegateError;
use crate::arrow::Columns;
use crate::control;
use crate::engine::{Pipeline, Program};
use crate::live::Running;
use crate::reads;
use crate::writes::{self, Match, Writes};

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
    aqm: Option<String>,
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
    fn link(&self) -> PyResult<Link> {
        let aqm = |name: &String| {
            let known = Aqm::NAMES.join(", ");
            Aqm::by_name(name)
                .ok_or_else(|| wrong(format!("there is no queue management `{name}`; known: {known}")))
        };
        Ok(Link {
            aqm: self.aqm.as_ref().map(aqm).transpose()?,
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
        })
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
    extra_delay: u64,
}

/// A page, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct PageSpec {
    connection: TcpSpec,
    request: u64,
    response: u64,
    objects: u32,
    think: u64,
    persistent: bool,
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

/// What Python's numbers stand for.
#[derive(Default)]
struct Ids {
    nodes: Vec<NodeId>,
    ports: Vec<PortId>,
    flows: Vec<FlowId>,
    pages: Vec<PageId>,
}

/// A network in virtual time; or, from `go_live` to `end_live`, in real time.
#[pyclass(frozen)]
pub struct Simulation {
    network: Arc<Mutex<Network>>,
    ids: Mutex<Ids>,
    live: Running,
}

impl Simulation {
    /// Does something to the network, between packets if it is live.
    fn with<T>(&self, act: impl FnOnce(&mut Network) -> T) -> T {
        let Some(shared) = self.live.shared() else { return act(&mut self.network.lock()) };
        let mut network = shared.enter();
        let result = act(&mut network);
        shared.leave(network);
        result
    }

    fn add_node(&self, add: impl FnOnce(&mut Network) -> NodeId) -> u32 {
        let mut ids = self.ids.lock();
        ids.nodes.push(self.with(add));
        ids.nodes.len() as u32 - 1
    }

    fn add_flow(&self, add: impl FnOnce(&mut Network) -> Result<FlowId, BuildError>) -> PyResult<u32> {
        let mut ids = self.ids.lock();
        ids.flows.push(self.with(add).map_err(refuse)?);
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
            congestion_control: flow.congestion_control.clone(),
            receiver_config: config.clone(),
            config,
            extra_delay: Time::from_ps(flow.extra_delay),
        })
    }

    fn node(&self, id: u32) -> PyResult<NodeId> {
        self.ids.lock().nodes.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no node {id}")))
    }

    fn port(&self, id: u32) -> PyResult<PortId> {
        self.ids.lock().ports.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no port {id}")))
    }

    fn flow(&self, id: u32) -> PyResult<FlowId> {
        self.ids.lock().flows.get(id as usize).copied().ok_or_else(|| wrong(format!("there is no flow {id}")))
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(seed: u64) -> Simulation {
        let network = Arc::new(Mutex::new(Network::new(seed)));
        Simulation { network, ids: Mutex::default(), live: Running::default() }
    }

    fn host(&self, name: &str) -> u32 {
        self.add_node(|network| network.host(name))
    }

    fn router(&self, name: &str) -> u32 {
        self.add_node(|network| network.router(name))
    }

    /// A P4 switch with so many queues a port.
    fn switch(&self, name: &str, program: &Program, queues: usize, cpu_port: Option<u32>) -> u32 {
        self.add_node(|network| network.switch(name, program.0.clone(), queues, cpu_port))
    }

    /// The control surface of a switch. To be called when all links are there.
    fn control(slf: Bound<'_, Self>, node: u32) -> PyResult<SwitchControl> {
        let simulation = slf.get();
        let node = simulation.node(node)?;
        simulation.with(|network| network.pipeline(node).map(|_| ())).map_err(refuse)?;
        Ok(SwitchControl { node, simulation: slf.clone().unbind() })
    }

    /// Whether a run ends early whenever this switch has digests or packets for its controller.
    fn watch(&self, node: u32) -> PyResult<()> {
        let node = self.node(node)?;
        self.with(|network| network.watch(node)).map_err(refuse)
    }

    /// The queues of a switch's port: what waits, and the counts since the start; empty for a port of another node.
    fn switch_queues<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let id = self.port(port)?;
        let queues: Vec<_> =
            self.with(|network| (0..).map_while(|queue| network.switch_queue(id, queue)).collect());
        queues.into_iter().map(|(depth, counts)| queue_dict(py, depth, &counts)).collect()
    }

    /// Connects two nodes, by ports of these numbers if they are given; gives the ports at `a` and at `b`.
    #[pyo3(signature = (a, b, there, back, a_number=None, b_number=None))]
    fn link(
        &self,
        a: u32,
        b: u32,
        there: LinkSpec,
        back: LinkSpec,
        a_number: Option<u32>,
        b_number: Option<u32>,
    ) -> PyResult<(u32, u32)> {
        let (a, b) = (self.node(a)?, self.node(b)?);
        let numbers = [a_number, b_number];
        let mut ids = self.ids.lock();
        let (there, back) = (there.link()?, back.link()?);
        let link = |network: &mut Network| network.link_at(a, b, there, back, numbers);
        let (there, back) = self.with(link).map_err(refuse)?;
        ids.ports.extend([there, back]);
        Ok((ids.ports.len() as u32 - 2, ids.ports.len() as u32 - 1))
    }

    fn change_link(&self, at: u64, port: u32, link: LinkSpec) -> PyResult<()> {
        let port = self.port(port)?;
        let link = link.link()?;
        self.with(|network| network.change_link(Time::from_ps(at), port, link)).map_err(refuse)
    }

    fn set_route(&self, router: u32, to: u32, port: u32) -> PyResult<()> {
        let (router, to, port) = (self.node(router)?, self.node(to)?, self.port(port)?);
        self.with(|network| network.set_route(router, to, port)).map_err(refuse)
    }

    fn tcp(&self, flow: TcpSpec) -> PyResult<u32> {
        let flow = self.tcp_flow(&flow)?;
        self.add_flow(|network| network.tcp(flow))
    }

    /// A page; gives its number. Its flows are the next ones, as many as it has connections.
    fn page(&self, page: PageSpec) -> PyResult<usize> {
        let flow = self.tcp_flow(&page.connection)?;
        let page = PageFlow {
            flow,
            request: Bytes::new(page.request),
            response: Bytes::new(page.response),
            objects: page.objects,
            think: Time::from_ps(page.think),
            persistent: page.persistent,
        };
        let mut ids = self.ids.lock();
        let (id, flows) = self.with(|network| network.page(page)).map_err(refuse)?;
        ids.flows.extend(flows);
        ids.pages.push(id);
        Ok(ids.pages.len() - 1)
    }

    /// Of a page so far, for each question its flow, when it was asked, and when it was answered.
    fn exchanges(&self, page: usize) -> PyResult<Vec<(usize, u64, Option<u64>)>> {
        let id = self.ids.lock().pages.get(page).copied();
        let id = id.ok_or_else(|| wrong(format!("there is no page {page}")))?;
        self.with(|network| {
            let all = network.exchanges(id).iter();
            Ok(all.map(|e| (e.flow.index(), e.asked.as_ps(), e.answered.map(Time::as_ps))).collect())
        })
    }

    fn udp(&self, flow: UdpSpec) -> PyResult<u32> {
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
        self.add_flow(|network| network.udp(flow))
    }

    fn record(&self, period: u64, flows: bool, ports: Vec<u32>) -> PyResult<()> {
        let ports: Vec<PortId> = ports.into_iter().map(|p| self.port(p)).collect::<PyResult<_>>()?;
        self.with(|network| network.record(Time::from_ps(period), flows, &ports)).map_err(refuse)
    }

    fn record_waits(&self, port: u32) -> PyResult<()> {
        let port = self.port(port)?;
        self.with(|network| network.record_waits(port));
        Ok(())
    }

    /// Captures what goes over a port, both ways, to a pcap file: of each packet its first `snap` bytes.
    fn capture(&self, port: u32, path: PathBuf, snap: u32) -> PyResult<()> {
        let port = self.port(port)?;
        let file =
            File::create(&path).map_err(|e| wrong(format!("{}: cannot be written: {e}", path.display())))?;
        self.with(|network| network.capture(port, Box::new(file), snap)).map_err(refuse)
    }

    /// Writes out what was captured until now; gives for each capture what went wrong, if anything did.
    fn flush_captures(&self) -> Vec<Option<String>> {
        let done = self.with(Network::flush_captures);
        done.into_iter().map(|done| done.err().map(|e| e.to_string())).collect()
    }

    /// Runs until `end`, or until a watched switch has news; gives the time reached.
    fn run_until(&self, py: Python<'_>, end: u64) -> PyResult<u64> {
        if self.live.shared().is_some() {
            return Err(wrong("the network is live, and runs by itself; wait with live_until".to_owned()));
        }
        py.detach(|| self.network.lock().run_until(Time::from_ps(end))).map(Time::as_ps).map_err(refuse)
    }

    /// Lets the network run by the clock, between real hosts: of each port the host that it stands for, the file of its network
    /// namespace (`None`: this process's), its interface, and its kind. With `merge`, segments of a TCP flow that leave together
    /// are handed to the kernel as one packet.
    #[pyo3(signature = (ports, merge=false))]
    fn go_live(
        &self,
        py: Python<'_>,
        ports: Vec<(u32, Option<PathBuf>, String, String)>,
        merge: bool,
    ) -> PyResult<()> {
        let wiring = |(host, netns, interface, kind): (u32, Option<PathBuf>, String, String)| {
            let (host, kind) = (self.node(host)?, kind.parse().map_err(wrong)?);
            Ok(Wiring { host, netns, interface, kind })
        };
        let ports = ports.into_iter().map(wiring).collect::<PyResult<_>>()?;
        self.live.start(py, &self.network, ports, merge)
    }

    /// Waits until `end`, or until a watched switch has news; gives the time reached.
    fn live_until(&self, py: Python<'_>, end: u64) -> PyResult<u64> {
        self.live.until(py, Time::from_ps(end))
    }

    /// What the ports have done, how late frames left, and how often the thread has woken up.
    fn live_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.live.statistics(py)
    }

    /// Ends what `go_live` began; the network stays as it is.
    fn end_live(&self, py: Python<'_>) {
        self.live.end(py);
    }

    fn now(&self) -> u64 {
        self.with(|network| network.now()).as_ps()
    }

    /// Events handled, and packets carried over links.
    fn work(&self) -> (u64, u64) {
        self.with(|network| network.work())
    }

    /// What came of a flow so far.
    fn outcome<'py>(&self, py: Python<'py>, flow: u32) -> PyResult<Bound<'py, PyDict>> {
        let id = self.flow(flow)?;
        let (outcome, udp) = self.with(|network| (network.outcome(id), network.udp_statistics(id)));
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
        let (s, backlog) = self.with(|network| (*network.queue(id), network.backlog(id)));
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
    fn wait_quantile(&self, port: u32, queue: usize, share: f64) -> PyResult<Option<u64>> {
        let id = self.port(port)?;
        let wait = self.with(|network| network.waits(id, queue).and_then(|w| w.quantile(share)));
        Ok(wait.map(Time::as_ps))
    }

    /// What the recorders have, for flows and for queues.
    fn samples(&self) -> (Vec<Columns>, Vec<Columns>) {
        let (mut flows, mut queues) = (Vec::new(), Vec::new());
        self.with(|network| {
            for (flow, queue) in network.recorded() {
                flows.extend(flow.map(flow_columns));
                queues.push(queue_columns(queue));
            }
        });
        (flows, queues)
    }
}

fn queue_dict<'py>(
    py: Python<'py>,
    (packets, bytes): (u64, u64),
    counts: &switch::QueueStatistics,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("waiting_packets", packets)?;
    out.set_item("waiting_bytes", bytes)?;
    out.set_item("packets", counts.packets)?;
    out.set_item("bytes", counts.bytes)?;
    out.set_item("dropped", counts.dropped)?;
    out.set_item("dropped_in_egress", counts.dropped_in_egress)?;
    out.set_item("wait_sum", counts.wait_ps as f64)?;
    out.set_item("wait_max", counts.wait_max_ps)?;
    Ok(out)
}

/// A shaper: bit/s and bytes.
type ShaperSpec = Option<(u64, u64)>;

fn shaping(spec: ShaperSpec) -> Option<Shaping> {
    spec.map(|(rate, burst)| Shaping { rate: Rate::from_bps(rate), burst: Bytes::new(burst) })
}

fn shaper_spec(shaping: Option<Shaping>) -> ShaperSpec {
    shaping.map(|s| (s.rate.as_bps(), s.burst.get()))
}

/// A queue: limit in packets, in bytes, weight, time shift in picoseconds, shaper.
type QueueSpec = (Option<u64>, Option<u64>, u32, u64, ShaperSpec);

/// A port: scheduler, quantum in bytes (of the round robins), shaper, queues.
type PortSpec = (String, u64, ShaperSpec, Vec<QueueSpec>);

fn port_config((scheduler, quantum, shaper, queues): PortSpec) -> PyResult<PortConfig> {
    let scheduler = match scheduler.as_str() {
        "strict priority" => Scheduler::StrictPriority,
        "deficit round robin" => Scheduler::DeficitRoundRobin { quantum: Bytes::new(quantum) },
        "weighted round robin" => Scheduler::WeightedRoundRobin { quantum: Bytes::new(quantum) },
        "time-shifted FIFO" => Scheduler::TimeShiftedFifo,
        other => {
            let known = "strict priority, deficit round robin, weighted round robin, time-shifted FIFO";
            return Err(wrong(format!("there is no scheduler `{other}`; known: {known}")));
        }
    };
    let queues = queues.into_iter().map(|(packets, bytes, weight, shift, shaper)| QueueConfig {
        limit: switch::QueueLimit { packets, bytes: bytes.map(Bytes::new) },
        weight,
        time_shift: Time::from_ps(shift),
        shaping: shaping(shaper),
    });
    Ok(PortConfig { scheduler, shaping: shaping(shaper), queues: queues.collect() })
}

fn port_spec(config: &PortConfig) -> PortSpec {
    let (scheduler, quantum) = match config.scheduler {
        Scheduler::StrictPriority => ("strict priority", 0),
        Scheduler::DeficitRoundRobin { quantum } => ("deficit round robin", quantum.get()),
        Scheduler::WeightedRoundRobin { quantum } => ("weighted round robin", quantum.get()),
        Scheduler::TimeShiftedFifo => ("time-shifted FIFO", 0),
    };
    let queue = |q: &QueueConfig| -> QueueSpec {
        let bytes = q.limit.bytes.map(Bytes::get);
        (q.limit.packets, bytes, q.weight, q.time_shift.as_ps(), shaper_spec(q.shaping))
    };
    (scheduler.to_owned(), quantum, shaper_spec(config.shaping), config.queues.iter().map(queue).collect())
}

/// A switch of a network, as its control plane sees it.
#[pyclass(frozen, module = "tidegate._core")]
pub struct SwitchControl {
    simulation: Py<Simulation>,
    node: NodeId,
}

impl SwitchControl {
    fn pipeline<T>(
        &self,
        _py: Python<'_>,
        act: impl FnOnce(&mut pipeline::Pipeline) -> PyResult<T>,
    ) -> PyResult<T> {
        self.simulation.get().with(|network| act(network.pipeline(self.node).map_err(refuse)?))
    }

    fn switch<T>(&self, _py: Python<'_>, act: impl FnOnce(&mut Switch, Time) -> T) -> PyResult<T> {
        self.simulation.get().with(|network| network.control(self.node, act)).map_err(refuse)
    }
}

#[pymethods]
impl SwitchControl {
    /// Picoseconds.
    fn now(&self, _py: Python<'_>) -> u64 {
        self.simulation.get().with(|network| network.now()).as_ps()
    }

    /// A line of the command language of `simple_switch_CLI`; gives its answer.
    fn command(&self, py: Python<'_>, line: &str) -> PyResult<String> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| match (Session { pipeline, now }).execute(line) {
            None => Ok(String::new()),
            Some(answer) => answer.map_err(wrong),
        })
    }

    fn register_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        self.pipeline(py, |pipeline| control::register_read(py, pipeline, name, start, count))
    }

    fn register_write(&self, py: Python<'_>, name: &str, start: usize, words: &[u8]) -> PyResult<()> {
        self.pipeline(py, |pipeline| control::register_write(pipeline, name, start, words))
    }

    fn counter_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.pipeline(py, |pipeline| control::counter_read(py, pipeline, name, start, count))
    }

    fn table_entries(&self, py: Python<'_>, name: &str) -> PyResult<Vec<control::Row>> {
        self.pipeline(py, |pipeline| control::table_entries(pipeline, name))
    }

    fn table_totals(&self, py: Python<'_>) -> PyResult<Vec<control::Totals>> {
        self.pipeline(py, |pipeline| Ok(control::table_totals(pipeline)))
    }

    /// Runs a file of commands; gives notes on those that have no effect.
    fn script(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| control::script(pipeline, now, &path))
    }

    fn multicast_set(&self, py: Python<'_>, group: u32, copies: Vec<(u32, u32)>) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::multicast_set(pipeline, group, &copies);
            Ok(())
        })
    }

    fn multicast_delete(&self, py: Python<'_>, group: u32) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::multicast_delete(pipeline, group);
            Ok(())
        })
    }

    fn mirror_set(
        &self,
        py: Python<'_>,
        session: u32,
        port: Option<u32>,
        group: Option<u32>,
        truncate: Option<u32>,
    ) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::mirror_set(pipeline, session, port, group, truncate);
            Ok(())
        })
    }

    /// Packets dropped so far, by reason; those of the queues too.
    fn drops(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, u64)>> {
        self.switch(py, |switch, _| switch.statistics().dropped)
    }

    /// Where every packet is.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.switch(py, |switch, _| switch.statistics())?;
        let out = PyDict::new(py);
        out.set_item("received", s.received)?;
        out.set_item("generated", s.generated)?;
        out.set_item("packet_outs", s.packet_outs)?;
        out.set_item("made", s.made)?;
        out.set_item("transmitted", s.transmitted)?;
        out.set_item("packet_ins", s.packet_ins)?;
        out.set_item("dropped", s.dropped.iter().map(|(_, count)| count).sum::<u64>())?;
        out.set_item("held", s.held)?;
        Ok(out)
    }

    /// Does writes in order; see `writes.rs`. `None` for each that is done, or why it was refused.
    fn write(&self, py: Python<'_>, writes: Writes) -> PyResult<Vec<writes::Answer>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| Ok(writes::write(pipeline, now, writes)))
    }

    fn read<'py>(&self, py: Python<'py>, what: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (program, seen) = self.pipeline(py, |pipeline| reads::read(pipeline, what, name))?;
        seen.into_python(py, &program)
    }

    #[allow(clippy::type_complexity)]
    fn entries<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        start: u32,
        only: Option<(Vec<Match>, u32)>,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, Option<u32>)> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| reads::entries(pipeline, now, table, start, only))?.page(py)
    }

    /// Entries whose idle timeout has come, with their tables.
    fn take_idle<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| Ok(reads::take_idle(pipeline, now)))?.named(py)
    }

    /// Runs a pipeline's program from now on, with its state, or with this one's if that is to be kept.
    fn install(&self, py: Python<'_>, next: &mut Pipeline, keep_state: bool) -> PyResult<()> {
        let next = next.take();
        self.switch(py, |switch, _| switch.replace_program(next, keep_state))?.map_err(control::refused)
    }

    fn take_digests(&self, py: Python<'_>) -> PyResult<Vec<control::Digest>> {
        self.switch(py, |switch, _| {
            let messages = switch.take_digests();
            let pipeline = switch.pipeline();
            messages.into_iter().map(|m| control::digest(pipeline, m)).collect()
        })
    }

    /// The next packet for the controller: when it came, its bytes, and how many bytes of payload are only counted.
    fn take_packet_in<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyBytes>, u32)>> {
        let packet = self.switch(py, |switch, _| switch.take_packet_in())?;
        Ok(packet.map(|p| (p.at.as_ps(), PyBytes::new(py, &p.bytes), p.more)))
    }

    fn packet_out(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.switch(py, |switch, now| switch.packet_out(now, bytes))?.map_err(control::refused)
    }

    fn port_read(&self, py: Python<'_>, port: u32) -> PyResult<PortSpec> {
        let config = self.switch(py, |switch, _| switch.port_config(port))?.map_err(control::refused)?;
        Ok(port_spec(&config))
    }

    fn port_write(&self, py: Python<'_>, port: u32, spec: PortSpec) -> PyResult<()> {
        let config = port_config(spec)?;
        self.switch(py, |switch, _| switch.configure_port(port, &config))?.map_err(control::refused)
    }

    /// What waits in a queue, its counts, and how long the first packet has waited.
    fn queue_read<'py>(&self, py: Python<'py>, port: u32, queue: usize) -> PyResult<Bound<'py, PyDict>> {
        let found = self.switch(py, |switch, now| {
            let wait = switch.head_wait(now, port, queue).map_or(0, Time::as_ps);
            switch.queue(port, queue).map(|(depth, counts)| (depth, *counts, wait))
        })?;
        let Some((depth, counts, wait)) = found else {
            return Err(wrong(format!("there is no queue {queue} of port {port}")));
        };
        let out = queue_dict(py, depth, &counts)?;
        out.set_item("head_wait", wait)?;
        Ok(out)
    }

    /// Starts a packet generator or changes it: ingress port, packet, period in picoseconds. `None` stops it.
    fn generator_set(&self, py: Python<'_>, id: u32, generator: Option<(u32, Vec<u8>, u64)>) -> PyResult<()> {
        let generator = generator.map(|(port, template, period)| Generator {
            port,
            template,
            period: Time::from_ps(period),
        });
        self.switch(py, |switch, now| switch.set_generator(now, id, generator))?.map_err(control::refused)
    }

    fn generator<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<(u32, Bound<'py, PyBytes>, u64)>> {
        let found = self.switch(py, |switch, _| switch.generator(id).cloned())?;
        Ok(found.map(|g| (g.port, PyBytes::new(py, &g.template), g.period.as_ps())))
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
    ])
}

/// A distribution of flow sizes; see [`sim::SizeDistribution`] for the text's form.
#[pyclass(frozen)]
pub struct Sizes(SizeDistribution);

#[pymethods]
impl Sizes {
    #[new]
    fn new(text: &str) -> PyResult<Sizes> {
        text.parse().map(Sizes).map_err(wrong)
    }

    /// In bytes.
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The size in bytes that a share of the flows does not exceed.
    fn quantile(&self, share: f64) -> u64 {
        self.0.quantile(share).get()
    }

    /// Start, size and number of the pair of each flow of a Poisson process with this mean gap.
    fn poisson(&self, gap: u64, start: u64, stop: u64, pairs: u32, seed: u64) -> Vec<(u64, u64, u32)> {
        let [gap, start, stop] = [gap, start, stop].map(Time::from_ps);
        let flows = poisson(&self.0, gap, start, stop, pairs, seed);
        flows.map(|f| (f.start.as_ps(), f.size.get(), f.pair)).collect()
    }
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
