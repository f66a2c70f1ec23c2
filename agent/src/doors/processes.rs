//! Ways by processes: the host's, and how many there may be.

use std::fs;
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libc::c_long;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::calls::call;
use super::files::{Scratch, content, ways_to_groups, write};
use super::word::{self, OK, OWN, Word, word};
use super::{Bait, LIMIT_S, Way, here, way};
use crate::sys::{self, Argument};

/// In which a limit of processes is looked for.
const FORK_S: f64 = 15.0;
/// After which it is known whether that many can be made in it.
const PACE_S: f64 = 3.0;
const PTRACE_SEIZE: c_long = 0x4206;

/// The folders of the processes that /proc shows.
pub fn folders() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).map(|name| format!("/proc/{name}"))
}

/// A process of the host's, known by its command line.
fn host_process(bait: &Bait<'_>) -> Option<u32> {
    let mark = bait.text("process");
    folders().find_map(|folder| {
        let pid: u32 = folder.strip_prefix("/proc/")?.parse().ok()?;
        let line = word::shown(&content(&format!("{folder}/cmdline")).ok()?);
        (pid != std::process::id() && line.contains(mark)).then_some(pid)
    })
}

pub fn try_processes<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("in /proc", move || host_process(bait).map_or("ENOENT", |_| OK).to_owned())]
}

/// The environment of its own processes, and of others that it may read, as they were started.
pub fn try_environment<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let Some(secret) = bait.get("variable") else { return here("tare has no secret in its environment") };
    vec![way("in /proc", move || {
        let mut texts = folders().filter_map(|folder| {
            let mut text = Vec::new();
            let _ = fs::File::open(folder + "/environ").ok()?.read_to_end(&mut text); // what was read counts
            Some(word::shown(&text))
        });
        if texts.any(|text| text.contains(secret)) { OK } else { "ENOENT" }.to_owned()
    })]
}

pub fn try_ptrace<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("by PTRACE_SEIZE", move || {
        let Some(pid) = host_process(bait) else { return "ENOENT".to_owned() };
        let pid = Argument::Number(pid.into());
        word(call("ptrace", &mut [Argument::Number(PTRACE_SEIZE), pid]).map(drop))
    })]
}

/// More than any sandbox needs: they end at once, and count until they are waited for.
pub fn try_process_ids<'a>(bait: &Bait<'_>, count: &str) -> Result<Vec<Way<'a>>, String> {
    let count: u32 = count.parse().map_err(|_| format!("{count:?} is no number of processes"))?;
    if bait.get("own_kernel").is_some() {
        return Ok(vec![way("by its own kernel", || OWN.to_owned())]);
    }
    if bait.text("limited").is_empty() {
        return Ok(here("no control group is there to limit it"));
    }
    Ok(vec![way("by fork", move || {
        let (made, word) = forked(count);
        for _ in 0..made {
            let _ = waitpid(None, WaitOptions::empty());
        }
        word
    })])
}

fn forked(count: u32) -> (u32, Word) {
    let began = Instant::now();
    for made in 0..count {
        let spent = began.elapsed().as_secs_f64();
        let hopeless = spent > PACE_S && f64::from(made) * FORK_S < f64::from(count) * spent;
        if hopeless || spent > FORK_S {
            return (made, format!("-no limit was met by {made} processes in {spent:.1} s"));
        }
        match sys::fork() {
            Ok(None) => sys::end(),
            Ok(Some(_)) => {}
            Err(error) => return (made, word::of(error)),
        }
    }
    (count, OK.to_owned())
}

/// A process that version 1 froze takes no signal, not even SIGKILL. No process is frozen here: a process moves to a new
/// group, and once that has ended the empty group is frozen and thawed.
pub fn try_freezer(scratch: &Scratch) -> Vec<Way<'_>> {
    ways_to_groups(scratch, |folder, controllers| controllers.contains("freezer").then(|| frozen(folder)))
}

fn frozen(folder: &str) -> Word {
    let group = format!("{folder}/tare-doors-{}", std::process::id());
    if let Err(error) = fs::create_dir(&group) {
        return word::of(error);
    }
    let moved = match sys::fork() {
        Ok(None) => {
            sleep(Duration::from_secs(LIMIT_S.into()));
            sys::end()
        }
        Ok(Some(pid)) => {
            let moved = write(&format!("{group}/cgroup.procs"), &pid.to_string());
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
            moved
        }
        Err(error) => Err(word::of(error)),
    };
    let state = format!("{group}/freezer.state");
    let frozen = moved.and_then(|()| write(&state, "FROZEN")).and_then(|()| content(&state));
    let _ = write(&state, "THAWED");
    for _ in 0..50 {
        // Until the last process has left it.
        if fs::remove_dir(&group).is_ok() {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    match frozen {
        Ok(text) if text.starts_with(b"FR") => OK.to_owned(),
        Ok(text) => word::read(&text),
        Err(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_has_this_process() {
        assert!(folders().any(|folder| folder == format!("/proc/{}", std::process::id())));
    }

    #[test]
    fn an_instance_with_a_kernel_of_its_own_has_its_own_processes() {
        let mut bait = Bait::default();
        bait.0.insert("own_kernel", "1");
        let [Way { name, attempt }]: [Way<'_>; 1] = try_process_ids(&bait, "9").unwrap().try_into().ok().unwrap();
        assert_eq!((name.as_str(), attempt().as_str()), ("by its own kernel", OWN));
    }
}
