//! Reads a file ahead, on a thread of its own: what is read and what is unpacked costs whoever looks at the packets no time where there is
//! a second processor.

use std::io::{Error, Read, Result};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

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
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Gives the file back if there can be no thread, or no processor is there for it.
    pub fn start(
        file: Box<dyn Read + Send + Sync>,
    ) -> std::result::Result<Ahead, Box<dyn Read + Send + Sync>> {
        if !std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            return Err(file);
        }
        Ahead::spawn(file)
    }

    fn spawn(file: Box<dyn Read + Send + Sync>) -> std::result::Result<Ahead, Box<dyn Read + Send + Sync>> {
        let (filled, full) = channel();
        let (empty, emptied) = channel();
        let (hand, taken) = channel::<Box<dyn Read + Send + Sync>>();
        let work = move || {
            if let Ok(file) = taken.recv() {
                fill(file, &emptied, &filled);
            }
        };
        let Ok(thread) = std::thread::Builder::new().name("read ahead".into()).spawn(work) else {
            return Err(file);
        };
        for _ in 0..BLOCKS {
            // Both ends are there.
            let _ = empty.send(vec![0; ROOM + BLOCK]);
        }
        match hand.send(file) {
            Ok(()) => Ok(Ahead { full: Mutex::new(full), empty, thread: Some(thread) }),
            Err(back) => Err(back.0),
        }
    }

    /// The next block: its bytes begin at [`ROOM`], and there are so many; none at the end.
    ///
    /// # Panics
    /// As the thread did.
    pub fn next(&mut self) -> Block {
        let full = self.full.get_mut().map_err(|_| Error::other("the thread that reads has failed"))?;
        if let Ok(block) = full.recv() {
            return block;
        }
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
        Ok((Vec::new(), 0))
    }

    /// A block whose bytes have been looked at. One that a long packet has made larger does not stay so.
    pub fn give_back(&mut self, mut block: Vec<u8>) {
        block.truncate(ROOM + BLOCK);
        block.shrink_to(ROOM + BLOCK);
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    fn ahead(file: impl Read + Send + Sync + 'static) -> Ahead {
        Ahead::spawn(Box::new(file)).ok().expect("there can be a thread")
    }

    struct Panics(u8);

    impl Read for Panics {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            assert!(self.0 > 0, "out of blocks");
            self.0 -= 1;
            buffer[0] = self.0;
            Ok(1)
        }
    }

    #[test]
    fn a_panic_of_the_thread_is_not_the_end_of_the_file() {
        let mut ahead = ahead(Panics(2));
        for expected in [1, 0] {
            let (block, count) = ahead.next().unwrap();
            assert_eq!((block[ROOM], count), (expected, 1));
        }
        let panic = catch_unwind(AssertUnwindSafe(|| ahead.next())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"out of blocks"));
    }

    #[test]
    fn an_error_comes_after_what_was_read() {
        struct Fails(bool);
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> Result<usize> {
                if std::mem::replace(&mut self.0, true) { Err(Error::other("no more")) } else { Ok(7) }
            }
        }
        let mut ahead = ahead(Fails(false));
        assert_eq!(ahead.next().unwrap().1, 7);
        assert_eq!(ahead.next().unwrap_err().to_string(), "no more");
        assert_eq!(ahead.next().unwrap().1, 0);
    }

    #[test]
    fn the_thread_ends_with_its_reader() {
        struct Endless(Sender<()>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                Ok(buffer.len())
            }
        }
        impl Drop for Endless {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (send, ended) = channel();
        let mut ahead = ahead(Endless(send));
        ahead.next().unwrap();
        assert!(ended.recv_timeout(Duration::from_millis(10)).is_err());
        drop(ahead);
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn a_block_does_not_stay_as_large_as_a_long_packet() {
        let mut ahead = ahead(std::io::repeat(7));
        for _ in 0..3 * BLOCKS {
            let (mut block, count) = ahead.next().unwrap();
            assert_eq!(count, BLOCK);
            block.resize(1 << 24, 0);
            ahead.give_back(block);
        }
    }
}
