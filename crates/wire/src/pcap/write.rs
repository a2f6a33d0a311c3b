//! One pcap file per port (nanoseconds, little-endian), made under another name and renamed when all is written, so that
//! nobody ever sees half a file.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::{CaptureError, Result, plain, unwritable};
use super::format::{WHOLE, file_header, packet_header};

/// Bytes that wait in memory, over all ports, before they go to the files.
const FLUSH: usize = 16 << 20;

struct Port {
    temporary: PathBuf,
    buffer: Vec<u8>,
    /// The file is there.
    made: bool,
    packets: u64,
    bytes: u64,
}

/// A finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub port: u32,
    pub path: PathBuf,
    pub packets: u64,
    pub bytes: u64,
}

pub struct Outputs {
    dir: PathBuf,
    link_type: u32,
    ports: BTreeMap<u32, Port>,
    waiting: usize,
}

impl Outputs {
    /// Makes the directory if it is not there.
    pub fn new(dir: &Path, link_type: u32) -> Result<Outputs> {
        fs::create_dir_all(dir).map_err(|e| {
            let why = if dir.exists() { "it is not a directory".to_owned() } else { plain(&e) };
            CaptureError(format!("{}: cannot be made: {why}", dir.display()))
        })?;
        // Better to learn now than after all packets that nothing can be written here.
        let probe = dir.join(format!(".probe.{}.part", std::process::id()));
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|e| unwritable(dir, &e))?;
        Ok(Outputs { dir: dir.to_owned(), link_type, ports: BTreeMap::new(), waiting: 0 })
    }

    /// `time` in nanoseconds; `wire_len` at least the number of bytes.
    pub fn write(&mut self, port: u32, time: u64, bytes: &[u8], wire_len: u32) -> Result<()> {
        let (dir, link_type) = (&self.dir, self.link_type);
        let out = self.ports.entry(port).or_insert_with(|| {
            let temporary = dir.join(format!(".port{port}.{}.part", std::process::id()));
            let buffer = file_header(link_type, WHOLE).to_vec();
            Port { temporary, buffer, made: false, packets: 0, bytes: 0 }
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
        for port in self.ports.values_mut().filter(|p| !p.buffer.is_empty()) {
            let mut options = OpenOptions::new();
            if port.made {
                options.append(true)
            } else {
                options.write(true).create(true).truncate(true)
            };
            let mut file = options.open(&port.temporary).map_err(|e| unwritable(&self.dir, &e))?;
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
            let path = self.dir.join(format!("port{port}.pcap"));
            fs::rename(&out.temporary, &path).map_err(|e| unwritable(&path, &e))?;
            out.made = false;
            written.push(Written { port: *port, path, packets: out.packets, bytes: out.bytes });
        }
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
        for port in self.ports.values().filter(|p| p.made) {
            // Nothing more can be done if it does not go away.
            let _ = fs::remove_file(&port.temporary);
        }
    }
}
