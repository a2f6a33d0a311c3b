//! The XDP program that hands an interface's packets to AF_XDP sockets, one for each receive queue, each with the time at which it
//! came in front of it.
//!
//! Twenty instructions, written down here rather than compiled, so that a build needs no BPF compiler. They are attached by a link
//! that goes with its descriptor: a process that dies leaves nothing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes in front of a packet that hold when it came, in nanoseconds of the monotonic clock.
pub const STAMP: usize = 8;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const SOCKET_MAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// How a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// By the driver, before the kernel makes a packet of it.
    Native,
    /// By the kernel, on any interface.
    Generic,
}

/// Padded to what the kernel may look at.
#[repr(C)]
struct Attributes<T> {
    given: T,
    rest: [u64; 16],
}

fn call<T>(command: libc::c_int, given: T) -> io::Result<libc::c_int> {
    let mut attributes = Attributes { given, rest: [0; 16] };
    let size = size_of::<Attributes<T>>();
    // SAFETY: the attributes are as long as is said, and what they point to lives as long as the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(&mut attributes), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// A call that gives a new descriptor.
fn make<T>(command: libc::c_int, given: T) -> io::Result<OwnedFd> {
    let descriptor = call(command, given)?;
    // SAFETY: it has just been made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sockets by receive queue.
pub fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    make(MAP_CREATE, [SOCKET_MAP, 4, 4, queues])
}

/// Has the packets of a queue go to a socket.
pub fn set_socket(map: &OwnedFd, queue: u32, socket: RawFd) -> io::Result<()> {
    let (key, value) = (queue, socket as u32);
    let (key, value) = (std::ptr::from_ref(&key) as u64, std::ptr::from_ref(&value) as u64);
    call(MAP_UPDATE, [map.as_raw_fd() as u64, key, value, 0]).map(|_| ())
}

/// One instruction: code, destination and source register, offset, immediate value.
fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let registers = u64::from(to | from << 4);
    u64::from(code) | registers << 8 | u64::from(offset as u16) << 16 | u64::from(value as u32) << 32
}

const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const ADD_VALUE: u8 = 0x07;
const LOAD_32: u8 = 0x61;
const STORE_64: u8 = 0x7b;
const LOAD_MAP: u8 = 0x18;
const JUMP_UNLESS_ZERO: u8 = 0x55;
const JUMP_GREATER: u8 = 0x2d;
/// Helpers.
const CLOCK: i32 = 5;
const REDIRECT: i32 = 51;
const ADJUST_META: i32 = 54;
/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;
/// What becomes of a packet that has no socket: the kernel has it.
const PASS: i32 = 2;

/// Loads the program for a map of sockets.
pub fn program(map: &OwnedFd) -> io::Result<OwnedFd> {
    let code = [
        instruction(MOVE, 6, 1, 0, 0),
        // Makes room for the stamp; a driver that has none leaves it out.
        instruction(MOVE_VALUE, 2, 0, 0, -(STAMP as i32)),
        instruction(CALL, 0, 0, 0, ADJUST_META),
        instruction(JUMP_UNLESS_ZERO, 0, 0, 8, 0),
        instruction(CALL, 0, 0, 0, CLOCK),
        instruction(MOVE, 7, 0, 0, 0),
        instruction(LOAD_32, 2, 6, DATA, 0),
        instruction(LOAD_32, 1, 6, DATA_META, 0),
        instruction(MOVE, 3, 1, 0, 0),
        instruction(ADD_VALUE, 3, 0, 0, STAMP as i32),
        // The verifier wants to see that it is there.
        instruction(JUMP_GREATER, 3, 2, 1, 0),
        instruction(STORE_64, 1, 7, 0, 0),
        instruction(LOAD_MAP, 1, 1, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(LOAD_32, 2, 6, QUEUE, 0),
        instruction(MOVE_VALUE, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        code: u64,
        license: u64,
        log: [u32; 2],
        log_buffer: u64,
        version_and_flags: [u32; 2],
        name: [u8; 16],
        interface: u32,
        attach: u32,
    }
    let mut name = [0; 16];
    name[..8].copy_from_slice(b"tidegate");
    let load = Load {
        kind: PROGRAM_XDP,
        count: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log: [0; 2],
        log_buffer: 0,
        version_and_flags: [0; 2],
        name,
        interface: 0,
        attach: ATTACH_XDP,
    };
    make(PROGRAM_LOAD, load)
}

/// Attaches a program to an interface of this thread's namespace, until the link is closed.
pub fn attach(program: &OwnedFd, interface: i32, how: Attach) -> io::Result<OwnedFd> {
    let flags = match how {
        Attach::Native => 1 << 2,
        Attach::Generic => 1 << 1,
    };
    make(LINK_CREATE, [program.as_raw_fd() as u32, interface as u32, ATTACH_XDP, flags])
}
