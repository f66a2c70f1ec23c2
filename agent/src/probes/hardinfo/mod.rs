//! The six jobs of HardInfo 0.5.1 that Li 2017 (3.2.2) measured computation with, as probes: one thread, and rates in
//! place of the times of fixed amounts. Debian's hardinfo needs a graphical toolkit; these are the same jobs by the same
//! published algorithms.

pub mod cryptohash;
pub mod fft;
pub mod fibonacci;
pub mod nqueens;
pub mod raytracing;
mod text;
pub mod zlib;
