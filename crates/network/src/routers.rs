//! Queues by class at the ports of plain routers, and the filter that puts flows into them.

use switch::PortConfig;
use units::Time;

use crate::aqm::{Classes, FlowKey, Managed};
use crate::error::{BuildError, refuse};
use crate::network::Network;
use crate::node::NO_HOST;
use crate::port::PortId;

impl Network {
    /// Gives a port of a plain router queues by class, or sets those that it has anew. What waits in a queue that is taken away goes to
    /// the last one that is left.
    ///
    /// # Errors
    /// A port of a host or a P4 switch, or with other queue management; settings that make no sense; a port without such queues
    /// at which packets wait.
    pub fn set_classes(&mut self, port: PortId, config: &PortConfig) -> Result<(), BuildError> {
        let index = port.0;
        let Some(node) = self.nodes.iter().find(|node| node.ports.contains(&index)) else {
            return refuse("a port without a node".into());
        };
        let to = &self.nodes[self.ports[index as usize].to as usize].name;
        let name = format!("the port of {} to {to}", node.name);
        if node.host != NO_HOST || node.switch != NO_HOST {
            return refuse(format!("{name}: queues by class are for plain routers; {} is none", node.name));
        }
        if let Err(error) = config.check(self.ports[index as usize].number) {
            return refuse(format!("{name}: {error}"));
        }
        let now = self.now;
        let part = self.at_port_mut(port);
        let port = &mut part.ports[index as usize];
        let idle = port.depth(now).0 == 0 && port.free_at() <= now;
        match port.managed.as_deref_mut() {
            Some(Managed::Classes(classes)) => classes.port.configure(config),
            None if port.link.mark_above.is_some() => {
                return refuse(format!("{name}: queues by class mark nothing; leave `mark_above` out"));
            }
            None if idle => {
                port.managed = Some(Box::new(Managed::Classes(Classes::new(config))));
            }
            None => {
                return refuse(format!("{name}: queues by class come before the run; packets wait already"));
            }
            Some(_) => return refuse(format!("{name} has queue management already; leave `aqm` out")),
        }
        part.ask_managed(index);
        Ok(())
    }

    /// What is set of a router's queues by class.
    ///
    /// # Errors
    /// A port without them.
    pub fn classes(&mut self, port: PortId) -> Result<PortConfig, BuildError> {
        Ok(self.classes_of(port)?.port.config())
    }

    /// Puts the packets of flows into a queue from now on; with none, into the first, as those of all flows that are not known. A queue that
    /// is not there means the last one.
    ///
    /// # Errors
    /// A port without queues by class.
    pub fn assign(&mut self, port: PortId, flows: &[FlowKey], queue: Option<u32>) -> Result<(), BuildError> {
        let classes = self.classes_of(port)?;
        flows.iter().for_each(|flow| classes.assign(*flow, queue));
        Ok(())
    }

    fn classes_of(&mut self, port: PortId) -> Result<&mut Classes, BuildError> {
        match self.at_port_mut(port).ports[port.0 as usize].managed.as_deref_mut() {
            Some(Managed::Classes(classes)) => Ok(classes),
            _ => refuse("this port has no queues by class".into()),
        }
    }

    /// What is in a queue of a P4 switch's or a router's port, and its counts.
    pub fn queue_state(&self, port: PortId, queue: usize) -> Option<control::QueueState> {
        let part = self.at_port(port);
        let (p, now) = (&part.ports[port.0 as usize], Time::from_ps(self.now));
        if let Some(Some(node)) = part.switches.get(p.of_switch as usize) {
            return node.switch.queue_state(now, p.number, queue as u32).ok();
        }
        match p.managed.as_deref() {
            Some(Managed::Classes(classes)) => classes.port.queue(now, queue),
            _ => None,
        }
    }
}
