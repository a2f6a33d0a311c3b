//! Several threads run one network, between ports that are queues in memory.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use network::{Link, Network, NodeId, ipv4, mac};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use units::{Rate, Time};
use wire::packet::Written;

use crate::clock::monotonic;
use crate::driver::Wired;
use crate::interface::Interface;
use crate::port::{BATCH, Counts, Kind, Port};
use crate::profile::Settings;
use crate::running::Live;
use crate::shared::PortStatus;

const PORTS: usize = 4;
/// Nothing takes so long but what never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames that are to come in by a port, and when they came.
struct Inbox {
    frames: Mutex<VecDeque<(u64, Vec<u8>)>>,
    readable: OwnedFd,
}

impl Inbox {
    fn new() -> Arc<Inbox> {
        let readable = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        Arc::new(Inbox { frames: Mutex::default(), readable })
    }

    fn put(&self, frame: Vec<u8>) {
        let mut frames = self.frames.lock();
        frames.push_back((monotonic(), frame));
        rustix::io::write(&self.readable, &1u64.to_ne_bytes()).unwrap();
    }
}

struct FakePort {
    inbox: Arc<Inbox>,
    came: Vec<(u64, Vec<u8>)>,
    /// Who hears what goes out.
    out: mpsc::Sender<Vec<u8>>,
    counts: Counts,
    interface: Arc<Interface>,
}

impl Port for FakePort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.inbox.readable.as_fd()
    }

    fn receive(&mut self) -> usize {
        let mut frames = self.inbox.frames.lock();
        let count = frames.len().min(BATCH);
        self.came = frames.drain(..count).collect();
        if frames.is_empty() {
            let _ = rustix::io::read(&self.inbox.readable, &mut [0u8; 8]);
        }
        self.counts.received += count as u64;
        count
    }

    fn frame(&self, index: usize) -> (u64, &[u8]) {
        (self.came[index].0, &self.came[index].1)
    }

    fn send(&mut self, frames: &[Box<Written>]) {
        self.counts.sent += frames.len() as u64;
        for frame in frames {
            // Nobody may listen any more.
            let _ = self.out.send(frame.bytes().to_vec());
        }
    }

    fn counts(&mut self) -> Counts {
        self.counts
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }
}

/// A router between hosts outside, run by so many threads.
struct Bench {
    live: Live,
    inboxes: Vec<Arc<Inbox>>,
    hosts: Vec<NodeId>,
}

/// It is one at a time: they have the loopback interface in common.
static LOOPBACK: Mutex<()> = Mutex::new(());

