//! The limits that the agent sets itself, and so all that it runs: the same on every platform, whatever that gives.
//!
//! `serve --limits NAME:VALUE,...` and `run --limits ...`; `limits` prints what a program that the agent starts has. The
//! list and its reasons are the host's (`src/tare/host/instance_limits.py`).

use std::fmt::Write as _;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limits of a process, by their names in setrlimit(2). Only the soft limit of a stack is set: compilers raise it.
const OF_PROCESS: [(&str, Resource, bool); 4] = [
    ("nofile", Resource::Nofile, true),
    ("memlock", Resource::Memlock, true),
    ("core", Resource::Core, true),
    ("stack", Resource::Stack, false),
];
/// Limits of a kernel: only a machine's first process may set them, since otherwise the kernel is shared.
const THREADS: &str = "/proc/sys/kernel/threads-max";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The limits to set.
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Limits {
    of_process: Vec<(usize, u64)>,
    threads: Option<u64>,
    huge_pages: Option<String>,
}

impl Limits {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for pair in text.split(',') {
            let (name, value) = pair.split_once(':').ok_or(format!("{pair:?} is no NAME:VALUE"))?;
            let number = || value.parse().map_err(|_| format!("{value:?} is no limit of {name}"));
            match name {
                "threads" => read.threads = Some(number()?),
                "thp" => read.huge_pages = Some(value.to_owned()),
                _ => {
                    let index = OF_PROCESS.iter().position(|(known, ..)| *known == name);
                    read.of_process.push((index.ok_or(format!("there is no limit {name:?}"))?, number()?));
                }
            }
        }
        Ok(read)
    }

    /// Sets them, as far as this process may, and says on stderr what it may not. `machine`: the kernel is its own.
    pub fn assume(&self, machine: bool) {
        for &(index, value) in &self.of_process {
            let (name, resource, hard) = OF_PROCESS[index];
            said(name, set(resource, value, hard).map_err(io::Error::from));
        }
        if let Some(threads) = self.threads.filter(|_| machine) {
            said("threads", fs::write(THREADS, threads.to_string()));
        }
        if let Some(mode) = self.huge_pages.as_ref().filter(|_| machine) {
            said("thp", fs::write(HUGE_PAGES, mode));
        }
    }
}

fn said(name: &str, result: io::Result<()>) {
    if let Err(error) = result {
        eprintln!("tare-agent: the limit {name} cannot be set: {error}");
    }
}

/// `hard`: whether the hard limit gets this value too. Where it may not be raised, as near as it goes.
fn set(resource: Resource, value: u64, hard: bool) -> Result<(), Errno> {
    let maximum = getrlimit(resource).maximum;
    let is_within = maximum.is_none_or(|most| value <= most);
    if hard || !is_within {
        match setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }) {
            Err(Errno::PERM) if !is_within => setrlimit(resource, Rlimit { current: maximum, maximum }),
            result => result,
        }
    } else {
        setrlimit(resource, Rlimit { current: Some(value), maximum })
    }
}

/// The limits of this process, and its kernel's, a line each: the name, and the value or the soft and the hard one.
pub fn shown() -> String {
    let mut text = String::new();
    for (name, resource, _) in OF_PROCESS {
        let Rlimit { current, maximum } = getrlimit(resource);
        let word = |value: Option<u64>| value.map_or("unlimited".to_owned(), |number| number.to_string());
        let _always = writeln!(text, "{name} {} {}", word(current), word(maximum));
    }
    for (name, value) in [("threads", read(THREADS)), ("thp", read(HUGE_PAGES).map(|words| chosen(&words)))] {
        let _always = writeln!(text, "{name} {}", value.unwrap_or("none".to_owned()));
    }
    text
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The word in brackets of a setting.
fn chosen(words: &str) -> String {
    words.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or("none").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(Limits::parse("nofile").unwrap_err().contains("nofile"));
        assert!(Limits::parse("nofile:many").unwrap_err().contains("many"));
        assert!(Limits::parse("core:0,loud:1").unwrap_err().contains("loud"));
        let read = Limits::parse("nofile:9,core:0,threads:7,thp:madvise").unwrap();
        assert_eq!((read.of_process, read.threads), (vec![(0, 9), (2, 0)], Some(7)));
        assert_eq!(read.huge_pages.as_deref(), Some("madvise"));
    }

    #[test]
    fn limits_are_set_and_shown_and_no_kernels_without_one_of_its_own() {
        let before = (read(THREADS), read(HUGE_PAGES));
        Limits::parse("nofile:4000,core:0,stack:4194304,threads:100,thp:never").unwrap().assume(false);
        let shown = shown();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "nofile 4000 4000");
        assert_eq!(lines[2], "core 0 0");
        assert!(lines[3].starts_with("stack 4194304 "));
        assert_eq!((read(THREADS), read(HUGE_PAGES)), before);
    }

    #[test]
    fn a_settings_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("0"), "none");
    }
}
