//! Memory for direct I/O.

use dbdyno_common::random::Random;

/// Direct I/O needs the memory, the offset and the length to be multiples of the drive's sector, 4 KiB at the most.
const ALIGN_BYTES: usize = 4096;

/// Bytes that direct I/O takes, and that a drive or filesystem can't compress.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let memory: Vec<u8> =
            (0..(length + ALIGN_BYTES).div_ceil(8)).flat_map(|_| random.bits().to_ne_bytes()).collect();
        let start = memory.as_ptr().align_offset(ALIGN_BYTES);
        Self { memory, start, length }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }

    /// Makes every sector unlike all written before, so that nothing is found to be there already.
    pub fn stamp(&mut self, mark: u64) {
        for (sector, number) in self.bytes_mut().chunks_mut(ALIGN_BYTES).zip(0_u64..) {
            sector[..8].copy_from_slice(&mark.wrapping_add(number).to_ne_bytes());
        }
    }
}
