//! A forwarder between two interfaces without a network in between: the floor of what AF_XDP ports cost, for benchmarks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::bpf::Attach;
use crate::clock::monotonic;
use crate::interface::{Failure, Interface, plain, within};
use crate::port::Port;
use crate::profile::Settings;
use crate::threaded::Threaded;
use crate::xdp::XdpPort;

/// Frames of each of two interfaces go on by the other one, with one copy, until `stop`. The threads sleep and spin as a live
/// network of that profile does.
///
/// # Errors
/// As opening a port by AF_XDP.
pub fn forward(
    netns: Option<&Path>,
    names: [&str; 2],
    settings: Settings,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let open = |name: &str| {
        within(netns, || {
            XdpPort::open(Interface::open(name, netns)?, Attach::Native, false).map_err(|(why, _)| why)
        })
    };
    let mut ports = [open(names[0])?, open(names[1])?];
    let mut threads = Vec::new();
    if settings.has_napi_threads() {
        for name in names {
            threads.push(Threaded::begin(name, netns)?);
        }
    }
    let failed = |e: Errno| Failure(format!("epoll: {}", plain(&e.into())));
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
    for (number, port) in ports.iter().enumerate() {
        epoll::add(&poll, port.fd(), EventData::new_u64(number as u64), EventFlags::IN).map_err(failed)?;
    }
    let none = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
    let mut events = [none; 2];
    let (spin, mut awake_until) = (settings.profile.spin_ns(), 0);
    // So often it looks whether it is to stop.
    let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while !stop.load(Ordering::Acquire) {
        let spins = spin != 0 && monotonic() < awake_until;
        let wait = if spins { Timespec::default() } else { patience };
        let count = match epoll::wait(&poll, &mut events, Some(&wait)) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(e) => return Err(failed(e)),
        };
        if count > 0 {
            awake_until = monotonic() + spin;
        }
        for event in &events[..count] {
            let [one, other] = &mut ports;
            if event.data.u64() == 0 { one.forward(other) } else { other.forward(one) }
        }
    }
    drop(threads);
    Ok(())
}
