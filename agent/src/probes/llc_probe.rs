//! Reads 4 bytes of every 64 byte line of a buffer as large as the last-level cache, in order, again and again.
//!
//! Source: Anjali et al. 2020, section 4.2, who took LLCProbe from an earlier work. That one also balances its lines
//! over the cache's sets by their physical addresses, which a program does not see; here they lie as the system gave
//! them. A probe is one read; the study counts (by its figures) passes over the buffer.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 1] = ["probes"];
const LINE: u64 = size_of::<Line>() as u64;
/// Lines that a unit reads.
const UNIT: u64 = 256;

/// A line of the cache.
#[derive(Clone)]
#[repr(align(64))]
struct Line([u32; 16]);

struct LlcProbe {
    /// Each begins with its own number.
    lines: Vec<Line>,
    at: usize,
    passes: u64,
    sum: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let bytes = params.integer("bytes", 32 << 20, 1 << 16, 1 << 34)?;
    Ok(Box::new(LlcProbe::new(bytes / LINE)?))
}

impl LlcProbe {
    fn new(count: u64) -> Result<Self, String> {
        let mut lines = Vec::new();
        let fitting = usize::try_from(count).ok().filter(|&count| lines.try_reserve_exact(count).is_ok());
        let Some(count) = fitting else { return Err(format!("no memory for {count} lines")) };
        lines.extend((0..count as u32).map(|number| Line([number; 16])));
        Ok(Self { lines, at: 0, passes: 0, sum: 0 })
    }

    /// The sum of the first words of all lines read so far.
    fn expected(&self) -> u64 {
        let below = |count: u64| count * count.saturating_sub(1) / 2;
        self.passes.wrapping_mul(below(self.lines.len() as u64)).wrapping_add(below(self.at as u64))
    }
}

/// Reads a word of each line. Never inlined, so that nothing is known of what is in them.
#[inline(never)]
fn probe(lines: &[Line]) -> u64 {
    lines.iter().map(|line| u64::from(line.0[0])).sum()
}

impl Probe for LlcProbe {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        (self.lines.len() as u64 / UNIT).max(1)
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        let mut left = (units * UNIT) as usize;
        while left > 0 {
            let to = self.lines.len().min(self.at + left);
            self.sum = self.sum.wrapping_add(probe(black_box(&self.lines[self.at..to])));
            left -= to - self.at;
            self.at = to;
            if to == self.lines.len() {
                self.at = 0;
                self.passes += 1;
            }
        }
        units * UNIT
    }

    fn verify(&mut self) -> Result<(), String> {
        match self.expected() {
            expected if expected == self.sum => Ok(()),
            expected => Err(format!("the lines add up to {}, not {expected}, after {} passes", self.sum, self.passes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_line() {
        assert_eq!((LINE, align_of::<Line>()), (64, 64));
    }

    #[test]
    fn the_sum_is_right_wherever_it_stops() {
        for count in [1, 255, 256, 1000] {
            for units in [0, 1, 3, 40] {
                let mut probe = LlcProbe::new(count).unwrap();
                assert_eq!(probe.run(0, units), units * 256);
                assert_eq!(probe.passes, units * 256 / count);
                assert_eq!(probe.verify(), Ok(()), "{units} units of {count} lines");
            }
        }
    }

    #[test]
    fn a_wrong_word_is_found() {
        let mut probe = LlcProbe::new(1000).unwrap();
        probe.run(0, 2);
        probe.lines[600].0[0] ^= 1 << 7;
        probe.run(0, 2);
        assert!(probe.verify().unwrap_err().contains("after 1 passes"));
    }

    #[test]
    fn a_buffer_that_does_not_fit_is_refused() {
        assert!(LlcProbe::new(1 << 50).is_err());
    }
}
