//! Memory requested by calls of different sizes: mapped, touched (one word a page), and released.
//!
//! Source: Anjali, Caraza-Harter, Swift, "Blending Containers and Virtual Machines", VEE 2020, 6.3, figures 14 to 17:
//! 1 GB by mmap calls of 4 KiB to 1 MiB; allocation and touch are timed apart, without munmap and with it.
//!
//! There, each call is followed by its touch and its munmap. Here a part of a round maps a few MiB, the next touches
//! them, and the next gives them back: so no clock is read between two calls of a microsecond. Without munmap as a
//! part, memory stays mapped up to a limit, and then the oldest is given back between the rounds, untimed.

use std::collections::VecDeque;
use std::io;

use super::pages::Mapping;
use super::{Hindrance, Probe, Reader};

const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bytes of a unit, for every size: as many as the largest call.
const UNIT: usize = 1 << 20;
const KEEPING: [&str; 10] = [
    "map-4k",
    "touch-4k",
    "map-16k",
    "touch-16k",
    "map-64k",
    "touch-64k",
    "map-256k",
    "touch-256k",
    "map-1m",
    "touch-1m",
];
#[rustfmt::skip]
const RETURNING: [&str; 15] = [
    "map-4k", "touch-4k", "unmap-4k", "map-16k", "touch-16k", "unmap-16k", "map-64k", "touch-64k", "unmap-64k",
    "map-256k", "touch-256k", "unmap-256k", "map-1m", "touch-1m", "unmap-1m",
];

struct Sweep {
    /// True if releasing is a part.
    unmap: bool,
    /// Bytes of each size that may be mapped at once.
    share: usize,
    /// By size, the oldest first.
    held: [VecDeque<Mapping>; SIZES.len()],
    /// The number of them that the previous part mapped.
    fresh: usize,
    wrong: Option<io::Error>,
}

pub fn make_keeping(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make(params, false)
}

pub fn make_returning(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make(params, true)
}

fn make(params: &mut Reader<'_>, unmap: bool) -> Result<Box<dyn Probe>, String> {
    let least = (SIZES.len() * UNIT) as u64;
    let total = params.integer("total_bytes", 256 << 20, least, 1 << 40)?;
    let share = usize::try_from(total).map_err(|error| error.to_string())? / SIZES.len() / UNIT * UNIT;
    // Room for all, so that nothing is allocated while the clock runs.
    let held = SIZES.map(|size| VecDeque::with_capacity(share / size));
    Ok(Box::new(Sweep { unmap, share, held, fresh: 0, wrong: None }))
}

/// Huge pages would be touched once where 512 are to be. For the whole process; a kernel without them refuses.
fn huge_pages(allowed: bool) {
    let (disable, unused): (libc::c_ulong, libc::c_ulong) = (libc::c_ulong::from(!allowed), 0);
    // SAFETY: takes no pointers; only how memory is backed changes.
    let _without = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, unused, unused, unused) };
}

impl Sweep {
    /// Maps `bytes` by calls of a size.
    fn map(&mut self, at: usize, bytes: usize) -> usize {
        let (size, held) = (SIZES[at], &mut self.held[at]);
        self.fresh = 0;
        for _ in 0..bytes / size {
            match Mapping::new(size) {
                Ok(memory) => held.push_back(memory),
                Err(error) => {
                    self.wrong = Some(error);
                    break;
                }
            }
            self.fresh += 1;
        }
        self.fresh * size
    }

    /// Touches what was just mapped.
    fn touch(&self, at: usize) -> usize {
        let held = &self.held[at];
        held.range(held.len() - self.fresh..).for_each(Mapping::touch);
        self.fresh * SIZES[at]
    }

    /// Gives the oldest back, as it was mapped: call by call.
    fn unmap(&mut self, at: usize, bytes: usize) -> usize {
        let mut count = 0;
        for memory in self.held[at].drain(..(bytes / SIZES[at]).min(self.fresh)) {
            match memory.end() {
                Ok(()) => count += 1,
                Err(error) => self.wrong = Some(error),
            }
        }
        count * SIZES[at]
    }

