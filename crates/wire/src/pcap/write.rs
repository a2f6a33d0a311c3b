//! One pcap file per port (nanoseconds, little-endian), made in a directory that nobody else can enter and moved when all is
//! written, so that nobody ever sees half a file, and a name that somebody has prepared leads nowhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, renameat, unlinkat,
};

use super::error::{CaptureError, Result, plain, unwritable};
use super::format::{WHOLE, file_header, packet_header};

/// Bytes that wait in memory, over all ports, before they go to the files.
const FLUSH: usize = 16 << 20;
/// How the private directory's name begins; 16 hexadecimal digits follow.
const PRIVATE: &str = ".tidegate-";
/// A private directory that nobody has locked for so long is of a run that was killed.
const ABANDONED: Duration = Duration::from_secs(60);
/// Seconds since 1970 that a file can hold: until 2106.
const LAST_S: u64 = u32::MAX as u64;

struct Port {
    buffer: Vec<u8>,
    /// The file is there.
    made: bool,
    packets: u64,
    bytes: u64,
}

fn file_name(port: u32) -> String {
    format!("port{port}.pcap")
}

fn is_output(name: &str) -> bool {
    let number = name.strip_prefix("port").and_then(|n| n.strip_suffix(".pcap"));
    number.is_some_and(|n| n.parse::<u32>().is_ok())
}

/// Removes what killed runs of this user have left in a directory.
fn sweep(dir: &Path, place: &OwnedFd, own: &OwnedFd) {
    let (Ok(entries), Ok(own)) = (fs::read_dir(dir), fstat(own)) else { return };
    for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let digits = name.strip_prefix(PRIVATE).unwrap_or_default();
        if digits.len() != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(left) = openat(place, &name, flags, Mode::empty()).map(File::from) else { continue };
        let Ok(about) = left.metadata() else { continue };
        let old = about
            .modified()
            .is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED));
        // Whoever still writes to it holds the lock.
        if !old
            || about.uid() != own.st_uid
            || flock(&left, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            continue;
        }
        let Ok(files) = Dir::read_from(&left) else { continue };
        for file in files.filter_map(std::result::Result::ok) {
            if file.file_name().to_str().is_ok_and(is_output) {
                let _ = unlinkat(&left, file.file_name(), AtFlags::empty());
            }
        }
        // One with something else in it stays.
        let _ = unlinkat(place, &name, AtFlags::REMOVEDIR);
    }
}

/// A finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub port: u32,
    pub path: PathBuf,
    pub packets: u64,
    pub bytes: u64,
}

/// Directories that are made for the outputs, the outermost last. They go with this, unless the files have their names by then.
struct Made(Vec<PathBuf>);

impl Made {
    /// Those of `dir` that are not there yet.
    fn before(dir: &Path) -> Made {
        Made(dir.ancestors().take_while(|place| !place.exists()).map(Path::to_owned).collect())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // In one that somebody else uses by now there is something.
        for dir in &self.0 {
            let _ = fs::remove_dir(dir);
        }
    }
}

pub struct Outputs {
    dir: PathBuf,
    /// The directory itself, wherever its name leads to later.
    place: OwnedFd,
    /// The one in it for files that are not whole yet, and its name.
    private: OwnedFd,
    private_name: String,
    made: Made,
    link_type: u32,
    ports: BTreeMap<u32, Port>,
    waiting: usize,
}

impl Outputs {
    /// Makes the directory if it is not there.
    pub fn new(dir: &Path, link_type: u32) -> Result<Outputs> {
        let made = Made::before(dir);
        fs::create_dir_all(dir).map_err(|e| {
            let why = if dir.exists() { "it is not a directory".to_owned() } else { plain(&e) };
            CaptureError(format!("{}: cannot be made: {why}", dir.display()))
        })?;
        // Better to learn now than after all packets that nothing can be written here.
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let refused = |e: rustix::io::Errno| unwritable(dir, &e.into());
        let place = openat(CWD, dir, folder, Mode::empty()).map_err(refused)?;
        // The standard library's random keys, for a name that nobody can know.
        let private_name = format!("{PRIVATE}{:016x}", RandomState::new().build_hasher().finish());
        mkdirat(&place, &private_name, Mode::RWXU).map_err(refused)?;
        let private =
            openat(&place, &private_name, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(refused)?;
        // A file system without locks keeps what killed runs leave.
        let _ = flock(&private, FlockOperation::NonBlockingLockExclusive);
        sweep(dir, &place, &private);
        let ports = BTreeMap::new();
        let dir = dir.to_owned();
        Ok(Outputs { dir, place, private, private_name, made, link_type, ports, waiting: 0 })
    }

    /// Refuses a directory in which a port's file would replace one of the inputs.
    pub fn demand_apart<'a>(dir: &Path, inputs: impl Iterator<Item = &'a Path>) -> Result<()> {
        let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let there = Outputs::left_over(dir, &[]);
        for input in inputs {
            // One that is not there is somebody else's to report.
            let Ok(read) = fs::metadata(input) else { continue };
            if there.iter().any(|path| fs::symlink_metadata(path).is_ok_and(|found| same(&found, &read))) {
                return Err(CaptureError(format!(
                    "{}: is read, and what leaves by a port could replace it; give another folder than {}",
                    input.display(),
                    dir.display()
                )));
            }
        }
        Ok(())
    }

