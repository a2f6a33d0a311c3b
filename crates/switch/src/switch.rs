//! Ports with queues around a pipeline.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use control::{Error, Generator, Kind, PacketIn, PortConfig, QueueLimit, QueueState, Result, Statistics};
use dataplane::clock::Clock;
use dataplane::pipeline::{Pipeline, QueueInfo, Received, WORK_BUDGET, Work};
use dataplane::state::DigestMessage;
use p4lang::ir::Program;
use units::Time;
use wire::packet::Written;

use crate::generator::Running;
use crate::port::{Popped, Port};
use crate::queue::{QueueStatistics, Waiting};

/// Packets that wait for the controller; more are dropped and counted.
pub const MAX_PACKET_INS: usize = 4096;

/// Bytes of a packet-out: those of the longest IP packet, and some for headers in front of it.
pub const LONGEST_OUT: usize = (1 << 16) + (4 << 10);

/// Work of a packet that egress drops, beside that of its program.
const DROPPED: u64 = 128;

/// Packets that all generators of a switch may make in a second.
pub const MAX_GENERATED: u64 = 10_000_000;

/// A switch's fixed parts.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// By number; there may be gaps.
    pub ports: Vec<Option<PortConfig>>,
    /// Port number of the controller: what is sent to it becomes a packet-in.
    pub cpu_port: Option<u32>,
    /// Of the program's timestamps.
    pub clock: Clock,
    /// Seed of the program's `random`.
    pub seed: u64,
    /// Bytes that all packets that wait may have, in queues and for the controller, with their frames; `None`: as their queues allow.
    pub most_waiting: Option<u64>,
}

/// Bytes of a full packet on Ethernet, of which queues are reckoned to be full.
const FULL: u64 = 1514;

/// A packet that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    pub packet: Box<Written>,
    pub queue: usize,
    /// Time in the queue.
    pub waited: Time,
}

/// A packet that has left without waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    pub port: u32,
    pub queue: usize,
    pub packet: Box<Written>,
}

/// What another program has taken the place of: to free it takes time, for which packets need not wait.
#[expect(dead_code, reason = "it is there to be freed")]
pub struct Replaced {
    pipeline: Pipeline,
    packets: Vec<VecDeque<Waiting<Box<Work>>>>,
    packet_ins: VecDeque<PacketIn>,
}

/// A switch.
pub struct Switch {
    pipeline: Pipeline,
    /// By number.
    ports: Vec<Option<Port<Box<Work>>>>,
    cpu_port: Option<u32>,
    generators: Vec<(u32, Running)>,
    /// Ports that may have got something to send since they were last asked for.
    ready: Vec<u32>,
    pending: Vec<Box<Work>>,
    packet_ins: VecDeque<PacketIn>,
    counts: Statistics,
    /// Packets for ports that the switch does not have, and for a controller that does not keep up.
    no_port: u64,
    packet_ins_lost: u64,
    /// Packets that waited when another program came.
    replaced: u64,
    /// See [`Config::most_waiting`].
    most_waiting: Option<u64>,
    /// Bytes of packets that wait, with their frames; and packets that were dropped because they were too many.
    waiting: u64,
    no_memory: u64,
}

impl Switch {
    /// A switch that runs the program as native code, or interpreted where there can be none.
    ///
    /// # Errors
    /// A program that asks for too much to be run; a port without a queue, a queue that holds nothing, a shaper without a rate, a
    /// weight or quantum of zero.
    pub fn new(program: Arc<Program>, config: &Config) -> Result<Switch> {
        let (pipeline, _) =
            Pipeline::new(program, config.seed).map_err(|why| Error::invalid(why.to_string()))?;
        Switch::around(pipeline, config)
    }

    /// A switch that runs this one's program, with the same code.
    ///
    /// # Errors
    /// As [`Switch::new`].
    pub fn another(&self, config: &Config) -> Result<Switch> {
        Switch::around(self.pipeline.another(config.seed), config)
    }

    fn around(mut pipeline: Pipeline, config: &Config) -> Result<Switch> {
        pipeline.set_clock(config.clock);
        for (number, port) in config.ports.iter().enumerate() {
            port.as_ref().map_or(Ok(()), |port| port.check(number as u32))?;
        }
        if let Some(cpu) = config.cpu_port
            && let Some(Some(_)) = config.ports.get(cpu as usize)
        {
            let error = Error::invalid(format!("port {cpu} is the controller's, and has a wire too"));
            return Err(error.of(format!("port {cpu}")).cure("give it another number"));
        }
        check_queues(&pipeline, config.most_waiting, config.ports.iter().flatten())?;
        Ok(Switch {
            pipeline,
            ports: config.ports.iter().map(|port| port.as_ref().map(Port::new)).collect(),
            cpu_port: config.cpu_port,
            generators: Vec::new(),
            ready: Vec::new(),
            pending: Vec::new(),
            packet_ins: VecDeque::new(),
            counts: Statistics::default(),
            no_port: 0,
            packet_ins_lost: 0,
            replaced: 0,
            most_waiting: config.most_waiting,
            waiting: 0,
            no_memory: 0,
        })
    }