    /// Gives the oldest of a size back until `room` bytes may be mapped, neighbours by one call.
    fn make_room(&mut self, at: usize, room: usize) -> bool {
        let (size, share, held) = (SIZES[at], self.share, &mut self.held[at]);
        let over = (held.len() * size + room).saturating_sub(share).div_ceil(size).min(held.len());
        let mut oldest = held.drain(..over);
        let Some(mut memory) = oldest.next() else { return false };
        for next in oldest {
            if let Err(apart) = memory.join(next) {
                drop(std::mem::replace(&mut memory, apart));
            }
        }
        true
    }
}

impl Probe for Sweep {
    fn parts(&self) -> &'static [&'static str] {
        if self.unmap { &RETURNING } else { &KEEPING }
    }

    fn max_units(&self) -> u64 {
        (self.share / UNIT) as u64
    }

    fn prepare(&mut self) -> Result<(), Hindrance> {
        huge_pages(false);
        for part in 0..self.parts().len() {
            self.run(part, 1);
        }
        self.wrong.take().map_or(Ok(()), |error| Err(Hindrance::of("memory by mmap", &error)))
    }

    fn rest(&mut self, units: u64) -> bool {
        // Never more than the share, which is a number of bytes in memory.
        let room = units.min(self.max_units()) as usize * UNIT;
        (0..SIZES.len()).map(|at| self.make_room(at, room)).fold(false, |any, one| any | one)
    }

    fn run(&mut self, part: usize, units: u64) -> u64 {
        let bytes = units.min(self.max_units()) as usize * UNIT;
        let kinds = if self.unmap { 3 } else { 2 };
        let at = part / kinds;
        let done = match part % kinds {
            0 => self.map(at, bytes),
            1 => self.touch(at),
            _ => self.unmap(at, bytes),
        };
        done as u64
    }

    fn verify(&mut self) -> Result<(), String> {
        self.wrong.take().map_or(Ok(()), |error| Err(format!("not all memory was mapped and given back: {error}")))
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        huge_pages(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(unmap: bool, units: usize) -> Sweep {
        let held = SIZES.map(|size| VecDeque::with_capacity(units * UNIT / size));
        Sweep { unmap, share: units * UNIT, held, fresh: 0, wrong: None }
    }

    fn round(sweep: &mut Sweep, units: u64) -> Vec<u64> {
        sweep.rest(units);
        (0..sweep.parts().len()).map(|part| sweep.run(part, units)).collect()
    }

    fn bytes_held(sweep: &Sweep) -> usize {
        sweep.held.iter().zip(SIZES).map(|(held, size)| held.len() * size).sum()
    }

    #[test]
    fn every_part_of_a_round_does_as_much() {
        for unmap in [false, true] {
            let mut sweep = sweep(unmap, 3);
            assert_eq!(sweep.prepare(), Ok(()));
            let done = round(&mut sweep, 2);
            assert_eq!(done, vec![2 << 20; sweep.parts().len()]);
            assert_eq!(sweep.verify(), Ok(()));
        }
    }

    #[test]
    fn what_is_kept_stays_within_its_limit() {
        let mut sweep = sweep(false, 3);
        for units in [1, 2, 2, 3, 1, 1, 1, 1] {
            round(&mut sweep, units);
            assert!(bytes_held(&sweep) <= SIZES.len() * 3 * UNIT);
        }
        assert_eq!(bytes_held(&sweep), SIZES.len() * 3 * UNIT);
        assert_eq!(sweep.verify(), Ok(()));
    }

    #[test]
    fn what_is_given_back_is_not_held() {
        let mut sweep = sweep(true, 3);
        round(&mut sweep, 3);
        assert_eq!(bytes_held(&sweep), 0);
    }

    #[test]
    fn parts_are_named_by_the_sizes() {
        let names = ["4k", "16k", "64k", "256k", "1m"];
        let keeping: Vec<String> =
            names.iter().flat_map(|size| [format!("map-{size}"), format!("touch-{size}")]).collect();
        assert_eq!(keeping, KEEPING);
        let kinds = ["map", "touch", "unmap"];
        let returning: Vec<String> = names.iter().flat_map(|size| kinds.map(|kind| format!("{kind}-{size}"))).collect();
        assert_eq!(returning, RETURNING);
    }
}
