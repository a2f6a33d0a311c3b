//! `bare NETNS INTERFACE INTERFACE latency|throughput`: forwards frames between two interfaces of a namespace, until its standard
//! input ends. `benches/live.py` compares the switch with it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [netns, one, other, profile] = &words[..] else {
        eprintln!("usage: bare NETNS INTERFACE INTERFACE latency|throughput");
        std::process::exit(2);
    };
    let profile = profile.parse().unwrap_or_else(|why| {
        eprintln!("{why}");
        std::process::exit(2)
    });
    let settings = live::Settings { profile, ..Default::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        told.store(true, Ordering::Release);
    });
    if let Err(why) = live::forward(Some(Path::new(netns)), [one, other], settings, &stop) {
        eprintln!("{why}");
        std::process::exit(1);
    }
}
