//! Who has an interface: one process at a time.
//!
//! Root's claim is a locked file in a folder that nobody else can write. A name in the abstract namespace of sockets, which everybody
//! can take, would let every user keep a switch from starting; it is what remains for others than root.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::interface::{Failure, done, fail, plain, socket};

const FOLDER: &str = "/run/tidegate-switch";

/// Held while it lives, and by no process that comes after this one.
#[derive(Debug)]
pub struct Claim {
    _held: OwnedFd,
    /// The folder and the name of the locked file.
    file: Option<(OwnedFd, PathBuf)>,
}

impl Claim {
    /// Of an interface in the namespace of this thread.
    pub fn of(name: &str, index: i32) -> Result<Claim, Failure> {
        // SAFETY: it cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            of_root(name, index, Path::new(FOLDER))
        } else {
            of_others(name, index)
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((folder, file)) = &self.file {
            // What is left of it is an empty file.
            let _ = unlinkat(folder, file, AtFlags::empty());
        }
    }
}

fn taken<T>(name: &str) -> Result<T, Failure> {
    fail(format!("interface {name} is taken: it is a port of a running Tidegate already"))
}

fn of_root(name: &str, index: i32, place: &Path) -> Result<Claim, Failure> {
    let refused = |e: Errno| Failure(format!("{}: {}", place.display(), plain(&e.into())));
    match mkdirat(CWD, place, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        // Root of a user namespace, or without a /run: there is nowhere that is its own.
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOENT) => return of_others(name, index),
        Err(e) => return Err(refused(e)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, place, flags, Mode::empty()).map_err(refused)?;
    let about = fstat(&folder).map_err(refused)?;
    if about.st_uid != 0 || about.st_mode & 0o022 != 0 {
        return fail(format!(
            "{0}: others than root can write it (user {1}, mode {2:o}); chown root {0}; chmod 700 {0}",
            place.display(),
            about.st_uid,
            about.st_mode & 0o7777
        ));
    }
    let namespace = std::fs::metadata("/proc/thread-self/ns/net");
    let namespace = namespace.map_err(|e| Failure(format!("interface {name}: {}", plain(&e))))?.ino();
    let file = PathBuf::from(format!("interface-{namespace}-{index}.lock"));
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(&folder, &file, flags, Mode::RUSR | Mode::WUSR).map_err(refused)?;
        match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return taken(name),
            Err(e) => return Err(refused(e)),
        }
        // The one who had it removes its name, perhaps since it was opened here.
        let there = statat(&folder, &file, AtFlags::SYMLINK_NOFOLLOW).map(|about| about.st_ino);
        if there == fstat(&held).map(|about| about.st_ino) {
            return Ok(Claim { _held: held, file: Some((folder, file)) });
        }
    }
}

fn of_others(name: &str, index: i32) -> Result<Claim, Failure> {
    let refused = |e: io::Error| Failure(format!("interface {name}: {}", plain(&e)));
    let held = socket(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty()).map_err(refused)?;
    // SAFETY: all zeros is a value of this type.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let text = format!("tidegate-interface-{index}");
    for (to, from) in address.sun_path[1..].iter_mut().zip(text.bytes()) {
        *to = from as libc::c_char;
    }
    let length = size_of::<libc::sa_family_t>() + 1 + text.len();
    // SAFETY: the address is as long as is said.
    let bound = done(unsafe {
        libc::bind(held.as_raw_fd(), std::ptr::from_ref(&address).cast(), length as libc::socklen_t)
    });
    match bound {
        Ok(()) => Ok(Claim { _held: held, file: None }),
        Err(e) if e.raw_os_error() == Some(libc::EADDRINUSE) => taken(name),
        Err(e) => Err(refused(e)),
    }
}
