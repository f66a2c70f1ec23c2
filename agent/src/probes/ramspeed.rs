//! RAMspeed's families for integers and for floating-point numbers: INTmark and INTmem, FLOATmark and FLOATmem.
//!
//! Source: R. M. Hollander, P. V. Bolotoff, RAMspeed 3.5.0 (not in Debian, so written anew from its description). Mark:
//! one block is written, or read, from one end to the other, again and again, 8 bytes at a time, 32 in a row. Mem:
//! copy A = B, scale A = m B, add A = B + C, triad A = m B + C, on arrays that are not in a cache. Bytes count as they are
//! moved: one stream for mark, two for copy and scale, three for add and triad.
//!
//! Each element is loaded and stored by itself (volatile): the compiler's vectors would make this STREAM once more, and
//! RAMspeed has families of their own for those. A slice is shorter than a pass, so each kernel goes on where it was; each
//! has a quarter of the arrays for itself, so that at the end it is known what every element of A must be.

use std::ptr;

use super::{Probe, Reader};

const PARTS: [&str; 6] = ["write", "read", "copy", "scale", "add", "triad"];
/// How many streams of bytes a part moves.
const STREAMS: [u64; PARTS.len()] = [1, 1, 2, 2, 3, 3];
const MARKS: usize = 2;
const KERNELS: usize = PARTS.len() - MARKS;
/// Bytes that a unit moves in a stream.
const UNIT: u64 = 4096;
const ELEMENT: u64 = 8;
/// Elements of a unit.
const COUNT: usize = (UNIT / ELEMENT) as usize;
/// Elements that are moved in a row, without a look at where they end.
const ROW: usize = 32;

/// What is moved: 8 bytes, from small whole numbers.
trait Number: Copy + PartialEq + Send + 'static {
    fn of(value: u8) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

impl Number for u64 {
    fn of(value: u8) -> Self {
        Self::from(value)
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
}

impl Number for f64 {
    fn of(value: u8) -> Self {
        Self::from(value)
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    #[inline]
    fn times(self, other: Self) -> Self {
        self * other
    }
}

#[inline]
fn load<T: Copy>(from: &T) -> T {
    // SAFETY: a reference is valid for a read.
    unsafe { ptr::read_volatile(from) }
}

#[inline]
fn store<T>(to: &mut T, value: T) {
    // SAFETY: an exclusive reference is valid for a write.
    unsafe { ptr::write_volatile(to, value) };
}

/// What B, C, m and the block hold; A is 0 where nothing was done yet. Small enough that nothing is rounded.
const B: u8 = 3;
const C: u8 = 5;
const M: u8 = 7;
const BLOCK: u8 = 9;

struct Ram<T> {
    block: Vec<T>,
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    /// Units that each part has done.
    done: [u64; PARTS.len()],
}

pub fn make_int(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make::<u64>(params)
}

pub fn make_float(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make::<f64>(params)
}

fn make<T: Number>(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let block = params.integer("block_bytes", 1 << 20, UNIT, 1 << 34)?;
    let array = params.integer("array_bytes", 32 << 20, UNIT * KERNELS as u64, 1 << 34)?;
    let units = |bytes: u64| usize::try_from(bytes / UNIT).map_err(|error| error.to_string());
    Ok(Box::new(Ram::<T>::new(units(block)?, units(array / KERNELS as u64)?)?))
}

fn filled<T: Number>(units: usize, value: u8) -> Result<Vec<T>, String> {
    let mut array = Vec::new();
    array.try_reserve_exact(units * COUNT).map_err(|_| format!("no memory for an array of {units} times 4 KiB"))?;
    array.resize(units * COUNT, T::of(value));
    Ok(array)
}

impl<T: Number> Ram<T> {
    /// A block of so many units, and arrays of so many in each of their quarters.
    fn new(block: usize, quarter: usize) -> Result<Self, String> {
        let array = KERNELS * quarter;
        Ok(Self {
            block: filled(block, 0)?,
            a: filled(array, 0)?,
            b: filled(array, B)?,
            c: filled(array, C)?,
            done: [0; PARTS.len()],
        })
    }

    /// Units of the ring that a part goes round in.
    fn ring(&self, part: usize) -> u64 {
        let elements = if part < MARKS { self.block.len() } else { self.a.len() / KERNELS };
        (elements / COUNT) as u64
    }

