//! Listens at an interface: copies of what comes in and goes out, cut to a length, with the kernel's times. Nothing is changed there, but
//! that the interface takes in frames for others while it lasts.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::Duration;

use libc::{c_int, c_void, iovec, mmsghdr};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::clock;
use crate::interface::{Failure, bind_packet, done, fail, plain, request, set, socket};

/// Packets that are taken at once.
const BATCH: usize = 128;
const CONTROL: usize = 64;
/// What waits while this thread does something else: at 1 Gbit/s some 2 s.
const RECEIVE_BUFFER: c_int = 64 << 20;
const PACKET_IGNORE_OUTGOING: c_int = 23;
/// Kinds of interfaces (`linux/if_arp.h`) with an Ethernet header, and without any.
const ETHERNET: [u16; 2] = [1, 772];
const BARE: [u16; 4] = [512, 768, 776, 65534];
const LOOPBACK: u16 = 772;

/// Link types of captures: Ethernet, and raw IP.
const LINK_ETHERNET: u32 = 1;
const LINK_RAW: u32 = 101;

/// A packet that was seen.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    /// Nanoseconds by the wall clock.
    pub time: u64,
    pub bytes: &'a [u8],
    /// On the interface.
    pub wire_len: u32,
    /// As captures number them.
    pub link_type: u32,
    /// Of [`InOrder`]: which of its interfaces has heard it.
    pub interface: usize,
}

/// A socket that hears an interface.
#[derive(Debug)]
pub struct Sniffer {
    pub name: String,
    socket: OwnedFd,
    link_type: u32,
    snap: usize,
    slots: Vec<u8>,
    dropped: u64,
}

impl Sniffer {
    /// Hears an interface of this namespace; packets are cut to `snap` bytes.
    ///
    /// # Errors
    /// No such interface, one of a kind that is not known, no rights.
    pub fn open(name: &str, snap: usize) -> Result<Sniffer, Failure> {
        let refused = |e: io::Error| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Failure(format!(
                "interface {name}: not allowed; to watch an interface needs root (CAP_NET_RAW and CAP_NET_ADMIN)"
            )),
            _ => Failure(format!("interface {name}: {}", plain(&e))),
        };
        let control =
            socket(AddressFamily::INET, SocketType::DGRAM, SocketFlags::empty()).map_err(refused)?;
        let mut asked = request(name)?;
        let fd = control.as_raw_fd();
        // SAFETY: these requests read and write an ifreq.
        if done(unsafe { libc::ioctl(fd, libc::SIOCGIFINDEX, std::ptr::from_mut(&mut asked)) }).is_err() {
            return fail(format!("there is no interface {name}; `ip link` lists those there are"));
        }
        // SAFETY: the call has filled this field in.
        let index = unsafe { asked.ifr_ifru.ifru_ifindex };
        let mut asked = request(name)?;
        // SAFETY: as above.
        done(unsafe { libc::ioctl(fd, libc::SIOCGIFHWADDR, std::ptr::from_mut(&mut asked)) })
            .map_err(refused)?;
        // SAFETY: the call has filled this field in.
        let kind = unsafe { asked.ifr_ifru.ifru_hwaddr.sa_family };
        let link_type = match kind {
            kind if ETHERNET.contains(&kind) => LINK_ETHERNET,
            kind if BARE.contains(&kind) => LINK_RAW,
            other => {
                return fail(format!(
                    "interface {name} is of kind {other}; the monitor listens at Ethernet, loopback and IP tunnels"
                ));
            }
        };
        let open = || -> io::Result<OwnedFd> {
            let socket = socket(AddressFamily::PACKET, SocketType::RAW, SocketFlags::NONBLOCK)?;
            let fd = socket.as_raw_fd();
            set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
            set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
            if kind == LOOPBACK {
                // There each packet goes out and comes in.
                set(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
            } else {
                // SAFETY: all zeros is a value of this type.
                let mut all: libc::packet_mreq = unsafe { std::mem::zeroed() };
                (all.mr_ifindex, all.mr_type) = (index, libc::PACKET_MR_PROMISC as u16);
                set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
            }
            bind_packet(fd, index, libc::ETH_P_ALL)?;
            Ok(socket)
        };
        let socket = open().map_err(refused)?;
        Ok(Sniffer {
            name: name.to_owned(),
            socket,
            link_type,
            snap,
            slots: vec![0; BATCH * snap],
            dropped: 0,
        })
    }

