//! Agents of simulated hosts: stock shims with parameters, what is told of connections, and limits.

use std::net::Ipv4Addr;

use network::{AgentId, What};
use pyo3::prelude::*;
use transport::host::{
    Chain, Check, Echo, Form, Insert, Keep, Kinds, OptionKind, PacketKind, Place, Report, Shim, Signal, Stamp,
};
use units::{Rate, Time};

use crate::errors::refused;
use crate::simulation::Simulation;

/// An option as Python has it: place and kind.
type OptionSpec = (String, u16);

fn option((place, kind): OptionSpec) -> PyResult<OptionKind> {
    let place = match place.as_str() {
        "ip" => Place::Ip,
        "tcp" => Place::Tcp,
        "shim" => Place::Between(Form::Shim),
        "tag" => Place::Between(Form::Tag),
        other => {
            let known = "ip, tcp, shim, tag";
            return Err(refused(format!("there is no header `{other}` for options; known: {known}")));
        }
    };
    OptionKind::new(place, kind).map_err(refused)
}

fn kinds(names: &[String]) -> PyResult<Kinds> {
    let kind = |name: &String| match name.as_str() {
        "syn" => Ok(PacketKind::Syn),
        "syn-ack" => Ok(PacketKind::SynAck),
        "data" => Ok(PacketKind::Data),
        "ack" => Ok(PacketKind::Ack),
        "udp" => Ok(PacketKind::Udp),
        other => {
            let known = "syn, syn-ack, data, ack, udp";
            Err(refused(format!("there is no kind of packet `{other}`; known: {known}")))
        }
    };
    Ok(Kinds::of(&names.iter().map(kind).collect::<PyResult<Vec<_>>>()?))
}

/// A shim of `tidegate.hosts.shims`.
fn shim(spec: &Bound<'_, PyAny>) -> PyResult<Box<dyn Shim>> {
    let named = |name: &str| option(spec.getattr(name)?.extract()?);
    let on = || kinds(&spec.getattr("on")?.extract::<Vec<String>>()?);
    let what: String = spec.getattr("what")?.extract()?;
    Ok(match what.as_str() {
        "insert" => {
            let stamp = match spec.getattr("clock")?.extract()? {
                true => Stamp::Clock,
                false => Stamp::Bytes(spec.getattr("data")?.extract()?),
            };
            Box::new(Insert::new(named("option")?, stamp, on()?, spec.getattr("once")?.extract()?))
        }
        "echo" => {
            let keep = match spec.getattr("keep")?.extract::<String>()?.as_str() {
                "latest" => Keep::Latest,
                "max" => Keep::Max,
                other => {
                    return Err(refused(format!("an Echo keeps `latest` or `max`, not `{other}`")));
                }
            };
            let longest = spec.getattr("longest")?.extract()?;
            Box::new(Echo::new(named("read")?, named("write")?, keep, on()?, longest))
        }
        "report" => {
            let (consume, each) = (spec.getattr("consume")?.extract()?, spec.getattr("each")?.extract()?);
            Box::new(Report::new(named("option")?, consume, each))
        }
        "check" => {
            let keys: [u64; 2] = spec.getattr("keys")?.extract()?;
            let signing: usize = spec.getattr("signing")?.extract()?;
            Box::new(Check { option: named("option")?, keys, signing })
        }
        "signal" => Box::new(Signal { option: named("option")? }),
        other => return Err(refused(format!("there is no shim `{other}`"))),
    })
}

