//! Ports by AF_PACKET: they work on every interface. Batches by `recvmmsg` and `sendmmsg`; no ring, because rings cut frames off
//! that are longer than their slots.
//!
//! The kernel says of each packet when it came, whether its checksum is still to be computed, whether it is several packets in
//! one, and which VLAN tag it took off.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

use libc::{c_int, c_void, iovec, mmsghdr};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use wire::packet::Written;

use crate::clock;
use crate::interface::{Failure, Interface, bind_packet, make_promiscuous, plain, set, socket};
use crate::merge::VNET_HEADER;
use crate::packet_sender::PacketSender;
use crate::port::{BATCH, Counts, Port};
use crate::segment::Large;

/// Of the flags and kinds of `struct virtio_net_hdr`, which precedes each packet.
const NEEDS_CHECKSUM: u8 = 1;
const ONE_PACKET: u8 = 0;
/// Room for a VLAN tag that is put back, and the longest frame, segmentation offload included.
const TAG: usize = 4;
const LONGEST: usize = 65_536 + 64;
/// A slot, and room for what the kernel says about a packet.
const SLOT: usize = TAG + LONGEST + 60;
const CONTROL: usize = 256;
/// Packets that wait for this thread while it does something else.
const RECEIVE_BUFFER: c_int = 32 << 20;

/// Reads and writes through raw pointers into memory of its own.
pub struct PacketPort {
    interface: Interface,
    receiver: OwnedFd,
    sender: PacketSender,
    slots: Vec<u8>,
    /// Parts of packets that came in one piece.
    parts: Vec<u8>,
    /// Frames of the last batch: time, whether in `parts`, where in there or in `slots`, how long.
    frames: Vec<(u64, bool, usize, usize)>,
    counts: Counts,
}

