//! A network that is live: started, and ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use network::Network;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::clock::Clock;
use crate::driver::{Driver, Wired};
use crate::interface::{Failure, plain, within};
use crate::opening::{Opened, open};
use crate::port::Counts;
use crate::processor;
use crate::profile::Settings;
use crate::reopening::{Watched, watch};
use crate::shared::{Shared, Wiring};

/// Stack of the thread that runs the network. Native code of a program takes 256 KiB at most; the interpreter recurses over
/// expressions, of which the data plane refuses those that are nested too deep for this.
const STACK: usize = 1 << 24;

/// A network that is live; dropping it ends that.
pub struct Live {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Opens interfaces again.
    watcher: Option<JoinHandle<()>>,
}

impl Live {
    /// Opens the ports and starts the thread. The network goes on at the time that it has reached.
    ///
    /// # Errors
    /// A namespace or an interface that is not there or is taken, missing rights, a flow without a way, a processor that this process
    /// may not use.
    pub fn start(
        network: Arc<Mutex<Network>>,
        wirings: Vec<Wiring>,
        settings: Settings,
    ) -> Result<Live, Failure> {
        settings.processor.map_or(Ok(()), processor::check)?;
        let mut wired = Vec::new();
        let mut ports = Vec::new();
        let mut watched = Vec::new();
        for wiring in wirings {
            let netns = wiring.netns.as_deref();
            let Opened { port, status, threaded } = within(netns, || open(&wiring, settings))?;
            ports.push(status);
            watched.push(Watched::new(wiring.clone(), port.interface())?);
            wired.push(Wired {
                port: Some(port),
                threaded,
                host: wiring.host,
                going: Vec::new(),
                errors: 0,
                before: Counts::default(),
            });
        }
        let failed = |e: io::Error| Failure(format!("the thread of a live network: {}", plain(&e)));
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(|e| failed(e.into()))?;
        let start = {
            let mut network = network.lock();
            for port in &wired {
                network.set_outside(port.host).map_err(|e| Failure(e.to_string()))?;
            }
            let now = network.now();
            network.run_through(now).map_err(|e| Failure(e.to_string()))?;
            now
        };
        let shared = Arc::new(Shared::new(network, Clock::starting_at(start), bell, ports));
        let driver = Driver::new(shared.clone(), wired, settings).map_err(failed)?;
        let thread = std::thread::Builder::new().name("tidegate-live".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || driver.run());
        let mut live = Live { shared, thread: Some(thread.map_err(failed)?), watcher: None };
        let shared = live.shared.clone();
        let looks = move || watch(&shared, watched, settings);
        let watcher = std::thread::Builder::new().name("tidegate-ports".to_owned()).spawn(looks);
        live.watcher = Some(watcher.map_err(failed)?);
        Ok(live)
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if let Some(thread) = self.thread.take() {
            // A panic is in the state.
            let _ = thread.join();
        }
    }
}
