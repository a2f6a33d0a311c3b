//! Ports by a TAP device: an interface that is made for the switch and that this machine's own network stack, or a virtual
//! machine, uses. It goes with the process, unless somebody had made it before.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wire::packet::Written;

use crate::clock;
use crate::interface::{Failure, Interface, Settings, done, fail, plain, request};
use crate::port::{BATCH, Counts, Port, fits};

const SLOT: usize = 65_536 + 64;
/// Frames that wait for this thread while it does something else; the kernel's default of 1000 is not many.
const QUEUE: libc::c_int = 10_000;

pub struct TapPort {
    file: File,
    interface: Interface,
    slots: Vec<u8>,
    /// Lengths of the last batch's frames.
    lengths: Vec<usize>,
    at: u64,
    mtu: usize,
    counts: Counts,
    /// Flags and queue of a device that somebody else has made, as they were.
    before: Option<Settings>,
}

impl TapPort {
    /// Makes the device, in the namespace of this thread.
    pub fn open(name: &str, netns: Option<&Path>) -> Result<TapPort, Failure> {
        let refused = |e: io::Error| match e.raw_os_error() {
            Some(libc::EBUSY) => Failure(format!("TAP device {name}: somebody else has it open")),
            Some(libc::EINVAL) => Failure(format!(
                "TAP device {name}: an interface of that name exists but is not a TAP device"
            )),
            _ => Failure(format!("TAP device {name}: {}", plain(&e))),
        };
        let mut request = request(name)?;
        // A name like `tap%d` would be a pattern.
        if name.contains('%') {
            return fail(format!("TAP device {name}: a name without % is needed"));
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
        let file = file.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Failure(format!("TAP device {name}: this kernel has no /dev/net/tun")),
            _ => refused(e),
        })?;
        let before = Settings::of(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request is one, and lives as long as the call.
        done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(&mut request)) })
            .map_err(refused)?;
        let interface = Interface::open(name, netns)?;
        interface.set_queue(QUEUE).and_then(|()| interface.bring_up()).map_err(refused)?;
        let mtu = interface.mtu() as usize;
        let (slots, lengths) = (vec![0; BATCH * SLOT], Vec::with_capacity(BATCH));
        Ok(TapPort { file, interface, slots, lengths, at: 0, mtu, counts: Counts::default(), before })
    }
}

impl Drop for TapPort {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It may be gone by now.
            let _ = self.interface.restore(before);
        }
    }
}

impl Port for TapPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn receive(&mut self) -> usize {
        self.lengths.clear();
        self.at = clock::monotonic();
        for slot in self.slots.chunks_exact_mut(SLOT) {
            // Nothing there, or the device is down.
            let Ok(length) = self.file.read(slot) else { break };
            self.counts.received += 1;
            self.counts.received_bytes += length as u64;
            self.lengths.push(length);
        }
        self.lengths.len()
    }

    fn frame(&self, index: usize) -> (u64, &[u8]) {
        (self.at, &self.slots[index * SLOT..index * SLOT + self.lengths[index]])
    }

    fn send(&mut self, frames: &[Box<Written>]) {
        if frames.iter().any(|frame| !fits(frame, self.mtu)) {
            // Somebody may have set another one.
            self.mtu = self.interface.mtu() as usize;
        }
        for frame in frames {
            if !fits(frame, self.mtu) {
                self.counts.wrong_size += 1;
            } else if self.file.write(frame).is_ok() {
                self.counts.sent += 1;
                self.counts.sent_bytes += frame.len() as u64;
            } else {
                self.counts.refused += 1;
            }
        }
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn counts(&mut self) -> Counts {
        self.counts
    }
}
