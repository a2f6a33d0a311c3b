//! Ports with queues around a pipeline.

use std::fmt;
use std::sync::Arc;

use dataplane::pipeline::{Output, Pending, Pipeline};
use p4lang::ir::Program;
use units::Time;

use crate::queue::{Queue, QueueLimit, QueueStatistics};

/// A port's queues.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// One for each priority, from the lowest on: `standard_metadata.priority` chooses, the highest goes first. A priority
    /// beyond the last queue uses the last.
    pub queues: Vec<QueueLimit>,
}

/// A switch's fixed parts.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub ports: Vec<PortConfig>,
    /// Seed of the program's `random`.
    pub seed: u64,
}

/// Why there is no such switch; says what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

struct Port {
    queues: Vec<Queue>,
    /// Packets waiting in all of them.
    waiting: u64,
}

/// A switch.
pub struct Switch {
    pipeline: Pipeline,
    ports: Vec<Port>,
    /// Ports that have got something to send since they were last asked for.
    ready: Vec<u32>,
    pending: Vec<Pending>,
    /// Packets for ports that the switch does not have.
    no_port: u64,
}

impl Switch {
    /// A switch that runs the program as native code, or interpreted where there can be none.
    ///
    /// # Errors
    /// A port without a queue, a queue that holds nothing.
    pub fn new(program: Arc<Program>, config: &Config) -> Result<Switch, ConfigError> {
        let mut ports = Vec::new();
        for (number, port) in config.ports.iter().enumerate() {
            if port.queues.is_empty() {
                return Err(ConfigError(format!("port {number} has no queue; give it at least one")));
            }
            for (queue, limit) in port.queues.iter().enumerate() {
                if limit.packets == Some(0) || limit.bytes.is_some_and(|b| b.is_zero()) {
                    let what = format!("queue {queue} of port {number} holds nothing");
                    return Err(ConfigError(format!("{what}; give it room for a packet")));
                }
            }
            ports.push(Port { queues: port.queues.iter().map(|l| Queue::new(*l)).collect(), waiting: 0 });
        }
        let pipeline = Pipeline::compiled(program.clone(), config.seed)
            .unwrap_or_else(|_| Pipeline::interpreted(program, config.seed));
        Ok(Switch { pipeline, ports, ready: Vec::new(), pending: Vec::new(), no_port: 0 })
    }

    /// Tables, registers, counters, meters, mirror sessions and multicast groups.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// A packet from Ethernet on has come by a port; `more` bytes of payload, all zero, are behind `bytes`.
    pub fn receive(&mut self, now: Time, port: u32, bytes: &[u8], more: u32) {
        let mut pending = std::mem::take(&mut self.pending);
        self.pipeline.receive(now.as_ps(), port, bytes, more, &mut pending);
        self.enqueue(&mut pending);
        self.pending = pending;
    }

    fn enqueue(&mut self, pending: &mut Vec<Pending>) {
        for packet in pending.drain(..) {
            let number = packet.port;
            let Some(port) = self.ports.get_mut(number as usize) else {
                self.no_port += 1;
                self.pipeline.discard(packet);
                continue;
            };
            let last = port.queues.len() - 1;
            match port.queues[(packet.priority as usize).min(last)].push(packet) {
                Ok(()) => {
                    port.waiting += 1;
                    if port.waiting == 1 {
                        self.ready.push(number);
                    }
                }
                Err(packet) => self.pipeline.discard(packet),
            }
        }
    }

    /// The next packet for a port whose wire is free; its bytes go back by [`Switch::recycle`].
    pub fn transmit(&mut self, now: Time, number: u32) -> Option<Output> {
        loop {
            let port = self.ports.get_mut(number as usize)?;
            let index = port.queues.iter().rposition(|q| q.depth().0 > 0)?;
            let (packet, info) = port.queues[index].pop(now.as_ps())?;
            port.waiting -= 1;
            let mut pending = std::mem::take(&mut self.pending);
            let out = self.pipeline.depart(now.as_ps(), packet, info, &mut pending);
            self.enqueue(&mut pending);
            self.pending = pending;
            if out.is_some() {
                return out;
            }
            self.ports[number as usize].queues[index].statistics.dropped_in_egress += 1;
        }
    }

    /// Whether packets wait at a port.
    pub fn has_work(&self, number: u32) -> bool {
        self.ports.get(number as usize).is_some_and(|p| p.waiting > 0)
    }

    /// Takes a port that had nothing waiting and now has, whether or not its wire is free.
    pub fn take_ready(&mut self) -> Option<u32> {
        self.ready.pop()
    }

    /// Gives a packet's bytes back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.pipeline.recycle(bytes);
    }

    /// Packets and bytes waiting in a queue, and its counts.
    pub fn queue(&self, port: u32, queue: usize) -> Option<((u64, u64), &QueueStatistics)> {
        let queue = self.ports.get(port as usize)?.queues.get(queue)?;
        Some((queue.depth(), &queue.statistics))
    }

    /// Packets for ports that the switch does not have.
    pub fn no_port(&self) -> u64 {
        self.no_port
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Switch with {} ports", self.ports.len())
    }
}