    /// Whether it has something to tell a controller at any time: digests of its program, or packets for the controller's port.
    pub fn may_tell(&self) -> bool {
        self.cpu_port.is_some() || !self.program().digests.is_empty()
    }

    pub fn program(&self) -> &Arc<Program> {
        self.pipeline.program()
    }

    /// Tables, registers, counters, meters, mirror sessions and multicast groups.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Runs another program from now on; see [`Pipeline::replace`]. Packets that wait in queues and for the controller were made by
    /// the old one, and may have another header: they are dropped, and counted. Gives what is to be freed.
    ///
    /// # Errors
    /// As [`Pipeline::replace`].
    pub fn replace_program(&mut self, now: Time, next: Pipeline, keep_state: bool) -> Result<Replaced> {
        let digests_lost = self.pipeline.state.digests_lost;
        let pipeline = self.pipeline.replace(next, keep_state, now.as_ps())?;
        self.pipeline.state.digests_lost = digests_lost;
        let packets: Vec<_> = self.ports.iter_mut().flatten().flat_map(Port::take).collect();
        let packet_ins = std::mem::take(&mut self.packet_ins);
        self.ready.clear();
        self.counts.packet_ins -= packet_ins.len() as u64;
        self.replaced +=
            packets.iter().map(|queue| queue.len() as u64).sum::<u64>() + packet_ins.len() as u64;
        self.waiting = 0;
        Ok(Replaced { pipeline, packets, packet_ins })
    }

    /// A packet from Ethernet on has come by a port; `more` bytes of payload, all zero, are behind `bytes`.
    pub fn receive(&mut self, now: Time, port: u32, bytes: &[u8], zero_len: u32) {
        let packet = self.pipeline.packet(bytes, zero_len);
        self.forward(now, port, packet, |_| false);
    }

    /// As [`Switch::receive`]; and a packet for a port whose wire is `free`, and at which it would not wait either, leaves at once.
    #[inline]
    pub fn forward(
        &mut self,
        now: Time,
        port: u32,
        packet: Box<Written>,
        free: impl Fn(u32) -> bool,
    ) -> Option<Passed> {
        self.counts.received += 1;
        self.ingress(now, port, packet, free)
    }

    /// A packet from the controller, with the controller header if the program takes one off.
    ///
    /// # Errors
    /// A switch without a port for the controller, or a packet that is longer than [`LONGEST_OUT`].
    pub fn packet_out(&mut self, now: Time, bytes: &[u8]) -> Result<()> {
        let Some(port) = self.cpu_port else {
            let error = Error::invalid("this switch has no port for the controller");
            return Err(error.of("switch").field("cpu_port").cure("give it a cpu_port"));
        };
        if bytes.len() > LONGEST_OUT {
            let error = Error::invalid(format!(
                "a packet-out of {} bytes is longer than any packet: {LONGEST_OUT} at most with its header",
                bytes.len()
            ));
            return Err(error.of("switch"));
        }
        self.counts.packet_outs += 1;
        let packet = self.pipeline.packet(bytes, 0);
        self.ingress(now, port, packet, |_| false);
        Ok(())
    }

    #[inline]
    fn ingress(
        &mut self,
        now: Time,
        port: u32,
        packet: Box<Written>,
        free: impl Fn(u32) -> bool,
    ) -> Option<Passed> {
        let came = packet.wire_len();
        let ports = &self.ports;
        let mut passed = None;
        let mut at_once = |number: u32, priority: u32| {
            let port = ports.get(number as usize).and_then(Option::as_ref);
            let Some(port) = port.filter(|_| free(number)) else { return false };
            passed = port.open(priority, came).map(|index| (number, index));
            passed.is_some()
        };
        let came_of_it = self.pipeline.receive(now.as_ps(), port, packet, &mut self.pending, &mut at_once);
        let out = match came_of_it {
            Received::Queue(work) if Some(work.port) != self.cpu_port => {
                self.enqueue_one(work);
                return None;
            }
            Received::Queue(work) => {
                self.pending.push(work);
                None
            }
            Received::Out(packet) => Some(packet),
            Received::Other => None,
        };
        self.enqueue_pending(now);
        let (number, index) = passed?;
        let queue = &mut self.port_mut(number)?.queues[index];
        queue.passed(came);
        let Some(packet) = out else {
            queue.statistics.dropped_in_egress += 1;
            return None;
        };
        self.counts.transmitted += 1;
        Some(Passed { port: number, queue: index, packet })
    }

