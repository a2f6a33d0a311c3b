//! Agents of simulated hosts: chains of shims ([`transport::host`]) between the host's connections and its port.
//!
//! A host without agents pays one branch for each packet that it sends, and one for each that comes. A packet with an agent's options
//! travels as bytes, as behind a P4 switch. Agents draw no random numbers of the network's. Packets' way through them is in `through`.

mod through;

pub(crate) use through::options_for_agents;

use transport::host::{Chain, Effect, Event, FlowKey, OptionKind, Packet, PacketKind, Room};
use transport::tcp::Phase;
use units::{Rate, Time};
use wire::frame::Body;
use wire::options::{NoRoom, Options};

use crate::addresses::{TCP_RECEIVERS, ipv4, ports};
use crate::agent::{Agent, AgentCounts, AgentId, AgentNotice, What};
use crate::error::{BuildError, refuse};
use crate::event;
use crate::flow::AGENT;
use crate::network::{Action, Network};
use crate::node::{NO_HOST, NodeId};

/// Of a connection's life: nothing yet, [`OPENED`], established, closed.
fn stage(phase: Option<Phase>) -> u8 {
    match phase {
        Some(Phase::Listen) => 0,
        Some(Phase::SynSent | Phase::SynReceived) => OPENED,
        Some(Phase::Established) => 2,
        Some(Phase::Closed | Phase::Reset | Phase::TimedOut) | None => 3,
    }
}

/// See [`stage`].
const OPENED: u8 = 1;

const STAGES: [(Event, What); 3] =
    [(Event::Opened, What::Opened), (Event::Established, What::Established), (Event::Closed, What::Closed)];

impl Network {
    /// Puts an agent between a host's connections and its port, behind those that the host has. It may come and go while the network
    /// runs. If it `listens`, a run ends early whenever there is something to tell it ([`Network::take_agent_notices`]).
    ///
    /// # Errors
    /// A node that is not a host, or one that is not simulated.
    pub fn add_agent(&mut self, host: NodeId, chain: Chain, listens: bool) -> Result<AgentId, BuildError> {
        self.unite("hosts have agents");
        let node = &self.nodes[host.0 as usize];
        if node.host == NO_HOST {
            return refuse(format!("{} is not a host; only a host can have an agent", node.name));
        }
        if self.outside.has(node.host) {
            return refuse(format!("{} is not simulated; its agents are not the simulator's", node.name));
        }
        let (id, host, action) = (self.agents.all.len() as u32, node.host, self.actions.len() as u32);
        self.actions.push(Action::Agent(id));
        let agent = Agent { host, chain, listens, timer: u64::MAX, action, ..Agent::default() };
        self.agents.all.push(agent);
        let by_host = &mut self.agents.by_host;
        if by_host.len() <= host as usize {
            by_host.resize_with(host as usize + 1, Vec::new);
        }
        by_host[host as usize].push(id);
        self.agents_changed(host);
        self.set_agent_timer(id);
        Ok(AgentId(id))
    }

    /// The agent is gone, as a process that was killed: its options vanish from what is sent from now on, and its limits are lifted.
    pub fn remove_agent(&mut self, agent: AgentId) {
        let Agent { host, .. } = self.agents.all[agent.index()];
        self.agents.by_host[host as usize].retain(|id| *id != agent.0);
        for index in std::mem::take(&mut self.agents.all[agent.index()].limits).into_keys() {
            self.keep_agent_limits(index);
        }
        self.agents_changed(host);
    }

    /// Limits what a connection sends, for one of its host's agents: the least of their limits holds. `None` lifts this agent's.
    pub fn limit_pacing(&mut self, agent: AgentId, connection: u32, rate: Option<Rate>) {
        self.agents.all[agent.index()].limits.entry(connection).or_default().0 = rate;
        self.keep_agent_limits(connection);
    }

