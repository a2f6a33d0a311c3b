//! P4 switches in a network: made when their ports are known, asked and set by their controllers.

use std::sync::Arc;

use control::{Answer, Op, StateOp, Target};
use dataplane::clock::Clock;
use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
use switch::{PortConfig, Switch};
use units::Time;

use crate::error::{BuildError, refuse};
use crate::event::Event;
use crate::network::Network;
use crate::node::{NO_HOST, NO_PORT, Node, NodeId, Planned, SwitchNode};
use crate::port::QueueLimit;

impl Network {
    /// A switch that runs a P4 program. Its ports have the numbers of its links in the order in which they are made, from 0 on,
    /// unless [`Network::link_at`] gives them others; the limits of its links are those of its queues. `cpu_port` is the port number
    /// of its controller.
    pub fn switch(
        &mut self,
        name: &str,
        program: Arc<Program>,
        queues: usize,
        cpu_port: Option<u32>,
    ) -> NodeId {
        let id = self.node(name, NO_HOST);
        self.nodes[id.0 as usize].switch = self.switches.len() as u32;
        let clock = Clock::default();
        let queues = queues.max(1);
        self.programs.push(Planned { program, queues, cpu_port, clock, hardened: false, node: id });
        self.switches.push(None);
        id
    }

    /// In what a switch's timestamps count. To be called before its state is read.
    pub fn clock(&mut self, node: NodeId, clock: Clock) {
        for planned in self.programs.iter_mut().filter(|planned| planned.node == node) {
            planned.clock = clock;
        }
    }

    /// Has all packets that wait in a switch within [`Program::queue_bytes`], and memory for its state before they come. To be called
    /// before its state is read.
    pub fn harden(&mut self, node: NodeId) {
        for planned in self.programs.iter_mut().filter(|planned| planned.node == node) {
            planned.hardened = true;
        }
    }

    /// The pipeline of a switch, to set up its tables and read its state. To be called when all links are there.
    ///
    /// # Errors
    /// A node that is not a switch.
    pub fn pipeline(&mut self, node: NodeId) -> Result<&mut Pipeline, BuildError> {
        Ok(self.made(node)?.switch.pipeline())
    }