    /// Puts what the pipeline has made where it belongs.
    #[inline]
    fn enqueue_pending(&mut self, now: Time) {
        if !self.pending.is_empty() {
            self.enqueue(now);
        }
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Time) {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.iter().any(|packet| Some(packet.port) == self.cpu_port) {
            self.hand_to_controller(now, &mut pending);
        }
        for packet in pending.drain(..) {
            self.enqueue_one(packet);
        }
        self.pending = pending;
    }

    /// Takes the packets for the controller out of those.
    #[cold]
    fn hand_to_controller(&mut self, now: Time, pending: &mut Vec<Box<Work>>) {
        // What egress makes of packets for the controller is looked at in turn. A program may make clones of clones.
        let (mut left, mut others) = (VecDeque::from(std::mem::take(pending)), Vec::new());
        let mut budget = MAX_PACKET_INS;
        while let Some(packet) = left.pop_front() {
            if Some(packet.port) != self.cpu_port {
                others.push(packet);
            } else if budget == 0 {
                self.packet_ins_lost += 1;
                self.pipeline.discard(packet);
            } else {
                budget -= 1;
                let out = self.pipeline.depart(now.as_ps(), packet, QueueInfo::default(), pending);
                left.extend(pending.drain(..));
                if let Some(out) = out {
                    self.packet_in(now, out);
                }
            }
        }
        *pending = others;
    }

    /// Counts a packet that has left as dropped, because too many are on the wire.
    pub fn has_no_memory(&mut self) {
        self.counts.transmitted -= 1;
        self.no_memory += 1;
    }

    /// Puts a packet in its queue.
    fn enqueue_one(&mut self, packet: Box<Work>) {
        let number = packet.port;
        let Some(port) = self.ports.get_mut(number as usize).and_then(Option::as_mut) else {
            self.no_port += 1;
            self.pipeline.discard(packet);
            return;
        };
        let bytes = packet.wire_len() + self.pipeline.waiting_bytes();
        if self.most_waiting.is_some_and(|most| self.waiting + bytes > most) {
            self.no_memory += 1;
            self.pipeline.discard(packet);
            return;
        }
        match port.push(port.queue_of(packet.priority), packet) {
            Ok(asked) => {
                self.waiting += bytes;
                if asked {
                    self.ready.push(number);
                }
            }
            Err(packet) => self.pipeline.discard(packet),
        }
    }

    fn packet_in(&mut self, at: Time, mut packet: Box<Written>) {
        let room = self.most_waiting.is_none_or(|most| self.waiting + packet.wire_len() <= most);
        if self.packet_ins.len() < MAX_PACKET_INS && room {
            self.counts.packet_ins += 1;
            let bytes = packet.whole().to_vec();
            self.waiting += bytes.len() as u64;
            self.packet_ins.push_back(PacketIn { at, bytes, more: packet.zeros() });
        } else {
            self.packet_ins_lost += 1;
        }
        self.pipeline.release(packet);
    }

    /// The next packet for a port whose wire is free, if a shaper does not hold it back; it goes back by
    /// [`Switch::recycle`]. If egress drops so many that they cost more work than one packet may, the port is held back for as long as that
    /// took, at a nanosecond for each unit of work.
    #[inline]
    pub fn transmit(&mut self, now: Time, number: u32) -> Option<Departure> {
        match self.transmit_one(now, number)? {
            Ok(departure) => Some(departure),
            Err(spent) => self.transmit_another(now, number, spent),
        }
    }

    /// The next packet, or what work it took to drop it.
    #[inline(always)]
    fn transmit_one(&mut self, now: Time, number: u32) -> Option<std::result::Result<Departure, u64>> {
        let Popped { packet, queue, info, waited, bytes, credit } = self.port_mut(number)?.pop(now)?;
        self.waiting -= bytes + self.pipeline.waiting_bytes();
        let out = self.pipeline.depart(now.as_ps(), packet, info, &mut self.pending);
        self.enqueue_pending(now);
        let spent = DROPPED + self.pipeline.spent();
        let port = self.port_mut(number)?;
        let Some(out) = out else {
            port.not_sent(&Popped { packet: (), queue, info, waited, bytes, credit });
            return Some(Err(spent));
        };
        port.sent(now, queue, out.wire_len());
        self.counts.transmitted += 1;
        Some(Ok(Departure { packet: out, queue, waited: Time::from_ps(waited) }))
    }

