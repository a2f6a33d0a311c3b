//! An AF_XDP socket: rings that the kernel and this process share, and memory for packets that both see.
//!
//! Source: Documentation/networking/af_xdp.rst. Half of the memory's chunks are for packets that come: they go round between the
//! fill ring and the receive ring. The other half is for packets that go: between the transmit ring, the completion ring and a
//! list of free ones.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, xdp_desc};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::bpf::STAMP;
use crate::interface::{done, set, socket};

/// Chunks for packets that come, and as many for those that go. Powers of two, as rings want.
const CHUNKS: u32 = 2048;
/// What the kernel keeps free in front of a packet that comes.
const HEADROOM: usize = 256;
/// Packets that the kernel takes from a transmit ring at a time where it copies them.
const TAKEN_AT_A_TIME: u32 = 32;
/// Room for the packets that the kernel has made and that nobody has taken yet; its default holds about a hundred.
const SEND_BUFFER: c_int = 16 << 20;

/// Memory that is mapped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(length: usize, flags: c_int, fd: c_int, offset: libc::off_t) -> io::Result<Mapping> {
        // SAFETY: a new mapping, wherever the kernel wants it.
        let start =
            unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of so many bytes that begin `back` bytes in front of a place, which counts from the mapping's start.
    ///
    /// # Panics
    /// They are not all in the mapping.
    fn at(&self, place: u64, back: usize, length: usize) -> *mut u8 {
        let from = usize::try_from(place).ok().and_then(|place| place.checked_sub(back));
        let inside = from.filter(|from| from.checked_add(length).is_some_and(|end| end <= self.length));
        let from = inside.expect("an address of the kernel's that is not in the memory");
        // SAFETY: it is in the mapping.
        unsafe { self.start.as_ptr().add(from) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this mapping, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

// SAFETY: whoever has the mapping has its memory.
unsafe impl Send for Mapping {}

/// A ring of `T`, of which this process is the producer or the consumer.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    mask: u32,
    /// Where this process is.
    mine: u32,
    of: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn new(fd: RawFd, place: libc::off_t, at: &libc::xdp_ring_offset, size: u32) -> io::Result<Ring<T>> {
        let length = at.desc as usize + size as usize * size_of::<T>();
        let mapping = Mapping::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, fd, place)?;
        Ok(Ring {
            mapping,
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            entries: at.desc as usize,
            mask: size - 1,
            mine: 0,
            of: std::marker::PhantomData,
        })
    }

    fn number(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that there is a number there, which both sides only use as an atomic one.
        unsafe { AtomicU32::from_ptr(self.mapping.start.as_ptr().add(offset).cast()) }
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the ring has as many entries as the mask says.
        unsafe {
            self.mapping.start.as_ptr().add(self.entries).cast::<T>().add((number & self.mask) as usize)
        }
    }

    /// How many entries there are to consume.
    fn filled(&self) -> u32 {
        self.number(self.producer).load(Ordering::Acquire).wrapping_sub(self.mine)
    }

    /// How many of a producer's entries the kernel has not consumed yet.
    fn pending(&self) -> u32 {
        self.mine.wrapping_sub(self.number(self.consumer).load(Ordering::Acquire))
    }

    /// Takes the next entry; there must be one.
    fn take(&mut self) -> T {
        // SAFETY: the producer has written it, and does not touch it before it is given back.
        let entry = unsafe { self.entry(self.mine).read() };
        self.mine = self.mine.wrapping_add(1);
        entry
    }

    /// Gives back to the producer what has been taken.
    fn release(&self) {
        self.number(self.consumer).store(self.mine, Ordering::Release);
    }

    /// Puts an entry in; there must be room, and it is seen after [`Ring::publish`].
    fn put(&mut self, entry: T) {
        // SAFETY: the consumer does not touch it before it is published.
        unsafe { self.entry(self.mine).write(entry) };
        self.mine = self.mine.wrapping_add(1);
    }

    fn publish(&self) {
        self.number(self.producer).store(self.mine, Ordering::Release);
    }
}

/// A packet that has come, in the socket's memory. There is one of these for each chunk that the kernel has filled, and it is given up
/// when the chunk goes back to the kernel ([`XdpSocket::receive`]): so whoever has one may look at the chunk, and nobody has two.
#[derive(Debug)]
pub struct Arrived {
    address: u64,
    length: u32,
}

