//! sysbench 1.0's cpu test: one event tries every number from 3 below `max_prime` by division up to its root.
//!
//! Source: sysbench, src/tests/cpu/sb_cpu.c, `cpu_execute_event`. Kept as it is there, the comparison in floating
//! point included, so that the figures are of the same kind.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 1] = ["events"];
const MILLION: u64 = 1_000_000;
/// sysbench leaves 2 out.
const FIRST: u64 = 3;

struct Primes {
    max_prime: u64,
    /// Primes below `max_prime`, without 2.
    expected: u64,
    wrong: u64,
    extra: Option<Extra>,
}

/// Work on top, to calibrate the instrument with: so many events in a million are done twice, and counted once. Whole
/// events, because parts of one between two others make those faster: the same event again and again is a pattern to a
/// processor's branch predictor, and runs of 64 numbers in between gained 0.8 % of it back.
struct Extra {
    ppm: u64,
    /// Millionths of an event that are still owed.
    owed: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let max_prime = params.integer("max_prime", 10_000, 10, 10_000_000)?;
    let ppm = params.integer("extra_ppm", 0, 0, MILLION)?;
    let extra = (ppm > 0).then_some(Extra { ppm, owed: 0 });
    Ok(Box::new(Primes { max_prime, expected: count_primes(FIRST, max_prime), wrong: 0, extra }))
}

/// Primes from `from` to below `to`; the whole range is one event. Never inlined, so that extra work is the same code.
#[inline(never)]
fn count_primes(from: u64, to: u64) -> u64 {
    let mut found = 0;
    for candidate in from..to {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2_u64;
        while divisor as f64 <= root {
            let remainder = candidate % divisor;
            if remainder == 0 {
                break;
            }
            divisor += 1;
        }
        if divisor as f64 > root {
            found += 1;
        }
    }
    found
}

impl Extra {
    /// The number of additional events for each event.
    fn due(&mut self) -> u64 {
        self.owed += self.ppm;
        let due = self.owed / MILLION;
        self.owed %= MILLION;
        due
    }
}

impl Probe for Primes {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MILLION
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            let more = self.extra.as_mut().map_or(0, Extra::due);
            for _ in 0..=more {
                let found = black_box(count_primes(FIRST, black_box(self.max_prime)));
                self.wrong += u64::from(found != self.expected);
            }
        }
        units
    }

    fn verify(&mut self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} events did not find {} primes", self.expected)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Scalar;
    use crate::probes::{Params, make};

    #[test]
    fn it_finds_as_many_primes_as_there_are() {
        // pi(10^4) = 1229; sysbench starts at 3 and so leaves one out.
        assert_eq!(count_primes(FIRST, 10_000) + 1, 1229);
        assert_eq!(count_primes(FIRST, 1_000) + 1, 168);
    }

    #[test]
    fn extra_work_is_the_share_that_was_asked_for() {
        for ppm in [100, 5_000, 10_000, 333_333, 1_000_000] {
            let mut extra = Extra { ppm, owed: 0 };
            let done: u64 = (0..100_000).map(|_| extra.due()).sum();
            assert_eq!(done, 100_000 * ppm / MILLION);
        }
    }

    #[test]
    fn events_are_the_work() {
        let params =
            Params::from([("max_prime".to_owned(), Scalar::Int(100)), ("extra_ppm".to_owned(), Scalar::Int(9))]);
        let mut probe = make("primes", &params).unwrap();
        assert_eq!(probe.run(0, 5), 5);
        assert_eq!(probe.verify(), Ok(()));
    }
}
