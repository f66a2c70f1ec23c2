//! Tries doors from inside an instance, each way in a process of its own that ends at once.
//!
//! It is harmless where a door is open: files are opened and never written, calls get arguments that the kernel refuses
//! after it has looked at the caller's rights, what is mounted is so in a mount namespace that ends with the process, and
//! it is never a disk's.
//!
//! Standard input: lines of words with tabs between. `set NAME VALUE` tells what the host made for this (`escapes.py`), and
//! `NAME ATTEMPT ARGUMENT...` is a door (`doors.py`). Standard output: `fact NAME VALUE`, and for each way to a door
//! `door NAME WAY WORD` (`word`). The last line is `end`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};

use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use rustix::time::{ClockId, clock_gettime};

use crate::sys;
use files::Scratch;
use network::Network;
use word::{OK, Tried, Word, best};

mod calls;
mod files;
mod network;
mod processes;
mod word;

/// For one way: an emulated machine takes seconds.
const LIMIT_S: u32 = 20;

/// A way to a door: its name, and the attempt.
pub struct Way<'a> {
    name: String,
    attempt: Box<dyn FnOnce() -> Word + 'a>,
}

fn way<'a>(name: impl Into<String>, attempt: impl FnOnce() -> Word + 'a) -> Way<'a> {
    Way { name: name.into(), attempt: Box::new(attempt) }
}

/// The one way to a door that cannot be tried here.
fn here<'a>(reason: &'static str) -> Vec<Way<'a>> {
    vec![way("here", move || format!("-{reason}"))]
}

/// The host's baits, by name.
#[derive(Default)]
pub struct Bait<'a>(HashMap<&'a str, &'a str>);

impl<'a> Bait<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn text(&self, name: &str) -> &'a str {
        self.get(name).unwrap_or_default()
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text(name).split(',').filter(|item| !item.is_empty())
    }

    fn number(&self, name: &str) -> u16 {
        self.text(name).parse().unwrap_or(0)
    }
}

/// Tries the doors that standard input names.
pub fn run() -> io::Result<()> {
    let mut order = String::new();
    io::stdin().read_to_string(&mut order)?;
    say(&facts())?;
    let scratch = Scratch::new();
    let (mut bait, network) = (Bait::default(), Network::default());
    for line in order.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match *words {
            ["set", name, value] => drop(bait.0.insert(name, value)),
            [name, attempt, ref arguments @ ..] => {
                let ways = ways(attempt, arguments, &bait, &scratch, &network).map_err(io::Error::other)?;
                for Way { name: way, attempt } in ways {
                    say(&format!("door\t{name}\t{way}\t{}\n", printable(&apart(attempt))))?;
                }
            }
            _ => return Err(io::Error::other(format!("{line:?} is no door"))),
        }
    }
    drop(scratch);
    say("end\n")
}

fn ways<'a>(
    attempt: &str,
    arguments: &[&'a str],
    bait: &'a Bait<'a>,
    scratch: &'a Scratch,
    network: &'a Network,
) -> Result<Vec<Way<'a>>, String> {
    Ok(match (attempt, arguments) {
        ("file", [path, mode, kind, below]) => files::try_file(scratch, path, mode, kind, below),
        ("binfmt", [path]) => files::try_binfmt(scratch, path),
        ("mount", [kind]) => files::try_mount(scratch, kind),
        ("device", [letter, number, path, mode]) => files::try_device(scratch, bait, letter, number, path, mode)?,
        ("disk_mount", []) => files::try_disk_mount(scratch, bait)?,
        ("handle", []) => files::try_handle(bait)?,
        ("files", []) => files::try_files(bait),
        ("proc", []) => files::try_proc(bait),
        ("chroot", []) => files::try_chroot(scratch, bait),
        ("hostfs", []) => files::try_hostfs(scratch, bait),
        ("shares", []) => files::try_shares(scratch, bait),
        ("setuid", []) => files::try_setuid(bait),
        ("release_agent", []) => files::try_release_agent(scratch),
        ("limits", []) => files::try_limits(scratch, bait),
        ("freezer", []) => processes::try_freezer(scratch),
        ("process_ids", [count]) => processes::try_process_ids(bait, count)?,
        ("processes", []) => processes::try_processes(bait),
        ("environment", []) => processes::try_environment(bait),
        ("ptrace", []) => processes::try_ptrace(bait),
        ("ipc", []) => vec![way("by its namespace", || OK.to_owned())],
        ("call", call) => calls::try_call(call)?,
        ("bpf", []) => calls::try_bpf(),
        ("keys", []) => calls::try_keys(bait.get("key")),
        ("user_namespace", []) => calls::try_user_namespace(),
        ("abstract", []) => network::try_abstract(bait),
        ("sockets", []) => network::try_sockets(bait),
        ("reach", []) => network::try_reach(bait),
        ("sniff", []) => network::try_sniff(bait),
        ("spoof", []) => network::try_spoof(bait),
        ("host_ports", []) => network.try_host_ports(bait),
        ("metadata", []) => network.try_metadata(bait),
        ("vsock", []) => network::try_vsock(bait),
        _ => return Err(format!("{attempt} {arguments:?} is no attempt")),
    })
}

