//! The packets of one or more capture files.

use wire::pcap::{Merge, Packet, Reader};

use crate::Failure;
use crate::capture::Options;

/// The number of a packet's file, the packet, and its bytes.
pub type Arrival<'a> = (usize, Packet, &'a [u8]);

/// A single file, whose packets are looked at where they were read to.
pub struct Single {
    reader: Reader,
    /// The first packet, until it is taken.
    first: Option<Packet>,
    bytes: Vec<u8>,
}

/// The packets of all files: those of several in the order of their times, and within a file as they are there (see [`Merge`]).
pub enum Input {
    One(Box<Single>),
    Several(Merge),
}

impl Input {
    /// The files of the first tap, and behind these those of the second.
    pub fn open(options: &Options) -> Result<Input, Failure> {
        let (files, second) = (&options.files, options.second.as_ref());
        if let ([file], None) = (&files[..], second) {
            let (mut reader, mut bytes) = (Reader::open(file)?, Vec::new());
            let first = reader.next(&mut bytes)?;
            return Ok(Input::One(Box::new(Single { reader, first, bytes })));
        }
        let behind = second.iter().flat_map(|tap| tap.files.iter().map(|path| (path, tap.offset)));
        let readers = files.iter().map(|path| (path, 0)).chain(behind);
        let readers = readers
            .map(|(path, shift)| Ok((0, Reader::open(path)?, shift)))
            .collect::<Result<_, Failure>>()?;
        Ok(Input::Several(Merge::shifted(readers)?))
    }

    /// When the first packet came; before any is taken.
    pub fn begin(&self) -> u64 {
        let first = match self {
            Input::One(single) => single.first,
            Input::Several(merge) => merge.first(),
        };
        first.map_or(0, |packet| packet.time)
    }

    /// The next packet.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Arrival<'_>>, Failure> {
        match self {
            Input::One(single) => {
                let Single { reader, first, bytes } = &mut **single;
                let found = match first.take() {
                    Some(packet) => Some((packet, &bytes[..])),
                    None => reader.next_here()?,
                };
                Ok(found.map(|(packet, bytes)| (0, packet, bytes)))
            }
            Input::Several(merge) => {
                Ok(merge.next_until(u64::MAX)?.map(|(file, _, packet, bytes)| (file, packet, bytes)))
            }
        }
    }

    pub fn readers(&self) -> Vec<&Reader> {
        match self {
            Input::One(single) => vec![&single.reader],
            Input::Several(merge) => merge.inputs().map(|(_, reader)| reader).collect(),
        }
    }
}
