//! Shims in order, and what they ask for.

use units::{Rate, Time};

use super::{Event, FlowKey, Form, Packet, PacketKind, Place, Room, Shim, Verdict};

/// What a shim asks for, for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// See [`Connection::limit_pacing`](crate::tcp::Connection::limit_pacing).
    LimitPacing(Option<Rate>),
    /// See [`Connection::limit_cwnd`](crate::tcp::Connection::limit_cwnd).
    LimitCwnd(Option<u32>),
    /// For the congestion control: an option's kind and data.
    Signal(u16, Vec<u8>),
    /// For whoever runs the agent: an option's kind and data.
    Report(u16, Vec<u8>),
    /// An option found no room.
    NoRoom(u16),
    /// An option was not believed.
    Refused(u16),
    /// A packet more leaves by the connection; shims do not see it.
    Send(Box<Packet>),
}

/// What shims have asked for, in order: a connection's number, and what.
#[derive(Debug, Default)]
pub struct Effects(Vec<(u32, Effect)>);

impl Effects {
    /// To ask something for a connection.
    pub fn of(&mut self, flow: FlowKey) -> Handle<'_> {
        Handle { flow, effects: &mut self.0 }
    }
}

/// A connection, for a shim.
#[derive(Debug)]
pub struct Handle<'a> {
    flow: FlowKey,
    effects: &'a mut Vec<(u32, Effect)>,
}

impl Handle<'_> {
    pub fn flow(&self) -> &FlowKey {
        &self.flow
    }

    /// The connection sends at this rate at most; `None` lifts that.
    pub fn limit_pacing(&mut self, rate: Option<Rate>) {
        self.ask(Effect::LimitPacing(rate));
    }

    /// The connection has so many packets in flight at most; `None` lifts that.
    pub fn limit_cwnd(&mut self, packets: Option<u32>) {
        self.ask(Effect::LimitCwnd(packets));
    }

    /// Tells the connection's congestion control of an option, before TCP sees the packet that it came with.
    pub fn signal(&mut self, kind: u16, data: &[u8]) {
        self.ask(Effect::Signal(kind, data.to_vec()));
    }

    /// Tells whoever runs the agent of an option.
    pub fn report(&mut self, kind: u16, data: &[u8]) {
        self.ask(Effect::Report(kind, data.to_vec()));
    }

    /// Counts an option that found no room.
    pub fn no_room(&mut self, kind: u16) {
        self.ask(Effect::NoRoom(kind));
    }

    /// Counts an option that was not believed.
    pub fn refuse(&mut self, kind: u16) {
        self.ask(Effect::Refused(kind));
    }

    /// Sends a packet more.
    pub fn send(&mut self, packet: Packet) {
        self.ask(Effect::Send(Box::new(packet)));
    }

    fn ask(&mut self, effect: Effect) {
        self.effects.push((self.flow.connection, effect));
    }
}

/// The shims of a host; the first is next to TCP.
#[derive(Debug, Default)]
pub struct Chain {
    shims: Vec<Box<dyn Shim>>,
    effects: Effects,
}

impl Chain {
    pub fn new(shims: Vec<Box<dyn Shim>>) -> Chain {
        Chain { shims, effects: Effects::default() }
    }

    /// The form of a header between Ethernet and IP with this EtherType, if the shims know one.
    pub fn form(&self, kind: u16) -> Option<Form> {
        let known = self.shims.iter().filter_map(|shim| shim.option()).filter(|option| option.kind == kind);
        known.into_iter().find_map(|option| match option.place {
            Place::Between(form) => Some(form),
            Place::Ip | Place::Tcp => None,
        })
    }

    /// Bytes that options take of each data packet, which come off the MSS; of other kinds: at most.
    pub fn room(&self, flow: &FlowKey, on: PacketKind) -> Room {
        self.shims.iter().map(|shim| shim.room(flow, on)).fold(Room::default(), Room::and)
    }

    pub fn event(&mut self, now: Time, flow: &FlowKey, what: Event) {
        let Chain { shims, effects } = self;
        for shim in shims {
            shim.event(now, &mut effects.of(*flow), what);
        }
    }

    pub fn sent(&mut self, now: Time, flow: Option<&FlowKey>, packet: &mut Packet) -> Verdict {
        let Chain { shims, effects } = self;
        let each = |shim: &mut Box<dyn Shim>| {
            let mut handle = flow.map(|flow| effects.of(*flow));
            shim.sent(now, handle.as_mut(), packet)
        };
        together(shims.iter_mut().map(each))
    }

    pub fn received(&mut self, now: Time, flow: Option<&FlowKey>, packet: &mut Packet) -> Verdict {
        let Chain { shims, effects } = self;
        let each = |shim: &mut Box<dyn Shim>| {
            let mut handle = flow.map(|flow| effects.of(*flow));
            shim.received(now, handle.as_mut(), packet)
        };
        together(shims.iter_mut().rev().map(each))
    }

    /// When [`Chain::advance`] is due; `None`: never.
    pub fn wakeup(&self) -> Option<Time> {
        self.shims.iter().filter_map(|shim| shim.wakeup()).min()
    }

    /// Runs the shims that are due.
    pub fn advance(&mut self, now: Time) {
        let Chain { shims, effects } = self;
        for shim in shims.iter_mut().filter(|shim| shim.wakeup().is_some_and(|at| at <= now)) {
            shim.advance(now, effects);
        }
    }

    /// What the shims have asked for since the last time.
    pub fn take_effects(&mut self) -> Vec<(u32, Effect)> {
        std::mem::take(&mut self.effects.0)
    }
}

/// One verdict of many: a packet that one drops is seen by no other, and it waits for the longest.
fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut until = None;
    for verdict in verdicts {
        match verdict {
            Verdict::Pass => {}
            Verdict::Drop => return Verdict::Drop,
            Verdict::Hold(at) => until = until.max(Some(at)),
        }
    }
    until.map_or(Verdict::Pass, Verdict::Hold)
}
