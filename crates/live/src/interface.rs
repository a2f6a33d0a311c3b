//! An interface in a namespace: found by its name, claimed for this process, and asked.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::claim::Claim;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Why a port cannot be opened; says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

pub fn fail<T>(why: String) -> Result<T, Failure> {
    Err(Failure(why))
}

/// Runs something in a network namespace, on a thread of its own; sockets that it opens stay there. `None`: where this process is.
pub fn within<T: Send>(
    netns: Option<&Path>,
    act: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let Some(path) = netns else { return act() };
    let there = || {
        let refused =
            |e: io::Error| Failure(format!("the network namespace {}: {}", path.display(), plain(&e)));
        let file = File::open(path).map_err(refused)?;
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), kind).map_err(|e| refused(e.into()))?;
        act()
    };
    std::thread::scope(|scope| match scope.spawn(there).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// What went wrong, without the number of the error; and what rights are missing if it is that.
pub fn plain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "not allowed; a live network needs root (CAP_NET_ADMIN, CAP_NET_RAW, and CAP_BPF for AF_XDP)"
                .to_owned()
        }
        // Words of ours.
        None => error.to_string(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

/// The result of a system call that gives nothing.
pub fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A socket that is closed in processes to come.
pub fn socket(family: AddressFamily, kind: SocketType, flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(family, kind, flags | SocketFlags::CLOEXEC, None)?)
}

/// Sets an option of a socket.
pub fn set<T>(fd: RawFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is as long as is said.
    done(unsafe { libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), length) })
}

/// An interface, claimed for this process while this lives.
#[derive(Debug)]
pub struct Interface {
    pub name: String,
    pub index: i32,
    /// For questions; it stays in the interface's namespace.
    control: OwnedFd,
    _claim: Claim,
}

impl Interface {
    /// To be called in its namespace.
    pub fn open(name: &str, netns: Option<&Path>) -> Result<Interface, Failure> {
        let refused = |e: io::Error| Failure(format!("interface {name}: {}", plain(&e)));
        let control =
            socket(AddressFamily::INET, SocketType::DGRAM, SocketFlags::empty()).map_err(refused)?;
        request(name)?;
        let Some(index) = index_of(&control, name) else {
            let place = netns.map_or_else(String::new, |n| format!(" in {}", n.display()));
            return fail(format!("there is no interface {name}{place}; `ip link` lists those there are"));
        };
        let interface = Interface { name: name.to_owned(), index, control, _claim: Claim::of(name, index)? };
        Ok(interface)
    }

    fn request(&self) -> libc::ifreq {
        // It was a name when the interface was opened.
        request(&self.name).unwrap_or_else(|_| unreachable!("{} was a name", self.name))
    }

    /// Whether it is there still; another one of the same name is not it.
    pub fn is_there(&self) -> bool {
        index_of(&self.control, &self.name) == Some(self.index)
    }

    fn flags(&self) -> io::Result<libc::c_short> {
        let mut request = self.request();
        ask(&self.control, libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the call has filled this field in.
        Ok(unsafe { request.ifr_ifru.ifru_flags })
    }

    /// Whether it is up; one that is gone is not.
    pub fn is_up(&self) -> bool {
        self.is_there() && self.flags().is_ok_and(|flags| i32::from(flags) & libc::IFF_UP != 0)
    }

    pub fn bring_up(&self) -> io::Result<()> {
        self.set_flags(self.flags()? | libc::IFF_UP as libc::c_short)
    }

    fn set_flags(&self, flags: libc::c_short) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = flags;
        ask(&self.control, libc::SIOCSIFFLAGS, &mut request)
    }

    /// Makes flags and queue what they were.
    pub fn restore(&self, settings: Settings) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        self.set_queue(settings.queue)?;
        self.set_flags(settings.flags)
    }

    /// Sets how many frames wait in front of it.
    pub fn set_queue(&self, frames: libc::c_int) -> io::Result<()> {
        let mut request = self.request();
        // The kernel reads the length as the union's integer.
        request.ifr_ifru.ifru_metric = frames;
        ask(&self.control, libc::SIOCSIFTXQLEN as libc::Ioctl, &mut request)
    }

    /// How many receive queues it has.
    pub fn receive_queues(&self) -> u32 {
        // `struct ethtool_channels`: the command, four maxima, and what there is of receive, transmit, other and combined ones.
        let mut channels = [0u32; 9];
        channels[0] = ETHTOOL_GET_CHANNELS;
        let mut request = self.request();
        request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
        match ask(&self.control, libc::SIOCETHTOOL as libc::Ioctl, &mut request) {
            Ok(()) => (channels[5] + channels[8]).max(1),
            // A driver without channels has one queue.
            Err(_) => 1,
        }
    }

    /// Has it leave VLAN tags in the frames that it receives; nothing if it does so already.
    pub fn keep_tags(&self) -> io::Result<Option<TagsKept>> {
        let mut asked = EthtoolValue { command: ETHTOOL_GET_FLAGS, data: 0 };
        // A driver that does not answer has no such thing.
        if ethtool(&self.control, &self.name, &mut asked).is_err() || asked.data & ETHTOOL_RX_VLAN == 0 {
            return Ok(None);
        }
        set_tags(&self.control, &self.name, asked.data & !ETHTOOL_RX_VLAN)?;
        Ok(Some(TagsKept { control: self.control.try_clone()?, name: self.name.clone(), index: self.index }))
    }

    /// Longest packet, from the IP header on; 0: it is gone, and nothing can be sent there.
    pub fn mtu(&self) -> u32 {
        if self.is_there() { mtu_of(&self.control, &self.name).unwrap_or(0) } else { 0 }
    }
}

