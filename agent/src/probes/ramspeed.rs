//! RAMspeed's families: INTmark and INTmem, FLOATmark and FLOATmem, SSEmark and SSEmem, and the last two with stores that
//! pass the caches by (nt).
//!
//! Source: R. M. Hollander, P. V. Bolotoff, RAMspeed 3.5.0 (not in Debian, so written anew from its description). Mark:
//! one block is written, or read, from one end to the other, again and again, an element at a time, 32 in a row. Mem:
//! copy A = B, scale A = m B, add A = B + C, triad A = m B + C, on arrays that are not in a cache. Bytes count as they are
//! moved: one stream for mark, two for copy and scale, three for add and triad. An element has 8 bytes, of SSE 16.
//!
//! Each element is loaded and stored by itself (volatile): the compiler's vectors would make the first two families STREAM
//! once more. A slice is shorter than a pass, so each kernel goes on where it was; each has a quarter of the arrays for
//! itself, so that at the end it is known what every element of A must be.

use std::ptr;

use super::{Hindrance, Probe, Reader};

const PARTS: [&str; 6] = ["write", "read", "copy", "scale", "add", "triad"];
/// The streams of bytes that a part moves.
const STREAMS: [u64; PARTS.len()] = [1, 1, 2, 2, 3, 3];
const MARKS: usize = 2;
const KERNELS: usize = PARTS.len() - MARKS;
/// Bytes that a unit moves in a stream.
const UNIT: u64 = 4096;
/// Elements that are moved in a row, without a look at where they end.
const ROW: usize = 32;

/// The values that are moved, made from small whole numbers.
trait Number: Copy + PartialEq + Send + 'static {
    /// Elements of a unit.
    const COUNT: usize = UNIT as usize / size_of::<Self>();
    /// The reason why the processor cannot move it so; empty: it can.
    const LACKING: &'static str = "";
    fn of(value: u8) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    #[inline]
    fn store(to: &mut Self, value: Self) {
        // SAFETY: an exclusive reference is valid for a write.
        unsafe { ptr::write_volatile(to, value) };
    }
    /// Called after many stores: all of them are done.
    fn settle() {}
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

/// Four numbers of 4 bytes in one register.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{__m128, _mm_add_ps, _mm_mul_ps, _mm_set1_ps, _mm_sfence, _mm_stream_ps};

    pub type Lanes = __m128;
    pub const LACKING: &str = "";

    pub fn splat(value: f32) -> Lanes {
        // SAFETY: every x86-64 has SSE.
        unsafe { _mm_set1_ps(value) }
    }
    #[inline]
    pub fn plus(left: Lanes, right: Lanes) -> Lanes {
        // SAFETY: every x86-64 has SSE.
        unsafe { _mm_add_ps(left, right) }
    }
    #[inline]
    pub fn times(left: Lanes, right: Lanes) -> Lanes {
        // SAFETY: every x86-64 has SSE.
        unsafe { _mm_mul_ps(left, right) }
    }
    #[inline]
    pub fn stream(to: &mut Lanes, value: Lanes) {
        // SAFETY: every x86-64 has SSE; an exclusive reference is valid for a write, and aligned.
        unsafe { _mm_stream_ps(std::ptr::from_mut(to).cast(), value) };
    }
    pub fn settle() {
        // SAFETY: every x86-64 has SSE.
        unsafe { _mm_sfence() };
    }
}
#[cfg(target_arch = "aarch64")]
mod lanes {
    use std::arch::aarch64::{float32x4_t, vaddq_f32, vdupq_n_f32, vmulq_f32};

    pub type Lanes = float32x4_t;
    pub const LACKING: &str = "stores that pass the caches by are x86-64's";

    pub fn splat(value: f32) -> Lanes {
        // SAFETY: the target has NEON.
        unsafe { vdupq_n_f32(value) }
    }
    #[inline]
    pub fn plus(left: Lanes, right: Lanes) -> Lanes {
        // SAFETY: the target has NEON.
        unsafe { vaddq_f32(left, right) }
    }
    #[inline]
    pub fn times(left: Lanes, right: Lanes) -> Lanes {
        // SAFETY: the target has NEON.
        unsafe { vmulq_f32(left, right) }
    }
    pub fn stream(to: &mut Lanes, value: Lanes) {
        *to = value;
    }
    pub fn settle() {}
}

/// SSE's; with `PAST_CACHES` it is stored past the caches.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Vector<const PAST_CACHES: bool>(lanes::Lanes);

impl<const PAST_CACHES: bool> Vector<PAST_CACHES> {
    fn numbers(self) -> [f32; 4] {
        // SAFETY: both are 16 bytes, of which every pattern is four numbers.
        unsafe { std::mem::transmute(self.0) }
    }
}

impl<const PAST_CACHES: bool> PartialEq for Vector<PAST_CACHES> {
    fn eq(&self, other: &Self) -> bool {
        self.numbers() == other.numbers()
    }
}

