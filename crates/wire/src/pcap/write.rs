//! One pcap file per port (nanoseconds, little-endian), made in a directory that nobody else can enter and moved when all is
//! written, so that nobody ever sees half a file, and a name that somebody has prepared leads nowhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};

use super::error::{CaptureError, Result, plain, unwritable};
use super::format::{WHOLE, file_header, packet_header};

/// Bytes that wait in memory, over all ports, before they go to the files.
const FLUSH: usize = 16 << 20;

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
        let private_name = format!(".tidegate-{:016x}", RandomState::new().build_hasher().finish());
        mkdirat(&place, &private_name, Mode::RWXU).map_err(refused)?;
        let private =
            openat(&place, &private_name, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(refused)?;
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
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let number = name.strip_prefix("port").and_then(|n| n.strip_suffix(".pcap"));
                number.is_some_and(|n| n.parse::<u32>().is_ok()) && !written.iter().any(|w| w.path == *path)
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
