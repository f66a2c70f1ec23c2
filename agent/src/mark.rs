//! Marks for a machine whose instructions are counted (`tare footprint --level instructions`).
//!
//! A mark is a NOP of 8 bytes that has its kind as the displacement of an address that nobody reads. The emulator's plug-in
//! (src/tare/features/kernel/lab/icount) knows it by its bytes; on a real processor it does nothing, so it is always there. A number that
//! goes with it is in RDI. On other architectures nothing is counted, and nothing is marked.

/// The bytes that all marks have in the upper half of their displacement, as in the plug-in.
#[cfg(target_arch = "x86_64")]
macro_rules! mark {
    ($kind:literal, $number:expr) => {
        // SAFETY: a NOP changes nothing, and its address is not read.
        unsafe {
            std::arch::asm!(
                concat!(".byte 0x0f, 0x1f, 0x84, 0x00, ", $kind, ", 0x00, 0x4e, 0x7a"),
                in("rdi") $number,
                options(nostack, preserves_flags)
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! mark {
    ($kind:literal, $number:expr) => {
        let _: u64 = $number;
    };
}

/// A piece of work begins.
#[inline(always)]
pub fn begin() {
    mark!("3", 0_u64);
}

/// The last piece of work is done; it had this many units.
#[inline(always)]
pub fn end(units: u64) {
    mark!("4", units);
}

/// The agent is about to say its first word.
#[inline(always)]
pub fn ready() {
    mark!("5", 0_u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_nothing() {
        let mut sum = 0_u64;
        for units in 1..=10 {
            begin();
            sum += units;
            end(units);
        }
        ready();
        assert_eq!(sum, 55);
    }
}