    /// Does units `from` to `from + count` of a part's ring.
    fn stretch(&mut self, part: usize, from: u64, count: u64) {
        // Both lie within the arrays, so that they fit a usize.
        let (from, to) = (from as usize * COUNT, (from + count) as usize * COUNT);
        match part {
            0 => write(&mut self.block[from..to]),
            1 => read(&self.block[from..to]),
            _ => {
                let begin = (part - MARKS) * (self.a.len() / KERNELS);
                let range = begin + from..begin + to;
                let (a, b, c) = (&mut self.a[range.clone()], &self.b[range.clone()], &self.c[range]);
                let m = T::of(M);
                match part - MARKS {
                    0 => from_one(a, b, |b| b),
                    1 => from_one(a, b, |b| m.times(b)),
                    2 => from_two(a, b, c, |b, c| b.plus(c)),
                    _ => from_two(a, b, c, |b, c| m.times(b).plus(c)),
                }
            }
        }
    }
}

fn write<T: Number>(block: &mut [T]) {
    let value = T::of(BLOCK);
    for row in block.chunks_exact_mut(ROW) {
        row.iter_mut().for_each(|element| store(element, value));
    }
}

fn read<T: Number>(block: &[T]) {
    for row in block.chunks_exact(ROW) {
        for element in row {
            let _loaded = load(element);
        }
    }
}

#[inline]
fn from_one<T: Number>(a: &mut [T], b: &[T], kernel: impl Fn(T) -> T) {
    for (a, b) in a.chunks_exact_mut(ROW).zip(b.chunks_exact(ROW)) {
        a.iter_mut().zip(b).for_each(|(a, b)| store(a, kernel(load(b))));
    }
}

#[inline]
fn from_two<T: Number>(a: &mut [T], b: &[T], c: &[T], kernel: impl Fn(T, T) -> T) {
    for ((a, b), c) in a.chunks_exact_mut(ROW).zip(b.chunks_exact(ROW)).zip(c.chunks_exact(ROW)) {
        a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| store(a, kernel(load(b), load(c))));
    }
}

impl<T: Number> Probe for Ram<T> {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        1 << 20
    }

    fn run(&mut self, part: usize, units: u64) -> u64 {
        let (ring, end) = (self.ring(part), self.done[part] + units);
        while self.done[part] < end {
            let from = self.done[part] % ring;
            let count = (end - self.done[part]).min(ring - from);
            self.stretch(part, from, count);
            self.done[part] += count;
        }
        units * UNIT * STREAMS[part]
    }

    fn verify(&mut self) -> Result<(), String> {
        let (b, c, m) = (T::of(B), T::of(C), T::of(M));
        let right = [b, m.times(b), b.plus(c), m.times(b).plus(c)];
        let quarter = self.a.len() / KERNELS;
        let mut all: Vec<(&str, &[T], T, u64)> = vec![("write", &self.block, T::of(BLOCK), self.done[0])];
        for (kernel, part) in (MARKS..PARTS.len()).enumerate() {
            all.push((PARTS[part], &self.a[kernel * quarter..][..quarter], right[kernel], self.done[part]));
        }
        for (name, array, value, done) in all {
            let reached = usize::try_from(done).unwrap_or(usize::MAX).saturating_mul(COUNT).min(array.len());
            let wrong = array[..reached].iter().filter(|&&element| element != value).count()
                + array[reached..].iter().filter(|&&element| element != T::of(0)).count();
            if wrong > 0 {
                return Err(format!("{wrong} of {} elements are not what {name} makes of them", array.len()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds<T: Number>(ram: &mut Ram<T>, units: u64, count: usize) -> [u64; PARTS.len()] {
        let mut work = [0; PARTS.len()];
        for _ in 0..count {
            for (part, work) in work.iter_mut().enumerate() {
                *work += ram.run(part, units);
            }
        }
        work
    }

    fn right_wherever_it_stops<T: Number>() {
        for units in [1, 3, 7, 20] {
            for count in [0, 1, 2, 9] {
                let mut ram = Ram::<T>::new(3, 5).unwrap();
                rounds(&mut ram, units, count);
                assert_eq!(ram.verify(), Ok(()), "{count} rounds of {units}");
            }
        }
    }

    #[test]
    fn the_answer_is_right_wherever_it_stops() {
        right_wherever_it_stops::<u64>();
        right_wherever_it_stops::<f64>();
    }

    #[test]
    fn bytes_are_counted_by_their_streams() {
        let mut ram = Ram::<u64>::new(2, 2).unwrap();
        assert_eq!(rounds(&mut ram, 5, 2), [1, 1, 2, 2, 3, 3].map(|streams| streams * 10 * 4096));
    }

    #[test]
    fn a_wrong_element_is_found() {
        for at in 0..4 * COUNT {
            let mut ram = Ram::<f64>::new(1, 1).unwrap();
            rounds(&mut ram, 1, 1);
            ram.a[at] += 1.0;
            assert!(ram.verify().unwrap_err().starts_with("1 of 512"), "{at}");
        }
        let mut ram = Ram::<u64>::new(2, 1).unwrap();
        rounds(&mut ram, 1, 1);
        ram.block[COUNT] = 9; // where it has not been yet
        assert!(ram.verify().unwrap_err().contains("write"));
    }
}