    /// Egress has dropped a packet, for so much work: the next one that leaves.
    #[inline(never)]
    fn transmit_another(&mut self, now: Time, number: u32, mut spent: u64) -> Option<Departure> {
        while spent < WORK_BUDGET {
            match self.transmit_one(now, number)? {
                Ok(departure) => return Some(departure),
                Err(more) => spent += more,
            }
        }
        self.port_mut(number)?.hold(now.saturating_add(Time::from_ps(spent * 1000)));
        None
    }

    /// From when on a port has something to send, as far as is known since it was last asked; `None`: nothing waits.
    pub fn next_transmit(&self, number: u32) -> Option<Time> {
        self.port(number)?.next()
    }

    /// Whether [`Switch::take_ready`] has a port.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a port that may have got something to send, whether or not its wire is free.
    pub fn take_ready(&mut self) -> Option<u32> {
        self.ready.pop()
    }

    /// When [`Switch::advance`] is due.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.generators.iter().map(|(_, running)| running.due).min()
    }

    /// Makes the generated packets that are due.
    pub fn advance(&mut self, now: Time) {
        while let Some(index) = (0..self.generators.len())
            .filter(|i| self.generators[*i].1.due <= now)
            .min_by_key(|i| self.generators[*i].1.due)
        {
            let running = &mut self.generators[index].1;
            let at = running.due;
            running.fired();
            let (port, packet) =
                (running.generator.port, self.pipeline.packet(&running.generator.template, 0));
            self.counts.generated += 1;
            self.ingress(at, port, packet, |_| false);
        }
    }

    /// Starts a generator, changes one while it runs, or stops it.
    ///
    /// # Errors
    /// A period of zero, an empty template; more packets than [`MAX_GENERATED`].
    pub fn set_generator(&mut self, now: Time, id: u32, generator: Option<Generator>) -> Result<()> {
        let at = self.generators.iter().position(|(known, _)| *known == id);
        let Some(generator) = generator else {
            if let Some(at) = at {
                self.generators.remove(at);
            }
            return Ok(());
        };
        generator.check(id)?;
        let others = self.generators.iter().filter(|(known, _)| *known != id);
        let rate = |period: Time| Time::from_secs(1).as_ps().div_ceil(period.as_ps());
        let all = others.map(|(_, running)| rate(running.generator.period)).sum::<u64>();
        if all.saturating_add(rate(generator.period)) > MAX_GENERATED {
            let why = format!("the generators of a switch make at most {MAX_GENERATED} packets a second");
            return Err(Error::invalid(why)
                .of(format!("generator {id}"))
                .field("period")
                .cure("give it a longer one"));
        }
        match at {
            Some(at) => self.generators[at].1.change(now, generator),
            None => self.generators.push((id, Running::new(now, generator))),
        }
        Ok(())
    }

    /// A generator that runs.
    pub fn generator(&self, id: u32) -> Option<&Generator> {
        self.generators.iter().find(|(known, _)| *known == id).map(|(_, running)| &running.generator)
    }

    /// What is set of a port.
    ///
    /// # Errors
    /// No such port.
    pub fn port_config(&self, number: u32) -> Result<PortConfig> {
        self.port(number).map(Port::config).ok_or_else(|| self.no_such_port(number))
    }

    fn no_such_port(&self, number: u32) -> Error {
        let there: Vec<String> =
            (0..self.ports.len()).filter(|n| self.ports[*n].is_some()).map(|n| n.to_string()).collect();
        let error = Error::new(Kind::NotFound, format!("there is no port {number}"));
        error.of(format!("port {number}")).cure(format!("the ports are {}", there.join(", ")))
    }

    fn port(&self, number: u32) -> Option<&Port<Box<Work>>> {
        self.ports.get(number as usize)?.as_ref()
    }

    fn port_mut(&mut self, number: u32) -> Option<&mut Port<Box<Work>>> {
        self.ports.get_mut(number as usize)?.as_mut()
    }

    /// Sets a port anew, while it runs. What waits in a queue that is taken away goes to the last one that is left.
    ///
    /// # Errors
    /// As [`Switch::new`]; and no such port. Nothing is changed then.
    pub fn configure_port(&mut self, number: u32, config: &PortConfig) -> Result<()> {
        config.check(number)?;
        if self.port(number).is_none() {
            return Err(self.no_such_port(number));
        }
        let ports = self.ports.iter().enumerate().filter(|(other, _)| *other != number as usize);
        let others: Vec<PortConfig> = ports.filter_map(|(_, port)| port.as_ref().map(Port::config)).collect();
        check_queues(&self.pipeline, self.most_waiting, others.iter().chain([config]))?;
        let Some(port) = self.port_mut(number) else { return Err(self.no_such_port(number)) };
        port.configure(config);
        if port.waiting() > 0 {
            self.ready.push(number);
        }
        Ok(())
    }

    /// Digests that the program has sent since this was last called.
    pub fn take_digests(&mut self) -> Vec<DigestMessage> {
        self.pipeline.state.digests.drain(..).collect()
    }

    /// Whether there are digests or packets for the controller.
    pub fn has_pending(&self) -> bool {
        !self.pipeline.state.digests.is_empty() || !self.packet_ins.is_empty()
    }

    /// The next packet for the controller.
    pub fn take_packet_in(&mut self) -> Option<PacketIn> {
        let packet = self.packet_ins.pop_front()?;
        self.waiting -= packet.bytes.len() as u64;
        Some(packet)
    }

    /// Memory for a packet, of one that was dropped if there is.
    #[inline]
    pub fn spare(&mut self) -> Box<Written> {
        self.pipeline.spare()
    }

    /// Gives a packet's memory back.
    pub fn recycle(&mut self, packet: Box<Written>) {
        self.pipeline.release(packet);
    }

    /// What is in a queue, and its counts.
    ///
    /// # Errors
    /// No such queue.
    pub fn queue_state(&self, now: Time, port: u32, queue: u32) -> Result<QueueState> {
        self.port(port).and_then(|port| port.queue(now, queue as usize)).ok_or_else(|| {
            let object = format!("queue {queue} of port {port}");
            Error::new(Kind::NotFound, format!("there is no {object}")).of(object)
        })
    }

    /// Packets and bytes waiting in a queue, and its counts.
    pub fn queue(&self, port: u32, queue: usize) -> Option<((u64, u64), &QueueStatistics)> {
        let queue = self.port(port)?.queues.get(queue)?;
        Some((queue.depth(), &queue.statistics))
    }

    /// Where every packet is.
    pub fn statistics(&self) -> Statistics {
        let mut counts = self.counts.clone();
        counts.made = self.pipeline.packets_made();
        counts.held = self.ports.iter().flatten().map(Port::waiting).sum();
        counts.dropped =
            self.pipeline.drops().iter().map(|(reason, count)| (reason.name(), *count)).collect();
        let queues = self.ports.iter().flatten().flat_map(|p| &p.queues);
        let full = queues.map(|q| q.statistics.dropped).sum();
        let fixed = [
            ("queue full", full),
            ("queue memory", self.no_memory),
            ("no such port", self.no_port),
            ("too many packet-ins", self.packet_ins_lost),
            ("program replaced", self.replaced),
        ];
        counts.dropped.extend(fixed.into_iter().filter(|(_, count)| *count > 0));
        counts
    }
}

