//! What a live network is tuned for.

use std::fmt;
use std::str::FromStr;

/// Which of two things the thread of a live network and its interfaces are set up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Short and even delays, as the management of queues needs them: the thread looks for packets without sleeping for a while
    /// after each packet.
    #[default]
    Latency,
    /// Many packets: the thread of the network is an ordinary one, and with more than two processors the kernel receives on threads of
    /// its own (threaded NAPI), which run beside it. It adds a tenth of a millisecond or more to a round trip.
    Throughput,
}

impl Profile {
    const ALL: [(&'static str, Profile); 2] =
        [("latency", Profile::Latency), ("throughput", Profile::Throughput)];

    /// For how long after a packet the thread looks for the next one without sleeping, in nanoseconds.
    pub(crate) fn spin_ns(self) -> u64 {
        const SPIN_NS: u64 = 50_000;
        // With one or two it would keep the hosts at its ports from the processor, and with real-time priority the kernel would stop it
        // for 50 ms in each second for them.
        if self == Profile::Latency && !few() { SPIN_NS } else { 0 }
    }
}

/// Whether there are so few processors that hosts on this machine need all of them.
fn few() -> bool {
    std::thread::available_parallelism().map_or(true, |count| count.get() <= 2)
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Profile::ALL.iter().find(|(_, profile)| profile == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Profile, String> {
        let found = Profile::ALL.iter().find(|(name, _)| *name == text).map(|(_, profile)| *profile);
        found.ok_or_else(|| {
            let known = Profile::ALL.map(|(name, _)| name).join(", ");
            format!("there is no live profile `{text}`; known: {known}")
        })
    }
}

/// How a network is run live.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Segments of one TCP flow that leave together are handed to the kernel as one packet.
    pub merge: bool,
    pub profile: Profile,
    /// The processor that the thread of the network stays on, and the next ones stay on those behind it; `None`: whichever the kernel
    /// gives them.
    pub processor: Option<usize>,
    /// The kernel receives on threads of its own; `None`: as the profile says. With two processors these threads take from hosts what
    /// hosts need.
    pub napi_threads: Option<bool>,
}

impl Settings {
    pub(crate) fn has_napi_threads(self) -> bool {
        self.napi_threads.unwrap_or_else(|| self.profile == Profile::Throughput && !few())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_receive_if_that_is_asked_for() {
        for (profile, napi_threads, expected) in [
            (Profile::Latency, None, false),
            (Profile::Latency, Some(true), true),
            (Profile::Throughput, None, !few()),
            (Profile::Throughput, Some(false), false),
        ] {
            assert_eq!(
                Settings { profile, napi_threads, ..Settings::default() }.has_napi_threads(),
                expected
            );
        }
    }
}
