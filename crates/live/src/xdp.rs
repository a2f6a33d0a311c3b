//! Ports by AF_XDP: an XDP program takes an interface's packets out of the kernel's way, into memory that this process shares.
//! Native on drivers that have it, generic on the others.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};

use wire::packet::Written;

use crate::bpf::{self, Attach};
use crate::clock;
use crate::interface::{Failure, Interface, TagsKept, fail, plain, promiscuous};
use crate::packet_sender::PacketSender;
use crate::port::{BATCH, Counts, Port, fits};
use crate::xdp_socket::{Arrived, XdpSocket};

/// Ethernet, and two VLAN tags.
const LINK_HEADERS: usize = 22;

#[derive(Debug)]
struct Queue {
    socket: XdpSocket,
    arrived: Vec<Arrived>,
}

/// What an interface is opened with.
struct Parts {
    link: OwnedFd,
    tags: Option<TagsKept>,
    queues: Vec<Queue>,
    epoll: OwnedFd,
    promiscuous: OwnedFd,
    mtu: usize,
}

/// Dropped in this order: the program first, so that nothing is redirected to a socket that is gone.
#[derive(Debug)]
pub struct XdpPort {
    _link: OwnedFd,
    queues: Vec<Queue>,
    /// Readable when any of the queues is.
    epoll: OwnedFd,
    _promiscuous: OwnedFd,
    _tags: Option<TagsKept>,
    /// Instead of the sockets, where frames are put together.
    sender: Option<PacketSender>,
    interface: Interface,
    /// Of the last batch: queue, which packet, when it came.
    frames: Vec<(u32, u32, u64)>,
    mtu: usize,
    /// What is to go would stay in the ring, and go late.
    down: bool,
    counts: Counts,
}

impl XdpPort {
    /// To be called in the interface's namespace.
    pub fn open(interface: Interface, how: Attach, merge: bool) -> Result<XdpPort, (Failure, Interface)> {
        let sender = match merge.then(|| PacketSender::open(&interface, true)).transpose() {
            Ok(sender) => sender,
            Err(e) => {
                return Err((Failure(format!("interface {}: {}", interface.name, plain(&e))), interface));
            }
        };
        match XdpPort::parts(&interface, how) {
            Ok(Parts { link, tags, queues, epoll, promiscuous, mtu }) => Ok(XdpPort {
                _link: link,
                queues,
                epoll,
                _promiscuous: promiscuous,
                _tags: tags,
                sender,
                interface,
                frames: Vec::with_capacity(BATCH),
                mtu,
                down: false,
                counts: Counts::default(),
            }),
            Err(failure) => Err((failure, interface)),
        }
    }

    fn parts(interface: &Interface, how: Attach) -> Result<Parts, Failure> {
        let name = &interface.name;
        let mode = match how {
            Attach::Native => "native",
            Attach::Generic => "generic",
        };
        let refused = |what: &str, e: io::Error| Failure(format!("interface {name}: {what}: {}", plain(&e)));
        let mtu = interface.mtu() as usize;
        let longest = mtu + LINK_HEADERS;
        if longest > XdpSocket::LONGEST {
            let most = XdpSocket::LONGEST - LINK_HEADERS;
            return fail(format!(
                "interface {name}: its MTU of {mtu} is too large for AF_XDP, which takes {most}; use the mode packet"
            ));
        }
        let tags = interface.keep_tags().map_err(|e| {
            Failure(format!(
                "interface {name} takes VLAN tags off frames, before AF_XDP sees them, and cannot be told not to: {}; use the mode packet",
                plain(&e)
            ))
        })?;
        let count = interface.receive_queues();
        let map = bpf::socket_map(count).map_err(|e| refused("no BPF map for AF_XDP", e))?;
        let program = bpf::program(&map).map_err(|e| refused("the XDP program is refused", e))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| refused("epoll", e.into()))?;
        let mut queues = Vec::new();
        for number in 0..count {
            let open = || -> io::Result<XdpSocket> {
                let socket = XdpSocket::open(interface.index, number, longest)?;
                bpf::set_socket(&map, number, socket.fd().as_raw_fd())?;
                epoll::add(&epoll, socket.fd(), EventData::new_u64(0), EventFlags::IN)?;
                Ok(socket)
            };
            let socket = open().map_err(|e| refused(&format!("no AF_XDP socket on queue {number}"), e))?;
            queues.push(Queue { socket, arrived: Vec::with_capacity(BATCH) });
        }
        let promiscuous = promiscuous(interface).map_err(|e| refused("promiscuous mode", e))?;
        let link = bpf::attach(&program, interface.index, how).map_err(|e| match e.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => Failure(format!(
                "interface {name} has an XDP program already; `ip link set {name} xdp off` removes it"
            )),
            _ => refused(&format!("no {mode} XDP on it"), e),
        })?;
        Ok(Parts { link, tags, queues, epoll, promiscuous, mtu })
    }
}

impl XdpPort {
    /// What has come goes on by another port as it is.
    pub fn forward(&mut self, to: &mut XdpPort) {
        let out = &mut to.queues[0].socket;
        for index in 0..self.receive() {
            let (_, frame) = self.frame(index);
            if !out.put(frame) {
                out.flush();
                to.counts.refused += u64::from(!out.put(frame));
            }
        }
        out.flush();
    }
}

impl Port for XdpPort {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.queues[..] {
            [only] => only.socket.fd(),
            _ => self.epoll.as_fd(),
        }
    }

    fn receive(&mut self) -> usize {
        self.frames.clear();
        let now = clock::monotonic();
        for (number, queue) in self.queues.iter_mut().enumerate() {
            queue.socket.receive(&mut queue.arrived, BATCH);
            for (index, arrived) in queue.arrived.iter().enumerate() {
                let frame = queue.socket.packet_mut(arrived);
                self.counts.completed += u64::from(wire::offload::complete_partial(frame));
                self.counts.received += 1;
                self.counts.received_bytes += frame.len() as u64;
                let (stamp, _) = queue.socket.packet(arrived);
                self.frames.push((number as u32, index as u32, stamp.unwrap_or(now).min(now)));
            }
        }
        if self.queues.len() > 1 {
            self.frames.sort_by_key(|(_, _, at)| *at);
        }
        self.frames.len()
    }

    fn frame(&self, index: usize) -> (u64, &[u8]) {
        let (queue, index, at) = self.frames[index];
        let queue = &self.queues[queue as usize];
        (at, queue.socket.packet(&queue.arrived[index as usize]).1)
    }

    fn send(&mut self, frames: &[Box<Written>]) {
        if let Some(sender) = &mut self.sender {
            sender.send(frames, &mut self.counts);
            return;
        }
        if self.down && !self.interface.is_up() {
            self.counts.refused += frames.len() as u64;
            return;
        }
        // By one queue, so that they stay in order.
        let socket = &mut self.queues[0].socket;
        for frame in frames {
            if !fits(frame, self.mtu) {
                self.counts.wrong_size += 1;
                continue;
            }
            if !socket.put(frame) {
                socket.flush();
                if !socket.put(frame) {
                    self.counts.refused += 1;
                    continue;
                }
            }
            self.counts.sent += 1;
            self.counts.sent_bytes += frame.len() as u64;
        }
        self.down = !socket.flush();
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn counts(&mut self) -> Counts {
        self.counts.overrun = self.queues.iter().map(|queue| queue.socket.lost()).sum();
        self.counts
    }
}