    /// As [`Network::limit_pacing`], for the packets that are in flight.
    pub fn limit_cwnd(&mut self, agent: AgentId, connection: u32, packets: Option<u32>) {
        self.agents.all[agent.index()].limits.entry(connection).or_default().1 = packets;
        self.keep_agent_limits(connection);
    }

    /// Has a connection send a pure ACK with an option, which takes nothing of what the connection owes or counts. Agents do not see
    /// it. Gives whether the connection is established.
    ///
    /// # Errors
    /// The option does not fit the header.
    pub fn send_option(&mut self, connection: u32, option: OptionKind, data: &[u8]) -> Result<bool, NoRoom> {
        let now = Time::from_ps(self.now);
        let there = self.endpoints.get(connection as usize).and_then(|end| end.connection.as_ref());
        let Some(segment) = there.and_then(|connection| connection.bare_ack(now)) else { return Ok(false) };
        let mut packet = Packet::new(Body::Tcp(segment), Options::EMPTY);
        packet.add(option, data)?;
        self.send_from(connection, &packet, None);
        Ok(true)
    }

    /// Bytes that a connection has sent, once each; `None`: it is not established, or has sent its FIN.
    pub fn agent_bytes_sent(&self, connection: u32) -> Option<u64> {
        let there = self.endpoints.get(connection as usize)?.connection.as_ref()?;
        let sends = there.phase() == Phase::Established && !there.has_sent_fin();
        sends.then(|| there.bytes_sent())
    }

    /// What there is to tell agents that listen, in order of time.
    pub fn take_agent_notices(&mut self) -> Vec<AgentNotice> {
        std::mem::take(&mut self.agents.pending)
    }

    pub fn agent_counts(&self, agent: AgentId) -> AgentCounts {
        self.agents.all[agent.index()].counts
    }

    /// Packets that hosts with agents did not take because an option, or a header between Ethernet and IP, had a wrong length.
    pub fn malformed_options(&self) -> u64 {
        self.agents.malformed
    }

    /// An end of a connection as agents see it, and the number of its flow.
    pub fn agent_flow(&self, connection: u32) -> (FlowKey, u32) {
        let end = &self.endpoints[connection as usize];
        let plan = connection / 2;
        let (sender, receiver) = ports(plan, TCP_RECEIVERS);
        let active = connection.is_multiple_of(2);
        let key = FlowKey {
            connection,
            active,
            addresses: [ipv4(end.host), ipv4(end.peer_host)],
            ports: if active { [sender, receiver] } else { [receiver, sender] },
        };
        (key, self.plans[plan as usize].number)
    }

    /// Bytes of options that a host's agents may put on a packet of this kind.
    pub(crate) fn agent_room(&self, connection: u32, on: PacketKind) -> u32 {
        let host = self.endpoints[connection as usize].host;
        if !self.agents.has(host) {
            return 0;
        }
        let (flow, _) = self.agent_flow(connection);
        let rooms = self.agents.by_host[host as usize]
            .iter()
            .map(|id| self.agents.all[*id as usize].chain.room(&flow, on));
        rooms.fold(Room::default(), Room::and).padded()
    }

    /// A connection's end is there: its host's agents hear of it.
    pub(crate) fn meet_agents(&mut self, index: u32) {
        let end = &mut self.endpoints[index as usize];
        end.hold &= !AGENT;
        let there = self.agents.has(end.host);
        if there {
            end.hold |= AGENT;
        }
        let room = self.agent_room(index, PacketKind::Data);
        if let Some(connection) = &mut self.endpoints[index as usize].connection {
            connection.reserve(room);
        }
        if there {
            self.notify_agents(index);
        }
    }

    /// A host has other agents than before.
    fn agents_changed(&mut self, host: u32) {
        for index in 0..self.endpoints.len() as u32 {
            let end = &self.endpoints[index as usize];
            if end.host == host && end.connection.is_some() {
                self.meet_agents(index);
            }
        }
    }

