//! Reads a file ahead, on a thread of its own: what is read and what is unpacked costs whoever looks at the packets no time where there is
//! a second processor.

use std::io::{Error, Read, Result};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a block, and blocks that are on their way.
const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 4;
/// Room before a block's bytes, for what was left of the one before.
pub(super) const ROOM: usize = 1 << 16;

type Block = Result<(Vec<u8>, usize)>;

/// Blocks that were read, and those that may be filled again.
pub(super) struct Ahead {
    full: Mutex<Receiver<Block>>,
    empty: Sender<Vec<u8>>,
}

impl Ahead {
    /// Gives the file back if there can be no thread.
    pub fn start(
        file: Box<dyn Read + Send + Sync>,
    ) -> std::result::Result<Ahead, Box<dyn Read + Send + Sync>> {
        let (filled, full) = channel();
        let (empty, emptied) = channel();
        let (hand, taken) = channel::<Box<dyn Read + Send + Sync>>();
        let work = move || {
            if let Ok(file) = taken.recv() {
                fill(file, &emptied, &filled);
            }
        };
        if std::thread::Builder::new().name("read ahead".into()).spawn(work).is_err() {
            return Err(file);
        }
        for _ in 0..BLOCKS {
            // Both ends are there.
            let _ = empty.send(vec![0; ROOM + BLOCK]);
        }
        match hand.send(file) {
            Ok(()) => Ok(Ahead { full: Mutex::new(full), empty }),
            Err(back) => Err(back.0),
        }
    }

    /// The next block: its bytes begin at [`ROOM`], and there are so many; none at the end.
    pub fn next(&mut self) -> Block {
        let full = self.full.get_mut().map_err(|_| Error::other("the thread that reads has failed"))?;
        full.recv().unwrap_or_else(|_| Ok((Vec::new(), 0)))
    }

    /// A block whose bytes have been looked at.
    pub fn give_back(&mut self, block: Vec<u8>) {
        // After the end nobody takes it.
        let _ = self.empty.send(block);
    }
}

/// Until the file ends or fails, or nobody wants it.
fn fill(mut file: Box<dyn Read + Send + Sync>, emptied: &Receiver<Vec<u8>>, filled: &Sender<Block>) {
    while let Ok(mut block) = emptied.recv() {
        if block.len() < ROOM + BLOCK {
            block.resize(ROOM + BLOCK, 0);
        }
        let read = loop {
            match file.read(&mut block[ROOM..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let ends = !matches!(read, Ok(count) if count > 0);
        if filled.send(read.map(|count| (block, count))).is_err() || ends {
            return;
        }
    }
}
