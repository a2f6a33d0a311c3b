//! Interfaces that go away and come back: a thread looks for them now and then and opens them again, while the others go on.
//!
//! An interface that is made anew has another number, and what was bound to the old one hears and sends nothing more. A name is not
//! enough to notice that.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::park_timeout;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::interface::{Failure, Interface, index_of, mtu_of, plain, socket, within};
use crate::opening::open;
use crate::port::Kind;
use crate::profile::Settings;
use crate::shared::{Exchange, Shared, Wiring};

/// How often it looks: some system calls for each port.
const PERIOD: Duration = Duration::from_millis(200);

/// A port's interface as it was seen last.
pub struct Watched {
    wiring: Wiring,
    /// For questions; it stays in the interface's namespace.
    control: OwnedFd,
    index: i32,
    mtu: u32,
    lost: bool,
    /// Why it could not be opened again.
    said: Option<Failure>,
}

impl Watched {
    pub fn new(wiring: Wiring, interface: &Interface) -> Result<Watched, Failure> {
        let asked = || {
            socket(AddressFamily::INET, SocketType::DGRAM, SocketFlags::empty())
                .map_err(|e| Failure(format!("interface {}: {}", wiring.interface, plain(&e))))
        };
        let control = within(wiring.netns.as_deref(), asked)?;
        let (index, mtu) = (interface.index, interface.mtu());
        Ok(Watched { wiring, control, index, mtu, lost: false, said: None })
    }

    fn look(&mut self, number: usize, shared: &Shared, settings: Settings) {
        let name = &self.wiring.interface;
        let there = index_of(&self.control, name);
        if there == Some(self.index) && !self.lost {
            // A TAP device that is opened anew would be another one: it sees by itself what fits.
            let mtu = mtu_of(&self.control, name).filter(|_| self.wiring.kind != Kind::Tap);
            if let Some(mtu) = mtu.filter(|mtu| *mtu != self.mtu) {
                self.mtu = mtu;
                self.lost = true;
                shared.exchange(Exchange { number, opened: None });
                shared.say(format!("interface {name} has another MTU, {mtu}: it is opened again"));
            }
            // Next time: the thread has to let go of it first.
            return;
        }
        if !self.lost {
            self.lost = true;
            shared.exchange(Exchange { number, opened: None });
            shared.say(format!(
                "interface {name} is gone; the other ports go on, and it is opened again when it is back"
            ));
        }
        // A TAP device that somebody has removed is not made again unasked.
        if there.is_none() {
            return;
        }
        match within(self.wiring.netns.as_deref(), || open(&self.wiring, settings)) {
            Ok(opened) => {
                (self.index, self.mtu) = (opened.port.interface().index, opened.status.mtu);
                (self.lost, self.said) = (false, None);
                shared.say(format!(
                    "interface {name} is back: {}, MTU {}",
                    opened.status.kind, opened.status.mtu
                ));
                shared.exchange(Exchange { number, opened: Some(opened) });
            }
            // It is tried again. Once is enough to say why not.
            Err(why) if self.said.as_ref() != Some(&why) => {
                shared.say(format!("interface {name} cannot be opened again yet: {why}"));
                self.said = Some(why);
            }
            Err(_) => {}
        }
    }
}

/// Looks until the network is no longer live.
pub fn watch(shared: &Arc<Shared>, mut ports: Vec<Watched>, settings: Settings) {
    while !shared.stopping.load(Ordering::Acquire) {
        for (number, port) in ports.iter_mut().enumerate() {
            port.look(number, shared, settings);
        }
        park_timeout(PERIOD);
    }
}
