//! Real-time priority for the thread of a network, which is to be woken in microseconds whatever else the machine does.
//!
//! A thread that always has something to do has no use for it: it would take all of a processor, and the kernel would stop it for 50
//! ms in each second. So it is given up for as long as there is more to do than that. Time in which the thread only looks for packets is
//! not work; while others wait for the processor, the kernel takes a twentieth of it for them.

use crate::clock::{monotonic, spent_by_thread};
use crate::profile::Profile;

/// How often it is looked at how much the thread does: bursts of work are no reason yet, the kernel's patience ends after 950 ms.
const WINDOW_NS: u64 = 300_000_000;

pub struct Priority {
    /// The kernel allows it: the process has CAP_SYS_NICE.
    allowed: bool,
    real_time: bool,
    /// When the window began, and what the thread had spent then.
    since: u64,
    spent: u64,
}

impl Priority {
    /// For the calling thread, from now on.
    pub fn new(profile: Profile) -> Priority {
        let allowed = profile == Profile::Latency && set(libc::SCHED_RR, 1);
        Priority { allowed, real_time: allowed, since: monotonic(), spent: spent_by_thread() }
    }

    /// To be called often; `spun` is for how long the thread has looked for packets without sleeping, in nanoseconds.
    pub fn look(&mut self, spun: u64) {
        if !self.allowed {
            return;
        }
        let now = monotonic();
        if now - self.since < WINDOW_NS {
            return;
        }
        let spent = spent_by_thread().saturating_sub(spun);
        let wanted = wanted(self.real_time, spent.saturating_sub(self.spent), now - self.since);
        if wanted != self.real_time {
            let done = if wanted { set(libc::SCHED_RR, 1) } else { set(libc::SCHED_OTHER, 0) };
            self.real_time = wanted == done;
        }
        (self.since, self.spent) = (now, spent);
    }
}

/// Whether a thread that has worked so much of a time is to have real-time priority.
fn wanted(has: bool, worked: u64, of: u64) -> bool {
    let most = if has { 90 } else { 70 };
    worked * 100 < of * most
}

fn set(policy: libc::c_int, priority: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter is only read; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameter) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_up_when_the_thread_never_sleeps() {
        for (has, worked, expected) in
            [(true, 0, true), (true, 89, true), (true, 90, false), (false, 75, false), (false, 69, true)]
        {
            assert_eq!(wanted(has, worked, 100), expected, "{has} {worked}");
        }
    }

    #[test]
    fn a_thread_that_works_all_the_time_is_an_ordinary_one() {
        std::thread::spawn(|| {
            let policy = || unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK };
            let mut priority = Priority::new(Profile::Latency);
            assert_eq!(policy(), if priority.allowed { libc::SCHED_RR } else { libc::SCHED_OTHER });
            let spent = spent_by_thread();
            // A window in part, and a whole one. With real-time priority nothing comes between.
            while spent_by_thread() - spent < 3 * WINDOW_NS && policy() != libc::SCHED_OTHER {
                priority.look(0);
            }
            assert_eq!(policy(), libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