    /// Takes what waits, up to a batch; gives how many packets that were.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self, mut take: impl FnMut(Heard<'_>)) -> Result<usize, Failure> {
        let none = iovec { iov_base: null_mut(), iov_len: 0 };
        let mut parts = [none; BATCH];
        let mut control = [[0u64; CONTROL / 8]; BATCH];
        // SAFETY: all zeros is a value of this type.
        let mut messages: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (index, message) in messages.iter_mut().enumerate() {
            let slot = &mut self.slots[index * self.snap..(index + 1) * self.snap];
            parts[index] = iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            message.msg_hdr.msg_iov = &raw mut parts[index];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control[index].as_mut_ptr().cast::<c_void>();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: each message points to a slot and room for control messages of its own, as long as is said.
        let came = unsafe {
            let fd = self.socket.as_raw_fd();
            libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as u32, flags as _, null_mut())
        };
        let Ok(came) = usize::try_from(came) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                _ => fail(format!("interface {}: {}", self.name, plain(&error))),
            };
        };
        for (index, message) in messages[..came].iter().enumerate() {
            let slot = &self.slots[index * self.snap..(index + 1) * self.snap];
            take(Heard {
                time: stamped(&message.msg_hdr).unwrap_or_else(clock::wall),
                bytes: &slot[..self.snap.min(message.msg_len as usize)],
                wire_len: message.msg_len,
                link_type: self.link_type,
                interface: 0,
            });
        }
        Ok(came)
    }

    /// Packets that came faster than they were taken, since the start.
    pub fn dropped(&mut self) -> u64 {
        // SAFETY: all zeros is a value of this type.
        let mut counts: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `counts` is as long as is said. The kernel's counts begin anew each time they are read.
        let read = unsafe {
            let to = std::ptr::from_mut(&mut counts).cast();
            let fd = self.socket.as_raw_fd();
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &mut length)
        };
        self.dropped += if read == 0 { u64::from(counts.tp_drops) } else { 0 };
        self.dropped
    }
}

/// Sniffers whose packets come in the order of their times: an acknowledgment on one interface after its data on another.
#[derive(Debug)]
pub struct InOrder {
    sniffers: Vec<Sniffer>,
    /// Of several: packets behind which one of another may come that is older.
    held: Held,
}

/// A packet has its time before its socket has it, but for no longer.
const SETTLED: u64 = 1_000_000;
/// Packets that are held back at most: the wall clock may be set back.
const MOST_HELD: usize = 64 * BATCH;

impl InOrder {
    pub fn new(sniffers: Vec<Sniffer>) -> InOrder {
        InOrder { sniffers, held: Held::default() }
    }

    /// Takes what waits, up to a batch of each; gives how many packets that were. Of several some may be given with the next ones.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn receive(&mut self, take: impl FnMut(Heard<'_>)) -> Result<usize, Failure> {
        if let [only] = &mut self.sniffers[..] {
            return only.receive(take);
        }
        let mut until = clock::wall().saturating_sub(SETTLED);
        let mut came = 0;
        for (interface, sniffer) in self.sniffers.iter_mut().enumerate() {
            let mut last = 0;
            let took = sniffer.receive(|heard| {
                last = heard.time;
                self.held.hold(Heard { interface, ..heard });
            })?;
            // There may be more of it, later than these.
            until = if took == BATCH { until.min(last) } else { until };
            came += took;
        }
        self.held.give(if self.held.0.len() > MOST_HELD { u64::MAX } else { until }, take);
        Ok(came)
    }

    /// Gives what is held back.
    pub fn rest(&mut self, take: impl FnMut(Heard<'_>)) {
        self.held.give(u64::MAX, take);
    }

    /// Packets that came faster than they were taken, since the start.
    pub fn dropped(&mut self) -> u64 {
        self.sniffers.iter_mut().map(Sniffer::dropped).sum()
    }

    /// Waits until one of them has a packet, or so long; 100 ms at most.
    pub fn wait(&self, most: Duration) {
        let asked =
            |one: &Sniffer| libc::pollfd { fd: one.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut asked: Vec<libc::pollfd> = self.sniffers.iter().map(asked).collect();
        let milliseconds = most.as_millis().clamp(1, 100) as c_int;
        // SAFETY: `asked` is as long as is said. An interrupted call is as good as one that is over.
        unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, milliseconds) };
    }
}

/// Packets with their times.
#[derive(Debug, Default)]
struct Held(Vec<(u64, Vec<u8>, u32, u32, usize)>);

impl Held {
    fn hold(&mut self, heard: Heard<'_>) {
        self.0.push((heard.time, heard.bytes.to_vec(), heard.wire_len, heard.link_type, heard.interface));
    }

    /// Gives those up to a time, the oldest first.
    fn give(&mut self, until: u64, mut take: impl FnMut(Heard<'_>)) {
        self.0.sort_by_key(|(time, ..)| *time);
        let count = self.0.partition_point(|(time, ..)| *time <= until);
        for (time, bytes, wire_len, link_type, interface) in self.0.drain(..count) {
            take(Heard { time, bytes: &bytes, wire_len, link_type, interface });
        }
    }
}

/// When the kernel had a packet, in nanoseconds of the wall clock.
fn stamped(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled in the control messages that `header` points to, and these macros stay within them; what
    // they hold is read without regard to alignment.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = at.as_ref() {
            if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = libc::CMSG_DATA(at).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_several_interfaces_are_given_in_the_order_of_their_times() {
        let mut held = Held::default();
        // Acknowledgments of one interface first, and then the data of another; two of one time as they came.
        for (time, byte) in [(30, 3), (50, 5), (90, 9), (10, 1), (30, 4), (60, 6)] {
            held.hold(Heard { time, bytes: &[byte], wire_len: 1, link_type: LINK_RAW, interface: 0 });
        }
        let mut given = Vec::new();
        held.give(60, |heard| given.push(heard.bytes[0]));
        assert_eq!(given, [1, 3, 4, 5, 6]);
        held.hold(Heard { time: 70, bytes: &[7], wire_len: 1, link_type: LINK_RAW, interface: 0 });
        held.give(u64::MAX, |heard| given.push(heard.bytes[0]));
        assert_eq!(given, [1, 3, 4, 5, 6, 7, 9]);
    }
}