/// Refuses queues whose limits promise more than `most` bytes, if they are full of full packets.
fn check_queues<'a>(
    pipeline: &Pipeline,
    most: Option<u64>,
    ports: impl Iterator<Item = &'a PortConfig>,
) -> Result<()> {
    let Some(most) = most else { return Ok(()) };
    let beside = u128::from(pipeline.waiting_bytes());
    let of = |limit: &QueueLimit| {
        let bytes = limit.bytes.map(|bytes| u128::from(bytes.get()));
        let packets = limit.packets.map(|packets| u128::from(packets) * u128::from(FULL));
        // Of two limits the smaller one holds.
        let bytes = bytes.into_iter().chain(packets).min().unwrap_or(0);
        bytes + bytes.div_ceil(FULL.into()) * beside
    };
    let (mut count, mut sum) = (0, 0u128);
    for port in ports {
        count += 1;
        sum += port.queues.iter().map(|queue| of(&queue.limit)).sum::<u128>();
    }
    if sum <= u128::from(most) {
        return Ok(());
    }
    let why = format!(
        "full queues of {count} port{} take {sum} bytes with what the program keeps of each packet; `queue_bytes` is {most}",
        if count == 1 { "" } else { "s" }
    );
    Err(Error::invalid(why).cure("give fewer or shorter queues, or raise `queue_bytes`"))
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Switch with {} ports", self.ports.iter().flatten().count())
    }
}
