//! The agent's clocks, in nanoseconds: CLOCK_MONOTONIC, and CLOCK_BOOTTIME for the age of its kernel.

use rustix::time::{ClockId, clock_gettime};

/// Now, in ns since an arbitrary point (boot, as a rule).
pub fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// The uptime of the agent's kernel, in ns, time asleep included.
pub fn uptime_ns() -> u64 {
    read(ClockId::Boottime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither clock is ever negative, so neither conversion can fail.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_nanoseconds() {
        let (before, start) = (now_ns(), std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (slept, by_std) = (now_ns() - before, start.elapsed().as_nanos());
        assert!(slept >= 5_000_000);
        assert!(u128::from(slept) <= by_std + 1_000_000_000);
    }
}