/// Something to tell an agent: time, agent, connection, what, and of a report the option's kind and data.
type News = (u64, usize, u32, &'static str, u16, Vec<u8>);

/// The agents of a simulation's hosts.
#[pyclass(frozen, module = "tidegate._core")]
pub struct HostAgents {
    simulation: Py<Simulation>,
    ids: parking_lot::Mutex<Vec<AgentId>>,
}

impl HostAgents {
    fn id(&self, agent: usize) -> PyResult<AgentId> {
        let id = self.ids.lock().get(agent).copied();
        id.ok_or_else(|| refused(format!("there is no agent {agent}")))
    }
}

#[pymethods]
impl HostAgents {
    #[new]
    fn new(simulation: Py<Simulation>) -> HostAgents {
        HostAgents { simulation, ids: parking_lot::Mutex::default() }
    }

    /// Puts an agent on a host; gives its number.
    fn add(&self, py: Python<'_>, host: u32, shims: Vec<Bound<'_, PyAny>>) -> PyResult<usize> {
        let simulation = self.simulation.get();
        let node = simulation.node(host)?;
        let chain = Chain::new(shims.iter().map(shim).collect::<PyResult<_>>()?);
        let id = simulation.with(py, |network| network.add_agent(node, chain, true)).map_err(refused)?;
        self.ids.lock().push(id);
        Ok(id.index())
    }

    fn remove(&self, py: Python<'_>, agent: usize) -> PyResult<()> {
        let id = self.id(agent)?;
        self.simulation.get().with(py, |network| network.remove_agent(id));
        Ok(())
    }

    /// Limits a connection's rate, in bit/s.
    fn pace(&self, py: Python<'_>, agent: usize, connection: u32, rate: Option<u64>) -> PyResult<()> {
        let id = self.id(agent)?;
        let rate = rate.map(Rate::from_bps);
        self.simulation.get().with(py, |network| network.limit_pacing(id, connection, rate));
        Ok(())
    }

    fn limit_cwnd(
        &self,
        py: Python<'_>,
        agent: usize,
        connection: u32,
        packets: Option<u32>,
    ) -> PyResult<()> {
        let id = self.id(agent)?;
        self.simulation.get().with(py, |network| network.limit_cwnd(id, connection, packets));
        Ok(())
    }

    /// Sends a pure ACK with an option; gives whether the connection was there to send it.
    fn send(
        &self,
        py: Python<'_>,
        agent: usize,
        connection: u32,
        place: String,
        kind: u16,
        data: Vec<u8>,
    ) -> PyResult<bool> {
        self.id(agent)?;
        let option = option((place, kind))?;
        let sent = self.simulation.get().with(py, |network| network.send_option(connection, option, &data));
        sent.map_err(|no_room| refused(no_room.to_string()))
    }

    /// Bytes that a connection has sent, once each, modulo 2^32; `None`: it is not established, or has sent its FIN.
    fn bytes_sent(&self, py: Python<'_>, connection: u32) -> Option<u32> {
        self.simulation
            .get()
            .with(py, |network| network.agent_bytes_sent(connection))
            .map(|bytes| bytes as u32)
    }

    /// What agents are to be told, in order of time; each is given once.
    fn take_news(&self, py: Python<'_>) -> Vec<News> {
        let news = self.simulation.get().with(py, |network| network.take_agent_notices());
        let told = news.into_iter().map(|news| {
            let (what, kind, data) = match news.what {
                What::Opened => ("opened", 0, Vec::new()),
                What::Established => ("established", 0, Vec::new()),
                What::Closed => ("closed", 0, Vec::new()),
                What::Report(kind, data) => ("report", kind, data),
            };
            (Time::as_ps(news.at), news.agent.index(), news.connection, what, kind, data)
        });
        told.collect()
    }

    /// Packets that hosts with agents did not take because an option, or a header between Ethernet and IP, had a wrong length.
    fn malformed_options(&self, py: Python<'_>) -> u64 {
        self.simulation.get().with(py, |network| network.malformed_options())
    }

    /// Packets that an agent has dropped, packets held, options without room, options that were not believed.
    fn counts(&self, py: Python<'_>, agent: usize) -> PyResult<(u64, u64, u64, u64)> {
        let id = self.id(agent)?;
        let counts = self.simulation.get().with(py, |network| network.agent_counts(id));
        Ok((counts.dropped, counts.held, counts.no_room, counts.refused))
    }

    /// An end of a connection: the flow's number, whether it opened the connection, addresses and ports of this end and the other.
    fn flow(&self, py: Python<'_>, connection: u32) -> (u32, bool, [String; 2], [u16; 2]) {
        let (key, flow) = self.simulation.get().with(py, |network| network.agent_flow(connection));
        let addresses = key.addresses.map(|address| Ipv4Addr::from(address).to_string());
        (flow, key.active, addresses, key.ports)
    }
}
