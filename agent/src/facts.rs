//! Facts about the agent and its surroundings.

use std::io::Read;

use crate::clock;
use crate::message::{Hello, PROTOCOL};
use crate::probes;

const IMAGE_FILE: &str = "/etc/tare-image";
/// Longest image mark that is reported, in bytes.
const IMAGE_MAX: u64 = 4096;

/// The instants of a start's stages inside, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// The agent's own first moment, on its clock.
    pub clock_ns: u64,
    /// The kernel's uptime at that moment.
    pub uptime_ns: u64,
    /// The kernel's uptime when the guest's userspace began; None if it was not given.
    pub userspace_ns: Option<u64>,
}

impl Began {
    /// This moment.
    pub fn now(userspace_ns: Option<u64>) -> Self {
        Self { clock_ns: clock::now_ns(), uptime_ns: clock::uptime_ns(), userspace_ns }
    }
}

/// The agent's greeting. Everything in it is quick to learn: a start is being timed.
pub fn hello(began: Began, beacon: Option<String>) -> Hello {
    let memory = rustix::system::sysinfo();
    // The fields' widths differ between architectures.
    #[allow(clippy::useless_conversion)]
    let memory_bytes = u64::from(memory.totalram).saturating_mul(u64::from(memory.mem_unit));
    Hello {
        protocol: PROTOCOL,
        agent: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        began_ns: began.clock_ns,
        uptime_ns: began.uptime_ns,
        userspace_ns: began.userspace_ns,
        cpus: rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count()),
        memory_bytes,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        image: image(),
        beacon,
        probes: probes::names().map(str::to_owned).collect(),
        // Last, because collecting the facts above is part of the agent's own start.
        clock_ns: clock::now_ns(),
    }
}

fn image() -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(IMAGE_FILE).ok()?.take(IMAGE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
