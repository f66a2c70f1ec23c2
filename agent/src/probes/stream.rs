//! STREAM's four kernels on arrays of f64, in pieces.
//!
//! Source: J. McCalpin, STREAM 5.10, stream.c: copy c=a, scale b=s*c, add c=a+b, triad a=b+s*c, counted as 16, 16,
//! 24 and 24 bytes an element, checked at the end against the same steps done on one element.
//!
//! STREAM does each kernel over the whole array in turn. A slice may be shorter than that, so here each kernel has
//! a place of its own, a quarter of the array behind the one before it, and they advance in turn: every slice has
//! something of all four, in the same order for every element, and between one kernel's touch of an element and
//! the next one's lie more than two arrays' worth of other memory, as in the original.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 4] = ["copy", "scale", "add", "triad"];
const ELEMENT: u64 = size_of::<f64>() as u64;
const BYTES: [u64; 4] = [2 * ELEMENT, 2 * ELEMENT, 3 * ELEMENT, 3 * ELEMENT];
/// sqrt(2) - 1. STREAM's 3.0 makes the elements grow 15 times a pass, which overflows after 260; with this one a
/// pass leaves them as they are (s * s + 2 * s = 1), however long the probe runs.
const SCALAR: f64 = std::f64::consts::SQRT_2 - 1.0;
/// STREAM's limit of the mean relative error for 8-byte elements.
const EPSILON: f64 = 1e-13;
/// The arrays' contents before the first pass (a is doubled by STREAM's own first timing).
const START: [f64; 3] = [2.0, 2.0, 0.0];

struct Stream {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    /// Elements that each kernel has done since the start, over all passes.
    places: [u64; 4],
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let bytes = params.integer("array_bytes", 64 << 20, 1 << 12, 1 << 36)?;
    let elements = usize::try_from(bytes / ELEMENT / 4 * 4).map_err(|error| error.to_string())?;
    Ok(Box::new(Stream::new(elements)?))
}

impl Stream {
    /// `elements` is a multiple of 4.
    fn new(elements: usize) -> Result<Self, String> {
        let [a, b, c] = START;
        let mut stream =
            Self { a: filled(elements, a)?, b: filled(elements, b)?, c: filled(elements, c)?, places: [0; 4] };
        // The kernels take their distance.
        let quarter = elements as u64 / 4;
        for (kernel, quarters) in [(0, 3), (1, 2), (2, 1)] {
            stream.advance_to(kernel, quarters * quarter);
        }
        Ok(stream)
    }

    fn elements(&self) -> u64 {
        self.a.len() as u64
    }

    fn advance_to(&mut self, kernel: usize, place: u64) {
        while self.places[kernel] < place {
            let from = self.places[kernel] % self.elements();
            let count = (place - self.places[kernel]).min(self.elements() - from);
            self.kernel(kernel, from, count);
            self.places[kernel] += count;
        }
    }

    /// Does elements `from` to `from + count` (both within the arrays, so that they fit a usize).
    fn kernel(&mut self, kernel: usize, from: u64, count: u64) {
        let range = from as usize..(from + count) as usize;
        let s = black_box(SCALAR);
        let (a, b, c) = (&mut self.a[range.clone()], &mut self.b[range.clone()], &mut self.c[range]);
        match kernel {
            0 => c.copy_from_slice(a),
            1 => b.iter_mut().zip(&*c).for_each(|(b, c)| *b = s * c),
            2 => c.iter_mut().zip(&*a).zip(&*b).for_each(|((c, a), b)| *c = a + b),
            _ => a.iter_mut().zip(&*b).zip(&*c).for_each(|((a, b), c)| *a = b + s * c),
        }
        black_box((a, b, c));
    }

    /// Brings all kernels to the end of the same pass; returns the passes done.
    fn finish_pass(&mut self) -> u64 {
        let elements = self.elements();
        let passes = self.places[0].div_ceil(elements);
        let end = passes * elements;
        while self.places[3] < end {
            // Copy must not overwrite data that the previous pass's triad has not read.
            self.advance_to(0, end.min(self.places[3] + elements));
            for kernel in 1..4 {
                self.advance_to(kernel, self.places[kernel - 1]);
            }
        }
        passes
    }
}

fn filled(elements: usize, value: f64) -> Result<Vec<f64>, String> {
    let mut array = Vec::new();
    array.try_reserve_exact(elements).map_err(|_| format!("no memory for an array of {elements} elements"))?;
    array.resize(elements, value);
    Ok(array)
}

/// The value of an element after this many passes.
fn expected(passes: u64) -> [f64; 3] {
    let [mut a, mut b, mut c] = START;
    for _ in 0..passes {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    [a, b, c]
}

/// The mean error of an array against what its elements should be, relative to that.
fn mean_error(array: &[f64], expected: f64) -> f64 {
    let sum: f64 = array.iter().map(|value| (value - expected).abs()).sum();
    sum / array.len() as f64 / expected.abs()
}

impl Probe for Stream {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        self.elements() / 4
    }

    fn run(&mut self, part: usize, units: u64) -> u64 {
        let units = units.min(self.max_units());
        self.advance_to(part, self.places[part] + units);
        units * BYTES[part]
    }

    fn verify(&mut self) -> Result<(), String> {
        let passes = self.finish_pass();
        let arrays = [&self.a, &self.b, &self.c];
        for ((name, array), expected) in ["a", "b", "c"].iter().zip(arrays).zip(expected(passes)) {
            let error = mean_error(array, expected);
            // Written so that a NaN fails too.
            if !matches!(error.partial_cmp(&EPSILON), Some(std::cmp::Ordering::Less)) {
                return Err(format!("array {name} is wrong: mean relative error {error:e} after {passes} passes"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(stream: &mut Stream, units: u64, count: usize) -> [u64; 4] {
        let mut work = [0; 4];
        for _ in 0..count {
            for (part, work) in work.iter_mut().enumerate() {
                *work += stream.run(part, units);
            }
        }
        work
    }

    #[test]
    fn bytes_are_counted_as_stream_does() {
        let mut stream = Stream::new(1000).unwrap();
        assert_eq!(rounds(&mut stream, 100, 3), [4800, 4800, 7200, 7200]);
    }

    #[test]
    fn the_answer_is_right_wherever_it_stops() {
        for units in [1, 7, 60, 250] {
            for count in [0, 1, 5, 16, 33] {
                let mut stream = Stream::new(1000).unwrap();
                rounds(&mut stream, units, count);
                assert_eq!(stream.verify(), Ok(()), "{count} rounds of {units}");
            }
        }
    }

    #[test]
    fn it_is_the_same_as_whole_kernels_in_turn() {
        let mut stream = Stream::new(64).unwrap();
        rounds(&mut stream, 5, 40);
        let passes = stream.finish_pass();
        let [a, b, c] = expected(passes);
        assert!(passes > 2);
        assert_eq!((stream.a, stream.b, stream.c), (vec![a; 64], vec![b; 64], vec![c; 64]));
    }

    #[test]
    fn a_wrong_element_is_found() {
        let mut stream = Stream::new(1000).unwrap();
        rounds(&mut stream, 250, 4);
        stream.finish_pass();
        stream.b[500] += 1e-6;
        assert!(stream.verify().unwrap_err().contains("array b"));
        stream.b[500] = f64::NAN;
        assert!(stream.verify().is_err());
    }

    #[test]
    fn a_million_passes_neither_overflow_nor_fade() {
        let [a, b, c] = expected(1_000_000);
        assert!((a - 2.0).abs() < 1e-6 && b > 0.8 && c > 2.8, "{a} {b} {c}");
    }
}