/// Facts that identify the instance's kernel and namespaces.
fn facts() -> String {
    let mut facts = String::new();
    for name in ["uts", "ipc", "pid", "user", "net", "mnt"] {
        let known = fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
        let _ = writeln!(facts, "fact\t{name}\t{}", known.display());
    }
    let now = clock_gettime(ClockId::Boottime);
    let _ = writeln!(facts, "fact\tsince_boot_ns\t{}", now.tv_sec * 1_000_000_000 + now.tv_nsec);
    let boot = files::content("/proc/sys/kernel/random/boot_id").map(|text| word::shown(&text));
    let boot: String = boot.unwrap_or_else(|word| word).split_whitespace().collect();
    facts + &format!("fact\tboot\t{}\n", printable(&boot))
}

/// Writes at once: processes that are started afterwards have nothing left to write.
fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn printable(word: &str) -> String {
    word.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).collect()
}

/// The word that comes of an attempt in a process of its own.
fn apart(attempt: impl FnOnce() -> Word) -> Word {
    apart_until(LIMIT_S, attempt).unwrap_or_else(|word| word)
}

fn apart_until(limit_s: u32, attempt: impl FnOnce() -> Word) -> Tried<Word> {
    let failed = |error: io::Error| format!("-no process for it: {}", word::of(error));
    let (from, to) = io::pipe().map_err(failed)?;
    let Some(pid) = sys::fork().map_err(failed)? else {
        drop(from);
        sys::end_after(limit_s);
        let bytes: Vec<u8> = (attempt() + "\n").chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
        let _ = { to }.write_all(&bytes);
        sys::end();
    };
    drop(to);
    let mut said = Vec::new();
    let _ = { from }.read_to_end(&mut said);
    let status = Pid::from_raw(pid).and_then(|pid| waitpid(Some(pid), WaitOptions::empty()).ok().flatten());
    if !said.is_empty() {
        return Ok(best(said.strip_suffix(b"\n").unwrap_or(&said).split(|&byte| byte == b'\n').map(word::shown)));
    }
    let signal = status.and_then(|(_, status)| status.terminating_signal());
    Ok(match signal {
        Some(signal) if signal == Signal::SYS.as_raw() => format!("killed by signal {signal}"), // how a filter may refuse
        Some(signal) if signal == Signal::ALARM.as_raw() => format!("-it took more than {limit_s} s"),
        Some(signal) => format!("-signal {signal} ended it"),
        None => "-it ended without a word".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attempt_takes_its_arguments_and_no_others() {
        let (bait, scratch, network) = (Bait::default(), Scratch::none(), Network::default());
        let of = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let found = ways(words[0], &words[1..], &bait, &scratch, &network);
            found.map(|ways| ways.iter().map(|way| way.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(of("bpf"), Ok(vec!["by the call".to_owned()]));
        assert_eq!(of("device c 1:1 /dev/mem r").map(|ways| ways.len()), Ok(2));
        for wrong in ["bpf now", "dance", "device c", "device c 1 /dev/mem r", "call", "process_ids many"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_the_host_did_not_make_cannot_be_tried() {
        let bait = Bait::default();
        for ways in [calls::try_keys(None), network::try_spoof(&bait), processes::try_environment(&bait)] {
            let [Way { name, attempt }]: [Way<'_>; 1] = ways.try_into().ok().unwrap();
            assert_eq!(name, "here");
            assert!(attempt().starts_with('-'));
        }
    }

    #[test]
    fn words_have_no_control_characters() {
        assert_eq!(printable("=a\tb\u{ff}~ "), "=a?b?~ ");
    }
}
