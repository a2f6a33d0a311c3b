//! Frames to an interface by AF_PACKET, in batches, and put together where that is wanted.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

use libc::{c_int, iovec, mmsghdr};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use wire::packet::Written;

use crate::interface::{Interface, bind_packet, set, socket};
use crate::merge::{Head, VNET_HEADER, head, together};
use crate::port::{BATCH, Counts, fits};

/// Room for what the kernel has not got rid of yet.
const SEND_BUFFER: c_int = 16 << 20;

#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
    merge: bool,
    mtu: usize,
    heads: Vec<Head>,
}

impl PacketSender {
    /// To be called in the interface's namespace.
    pub fn open(interface: &Interface, merge: bool) -> io::Result<PacketSender> {
        let socket = socket(AddressFamily::PACKET, SocketType::RAW, SocketFlags::NONBLOCK)?;
        let fd = socket.as_raw_fd();
        // What an interface cannot cut up itself is cut up in its queue.
        let option = if merge { libc::PACKET_VNET_HDR } else { libc::PACKET_QDISC_BYPASS };
        set(fd, libc::SOL_PACKET, option, &1)?;
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER)?;
        // It receives nothing.
        bind_packet(fd, interface.index, 0)?;
        Ok(PacketSender { socket, merge, mtu: interface.mtu() as usize, heads: Vec::with_capacity(BATCH) })
    }

    pub fn send(&mut self, frames: &[Box<Written>], counts: &mut Counts) {
        let mtu = self.mtu;
        for run in frames.chunk_by(|a, b| fits(a, mtu) == fits(b, mtu)) {
            if fits(&run[0], mtu) {
                run.chunks(BATCH).for_each(|batch| self.send_batch(batch, counts));
            } else {
                counts.wrong_size += run.len() as u64;
            }
        }
    }

    fn send_batch(&mut self, batch: &[Box<Written>], counts: &mut Counts) {
        const NONE: iovec = iovec { iov_base: null_mut(), iov_len: 0 };
        let plain = [0u8; VNET_HEADER];
        let part = |bytes: &[u8]| iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // Each message is a head, if there is one, and payloads.
        let mut parts = [NONE; 2 * BATCH];
        let mut spans = [(0, 0, 0); BATCH];
        let (mut used, mut messages) = (0, 0);
        self.heads.clear();
        let mut first = 0;
        while first < batch.len() {
            let (start, mut payload) = (used, 0);
            let mut count = if self.merge { together(&batch[first..]) } else { 1 };
            if self.merge {
                let merged = if count > 1 { head(&batch[first..first + count]) } else { None };
                match merged {
                    Some((made, from)) => {
                        self.heads.push(made);
                        // There is room for a batch of them, so that they stay where they are.
                        parts[used] = part(self.heads[self.heads.len() - 1].bytes());
                        payload = from;
                    }
                    None => {
                        count = 1;
                        parts[used] = part(&plain);
                    }
                }
                used += 1;
            }
            for frame in &batch[first..first + count] {
                parts[used] = part(&frame[payload..]);
                used += 1;
            }
            spans[messages] = (start, used - start, count);
            messages += 1;
            first += count;
        }
        // SAFETY: all zeros is a value of this type.
        let mut headers: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (header, (start, length, _)) in headers.iter_mut().zip(&spans[..messages]) {
            header.msg_hdr.msg_iov = &mut parts[*start];
            header.msg_hdr.msg_iovlen = *length as _;
        }
        let (mut done, mut frame) = (0, 0);
        while done < messages {
            let (fd, left) = (self.socket.as_raw_fd(), (messages - done) as u32);
            // SAFETY: each message points to parts, and each part to bytes, which the kernel only reads.
            let sent =
                unsafe { libc::sendmmsg(fd, headers[done..].as_mut_ptr(), left, libc::MSG_DONTWAIT as _) };
            // Of none taken, the first was refused; the others may not be.
            let (taken, refused) = usize::try_from(sent).map_or((0, 1), |sent| (sent, 0));
            for (_, _, count) in &spans[done..done + taken] {
                counts.sent += *count as u64;
                counts.merged += if *count > 1 { *count as u64 } else { 0 };
                counts.sent_bytes += batch[frame..frame + count].iter().map(|f| f.len() as u64).sum::<u64>();
                frame += count;
            }
            if refused > 0 {
                counts.refused += spans[done].2 as u64;
                frame += spans[done].2;
            }
            done += taken + refused;
        }
    }
}