/// It may be another process's for a while, whose tests these are too.
fn loopback() -> Interface {
    let end = monotonic() + PATIENCE.as_nanos() as u64;
    loop {
        match Interface::open("lo", None) {
            Ok(interface) => return interface,
            Err(why) => assert!(monotonic() < end, "{why}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Bench {
    /// And what hears what leaves by its ports.
    fn new(threads: usize, link: &Link) -> (Bench, Vec<mpsc::Receiver<Vec<u8>>>) {
        let mut network = Network::new(0);
        let hosts: Vec<NodeId> = (0..PORTS).map(|_| network.host("h")).collect();
        let router = network.router("r");
        for host in &hosts {
            network.link(*host, router, link.clone(), link.clone()).unwrap();
        }
        let interface = Arc::new(loopback());
        let mut groups: Vec<Vec<Wired>> = (0..threads).map(|_| Vec::new()).collect();
        let (mut inboxes, mut outs) = (Vec::new(), Vec::new());
        for (number, host) in hosts.iter().enumerate() {
            let (inbox, (out, heard)) = (Inbox::new(), mpsc::channel());
            let port = FakePort {
                inbox: inbox.clone(),
                came: Vec::new(),
                out,
                counts: Counts::default(),
                interface: interface.clone(),
            };
            inboxes.push(inbox);
            outs.push(heard);
            groups[number % threads].push(Wired {
                number,
                threaded: None,
                port: Some(Box::new(port)),
                host: *host,
                going: Vec::new(),
                errors: 0,
                before: Counts::default(),
            });
        }
        let status = PortStatus {
            interface: "lo".to_owned(),
            kind: Kind::Auto,
            mtu: 1500,
            up: true,
            notice: None,
            counts: Counts::default(),
        };
        let network = Arc::new(Mutex::new(network));
        let live = Live::launch(network, groups, vec![status; PORTS], Settings::default()).unwrap();
        (Bench { live, inboxes, hosts }, outs)
    }

    /// A numbered packet of a host to another one.
    fn frame(&self, from: usize, to: usize, number: u32) -> Vec<u8> {
        let [source, target] = [from, to].map(|host| self.hosts[host].index() as u32);
        let mut frame = [mac(target).as_slice(), &mac(source), &[8, 0, 0x45, 0]].concat();
        frame.extend_from_slice(&100u16.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 0, 64, 200, 0, 0]);
        frame.extend_from_slice(&ipv4(source));
        frame.extend_from_slice(&ipv4(target));
        frame.extend_from_slice(&(from as u32).to_be_bytes());
        frame.extend_from_slice(&number.to_be_bytes());
        frame.resize(114, 0);
        frame
    }

    fn send(&self, from: usize, to: usize, number: u32) {
        self.inboxes[from].put(self.frame(from, to, number));
    }

    /// From whom the next packet for a host is, and its number.
    fn next(out: &mpsc::Receiver<Vec<u8>>) -> (usize, u32) {
        let frame = out.recv_timeout(PATIENCE).expect("a packet comes");
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        (word(34) as usize, word(38))
    }
}

fn links() -> [Link; 3] {
    let direct = Link::new(Rate::from_gbps(1000), Time::ZERO);
    let far = Link::new(Rate::from_gbps(1000), Time::from_us(300));
    let slow = Link::new(Rate::from_mbps(100), Time::from_us(10));
    [direct, far, slow]
}

#[test]
fn each_packet_of_a_conversation_comes_before_the_next_is_sent() {
    let _one = LOOPBACK.lock();
    for (link, rounds) in links().iter().zip([2000, 100, 300]) {
        for threads in [2, 3] {
            let (bench, outs) = Bench::new(threads, link);
            // Both ways between 0 and 1, and between 2 and 3: a thread that is not woken for what another one has for it ends that.
            for host in [0, 2] {
                bench.send(host, host + 1, 0);
            }
            let bench = &bench;
            std::thread::scope(|scope| {
                for (host, out) in outs.into_iter().enumerate() {
                    scope.spawn(move || {
                        for round in 0..rounds {
                            assert_eq!(Bench::next(&out), (host ^ 1, round));
                            let next = round + u32::from(host % 2 == 0);
                            bench.send(host, host ^ 1, next);
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn packets_of_a_flow_keep_their_order_and_none_is_lost_while_others_look_at_the_network() {
    let _one = LOOPBACK.lock();
    const EACH: u32 = 1500;
    for link in &links()[..2] {
        for threads in [1, 2, 3, 4] {
            let (bench, outs) = Bench::new(threads, link);
            let bench = &bench;
            std::thread::scope(|scope| {
                for from in 0..PORTS {
                    scope.spawn(move || {
                        for number in 0..EACH {
                            (0..PORTS).filter(|to| *to != from).for_each(|to| bench.send(from, to, number));
                            if number % 16 == 0 {
                                std::thread::sleep(Duration::from_micros(200));
                            }
                        }
                    });
                }
                let receivers = outs.into_iter().enumerate().map(|(to, out)| {
                    scope.spawn(move || {
                        let mut next = [0; PORTS];
                        for _ in 0..EACH as usize * (PORTS - 1) {
                            let (from, number) = Bench::next(&out);
                            assert_eq!(number, next[from], "from {from} to {to}");
                            next[from] += 1;
                        }
                    })
                });
                let receivers: Vec<_> = receivers.collect();
                let shared = bench.live.shared();
                let mut seen = Time::ZERO;
                while receivers.iter().any(|receiver| !receiver.is_finished()) {
                    let network = shared.enter();
                    assert!(network.now() >= seen);
                    seen = network.now();
                    shared.leave(network);
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
            let (ports, lateness, wakeups) = bench.live.shared().status();
            let total = u64::from(EACH) * (PORTS * (PORTS - 1)) as u64;
            assert_eq!(ports.iter().map(|port| port.counts.received).sum::<u64>(), total);
            assert_eq!(ports.iter().map(|port| port.counts.sent).sum::<u64>(), total);
            assert_eq!(lateness.distribution.total(), total);
            assert!(wakeups > 0);
        }
    }
}

#[test]
fn what_a_visitor_changes_wakes_the_thread_that_it_is_for() {
    let _one = LOOPBACK.lock();
    for threads in [1, 3] {
        let (bench, outs) = Bench::new(threads, &links()[1]);
        for number in 0..50 {
            // All threads sleep: nothing is due, and nothing has come.
            std::thread::sleep(Duration::from_millis(1));
            let shared = bench.live.shared();
            let mut network = shared.enter();
            network.inject(bench.hosts[0], &bench.frame(0, 1, number));
            shared.leave(network);
            assert_eq!(Bench::next(&outs[1]), (0, number));
        }
    }
}

#[test]
fn a_thread_that_fails_ends_the_others() {
    let _one = LOOPBACK.lock();
    let (bench, _outs) = Bench::new(3, &links()[0]);
    let shared = bench.live.shared();
    // A port number that its thread does not have.
    shared.exchange(crate::shared::Exchange { number: 3 * PORTS, opened: None });
    let end = monotonic() + PATIENCE.as_nanos() as u64;
    let why = loop {
        match shared.wait(shared.now() + Time::from_ms(10), Duration::from_millis(10)) {
            Err(why) => break why.0,
            Ok(_) => assert!(monotonic() < end, "it goes on"),
        }
    };
    assert!(why.starts_with("the thread of a live network ended by a bug"), "{why}");
    while !bench.live.threads.iter().all(JoinHandle::is_finished) {
        assert!(monotonic() < end, "the others go on");
        std::thread::sleep(Duration::from_millis(1));
    }
}
