//! Tells of options that come: the agent's other part, or the connection's congestion control.

use std::collections::HashMap;

use units::Time;

use super::{Event, Handle, OptionKind, Packet, Shim, Verdict};

/// Reports an option's data to whoever runs the agent, when it is another than the last of the connection or, if so asked, each time.
#[derive(Debug, Clone)]
pub struct Report {
    option: OptionKind,
    /// Mask and value: a packet whose option's first byte of data is so is for the agent alone, and TCP does not see it.
    consume: Option<(u8, u8)>,
    /// Of a packet with several, all of them.
    each: bool,
    /// By connection.
    last: HashMap<u32, Vec<u8>>,
}

impl Report {
    pub fn new(option: OptionKind, consume: Option<(u8, u8)>, each: bool) -> Report {
        Report { option, consume, each, last: HashMap::new() }
    }
}

impl Shim for Report {
    fn option(&self) -> Option<OptionKind> {
        Some(self.option)
    }

    fn event(&mut self, _: Time, connection: &mut Handle, what: Event) {
        if what == Event::Closed {
            self.last.remove(&connection.flow().connection);
        }
    }

    fn received(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        if let (Some(connection), Some(data)) = (connection, packet.find(self.option)) {
            if self.each {
                for data in packet.all(self.option) {
                    connection.report(self.option.kind, data);
                }
            } else {
                let number = connection.flow().connection;
                if self.last.get(&number).is_none_or(|last| last[..] != *data) {
                    connection.report(self.option.kind, data);
                    self.last.insert(number, data.to_vec());
                }
            }
            if self.consume.is_some_and(|(mask, value)| data.first().is_some_and(|byte| byte & mask == value))
            {
                return Verdict::Drop;
            }
        }
        Verdict::Pass
    }
}

/// Hands an option's data to the connection's congestion control, before the ACK that it came with.
#[derive(Debug, Clone)]
pub struct Signal {
    pub option: OptionKind,
}

impl Shim for Signal {
    fn option(&self) -> Option<OptionKind> {
        Some(self.option)
    }

    fn received(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        if let (Some(connection), Some(data)) = (connection, packet.find(self.option)) {
            connection.signal(self.option.kind, data);
        }
        Verdict::Pass
    }
}