impl<const PAST_CACHES: bool> Number for Vector<PAST_CACHES> {
    const LACKING: &'static str = if PAST_CACHES { lanes::LACKING } else { "" };
    fn of(value: u8) -> Self {
        Self(lanes::splat(f32::from(value)))
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        Self(lanes::plus(self.0, other.0))
    }
    #[inline]
    fn times(self, other: Self) -> Self {
        Self(lanes::times(self.0, other.0))
    }
    #[inline]
    fn store(to: &mut Self, value: Self) {
        if PAST_CACHES {
            lanes::stream(&mut to.0, value.0);
        } else {
            // SAFETY: an exclusive reference is valid for a write.
            unsafe { ptr::write_volatile(to, value) };
        }
    }
    fn settle() {
        if PAST_CACHES {
            lanes::settle();
        }
    }
}

#[inline]
fn load<T: Copy>(from: &T) -> T {
    // SAFETY: a reference is valid for a read.
    unsafe { ptr::read_volatile(from) }
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

pub fn make_sse(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make::<Vector<false>>(params)
}

pub fn make_sse_nt(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    make::<Vector<true>>(params)
}

fn make<T: Number>(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let block = params.integer("block_bytes", 1 << 20, UNIT, 1 << 34)?;
    let array = params.integer("array_bytes", 32 << 20, UNIT * KERNELS as u64, 1 << 34)?;
    let units = |bytes: u64| usize::try_from(bytes / UNIT).map_err(|error| error.to_string());
    Ok(Box::new(Ram::<T>::new(units(block)?, units(array / KERNELS as u64)?)?))
}

fn filled<T: Number>(units: usize, value: u8) -> Result<Vec<T>, String> {
    let mut array = Vec::new();
    array.try_reserve_exact(units * T::COUNT).map_err(|_| format!("no memory for an array of {units} times 4 KiB"))?;
    array.resize(units * T::COUNT, T::of(value));
    Ok(array)
}

impl<T: Number> Ram<T> {
    /// A block of `block` units, and arrays with `quarter` units in each of their quarters.
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
        (elements / T::COUNT) as u64
    }

    /// Does units `from` to `from + count` of a part's ring.
    fn stretch(&mut self, part: usize, from: u64, count: u64) {
        // Both lie within the arrays, so that they fit a usize.
        let (from, to) = (from as usize * T::COUNT, (from + count) as usize * T::COUNT);
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
        row.iter_mut().for_each(|element| T::store(element, value));
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
        a.iter_mut().zip(b).for_each(|(a, b)| T::store(a, kernel(load(b))));
    }
}

#[inline]
fn from_two<T: Number>(a: &mut [T], b: &[T], c: &[T], kernel: impl Fn(T, T) -> T) {
    for ((a, b), c) in a.chunks_exact_mut(ROW).zip(b.chunks_exact(ROW)).zip(c.chunks_exact(ROW)) {
        a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| T::store(a, kernel(load(b), load(c))));
    }
}

impl<T: Number> Probe for Ram<T> {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        1 << 20
    }

    fn prepare(&mut self) -> Result<(), Hindrance> {
        if T::LACKING.is_empty() { Ok(()) } else { Err(Hindrance::Unsupported(T::LACKING.to_owned())) }
    }

    fn run(&mut self, part: usize, units: u64) -> u64 {
        let (ring, end) = (self.ring(part), self.done[part] + units);
        while self.done[part] < end {
            let from = self.done[part] % ring;
            let count = (end - self.done[part]).min(ring - from);
            self.stretch(part, from, count);
            self.done[part] += count;
        }
        T::settle();
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
            let reached = usize::try_from(done).unwrap_or(usize::MAX).saturating_mul(T::COUNT).min(array.len());
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
        right_wherever_it_stops::<Vector<false>>();
        right_wherever_it_stops::<Vector<true>>();
    }

    #[test]
    fn bytes_are_counted_by_their_streams() {
        let mut ram = Ram::<u64>::new(2, 2).unwrap();
        assert_eq!(rounds(&mut ram, 5, 2), [1, 1, 2, 2, 3, 3].map(|streams| streams * 10 * 4096));
    }

    #[test]
    fn a_wrong_element_is_found() {
        for at in 0..4 * f64::COUNT {
            let mut ram = Ram::<f64>::new(1, 1).unwrap();
            rounds(&mut ram, 1, 1);
            ram.a[at] += 1.0;
            assert!(ram.verify().unwrap_err().starts_with("1 of 512"), "{at}");
        }
        let mut ram = Ram::<Vector<true>>::new(1, 1).unwrap();
        rounds(&mut ram, 1, 1);
        ram.a[7] = Vector::of(200);
        assert!(ram.verify().unwrap_err().starts_with("1 of 256"));
        let mut ram = Ram::<u64>::new(2, 1).unwrap();
        rounds(&mut ram, 1, 1);
        ram.block[u64::COUNT] = 9; // where it has not been yet
        assert!(ram.verify().unwrap_err().contains("write"));
    }
}
