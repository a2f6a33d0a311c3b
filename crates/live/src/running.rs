//! A network that is live: started, and ended.

use std::io;
use std::sync::Arc;
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
use crate::shared::{PortStatus, Shared, Wiring};

/// Stack of the thread that runs the network. Native code of a program takes 256 KiB at most; the interpreter recurses over
/// expressions, of which the data plane refuses those that are nested too deep for this.
const STACK: usize = 1 << 24;

/// Threads that a network can have.
pub const MOST_THREADS: usize = 64;

fn failed(error: io::Error) -> Failure {
    Failure(format!("the thread of a live network: {}", plain(&error)))
}

/// A network that is live; dropping it ends that.
pub struct Live {
    shared: Arc<Shared>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Opens interfaces again.
    watcher: Option<JoinHandle<()>>,
}

impl Live {
    /// Opens the ports and starts the threads, each with as many of the ports; there is no thread without one. The network goes on at
    /// the time that it has reached.
    ///
    /// # Errors
    /// A namespace or an interface that is not there or is taken, missing rights, a flow without a way, a processor that this process
    /// may not use.
    pub fn start(
        network: Arc<Mutex<Network>>,
        wirings: Vec<Wiring>,
        threads: usize,
        settings: Settings,
    ) -> Result<Live, Failure> {
        let threads = threads.min(wirings.len()).clamp(1, MOST_THREADS);
        if let Some(first) = settings.processor {
            (0..threads).try_for_each(|number| processor::check(first.saturating_add(number)))?;
        }
        let mut groups: Vec<Vec<Wired>> = (0..threads).map(|_| Vec::new()).collect();
        let mut ports = Vec::new();
        let mut watched = Vec::new();
        for (number, wiring) in wirings.into_iter().enumerate() {
            let netns = wiring.netns.as_deref();
            let Opened { port, status, threaded } = within(netns, || open(&wiring, settings))?;
            ports.push(status);
            watched.push(Watched::new(wiring.clone(), port.interface())?);
            groups[number % threads].push(Wired {
                number,
                port: Some(port),
                threaded,
                host: wiring.host,
                going: Vec::new(),
                errors: 0,
                before: Counts::default(),
            });
        }
        let mut live = Live::launch(network, groups, ports, settings)?;
        let shared = live.shared.clone();
        let looks = move || watch(&shared, watched, settings);
        let watcher = std::thread::Builder::new().name("tidegate-ports".to_owned()).spawn(looks);
        live.watcher = Some(watcher.map_err(failed)?);
        Ok(live)
    }

    /// Starts a thread for each group of ports, whose status is in `ports` by their numbers. Nobody looks whether they go away.
    pub(crate) fn launch(
        network: Arc<Mutex<Network>>,
        groups: Vec<Vec<Wired>>,
        ports: Vec<PortStatus>,
        settings: Settings,
    ) -> Result<Live, Failure> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bells: Result<_, _> = groups.iter().map(|_| eventfd(0, flags)).collect();
        let bells = bells.map_err(|e| failed(e.into()))?;
        let start = {
            let mut network = network.lock();
            for (number, group) in groups.iter().enumerate() {
                for port in group {
                    network.set_outside(port.host, number).map_err(|e| Failure(e.to_string()))?;
                }
            }
            let now = network.now();
            network.run_through(now).map_err(|e| Failure(e.to_string()))?;
            now
        };
        let shared = Arc::new(Shared::new(network, Clock::starting_at(start), bells, ports));
        let drivers = groups.into_iter().enumerate();
        let drivers: io::Result<Vec<Driver>> =
            drivers.map(|(number, ports)| Driver::new(shared.clone(), number, ports, settings)).collect();
        let mut live = Live { shared, threads: Vec::new(), watcher: None };
        for driver in drivers.map_err(failed)? {
            let thread = std::thread::Builder::new().name("tidegate-live".to_owned()).stack_size(STACK);
            live.threads.push(thread.spawn(move || driver.run()).map_err(failed)?);
        }
        Ok(live)
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        for thread in self.threads.drain(..) {
            // A panic is in the state.
            let _ = thread.join();
        }
    }
}
