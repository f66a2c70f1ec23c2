//! HardInfo's Zlib: text is compressed, and (as its later versions do) uncompressed; one unit is a block of 16 KiB.
//!
//! By miniz_oxide at zlib's default level, in buffers that are made once: what is asked is the processor, not the memory
//! allocator. Work is the bytes of the text.

use std::hint::black_box;

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress, create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::super::{Probe, Reader};
use super::text::text;

const PARTS: [&str; 2] = ["compress", "uncompress"];
const BLOCK: usize = 1 << 14;
const BLOCKS: usize = 4;
const MAX_UNITS: u64 = 1000;
/// zlib's default.
const LEVEL: i32 = 6;
/// Marks the format with zlib's header and sum.
const WINDOW_BITS: i32 = 15;
const FLAGS: u32 = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
    | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
    | inflate_flags::TINFL_FLAG_COMPUTE_ADLER32;

struct Zlib {
    text: Vec<u8>,
    compressor: Box<CompressorOxide>,
    decompressor: Box<DecompressorOxide>,
    /// Each block as it was compressed first.
    packed: Vec<Vec<u8>>,
    space: Vec<u8>,
    /// The block that each part does next.
    next: [usize; 2],
    wrong: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Zlib::new().map(|probe| Box::new(probe) as Box<dyn Probe>)
}

impl Zlib {
    fn new() -> Result<Self, String> {
        let flags = create_comp_flags_from_zip_params(LEVEL, WINDOW_BITS, 0);
        let mut probe = Self {
            text: text(BLOCKS * BLOCK),
            compressor: Box::new(CompressorOxide::new(flags)),
            decompressor: Box::default(),
            packed: Vec::new(),
            space: vec![0; 2 * BLOCK],
            next: [0; 2],
            wrong: 0,
        };
        for block in 0..BLOCKS {
            let length = probe.compress(block).ok_or("a block of text could not be compressed")?;
            probe.packed.push(probe.space[..length].to_vec());
        }
        Ok(probe)
    }

    /// Compresses a block into the space; how long it became there.
    fn compress(&mut self, block: usize) -> Option<usize> {
        let text = &self.text[block * BLOCK..(block + 1) * BLOCK];
        self.compressor.reset();
        let (status, taken, given) =
            compress(&mut self.compressor, black_box(text), &mut self.space, TDEFLFlush::Finish);
        (status == TDEFLStatus::Done && taken == BLOCK).then_some(given)
    }

    /// Uncompresses a block into the space; whether it is the text.
    fn uncompress(&mut self, block: usize) -> bool {
        self.decompressor.init();
        let packed = black_box(&self.packed[block]);
        let (status, _, given) = decompress(&mut self.decompressor, packed, &mut self.space, 0, FLAGS);
        let text = &self.text[block * BLOCK..(block + 1) * BLOCK];
        status == TINFLStatus::Done && given == BLOCK && self.space[..BLOCK] == *text
    }
}

impl Probe for Zlib {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, part: usize, units: u64) -> u64 {
        for _ in 0..units {
            let block = self.next[part];
            self.next[part] = (block + 1) % BLOCKS;
            let right = if part == 0 {
                self.compress(block).is_some_and(|length| self.space[..length] == self.packed[block])
            } else {
                self.uncompress(block)
            };
            self.wrong += u64::from(!right);
        }
        units * BLOCK as u64
    }

    fn verify(&mut self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => {
                Err(format!("{wrong} blocks were not compressed as the first time, or not uncompressed to the text"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compressed_and_comes_back() {
        let mut probe = Zlib::new().unwrap();
        assert!(probe.packed.iter().all(|packed| (BLOCK / 10..BLOCK / 2).contains(&packed.len())));
        assert_eq!((probe.run(0, 9), probe.run(1, 9)), (9 << 14, 9 << 14));
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn other_bytes_are_found() {
        let mut probe = Zlib::new().unwrap();
        probe.text[5] ^= 1;
        probe.run(0, 4);
        assert_eq!(probe.wrong, 1);
        probe = Zlib::new().unwrap();
        probe.packed[1][100] ^= 1;
        probe.run(1, 4);
        assert!(probe.verify().is_err());
    }
}