    /// Does something to a switch that is not for its pipeline alone: sets a port anew, starts a packet generator, sends a
    /// packet out. What comes of it happens from now on.
    ///
    /// # Errors
    /// A node that is not a switch.
    pub fn control<T>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut Switch, Time) -> T,
    ) -> Result<T, BuildError> {
        let now = self.now();
        let result = act(&mut self.made(node)?.switch, now);
        let index = self.nodes[node.0 as usize].switch;
        self.at_node(node.0).attend(index);
        Ok(result)
    }

    /// Does an operation on a switch. What is asked of its fixed parts, or gives its messages away, happens from now on at its
    /// ports too; what is asked of its program takes effect with the next packet.
    ///
    /// # Errors
    /// A node that is not a switch; the operation is refused.
    pub fn act(&mut self, node: NodeId, op: &Op) -> control::Result<Answer> {
        let no_switch = |error: BuildError| control::Error::invalid(error.0);
        match op {
            Op::Fixed(_) | Op::State(StateOp::TakeDigests {} | StateOp::Drops {}) => {
                self.control(node, |switch, now| switch.act(now, op)).map_err(no_switch)?
            }
            op => {
                let now = self.now();
                self.pipeline(node).map_err(no_switch)?.act(now, op)
            }
        }
    }

    /// Does all of these operations on a switch's program, or none.
    ///
    /// # Errors
    /// A node that is not a switch; which operation is refused.
    pub fn act_all(&mut self, node: NodeId, ops: &[Op]) -> Result<Vec<Answer>, (usize, control::Error)> {
        let now = self.now();
        let pipeline = self.pipeline(node).map_err(|error| (0, control::Error::invalid(error.0)))?;
        pipeline.act_all(now, ops)
    }

    /// Ends [`Network::run_until`] early whenever this switch has something for its controller.
    ///
    /// # Errors
    /// A node that is not a switch.
    pub fn watch(&mut self, node: NodeId) -> Result<(), BuildError> {
        self.made(node)?.watched = true;
        Ok(())
    }

    fn made(&mut self, node: NodeId) -> Result<&mut SwitchNode, BuildError> {
        if !self.is_divided() {
            self.make_switches()?;
        }
        let part = self.at_node(node.0);
        let Node { switch, name, .. } = &part.nodes[node.0 as usize];
        match part.switches.get_mut(*switch as usize) {
            Some(Some(made)) => Ok(made),
            _ => refuse(format!("{name} is not a P4 switch")),
        }
    }

    /// Makes the switches, with the ports that they have by now.
    pub(crate) fn make_switches(&mut self) -> Result<(), BuildError> {
        for (index, planned) in self.programs.iter().enumerate() {
            let node = &self.nodes[planned.node.0 as usize];
            if self.switches[index].as_ref().is_some_and(|made| made.links == node.ports.len()) {
                continue;
            }
            let numbers = |port: &u32| self.ports[*port as usize].number;
            let count = node.ports.iter().map(numbers).max().map_or(0, |most| most as usize + 1);
            let mut by_number = vec![NO_PORT; count];
            let mut ports = vec![None; count];
            for port in &node.ports {
                let p = &self.ports[*port as usize];
                let limit = switch::QueueLimit { packets: p.link.limit.packets, bytes: p.link.limit.bytes };
                by_number[p.number as usize] = *port;
                ports[p.number as usize] = Some(PortConfig::new(vec![limit; planned.queues]));
            }
            let config = switch::Config {
                ports,
                cpu_port: planned.cpu_port,
                clock: planned.clock,
                seed: self.seed ^ index as u64,
                most_waiting: planned.hardened.then_some(planned.program.queue_bytes),
            };
            // Switches of one program share its code.
            let same = |other: &usize| Arc::ptr_eq(&self.programs[*other].program, &planned.program);
            let twin = (0..index).find(same).and_then(|other| self.switches[other].as_ref());
            let made = match twin {
                Some(twin) => twin.switch.another(&config),
                None => Switch::new(planned.program.clone(), &config),
            };
            let mut made = made.map_err(|e| BuildError(format!("switch {}: {e}", node.name)))?;
            if planned.hardened {
                made.pipeline().provide_memory();
            }
            for port in &node.ports {
                self.ports[*port as usize].of_switch = index as u32;
            }
            self.switches[index] = Some(SwitchNode {
                switch: made,
                ports: by_number,
                links: node.ports.len(),
                watched: false,
                timer: u64::MAX,
            });
        }
        Ok(())
    }
}

impl Network {
    /// Sees to what a switch has to do after something was done to it from outside.
    pub(crate) fn attend(&mut self, index: u32) {
        if let Some(node) = &mut self.switches[index as usize] {
            self.pending |= node.watched && node.switch.has_pending();
            let due = node.switch.next_wakeup().map_or(u64::MAX, Time::as_ps);
            if due < node.timer {
                node.timer = due.max(self.now);
                self.events.push(node.timer, Event::Generate(index));
            }
        }
        self.wake_ports(index);
    }

    /// A switch's packet generator is due, unless it was changed meanwhile.
    pub(crate) fn generate(&mut self, index: u32) {
        if let Some(node) = &mut self.switches[index as usize]
            && node.timer == self.now
        {
            node.timer = u64::MAX;
            node.switch.advance(Time::from_ps(self.now));
            self.attend(index);
        }
    }

    /// The queues of a switch's port have the limit of its link.
    pub(crate) fn limit_queues(&mut self, port: usize, limit: QueueLimit) {
        let (index, number) = (self.ports[port].of_switch, self.ports[port].number);
        let Some(node) = self.switches.get_mut(index as usize).and_then(Option::as_mut) else { return };
        // The port is there, and the limit was checked when the change was planned.
        if let Ok(mut config) = node.switch.port_config(number) {
            for queue in &mut config.queues {
                queue.limit = switch::QueueLimit { packets: limit.packets, bytes: limit.bytes };
            }
            let _ = node.switch.configure_port(number, &config);
        }
    }
}