#[derive(Debug)]
pub struct XdpSocket {
    fd: OwnedFd,
    memory: Mapping,
    chunk: usize,
    fill: Ring<u64>,
    receive: Ring<xdp_desc>,
    transmit: Ring<xdp_desc>,
    completion: Ring<u64>,
    /// Chunks for packets that go.
    free: Vec<u64>,
}

/// Bytes of a chunk; `None`: such packets need more than one.
fn chunk_for(longest: usize) -> Option<usize> {
    [2048, 4096].into_iter().find(|chunk| HEADROOM + STAMP + longest <= *chunk)
}

/// Frames are in memory that is locked, for which there is a limit without CAP_IPC_LOCK; the kernel says that it has no buffers.
fn locked(error: io::Error, length: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOBUFS) {
        return error;
    }
    io::Error::other(format!(
        "{} MiB of memory cannot be locked; raise the limit, by `ulimit -l unlimited` or LimitMEMLOCK=infinity in a unit of systemd, or give CAP_IPC_LOCK",
        length >> 20
    ))
}

impl XdpSocket {
    /// The longest frame that fits, from Ethernet on.
    pub const LONGEST: usize = 4096 - HEADROOM - STAMP;

    /// A socket on a receive queue of an interface of this thread's namespace, for frames of up to `longest` bytes.
    pub fn open(interface: i32, queue: u32, longest: usize) -> io::Result<XdpSocket> {
        let chunk = chunk_for(longest).ok_or(io::Error::from_raw_os_error(libc::EMSGSIZE))?;
        let fd = socket(AddressFamily::XDP, SocketType::RAW, SocketFlags::empty())?;
        let raw = fd.as_raw_fd();
        set(raw, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER)?;
        let length = 2 * CHUNKS as usize * chunk;
        let memory =
            Mapping::new(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)?;
        // SAFETY: all zeros is a value of this type.
        let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        region.addr = memory.start.as_ptr() as u64;
        region.len = length as u64;
        region.chunk_size = chunk as u32;
        set(raw, libc::SOL_XDP, libc::XDP_UMEM_REG, &region).map_err(|e| locked(e, length))?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            set(raw, libc::SOL_XDP, ring, &CHUNKS)?;
        }
        // SAFETY: all zeros is a value of this type.
        let mut at: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        get(raw, libc::XDP_MMAP_OFFSETS, &mut at)?;
        let mut fill = Ring::new(raw, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &at.fr, CHUNKS)?;
        let receive = Ring::new(raw, libc::XDP_PGOFF_RX_RING, &at.rx, CHUNKS)?;
        let transmit = Ring::new(raw, libc::XDP_PGOFF_TX_RING, &at.tx, CHUNKS)?;
        let completion = Ring::new(raw, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t, &at.cr, CHUNKS)?;
        for number in 0..u64::from(CHUNKS) {
            fill.put(number * chunk as u64);
        }
        fill.publish();
        let free = (u64::from(CHUNKS)..2 * u64::from(CHUNKS)).map(|number| number * chunk as u64).collect();
        bind(raw, interface, queue)?;
        Ok(XdpSocket { fd, memory, chunk, fill, receive, transmit, completion, free })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next packets that have come, at most as many as `most`, in place of the last ones, which go back to the kernel.
    pub fn receive(&mut self, arrived: &mut Vec<Arrived>, most: usize) {
        for last in arrived.drain(..) {
            // Without a stamp of its own a packet would have that of the one before it.
            let stamp = self.memory.at(last.address, STAMP, STAMP);
            // SAFETY: the stamp is in the memory, and the chunk is not the kernel's yet.
            unsafe { stamp.cast::<u64>().write_unaligned(0) };
            self.fill.put(last.address - last.address % self.chunk as u64);
        }
        self.fill.publish();
        for _ in 0..self.receive.filled().min(most as u32) {
            let xdp_desc { addr, len, .. } = self.receive.take();
            arrived.push(Arrived { address: addr, length: len });
        }
        self.receive.release();
    }

    /// When a packet came, by the monotonic clock in nanoseconds, if that is known; and its bytes.
    pub fn packet(&self, arrived: &Arrived) -> (Option<u64>, &[u8]) {
        let length = arrived.length as usize;
        let stamp = self.memory.at(arrived.address, STAMP, STAMP);
        let start = self.memory.at(arrived.address, 0, length);
        // SAFETY: both are in the memory. The kernel has written the packet, and does not touch it before its chunk is given back, which
        // takes the `Arrived`; who changes it has the socket alone.
        unsafe {
            let stamp = stamp.cast::<u64>().read_unaligned();
            ((stamp != 0).then_some(stamp), std::slice::from_raw_parts(start, length))
        }
    }

