//! A CRC as one would write it for data of a known length.

/// Tables of a reflected CRC: of a byte, and of what it comes to one, two and three bytes later.
pub struct Crc {
    tables: [[u32; 256]; 4],
    first: u32,
}

impl Crc {
    pub fn new(polynomial: u32, first: u32) -> Crc {
        let mut tables = [[0; 256]; 4];
        for (byte, entry) in tables[0].iter_mut().enumerate() {
            let step = |sum: u32, _| sum >> 1 ^ if sum & 1 == 1 { polynomial } else { 0 };
            *entry = (0..8).fold(byte as u32, step);
        }
        for step in 1..4 {
            for byte in 0..256 {
                let before = tables[step - 1][byte];
                tables[step][byte] = before >> 8 ^ tables[0][before as usize & 255];
            }
        }
        Crc { tables, first }
    }

    /// Bytes at compile time as many as they are: the loops are unrolled.
    #[inline]
    pub fn sum<const N: usize>(&self, data: &[u8; N]) -> u32 {
        let mut sum = self.first;
        let [last, third, second, first] = &self.tables;
        let (words, rest) = data.as_chunks::<4>();
        for word in words {
            let [a, b, c, d] = (sum ^ u32::from_le_bytes(*word)).to_le_bytes().map(usize::from);
            sum = first[a] ^ second[b] ^ third[c] ^ last[d];
        }
        for byte in rest {
            sum = sum >> 8 ^ last[usize::from(sum as u8 ^ byte)];
        }
        sum ^ self.first
    }
}