impl PacketPort {
    /// To be called in the interface's namespace.
    pub fn open(interface: Interface, merge: bool) -> Result<PacketPort, Failure> {
        let name = interface.name.clone();
        let open = || -> io::Result<(OwnedFd, PacketSender)> {
            let receiver = socket(AddressFamily::PACKET, SocketType::RAW, SocketFlags::NONBLOCK)?;
            let fd = receiver.as_raw_fd();
            set(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
            set(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)?;
            set(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
            set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
            set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
            make_promiscuous(&receiver, &interface)?;
            bind_packet(fd, interface.index, libc::ETH_P_ALL)?;
            Ok((receiver, PacketSender::open(&interface, merge)?))
        };
        let (receiver, sender) = open().map_err(|e| Failure(format!("interface {name}: {}", plain(&e))))?;
        let (slots, parts, frames) = (vec![0; BATCH * SLOT], Vec::new(), Vec::with_capacity(BATCH));
        Ok(PacketPort { interface, receiver, sender, slots, parts, frames, counts: Counts::default() })
    }
}

const PACKET_IGNORE_OUTGOING: c_int = 23;

/// What the kernel says about a packet.
#[derive(Default)]
struct Ancillary {
    /// By the wall clock.
    nanoseconds: Option<u64>,
    /// The VLAN tag that was taken off: protocol and control information.
    tag: Option<(u16, u16)>,
}

fn ancillary(header: &libc::msghdr) -> Ancillary {
    let mut found = Ancillary::default();
    // SAFETY: the kernel has filled in the control messages that `header` points to, and these macros stay within them; what
    // they hold is read without regard to alignment.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = at.as_ref() {
            let data = libc::CMSG_DATA(at);
            match (message.cmsg_level, message.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    found.nanoseconds = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let auxiliary = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                    if auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let known = auxiliary.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                        let protocol = if known { auxiliary.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                        found.tag = Some((protocol, auxiliary.tp_vlan_tci));
                    }
                }
                _ => {}
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    found
}

impl Port for PacketPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    fn receive(&mut self) -> usize {
        self.frames.clear();
        self.parts.clear();
        let mut headers = [[0u8; VNET_HEADER]; BATCH];
        let mut control = [[0u64; CONTROL / 8]; BATCH];
        let none = iovec { iov_base: null_mut(), iov_len: 0 };
        let mut parts = [[none; 2]; BATCH];
        // SAFETY: all zeros is a value of this type.
        let mut messages: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (index, message) in messages.iter_mut().enumerate() {
            let slot = &mut self.slots[index * SLOT + TAG..(index + 1) * SLOT];
            parts[index] = [
                iovec { iov_base: headers[index].as_mut_ptr().cast(), iov_len: VNET_HEADER },
                iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: LONGEST },
            ];
            message.msg_hdr.msg_iov = parts[index].as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
            message.msg_hdr.msg_control = control[index].as_mut_ptr().cast::<c_void>();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        let fd = self.receiver.as_raw_fd();
        // SAFETY: each message points to a header, a slot and room for control messages of its own, as long as is said.
        let came = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT as _, null_mut())
        };
        // Nothing there, or the interface is down.
        let Ok(came) = usize::try_from(came) else { return 0 };
        let (ahead, now) = (clock::wall_ahead(), clock::monotonic());
        for (index, message) in messages[..came].iter().enumerate() {
            let found = ancillary(&message.msg_hdr);
            let (start, length) = (index * SLOT + TAG, message.msg_len as usize);
            let Some(length) = length.checked_sub(VNET_HEADER) else { continue };
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                self.counts.truncated += 1;
                continue;
            }
            let at = found.nanoseconds.map_or(now, |wall| (wall as i64 - ahead) as u64).min(now);
            let header = &headers[index];
            let number = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
            if header[0] & NEEDS_CHECKSUM != 0 && header[1] == ONE_PACKET {
                let frame = &mut self.slots[start..start + length];
                self.counts.completed += u64::from(wire::offload::complete(frame, number(6), number(8)));
            }
            let (mut start, mut length) = (start, length);
            if let Some((protocol, tag)) = found.tag
                && length >= 12
            {
                // Back to where it was: behind the addresses.
                self.slots.copy_within(start..start + 12, start - TAG);
                self.slots[start + 8..start + 10].copy_from_slice(&protocol.to_be_bytes());
                self.slots[start + 10..start + 12].copy_from_slice(&tag.to_be_bytes());
                (start, length) = (start - TAG, length + TAG);
            }
            if header[1] != ONE_PACKET {
                // The kernel counts from where the frame began without the tag.
                let transport = number(6) + if found.tag.is_some() { TAG } else { 0 };
                let frame = &self.slots[start..start + length];
                let large = Large { frame, kind: header[1], size: number(4), transport };
                let (frames, counts) = (&mut self.frames, &mut self.counts);
                let cut = large.cut(&mut self.parts, |start, length| {
                    counts.received += 1;
                    counts.received_bytes += length as u64;
                    frames.push((at, true, start, length));
                });
                match cut {
                    Some(()) => self.counts.segmented += 1,
                    None => self.counts.truncated += 1,
                }
                continue;
            }
            self.counts.received += 1;
            self.counts.received_bytes += length as u64;
            self.frames.push((at, false, start, length));
        }
        self.frames.len()
    }

    fn frame(&self, index: usize) -> (u64, &[u8]) {
        let (at, in_parts, start, length) = self.frames[index];
        let from = if in_parts { &self.parts } else { &self.slots };
        (at, &from[start..start + length])
    }

    fn send(&mut self, frames: &[Box<Written>]) {
        self.sender.send(frames, &mut self.counts);
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn counts(&mut self) -> Counts {
        // SAFETY: all zeros is a value of this type.
        let mut dropped: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let fd = self.receiver.as_raw_fd();
        // SAFETY: `dropped` is as long as is said. The kernel's counts begin anew each time they are read.
        let read = unsafe {
            let to = std::ptr::from_mut(&mut dropped).cast();
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &mut length)
        };
        if read == 0 {
            self.counts.overrun += u64::from(dropped.tp_drops);
        }
        self.counts
    }
}