    /// As [`XdpSocket::packet`], to change it.
    pub fn packet_mut(&mut self, arrived: &Arrived) -> &mut [u8] {
        let length = arrived.length as usize;
        let start = self.memory.at(arrived.address, 0, length);
        // SAFETY: as there.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }

    /// Takes back the chunks of packets that have gone.
    fn complete(&mut self) {
        for _ in 0..self.completion.filled() {
            let address = self.completion.take();
            self.free.push(address);
        }
        self.completion.release();
    }

    /// Puts a packet in the transmit ring, for the next [`XdpSocket::flush`]. False: there is no room, or it is longer than a chunk.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        if frame.len() > self.chunk {
            return false;
        }
        if self.free.is_empty() {
            self.complete();
        }
        let Some(address) = self.free.pop() else { return false };
        let to = self.memory.at(address, 0, frame.len());
        // SAFETY: the place is in the memory and as long as the frame, and the chunk is not the kernel's.
        unsafe { to.copy_from_nonoverlapping(frame.as_ptr(), frame.len()) };
        self.transmit.put(xdp_desc { addr: address, len: frame.len() as u32, options: 0 });
        true
    }

    /// Sends what is in the transmit ring, or leaves it there for the next time. False: the interface is down.
    pub fn flush(&mut self) -> bool {
        self.transmit.publish();
        let mut left = self.transmit.pending();
        // Linux 6.1 to 6.16 show what they have taken when they have taken all of it.
        let mut unseen = left / TAKEN_AT_A_TIME;
        let mut up = true;
        while left > 0 {
            // SAFETY: no memory is involved. The kernel takes some packets each time, and says so by the ring.
            let sent = unsafe {
                libc::sendto(self.fd.as_raw_fd(), null_mut(), 0, libc::MSG_DONTWAIT, null_mut(), 0)
            };
            if sent < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENETDOWN) {
                up = false;
                break;
            }
            let now = self.transmit.pending();
            if now == left {
                if unseen == 0 {
                    break;
                }
                unseen -= 1;
            }
            left = now;
        }
        self.complete();
        up
    }

    /// Packets that were lost because there was no room for them.
    pub fn lost(&self) -> u64 {
        // SAFETY: all zeros is a value of this type.
        let mut counts: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        match get(self.fd.as_raw_fd(), libc::XDP_STATISTICS, &mut counts) {
            Ok(()) => counts.rx_dropped + counts.rx_ring_full,
            Err(_) => 0,
        }
    }
}

fn get<T>(fd: RawFd, option: c_int, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is as long as is said.
    done(unsafe {
        libc::getsockopt(fd, libc::SOL_XDP, option, std::ptr::from_mut(value).cast(), &mut length)
    })
}

fn bind(fd: RawFd, interface: i32, queue: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: interface as u32,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the address is as long as is said.
    done(unsafe { libc::bind(fd, std::ptr::from_ref(&address).cast(), length) })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Whatever the kernel says, no byte beside the memory is read or written.
    #[test]
    fn addresses_are_within_the_memory_with_all_their_bytes() {
        let length = 2 * 4096;
        let memory = Mapping::new(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0).unwrap();
        for (place, back, count, inside) in [
            (0, 0, length, true),
            (0, 0, length + 1, false),
            (256, STAMP, STAMP, true),
            (STAMP as u64 - 1, STAMP, STAMP, false),
            (4096, 0, 4096, true),
            (4096, 0, 4097, false),
            (length as u64, 0, 0, true),
            (length as u64, 0, 1, false),
            (u64::MAX, 0, 1, false),
            (u64::MAX, 8, usize::MAX, false),
            (1 << 63, 0, 1, false),
            (16, 0, usize::MAX, false),
        ] {
            let found = catch_unwind(AssertUnwindSafe(|| memory.at(place, back, count)));
            assert_eq!(found.is_ok(), inside, "{place:#x} - {back}, {count} bytes");
            if let Ok(at) = found {
                // SAFETY: as found.
                unsafe { at.write_bytes(1, count) };
            }
        }
    }
}
