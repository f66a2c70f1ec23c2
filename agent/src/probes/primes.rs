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
/// Numbers in a run of extra work.
const RUN: u64 = 64;

struct Primes {
    max_prime: u64,
    /// Primes below `max_prime`, without 2.
    expected: u64,
    wrong: u64,
    extra: Option<Extra>,
}

/// Work on top, to calibrate the instrument with: so many numbers in a million are tried twice. They are taken in
/// short runs, by the very code of the event, so that they cost what those of the event do; and the runs hop over the
/// whole range, so that a few events have the mix of cheap and dear numbers that one event has.
struct Extra {
    ppm: u64,
    /// Millionths of a number that are still owed, or were done too many.
    owed: i64,
    /// The run that is next, and how far it is from there to the one after it.
    run: u64,
    hop: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let max_prime = params.integer("max_prime", 10_000, 10, 10_000_000)?;
    let ppm = params.integer("extra_ppm", 0, 0, MILLION)?;
    let extra = (ppm > 0).then_some(Extra::new(ppm, max_prime));
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
    fn new(ppm: u64, max_prime: u64) -> Self {
        Self { ppm, owed: 0, run: 0, hop: hop((max_prime - FIRST).div_ceil(RUN)) }
    }

    /// Does the share that one event owes, in whole runs. Returns how many numbers that were.
    fn run(&mut self, max_prime: u64) -> u64 {
        let numbers = max_prime - FIRST;
        let runs = numbers.div_ceil(RUN);
        let mut done = 0;
        self.owed += (numbers * self.ppm).cast_signed();
        while self.owed >= MILLION.cast_signed() {
            let from = FIRST + self.run * RUN;
            let to = max_prime.min(from + RUN);
            black_box(count_primes(black_box(from), black_box(to)));
            done += to - from;
            // A run may be more than is owed by then: the next events owe that much less.
            self.owed -= ((to - from) * MILLION).cast_signed();
            self.run = (self.run + self.hop) % runs;
        }
        done
    }
}

/// A step through so many runs that meets each once before it repeats, and spreads them well: the next below the
/// golden section that has no divisor in common with their number.
fn hop(runs: u64) -> u64 {
    let golden = runs * 618 / 1000;
    (1..=golden).rev().find(|&step| common_divisor(step, runs) == 1).unwrap_or(1)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
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
            let found = black_box(count_primes(FIRST, black_box(self.max_prime)));
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
        assert_eq!(count_primes(FIRST, 10_000) + 1, 1229);
        assert_eq!(count_primes(FIRST, 1_000) + 1, 168);
    }

    #[test]
    fn extra_work_is_the_share_that_was_asked_for() {
        for ppm in [100, 5_000, 10_000, 1_000_000] {
            let mut extra = Extra::new(ppm, 10_000);
            let done: u64 = (0..50).map(|_| extra.run(10_000)).sum();
            let asked = (10_000 - FIRST) * 50 * ppm / MILLION;
            assert!(done.abs_diff(asked) <= RUN, "{ppm}: {done} instead of {asked}");
        }
    }

    #[test]
    fn hops_meet_every_run_once() {
        for runs in [1, 2, 3, 4, 6, 157, 1000] {
            let step = hop(runs);
            let mut met: Vec<u64> = (0..runs).map(|at| at * step % runs).collect();
            met.sort_unstable();
            assert_eq!(met, (0..runs).collect::<Vec<u64>>(), "{runs}");
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