    /// Tells the agents of a connection's host how far it has come.
    pub(crate) fn notify_agents(&mut self, index: u32) {
        let end = &self.endpoints[index as usize];
        self.notify_agents_of(index, stage(end.connection.as_ref().map(|c| c.phase())));
    }

    /// As [`Network::notify_agents`], when it is known how far it is about to come.
    fn notify_agents_of(&mut self, index: u32, reached: u8) {
        let host = self.endpoints[index as usize].host;
        let (flow, _) = self.agent_flow(index);
        let now = Time::from_ps(self.now);
        for at in 0..self.agents.by_host[host as usize].len() {
            let id = self.agents.by_host[host as usize][at];
            let stage = self.agents.all[id as usize].stages.entry(index).or_default();
            let known = std::mem::replace(stage, reached.max(*stage));
            for (event, what) in STAGES.iter().take(reached.into()).skip(known.into()) {
                self.agents.all[id as usize].chain.event(now, &flow, *event);
                self.notify(id, index, what.clone());
                self.apply_effects(id);
            }
        }
    }

    /// A connection's end is gone.
    pub(crate) fn part_from_agents(&mut self, index: u32) {
        self.notify_agents(index);
        for agent in &mut self.agents.all {
            agent.stages.remove(&index);
            agent.limits.remove(&index);
        }
    }

    fn notify(&mut self, id: u32, connection: u32, what: What) {
        if self.agents.all[id as usize].listens {
            let at = Time::from_ps(self.now);
            self.agents.pending.push(AgentNotice { at, agent: AgentId(id), connection, what });
            self.pending = true;
        }
    }

    fn keep_agent_limits(&mut self, index: u32) {
        let end = &mut self.endpoints[index as usize];
        let Some(connection) = &mut end.connection else { return };
        let limits = || {
            let agents = self.agents.by_host[end.host as usize].iter();
            agents.filter_map(|id| self.agents.all[*id as usize].limits.get(&index))
        };
        connection.limit_pacing(limits().filter_map(|(rate, _)| *rate).min());
        connection.limit_cwnd(limits().filter_map(|(_, packets)| *packets).min());
    }

    /// Does what an agent's shims have asked for.
    fn apply_effects(&mut self, id: u32) {
        let effects = self.agents.all[id as usize].chain.take_effects();
        let now = Time::from_ps(self.now);
        for (index, effect) in effects {
            match effect {
                Effect::LimitPacing(rate) => self.limit_pacing(AgentId(id), index, rate),
                Effect::LimitCwnd(packets) => self.limit_cwnd(AgentId(id), index, packets),
                Effect::Signal(kind, data) => {
                    if let Some(connection) = &mut self.endpoints[index as usize].connection {
                        connection.signal(now, kind, &data);
                    }
                }
                Effect::Report(kind, data) => self.notify(id, index, What::Report(kind, data)),
                Effect::NoRoom(_) => self.agents.all[id as usize].counts.no_room += 1,
                Effect::Refused(_) => self.agents.all[id as usize].counts.refused += 1,
                Effect::Send(packet) => self.send_from(index, &packet, None),
            }
        }
        self.set_agent_timer(id);
    }

    fn set_agent_timer(&mut self, id: u32) {
        let agent = &mut self.agents.all[id as usize];
        let due = agent.chain.wakeup().map_or(u64::MAX, Time::as_ps);
        if due < agent.timer {
            agent.timer = due.max(self.now);
            self.events.push(agent.timer, event::Event::Action(agent.action));
        }
    }

    /// A timer of an agent is due, unless an earlier one has overtaken it or the agent is gone.
    pub(crate) fn advance_agent(&mut self, id: u32) {
        let agent = &mut self.agents.all[id as usize];
        if agent.timer != self.now || !self.agents.by_host[agent.host as usize].contains(&id) {
            return;
        }
        agent.timer = u64::MAX;
        agent.chain.advance(Time::from_ps(self.now));
        self.apply_effects(id);
    }
}
