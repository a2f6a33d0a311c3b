//! The processor that the thread of a network stays on.
//!
//! A thread that stays is one that hosts on this machine can be kept away from: what they do for a packet then does not wait for it,
//! nor it for them.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::interface::{Failure, fail};

/// Checks that the calling thread, and so the one that it starts, may use a processor.
///
/// # Errors
/// One that it may not use; says which it may.
pub fn check(number: usize) -> Result<(), Failure> {
    let may = sched_getaffinity(None)
        .map_err(|e| Failure(format!("processors: {}", crate::interface::plain(&e.into()))))?;
    if number < CpuSet::MAX_CPU && may.is_set(number) {
        return Ok(());
    }
    let there: Vec<String> =
        (0..CpuSet::MAX_CPU).filter(|one| may.is_set(*one)).map(|one| one.to_string()).collect();
    fail(format!("processor {number} is not one that this process may use; it may use {}", there.join(", ")))
}

/// Keeps the calling thread on a processor.
pub fn stay_on(number: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(number);
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_may_be() {
        std::thread::spawn(|| {
            let may = sched_getaffinity(None).unwrap();
            let last = (0..CpuSet::MAX_CPU).rfind(|one| may.is_set(*one)).unwrap();
            check(last).unwrap();
            stay_on(last).unwrap();
            let now = sched_getaffinity(None).unwrap();
            assert_eq!((now.count(), now.is_set(last)), (1, true));
            // Another one is none of its own any more.
            let why = check(last + 1).unwrap_err().0;
            let said =
                format!("processor {} is not one that this process may use; it may use {last}", last + 1);
            assert_eq!(why, said);
            assert!(check(CpuSet::MAX_CPU).is_err());
        })
        .join()
        .unwrap();
    }
}
