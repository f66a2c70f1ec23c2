//! What the agent says of itself and of where it is.

use std::io::Read;

use crate::clock;
use crate::message::{Hello, PROTOCOL};
use crate::probes;

const IMAGE_FILE: &str = "/etc/tare-image";
/// Longest image mark that is told, in bytes.
const IMAGE_MAX: u64 = 4096;

/// The agent's greeting. Everything in it is quick to learn: a start is being timed.
pub fn hello() -> Hello {
    let memory = rustix::system::sysinfo();
    // The fields' widths differ between architectures.
    #[allow(clippy::useless_conversion)]
    let memory_bytes = u64::from(memory.totalram).saturating_mul(u64::from(memory.mem_unit));
    Hello {
        protocol: PROTOCOL,
        agent: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        clock_ns: clock::now_ns(),
        cpus: rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count()),
        memory_bytes,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        image: image(),
        probes: probes::names().map(str::to_owned).collect(),
    }
}

fn image() -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(IMAGE_FILE).ok()?.take(IMAGE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
