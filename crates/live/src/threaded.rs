//! Threaded NAPI: the kernel receives the packets of an interface on a thread of its own, not on whatever processor sent them.
//!
//! It is a file of sysfs (`Documentation/networking/napi.rst`), and sysfs shows the interfaces of the namespace in which it was
//! mounted. So it is mounted anew, in a mount namespace of a thread that then ends.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::null;

use crate::interface::{Failure, plain, within};

/// An interface that has been given a thread; dropping it makes it what it was.
#[derive(Debug)]
pub struct Threaded {
    name: String,
    netns: Option<PathBuf>,
    before: String,
}

impl Threaded {
    /// After XDP is attached: a veth has no NAPI before.
    ///
    /// # Errors
    /// A kernel before 5.12, or one that does not allow it here; says what that means.
    pub fn begin(name: &str, netns: Option<&Path>) -> Result<Threaded, Failure> {
        let before = exchange(name, netns, "1").map_err(|why| {
            Failure(format!(
                "interface {name}: the kernel does not receive on a thread of its own, which lowers the rate: {why}"
            ))
        })?;
        Ok(Threaded { name: name.to_owned(), netns: netns.map(Path::to_owned), before })
    }

    /// Forgets it as it is: the interface is gone, or has another name.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        // The interface may be gone.
        let _ = exchange(&self.name, self.netns.as_deref(), &self.before);
    }
}

/// Sets the interface's file; gives what was in it.
fn exchange(name: &str, netns: Option<&Path>, value: &str) -> Result<String, Failure> {
    let there = || {
        see_own_interfaces().map_err(|e| Failure(format!("sysfs: {}", plain(&e))))?;
        let file = Path::new("/sys/class/net").join(name).join("threaded");
        let refused = |e: io::Error| Failure(format!("{}: {}", file.display(), plain(&e)));
        let before = fs::read_to_string(&file).map_err(refused)?;
        fs::write(&file, value).map_err(refused)?;
        Ok(before.trim().to_owned())
    };
    // A thread that has left the others' mounts cannot come back.
    std::thread::scope(|scope| match scope.spawn(|| within(netns, there)).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Mounts sysfs for this thread alone.
fn see_own_interfaces() -> io::Result<()> {
    let mount = |kind: *const libc::c_char, place: &CStr, flags: libc::c_ulong| {
        // SAFETY: the strings end, and live as long as the call.
        let result = unsafe { libc::mount(kind, place.as_ptr(), kind, flags, null()) };
        crate::interface::done(result)
    };
    // SAFETY: it changes what this thread sees, and no memory.
    crate::interface::done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // What is mounted from here on is not to be seen elsewhere.
    mount(null(), c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"sysfs".as_ptr(), c"/sys", 0)
}
