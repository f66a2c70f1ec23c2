//! sysbench 1.0's cpu test: one event tries every number from 3 below `max_prime` by division up to its root.
//!
//! Source: sysbench, src/tests/cpu/sb_cpu.c, `cpu_execute_event`. Kept as it is there, the comparison in floating
//! point included, so that the figures are of the same kind.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 1] = ["events"];
const MILLION: u64 = 1_000_000;

struct Primes {
    max_prime: u64,
    /// Primes below `max_prime`, without 2.
    expected: u64,
    wrong: u64,
    extra: Option<Extra>,
}

/// Work on top, to calibrate the instrument with: that many divisions in a million are done twice.
struct Extra {
    divisions_an_event: u64,
    ppm: u64,
    /// Millionths of a division that are still owed, or were done too many.
    owed: i64,
    candidate: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let max_prime = params.integer("max_prime", 10_000, 10, 10_000_000)?;
    let ppm = params.integer("extra_ppm", 0, 0, MILLION)?;
    let extra = (ppm > 0).then(|| Extra {
        divisions_an_event: (3..max_prime).map(|candidate| divide(candidate).1).sum(),
        ppm,
        owed: 0,
        candidate: 3,
    });
    Ok(Box::new(Primes { max_prime, expected: event(max_prime), wrong: 0, extra }))
}

/// One event; returns how many primes it found.
fn event(max_prime: u64) -> u64 {
    let mut found = 0;
    for candidate in 3..max_prime {
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

/// The same for one number: whether it is prime, and how many divisions that took.
fn divide(candidate: u64) -> (bool, u64) {
    let root = (candidate as f64).sqrt();
    let mut divisor = 2_u64;
    let mut divisions = 0;
    while divisor as f64 <= root {
        divisions += 1;
        let remainder = candidate % divisor;
        if remainder == 0 {
            break;
        }
        divisor += 1;
    }
    (divisor as f64 > root, divisions)
}

impl Extra {
    /// Does the share that one event owes, on numbers in turn, so that it is the event's mix of divisions.
    /// Returns how many divisions that were.
    fn run(&mut self, max_prime: u64) -> u64 {
        let mut done = 0;
        self.owed += (self.divisions_an_event * self.ppm).cast_signed();
        while self.owed >= MILLION.cast_signed() {
            let (prime, divisions) = divide(black_box(self.candidate));
            black_box(prime);
            done += divisions;
            // A number may take more than is owed by then: the next events owe that much less.
            self.owed -= (divisions.max(1) * MILLION).cast_signed();
            self.candidate = if self.candidate + 1 < max_prime { self.candidate + 1 } else { 3 };
        }
        done
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
            let found = black_box(event(black_box(self.max_prime)));
            self.wrong += u64::from(found != self.expected);
            if let Some(extra) = &mut self.extra {
                extra.run(self.max_prime);
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
        assert_eq!(event(10_000) + 1, 1229);
        assert_eq!(event(1_000) + 1, 168);
    }

    #[test]
    fn the_counting_form_finds_the_same() {
        let found = (3..10_000).filter(|&candidate| divide(candidate).0).count() as u64;
        assert_eq!(found, event(10_000));
    }

    #[test]
    fn extra_work_is_the_share_that_was_asked_for() {
        let divisions_an_event: u64 = (3..10_000).map(|candidate| divide(candidate).1).sum();
        for ppm in [100, 5_000, 10_000, 1_000_000] {
            let mut extra = Extra { divisions_an_event, ppm, owed: 0, candidate: 3 };
            let done: u64 = (0..50).map(|_| extra.run(10_000)).sum();
            let asked = divisions_an_event * 50 * ppm / MILLION;
            // One number takes at most sqrt(10000) divisions.
            assert!(done.abs_diff(asked) <= 100, "{ppm}: {done} instead of {asked}");
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