/// An interface that leaves VLAN tags in frames while this lives.
#[derive(Debug)]
pub struct TagsKept {
    control: OwnedFd,
    name: String,
    index: i32,
}

impl Drop for TagsKept {
    fn drop(&mut self) {
        let mut asked = EthtoolValue { command: ETHTOOL_GET_FLAGS, data: 0 };
        // It may be gone, or have another name.
        if index_of(&self.control, &self.name) == Some(self.index)
            && ethtool(&self.control, &self.name, &mut asked).is_ok()
        {
            let _ = set_tags(&self.control, &self.name, asked.data | ETHTOOL_RX_VLAN);
        }
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

fn set_tags(control: &OwnedFd, name: &str, flags: u32) -> io::Result<()> {
    ethtool(control, name, &mut EthtoolValue { command: ETHTOOL_SET_FLAGS, data: flags })
}

fn ethtool(control: &OwnedFd, name: &str, value: &mut EthtoolValue) -> io::Result<()> {
    let mut request = request(name).map_err(|e| io::Error::other(e.0))?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
    ask(control, libc::SIOCETHTOOL as libc::Ioctl, &mut request)
}

/// The MTU of an interface of this name in a socket's namespace; nothing if there is none.
pub fn mtu_of(control: &OwnedFd, name: &str) -> Option<u32> {
    let mut request = request(name).ok()?;
    ask(control, libc::SIOCGIFMTU, &mut request).ok()?;
    // SAFETY: the call has filled this field in.
    Some(unsafe { request.ifr_ifru.ifru_mtu as u32 })
}

/// The number of an interface of this name in a socket's namespace; nothing if there is none.
pub fn index_of(control: &OwnedFd, name: &str) -> Option<i32> {
    let mut request = request(name).ok()?;
    ask(control, libc::SIOCGIFINDEX, &mut request).ok()?;
    // SAFETY: the call has filled this field in.
    Some(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// What a port changes of an interface that somebody else has made.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    flags: libc::c_short,
    /// How many frames wait in front of it.
    queue: libc::c_int,
}

impl Settings {
    /// Of an interface in the namespace of this thread; nothing if there is none of that name.
    pub fn of(name: &str) -> Option<Settings> {
        let control = socket(AddressFamily::INET, SocketType::DGRAM, SocketFlags::empty()).ok()?;
        let asked = |what| {
            let mut request = request(name).ok()?;
            ask(&control, what, &mut request).ok()?;
            Some(request.ifr_ifru)
        };
        let (flags, queue) = (asked(libc::SIOCGIFFLAGS)?, asked(libc::SIOCGIFTXQLEN as libc::Ioctl)?);
        // SAFETY: the calls have filled these fields in.
        unsafe { Some(Settings { flags: flags.ifru_flags, queue: queue.ifru_metric }) }
    }
}

/// Binds an AF_PACKET socket.
pub fn bind_packet(fd: RawFd, interface: i32, protocol: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a value of this type.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is as long as is said.
    done(unsafe { libc::bind(fd, std::ptr::from_ref(&address).cast(), length) })
}

const ETHTOOL_GET_CHANNELS: u32 = 0x3c;
const ETHTOOL_GET_FLAGS: u32 = 0x25;
const ETHTOOL_SET_FLAGS: u32 = 0x26;
/// Of the flags: it takes VLAN tags off what it receives, and hands them on beside the frame.
const ETHTOOL_RX_VLAN: u32 = 1 << 8;

/// Has an interface take in every frame, whatever its address, while the socket lives.
pub fn promiscuous(interface: &Interface) -> io::Result<OwnedFd> {
    let holder = socket(AddressFamily::PACKET, SocketType::RAW, SocketFlags::empty())?;
    make_promiscuous(&holder, interface)?;
    Ok(holder)
}

pub fn make_promiscuous(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    // SAFETY: all zeros is a value of this type.
    let mut all: libc::packet_mreq = unsafe { std::mem::zeroed() };
    all.mr_ifindex = interface.index;
    all.mr_type = libc::PACKET_MR_PROMISC as u16;
    set(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)
}

/// A request that names an interface.
pub fn request(name: &str) -> Result<libc::ifreq, Failure> {
    // SAFETY: all zeros is a value of this type.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let fits = !name.is_empty() && name.len() < request.ifr_name.len();
    if !fits || name.bytes().any(|b| b == b'/' || b.is_ascii_whitespace() || b == 0) {
        return fail(format!(
            "{name:?} is not the name of an interface: 1 to 15 characters, no space and no /"
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ask(control: &OwnedFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: these requests read and write an ifreq.
    done(unsafe { libc::ioctl(control.as_raw_fd(), what, std::ptr::from_mut(request)) })
}
