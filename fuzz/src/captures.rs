//! Any bytes as a capture: packets or an error, and no more packets and bytes than a file of that size can hold.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use wire::pcap::Reader;

/// A file without a name holds the bytes: readers open it by its descriptor.
pub fn captures(bytes: &[u8]) {
    let mut file = unnamed();
    file.write_all(bytes).expect("memory");
    file.seek(SeekFrom::Start(0)).expect("a file of ours");
    let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
    let Ok(mut reader) = Reader::open(&path) else { return };
    let packed = is_packed(bytes);
    let (mut packet, mut total) = (Vec::new(), 0);
    while let Ok(Some(found)) = reader.next(&mut packet) {
        assert!(found.wire_len as usize >= packet.len());
        total += packet.len() + 1;
        assert!(packed || total <= bytes.len(), "{total} bytes of {}", bytes.len());
        if total > 1 << 20 {
            break;
        }
    }
}

/// Whether a file begins as gzip's (RFC 1952 section 2.3.1) or as zstd's, whose first frame can be one to skip (RFC 8878 section 3.1).
fn is_packed(bytes: &[u8]) -> bool {
    match bytes {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => true,
        [first, 0x2a, 0x4d, 0x18, ..] => first >> 4 == 5,
        _ => false,
    }
}

fn unnamed() -> File {
    rustix::fs::memfd_create("capture", rustix::fs::MemfdFlags::CLOEXEC).expect("memory").into()
}
