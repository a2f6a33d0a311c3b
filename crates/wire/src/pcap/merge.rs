//! Several captures as one stream, in the order of time.
//!
//! Of packets with the same time the one of the file that was named first comes first. Within a file the order is that
//! of the file: a packet that is stamped earlier than the one before it comes at the time of the one before it.

use super::error::Result;
use super::read::{Reader, Upcoming};
use super::source::Packet;

struct Input {
    port: u32,
    reader: Reader,
    bytes: Vec<u8>,
    next: Option<Packet>,
    /// Nanoseconds that are added to its packets' times.
    shift: i64,
    latest: u64,
    backwards: u64,
}

impl Input {
    fn advance(&mut self) -> Result<()> {
        self.next = self.reader.next(&mut self.bytes)?;
        if let Some(packet) = &mut self.next {
            packet.time = packet.time.saturating_add_signed(self.shift);
            packet.behind = self.latest.saturating_sub(packet.time);
            self.backwards += u64::from(packet.behind > 0);
            packet.time += packet.behind;
            self.latest = packet.time;
        }
        Ok(())
    }
}

/// Input number, port, packet and bytes.
pub type Arrival<'a> = (usize, u32, Packet, &'a [u8]);

pub struct Merge {
    inputs: Vec<Input>,
    /// The input whose packet was given out last.
    current: Option<usize>,
    done: bool,
}

impl Merge {
    pub fn new(readers: Vec<(u32, Reader)>) -> Result<Merge> {
        Merge::shifted(readers.into_iter().map(|(port, reader)| (port, reader, 0)).collect())
    }

    /// As [`Merge::new`], with nanoseconds that are added to the times of each reader's packets.
    pub fn shifted(readers: Vec<(u32, Reader, i64)>) -> Result<Merge> {
        let mut inputs = Vec::new();
        for (port, reader, shift) in readers {
            let (bytes, next) = (Vec::new(), None);
            let mut input = Input { port, reader, bytes, next, shift, latest: 0, backwards: 0 };
            input.advance()?;
            inputs.push(input);
        }
        Ok(Merge { inputs, current: None, done: false })
    }

    /// The next packet, while none is taken: before the first, and after [`Merge::next_until`] gave none.
    pub fn first(&self) -> Option<Packet> {
        self.inputs.iter().filter_map(|input| input.next).min_by_key(|packet| packet.time)
    }

    /// The next packet, if it came at `until` (nanoseconds) or before.
    pub fn next_until(&mut self, until: u64) -> Result<Option<Arrival<'_>>> {
        if let Some(current) = self.current.take() {
            self.inputs[current].advance()?;
        }
        let first = self
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(i, input)| Some((input.next?.time, i, input.next?)))
            .min_by_key(|(time, i, _)| (*time, *i));
        let Some((time, index, packet)) = first else {
            self.done = true;
            return Ok(None);
        };
        if time > until {
            return Ok(None);
        }
        self.current = Some(index);
        let input = &self.inputs[index];
        Ok(Some((index, input.port, packet, &input.bytes)))
    }

    /// A look at packets of the file whose packet was given out last that come behind that one; see [`Reader::upcoming`].
    #[inline]
    pub fn upcoming(&self) -> Option<Upcoming<'_>> {
        Some(self.inputs[self.current?].reader.upcoming())
    }

    /// Packets that were stamped earlier than the one before them in their file.
    pub fn backwards(&self) -> u64 {
        self.inputs.iter().map(|input| input.backwards).sum()
    }

    /// Whether all packets have been taken, and somebody asked for more.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Port and reader of each input.
    pub fn inputs(&self) -> impl Iterator<Item = (u32, &Reader)> {
        self.inputs.iter().map(|i| (i.port, &i.reader))
    }
}
