//! HardInfo's FFT: it solves 100 linear equations; one unit is one solution.
//!
//! The name is HardInfo's. What it runs under it is S. R. Ladd's public `fftbench`, which factorises a matrix of random
//! numbers into triangular ones with row exchanges (LUP) and solves by them; the figures of Li 2017 are of that, so it
//! is done here too. HardInfo factorises what the solution before left; here every one begins with the same matrix.

use std::hint::black_box;

use super::super::{Probe, Reader};

const PARTS: [&str; 1] = ["solutions"];
const N: usize = 100;
const MAX_UNITS: u64 = 100;
const SEED: i64 = 1325;
/// Largest error of all rows together: some thousand operations each, on numbers below 1.
const TOLERANCE: f64 = 1e-9;

type Row = [f64; N];

struct Fft {
    matrix: Vec<Row>,
    right: Row,
    work: Vec<Row>,
    first: Row,
    wrong: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(Fft::new()))
}

/// The generator of S. K. Park and K. W. Miller, CACM 31(10), 1988: numbers from 0 to 1.
struct Random(i64);

impl Random {
    fn draw(&mut self) -> f64 {
        self.0 = self.0 * 16_807 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    fn row(&mut self) -> Row {
        std::array::from_fn(|_| self.draw())
    }
}

impl Fft {
    fn new() -> Self {
        let mut random = Random(SEED);
        let matrix: Vec<Row> = (0..N).map(|_| random.row()).collect();
        let right = random.row();
        let mut probe = Self { work: matrix.clone(), matrix, right, first: [0.0; N], wrong: 0 };
        probe.first = probe.solve();
        probe
    }

    fn solve(&mut self) -> Row {
        self.work.copy_from_slice(&self.matrix);
        let order = decompose(black_box(&mut self.work));
        solve(&self.work, &self.right, &order)
    }

    /// The sum of the differences between the rows' sums with the solution and their right sides.
    fn error(&self) -> f64 {
        let sums = self.matrix.iter().map(|row| row.iter().zip(&self.first).map(|(a, x)| a * x).sum::<f64>());
        sums.zip(&self.right).map(|(sum, right)| (sum - right).abs()).sum()
    }
}

/// Makes a matrix into its two triangular ones, in place; returns where each row was.
fn decompose(a: &mut [Row]) -> [usize; N] {
    let mut order = std::array::from_fn(|row| row);
    for k in 0..N - 1 {
        let mut pivot = k;
        for row in k + 1..N {
            if a[row][k].abs() > a[pivot][k].abs() {
                pivot = row;
            }
        }
        order.swap(k, pivot);
        a.swap(k, pivot);
        let (above, below) = a.split_at_mut(k + 1);
        let top = &above[k];
        for row in below {
            row[k] /= top[k];
            let factor = row[k];
            for (value, top) in row[k + 1..].iter_mut().zip(&top[k + 1..]) {
                *value -= factor * top;
            }
        }
    }
    order
}

/// Solves with the triangular matrices, forwards and then backwards.
fn solve(a: &[Row], right: &Row, order: &[usize; N]) -> Row {
    let mut x = [0.0; N];
    for row in 0..N {
        let sum: f64 = a[row][..row].iter().zip(&x).map(|(a, y)| a * y).sum();
        x[row] = right[order[row]] - sum;
    }
    for row in (0..N).rev() {
        let sum: f64 = a[row][row + 1..].iter().zip(&x[row + 1..]).map(|(a, x)| a * x).sum();
        x[row] = (x[row] - sum) / a[row][row];
    }
    x
}

impl Probe for Fft {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            let solution = self.solve();
            self.wrong += u64::from(solution != self.first);
        }
        units
    }

    fn verify(&mut self) -> Result<(), String> {
        let error = self.error();
        // Written so that a NaN fails too.
        if !matches!(error.partial_cmp(&TOLERANCE), Some(std::cmp::Ordering::Less)) {
            return Err(format!("the solution does not fit the equations: off by {error:e}"));
        }
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} solutions differ from the first")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_that_of_the_paper() {
        // Its test: from 1, the 10,000th number is 1,043,618,065.
        let mut random = Random(1);
        for _ in 0..10_000 {
            random.draw();
        }
        assert_eq!(random.0, 1_043_618_065);
    }

    #[test]
    fn the_solution_fits_the_equations() {
        let mut probe = Fft::new();
        assert_eq!(probe.run(0, 3), 3);
        assert_eq!(probe.verify(), Ok(()));
        assert!(probe.error() < TOLERANCE);
    }

    #[test]
    fn rows_are_exchanged() {
        let order = decompose(&mut Fft::new().matrix);
        assert!(order.iter().enumerate().any(|(place, &row)| place != row));
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(place, &row)| place == row));
    }

    #[test]
    fn a_wrong_solution_is_found() {
        let mut probe = Fft::new();
        probe.right[17] += 1e-6;
        assert!(probe.verify().unwrap_err().contains("does not fit"));
        probe.run(0, 2);
        assert_eq!(probe.wrong, 2);
        probe = Fft::new();
        probe.first[3] = f64::NAN;
        assert!(probe.verify().is_err());
    }
}
