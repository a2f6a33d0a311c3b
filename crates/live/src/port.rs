//! What a port is: frames come in batches, and go out in batches.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;

use wire::packet::Written;

use crate::interface::Interface;

/// Frames that a port takes in or gives out at a time.
pub const BATCH: usize = 64;

/// Packet I/O backend of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whatever is best on this interface.
    Auto,
    /// AF_XDP with the program in the driver.
    Xdp,
    /// AF_XDP with the program in the kernel's receive path, on any interface.
    XdpGeneric,
    /// AF_PACKET.
    Packet,
    /// A TAP device that is made.
    Tap,
}

impl Kind {
    const ALL: [(&'static str, Kind); 5] = [
        ("auto", Kind::Auto),
        ("xdp", Kind::Xdp),
        ("xdp-generic", Kind::XdpGeneric),
        ("packet", Kind::Packet),
        ("tap", Kind::Tap),
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let found = Kind::ALL.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            let known = Kind::ALL.map(|(name, _)| name).join(", ");
            format!("there is no kind of port `{text}`; known: {known}")
        })
    }
}

/// What a port has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub received: u64,
    pub received_bytes: u64,
    pub sent: u64,
    pub sent_bytes: u64,
    /// Frames that came and were longer than a port can take.
    pub truncated: u64,
    /// Frames that came faster than they were taken.
    pub overrun: u64,
    /// Frames to be sent that are longer than the interface's MTU or shorter than an Ethernet header.
    pub wrong_size: u64,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Checksums that the sender had left to its hardware.
    pub completed: u64,
    /// Frames that came in one piece and went on as several.
    pub segmented: u64,
    /// Frames that were handed to the kernel together with others, as one packet.
    pub merged: u64,
}

impl Counts {
    /// These and others.
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            truncated: self.truncated + other.truncated,
            overrun: self.overrun + other.overrun,
            wrong_size: self.wrong_size + other.wrong_size,
            refused: self.refused + other.refused,
            completed: self.completed + other.completed,
            segmented: self.segmented + other.segmented,
            merged: self.merged + other.merged,
        }
    }

    /// By the names that users see.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("received", self.received),
            ("received_bytes", self.received_bytes),
            ("sent", self.sent),
            ("sent_bytes", self.sent_bytes),
            ("truncated", self.truncated),
            ("overrun", self.overrun),
            ("wrong_size", self.wrong_size),
            ("refused", self.refused),
            ("completed", self.completed),
            ("segmented", self.segmented),
            ("merged", self.merged),
        ]
    }
}

/// Whether an interface with this MTU takes a frame. Up to two VLAN tags do not count.
pub fn fits(frame: &[u8], mtu: usize) -> bool {
    const ETHERNET: usize = 14;
    let Some(packet) = frame.len().checked_sub(ETHERNET) else { return false };
    let tagged = |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8]));
    packet <= mtu || packet <= mtu + 4 * (usize::from(tagged(12)) + usize::from(tagged(12) && tagged(16)))
}

/// A real interface.
pub trait Port: Send {
    /// Readable when there are frames.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Takes the next frames in, in place of the last ones; gives how many there are.
    fn receive(&mut self) -> usize;
    /// One of them, from Ethernet on, and when it came, by the monotonic clock in nanoseconds.
    fn frame(&self, index: usize) -> (u64, &[u8]);
    /// Sends frames.
    fn send(&mut self, frames: &[Box<Written>]);
    fn counts(&mut self) -> Counts;
    fn interface(&self) -> &Interface;
}
