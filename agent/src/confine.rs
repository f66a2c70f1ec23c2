//! Confines a program that parses hostile servers' answers: a user of its own, without rights that it could keep or regain.
//!
//! `run --confined UID [--keep net-raw]`. The namespaces and the root that it is in are the host's to make.

use rustix::io::{Errno, Result};
use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid,
};

/// Whom the program runs as, and what it keeps of root's rights.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Confinement {
    /// A number, and no name: the root's own users are not asked.
    pub user: u32,
    pub kept: CapabilitySet,
}

impl Confinement {
    pub fn of(user: &str) -> std::result::Result<Self, String> {
        match user.parse() {
            Ok(number) if number > 0 => Ok(Self { user: number, kept: CapabilitySet::empty() }),
            _ => Err(format!("{user:?} is no number of a user but root")),
        }
    }

    /// Gives up the rest for good, also for programs that this process executes afterwards.
    pub fn assume(self) -> Result<()> {
        for number in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            if !self.kept.contains(capability) {
                match remove_capability_from_bounding_set(capability) {
                    // Beyond the last that the kernel knows.
                    Err(Errno::INVAL) => break,
                    result => result?,
                }
            }
        }
        set_keep_capabilities(!self.kept.is_empty())?;
        set_thread_groups(&[])?;
        set_thread_gid(Gid::from_raw(self.user))?;
        set_thread_uid(Uid::from_raw(self.user))?;
        set_capabilities(None, CapabilitySets { effective: self.kept, permitted: self.kept, inheritable: self.kept })?;
        for capability in self.kept.iter() {
            configure_capability_in_ambient_set(capability, true)?;
        }
        set_no_new_privs(true)?;
        // The kernel clears the signal of the parent's death when the user changes.
        set_parent_process_death_signal(Some(Signal::KILL))
    }
}

/// The right of that name.
pub fn right(name: &str) -> std::result::Result<CapabilitySet, String> {
    match name {
        "net-raw" => Ok(CapabilitySet::NET_RAW),
        _ => Err(format!("there is no right {name:?} to keep")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_no_user_to_be_confined_to_and_rights_are_named() {
        assert_eq!(Confinement::of("2000065536").unwrap().user, 2_000_065_536);
        for wrong in ["0", "root", "-1", "4294967296"] {
            assert!(Confinement::of(wrong).unwrap_err().contains(wrong));
        }
        assert_eq!(right("net-raw"), Ok(CapabilitySet::NET_RAW));
        assert!(right("sys-admin").unwrap_err().contains("sys-admin"));
    }
}
