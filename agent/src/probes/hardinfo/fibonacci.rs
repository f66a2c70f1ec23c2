//! HardInfo's Fibonacci: the 42nd Fibonacci number by the plain recursion.
//!
//! One call lasts longer than a slice. So the upper calls are kept on a stack here, and what is below them is done by
//! the recursion itself: one unit is a call for a number of at most `LEAF`. Work is the calls that the definition takes.

use std::hint::black_box;

use super::super::{Probe, Reader};

const PARTS: [&str; 1] = ["calls"];
const MAX_UNITS: u64 = 1000;
/// Takes some tens of microseconds.
const LEAF: u64 = 20;

struct Fibonacci {
    n: u64,
    /// Calls that are still to be done.
    stack: Vec<u64>,
    sum: u64,
    wrong: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(Fibonacci::new(params.integer("n", 42, 2, 60)?)))
}

#[inline(never)]
fn recursive(n: u64) -> u64 {
    match n {
        0 => 0,
        1 | 2 => 1,
        _ => recursive(n - 1) + recursive(n - 2),
    }
}

/// The same number without recursion.
fn known(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Calls that the recursion takes for `n` of at least 1, itself among them: as many ones as it adds up, and an inner
/// call for each addition.
fn calls(n: u64) -> u64 {
    2 * known(n) - 1
}

impl Fibonacci {
    fn new(n: u64) -> Self {
        Self { n, stack: vec![n], sum: 0, wrong: 0 }
    }

    /// Does one leaf and the calls above it that lead there; returns the calls.
    fn leaf(&mut self) -> u64 {
        let mut done = 0;
        while let Some(n) = self.stack.pop() {
            if n <= LEAF {
                self.sum += recursive(black_box(n));
                done += calls(n);
                break;
            }
            done += 1;
            self.stack.extend([n - 2, n - 1]);
        }
        if self.stack.is_empty() {
            self.wrong += u64::from(self.sum != known(self.n));
            self.sum = 0;
            self.stack.push(self.n);
        }
        done
    }

    /// True if the work done and the work left add up to the whole.
    fn whole(&self) -> bool {
        self.sum + self.stack.iter().map(|&n| known(n)).sum::<u64>() == known(self.n)
    }
}

impl Probe for Fibonacci {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        (0..units).map(|_| self.leaf()).sum()
    }

    fn verify(&mut self) -> Result<(), String> {
        if self.wrong > 0 || !self.whole() {
            return Err(format!("the sums are not the Fibonacci number {}", known(self.n)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_calls_are_the_known_ones() {
        assert_eq!((known(1), known(2), known(10), known(42)), (1, 1, 55, 267_914_296));
        assert!((1..=LEAF).all(|n| recursive(n) == known(n)));
        assert_eq!((calls(1), calls(2), calls(3), calls(42)), (1, 1, 3, 535_828_591));
    }

    #[test]
    fn in_pieces_it_is_the_same_work() {
        for n in [3, 20, 21, 22, 27] {
            let mut probe = Fibonacci::new(n);
            let mut work = probe.run(0, 1);
            while probe.stack != [n] {
                work += probe.run(0, 1);
            }
            assert_eq!(work, calls(n), "the {n}th");
            assert_eq!(probe.verify(), Ok(()));
        }
    }

    #[test]
    fn it_may_stop_anywhere() {
        for units in 0..40 {
            let mut probe = Fibonacci::new(26);
            probe.run(0, units);
            assert_eq!(probe.verify(), Ok(()), "{units} units");
        }
    }

    #[test]
    fn a_wrong_sum_is_found() {
        let mut probe = Fibonacci::new(26);
        probe.run(0, 3);
        probe.sum += 1;
        assert!(probe.verify().unwrap_err().contains("121393"));
        probe.run(0, 50);
        assert!(probe.wrong > 0);
    }
}
