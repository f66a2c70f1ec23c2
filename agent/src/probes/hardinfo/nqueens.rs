//! HardInfo's N-Queens: all ways to put 11 queens on a board so that none takes another, row by row.
//!
//! A whole search lasts longer than a slice should, so it is kept where it stands instead of in a recursion. Work is the
//! squares that are tried. HardInfo searches and counts nothing; here the ways are counted, and the count is known.

use std::hint::black_box;

use super::super::{Probe, Reader};

const PARTS: [&str; 1] = ["squares"];
const MAX: usize = 12;
/// Squares that a unit tries.
const UNIT: u64 = 100;
const MAX_UNITS: u64 = 100_000;
/// Ways for 4 queens and more: the On-Line Encyclopedia of Integer Sequences, A000170.
const KNOWN: [u64; MAX - 3] = [2, 10, 4, 40, 92, 352, 724, 2680, 14_200];

struct NQueens {
    queens: usize,
    /// The column of the queen in each row above `row`.
    columns: [usize; MAX],
    /// The square that is tried next.
    row: usize,
    column: usize,
    found: u64,
    searches: u64,
    wrong: u64,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let queens = params.integer("queens", 11, 4, MAX as u64)?;
    Ok(Box::new(NQueens::new(queens as usize)))
}

impl NQueens {
    fn new(queens: usize) -> Self {
        Self { queens, columns: [0; MAX], row: 0, column: 0, found: 0, searches: 0, wrong: 0 }
    }

    /// True if no queen of the rows above attacks this square.
    fn safe(&self) -> bool {
        let above = &self.columns[..self.row.min(MAX)];
        above.iter().rev().zip(1..).all(|(&taken, distance)| {
            taken != self.column && taken + distance != self.column && taken != self.column + distance
        })
    }

    fn try_square(&mut self) {
        if self.safe() {
            if self.row + 1 < self.queens {
                self.columns[self.row % MAX] = self.column;
                self.row += 1;
                self.column = 0;
                return;
            }
            self.found += 1;
        }
        self.column += 1;
        while self.column == self.queens {
            if self.row == 0 {
                self.end_search();
                return;
            }
            self.row -= 1;
            self.column = self.columns[self.row % MAX] + 1;
        }
    }

    fn end_search(&mut self) {
        self.searches += 1;
        self.wrong += u64::from(self.found != KNOWN[self.queens - 4]);
        self.found = 0;
        self.column = 0;
    }
}

impl Probe for NQueens {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units * UNIT {
            self.try_square();
        }
        black_box(self);
        units * UNIT
    }

    fn verify(&mut self) -> Result<(), String> {
        while (self.row, self.column) != (0, 0) {
            self.try_square();
        }
        match self.wrong {
            0 => Ok(()),
            wrong => {
                let known = KNOWN[self.queens - 4];
                Err(format!("{wrong} of {} searches did not find {known} ways", self.searches))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_as_many_ways_as_there_are() {
        for queens in 4..=9 {
            let mut probe = NQueens::new(queens);
            probe.try_square();
            assert_eq!(probe.verify(), Ok(()), "{queens} queens");
            assert_eq!(probe.searches, 1);
        }
    }

    #[test]
    fn squares_are_tried_as_the_recursion_does() {
        fn recursion(board: &mut NQueens, row: usize) -> u64 {
            let mut tried = 0;
            for column in 0..board.queens {
                (board.row, board.column) = (row, column);
                tried += 1;
                if board.safe() && row + 1 < board.queens {
                    board.columns[row] = column;
                    tried += recursion(board, row + 1);
                }
            }
            tried
        }
        let mut probe = NQueens::new(7);
        let mut tried = 0;
        while probe.searches == 0 {
            probe.try_square();
            tried += 1;
        }
        assert_eq!(tried, recursion(&mut NQueens::new(7), 0));
    }

    #[test]
    fn it_goes_on_where_it_stopped() {
        let mut probe = NQueens::new(8);
        assert_eq!((0..500).map(|_| probe.run(0, 3)).sum::<u64>(), 150_000);
        assert!(probe.searches > 1);
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn a_wrong_count_is_found() {
        let mut probe = NQueens::new(8);
        probe.run(0, 10);
        probe.found += 1;
        assert!(probe.verify().unwrap_err().contains("1 of 1 searches did not find 92 ways"));
    }
}
