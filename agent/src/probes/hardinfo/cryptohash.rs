//! HardInfo's CryptoHash: MD5 and SHA-1 of 64 KiB of text; one unit is one of each.
//!
//! Both hashes are in plain code: a form for processors with instructions for SHA would run on one platform and not on
//! another that hides those, and HardInfo's own has none.

use std::hint::black_box;

use md5::{Digest, Md5};
use sha1::Sha1;

use super::super::{Probe, Reader};
use super::text::text;

const PARTS: [&str; 1] = ["bytes"];
const BYTES: usize = 1 << 16;
const MAX_UNITS: u64 = 100;
/// The text's sums by md5sum and sha1sum of coreutils.
const MD5: [u8; 16] = [0x35, 0xa8, 0xb6, 0x53, 0x2c, 0xa2, 0xdd, 0x8b, 0xb0, 0x44, 0x03, 0xfd, 0xf7, 0x2e, 0x91, 0x63];
const SHA1: [u8; 20] = [
    0xd4, 0x08, 0x50, 0xea, 0xb1, 0xfc, 0xad, 0x03, 0xf0, 0xaf, 0xa1, 0x71, 0x0e, 0x1f, 0x0d, 0x0c, 0xea, 0x07, 0xcb,
    0xb2,
];

struct CryptoHash {
    text: Vec<u8>,
    wrong: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(CryptoHash { text: text(BYTES), wrong: 0 }))
}

impl Probe for CryptoHash {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            let md5 = Md5::digest(black_box(&self.text));
            let sha1 = Sha1::digest(black_box(&self.text));
            self.wrong += u64::from(md5[..] != MD5 || sha1[..] != SHA1);
        }
        units * 2 * BYTES as u64
    }

    fn verify(&mut self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} times the hashes were not those of the text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_text() {
        let mut probe = CryptoHash { text: text(BYTES), wrong: 0 };
        assert_eq!(probe.run(0, 3), 6 << 16);
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn another_text_is_found() {
        let mut probe = CryptoHash { text: text(BYTES), wrong: 0 };
        probe.text[BYTES - 1] ^= 1;
        probe.run(0, 2);
        assert!(probe.verify().unwrap_err().contains("2 times"));
    }
}
