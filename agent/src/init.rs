//! The duties of a machine's PID 1: the usual mounts, and the shutdown.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mount::MountFlags;
use rustix::system::RebootCommand;

use crate::sys;

const MOUNTS: [(&CStr, &str); 6] = [
    (c"proc", "/proc"),
    (c"sysfs", "/sys"),
    (c"devtmpfs", "/dev"),
    (c"tmpfs", "/dev/shm"),
    (c"tmpfs", "/run"),
    (c"tmpfs", "/tmp"),
];

/// Mounts whatever is not mounted yet. Failures are printed on stderr, and the others continue.
pub fn mount_all() {
    for (kind, path) in MOUNTS {
        if let Err(error) = mount_one(kind, path) {
            eprintln!("tare-agent: cannot mount {} on {path}: {error}", kind.to_string_lossy());
        }
    }
}

fn mount_one(kind: &CStr, path: &str) -> io::Result<()> {
    fs::create_dir_all(path)?;
    if is_mount_point(Path::new(path))? {
        return Ok(());
    }
    let safe = if kind == c"devtmpfs" { MountFlags::NOSUID } else { MountFlags::NOSUID | MountFlags::NODEV };
    Ok(rustix::mount::mount(kind, path, kind, safe, None)?)
}

/// A mount point lies on another device than the folder above it.
fn is_mount_point(path: &Path) -> io::Result<bool> {
    let above = path.parent().unwrap_or(path);
    Ok(fs::metadata(path)?.dev() != fs::metadata(above)?.dev())
}

/// What ends the machine.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    #[default]
    PowerOff,
    /// A reset, at which a monitor without a power switch ends.
    Reset,
}

/// Ends all processes, writes the disks and ends the machine. Returns only if that fails.
pub fn switch_off(off: Off) -> io::Result<()> {
    // Nobody left to kill is no failure.
    let _alone = sys::kill_everything();
    rustix::fs::sync();
    let command = match off {
        Off::PowerOff => RebootCommand::PowerOff,
        Off::Reset => RebootCommand::Restart,
    };
    Ok(rustix::system::reboot(command)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_a_mount_point_and_a_new_folder_is_not() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        let folder = std::env::temp_dir().join(format!("tare-agent-test-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let found = is_mount_point(&folder);
        fs::remove_dir(&folder).unwrap();
        assert!(!found.unwrap());
    }
}