    /// `time` in nanoseconds; `wire_len` at least the number of bytes.
    pub fn write(&mut self, port: u32, time: u64, bytes: &[u8], wire_len: u32) -> Result<()> {
        if time / 1_000_000_000 > LAST_S {
            return Err(CaptureError(format!(
                "{}: cannot be written: a packet's time is after February 2106, which a pcap file cannot hold; shift the times of the input",
                self.dir.join(file_name(port)).display()
            )));
        }
        let link_type = self.link_type;
        let out = self.ports.entry(port).or_insert_with(|| {
            let buffer = file_header(link_type, WHOLE).to_vec();
            Port { buffer, made: false, packets: 0, bytes: 0 }
        });
        out.buffer.extend_from_slice(&packet_header(time, bytes.len() as u32, wire_len));
        out.buffer.extend_from_slice(bytes);
        out.packets += 1;
        out.bytes += bytes.len() as u64;
        self.waiting += 16 + bytes.len();
        if self.waiting >= FLUSH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // There may be more ports than a process may have files open.
        for (number, port) in self.ports.iter_mut().filter(|(_, p)| !p.buffer.is_empty()) {
            let how = if port.made { OFlags::APPEND } else { OFlags::CREATE | OFlags::EXCL };
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | how;
            let mode = Mode::from_raw_mode(0o666);
            let opened = openat(&self.private, file_name(*number), flags, mode);
            let mut file = File::from(opened.map_err(|e| unwritable(&self.dir, &e.into()))?);
            port.made = true;
            file.write_all(&port.buffer).map_err(|e| unwritable(&self.dir, &e))?;
            port.buffer.clear();
        }
        self.waiting = 0;
        Ok(())
    }

    /// Gives all files their names.
    pub fn finish(mut self) -> Result<Vec<Written>> {
        self.flush()?;
        // All or none: what can stand in a name's way is looked at first.
        for port in self.ports.keys() {
            let path = self.dir.join(file_name(*port));
            if fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
                return Err(CaptureError(format!(
                    "{}: cannot be written: it is a directory; move it, or give another folder",
                    path.display()
                )));
            }
        }
        let mut written = Vec::new();
        for (port, out) in &mut self.ports {
            let name = file_name(*port);
            let path = self.dir.join(&name);
            renameat(&self.private, &name, &self.place, &name).map_err(|e| unwritable(&path, &e.into()))?;
            out.made = false;
            written.push(Written { port: *port, path, packets: out.packets, bytes: out.bytes });
        }
        self.made.0.clear();
        Ok(written)
    }

    /// Files of an earlier run that this one does not replace.
    pub fn left_over(dir: &Path, written: &[Written]) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|path| {
                is_output(&path.file_name().unwrap_or_default().to_string_lossy())
                    && !written.iter().any(|w| w.path == *path)
            })
            .collect();
        found.sort();
        found
    }
}

impl Drop for Outputs {
    /// What has not got its name is half a file.
    fn drop(&mut self) {
        // Nothing more can be done if it does not go away.
        for (number, _) in self.ports.iter().filter(|(_, p)| p.made) {
            let _ = unlinkat(&self.private, file_name(*number), AtFlags::empty());
        }
        let _ = unlinkat(&self.place, &self.private_name, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory as a killed run leaves it, from so many seconds ago.
    fn killed(dir: &Path, digits: &str, ago_s: u64) -> PathBuf {
        let left = dir.join(format!("{PRIVATE}{digits}"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("port7.pcap"), "half").unwrap();
        let then = SystemTime::now() - Duration::from_secs(ago_s);
        File::open(&left).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
        left
    }

    #[test]
    fn what_killed_runs_have_left_goes_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let old = killed(dir.path(), "0123456789abcdef", 100);
        let fresh = killed(dir.path(), "1123456789abcdef", 10);
        let other = killed(dir.path(), "not of ours", 100);
        let locked = killed(dir.path(), "2123456789abcdef", 100);
        let holder = File::open(&locked).unwrap();
        flock(&holder, FlockOperation::NonBlockingLockExclusive).unwrap();
        let link = dir.path().join(format!("{PRIVATE}3123456789abcdef"));
        symlink(&other, &link).unwrap();
        let running = Outputs::new(dir.path(), 1).unwrap();
        assert!(!old.exists());
        for path in [&fresh, &other, &locked] {
            assert!(path.join("port7.pcap").exists(), "{}", path.display());
        }
        assert!(link.exists());
        // A run that goes on holds its own.
        let own = dir.path().join(&running.private_name);
        let then = SystemTime::now() - Duration::from_secs(1000);
        File::open(&own).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
        drop(Outputs::new(dir.path(), 1).unwrap());
        assert!(own.exists());
    }

    #[test]
    fn all_files_get_their_names_or_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("port2.pcap")).unwrap();
        let mut out = Outputs::new(dir.path(), 1).unwrap();
        for port in [1, 2] {
            out.write(port, 0, &[0; 60], 60).unwrap();
        }
        let CaptureError(why) = out.finish().unwrap_err();
        assert!(why.contains("port2.pcap: cannot be written: it is a directory"), "{why}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_time_that_a_file_cannot_hold_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Outputs::new(dir.path(), 1).unwrap();
        out.write(1, (LAST_S + 1) * 1_000_000_000 - 1, &[0; 60], 60).unwrap();
        let CaptureError(why) = out.write(1, (LAST_S + 1) * 1_000_000_000, &[0; 60], 60).unwrap_err();
        assert!(
            why.contains("port1.pcap: cannot be written: a packet's time is after February 2106"),
            "{why}"
        );
    }
}
