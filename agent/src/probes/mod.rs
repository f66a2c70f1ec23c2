//! The built-in probes: one file each, named in `REGISTRY`.

mod calls;
mod dhrystone;
mod hardinfo;
mod llc_probe;
mod pages;
mod primes;
mod ramspeed;
mod stream;
mod sweep;
mod whetstone;

pub use calls::NOTHING;

use std::collections::BTreeMap;
use std::io;

use crate::message::Scalar;

/// Parameters by name, as the host gave them.
pub type Params = BTreeMap<String, Scalar>;

/// Work that can be done in small pieces for as long as is wanted.
pub trait Probe: Send {
    /// Names of its parts, in the order in which a round does them.
    fn parts(&self) -> &'static [&'static str];

    /// Most units that one `run` takes.
    fn max_units(&self) -> u64;

    /// Called once before the first `run`, in the thread that runs it: opens what is needed and tries it.
    fn prepare(&mut self) -> Result<(), Hindrance> {
        Ok(())
    }

    /// Called before each round, which will do `units` units of each part: what must be done and is not to be timed.
    /// True when there was something.
    fn rest(&mut self, _units: u64) -> bool {
        false
    }

    /// Does `units` units of a part and returns the work done, in the part's own measure (events, bytes). A round
    /// calls it for each part in turn with the same `units`.
    fn run(&mut self, part: usize, units: u64) -> u64;

    /// Called once at the end: whether all the work was done right.
    fn verify(&mut self) -> Result<(), String>;
}

/// The reason why a probe cannot begin, although its parameters are right.
#[derive(Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// The platform does not have what it asks for.
    Unsupported(String),
    /// It should have worked.
    Failed(String),
}

/// A kernel's reason for a call that it lacks or refuses.
const LACKS: [i32; 14] = [
    libc::ENOSYS,
    libc::EOPNOTSUPP,
    libc::EPERM,
    libc::EACCES,
    libc::EINVAL,
    libc::ENOENT,
    libc::ENODEV,
    libc::ENXIO,
    libc::EROFS,
    libc::EAFNOSUPPORT,
    libc::EPROTONOSUPPORT,
    libc::ENOPROTOOPT,
    libc::ENETUNREACH,
    libc::EADDRNOTAVAIL,
];

impl Hindrance {
    /// By what the kernel said of `what`, whose arguments are right.
    pub fn of(what: &str, error: &io::Error) -> Self {
        let text = format!("{what}: {error}");
        match error.raw_os_error() {
            Some(code) if LACKS.contains(&code) => Self::Unsupported(text),
            _ => Self::Failed(text),
        }
    }
}

type Make = fn(&mut Reader<'_>) -> Result<Box<dyn Probe>, String>;

const REGISTRY: [(&str, Make); 18] = [
    ("calls", calls::make),
    ("dhrystone", dhrystone::make),
    ("hardinfo-cryptohash", hardinfo::cryptohash::make),
    ("hardinfo-fft", hardinfo::fft::make),
    ("hardinfo-fibonacci", hardinfo::fibonacci::make),
    ("hardinfo-nqueens", hardinfo::nqueens::make),
    ("hardinfo-raytracing", hardinfo::raytracing::make),
    ("hardinfo-zlib", hardinfo::zlib::make),
    ("llc-probe", llc_probe::make),
    ("mmap-sweep", sweep::make_keeping),
    ("munmap-sweep", sweep::make_returning),
    ("primes", primes::make),
    ("ramspeed-float", ramspeed::make_float),
    ("ramspeed-int", ramspeed::make_int),
    ("ramspeed-sse", ramspeed::make_sse),
    ("ramspeed-sse-nt", ramspeed::make_sse_nt),
    ("stream", stream::make),
    ("whetstone", whetstone::make),
];

/// The probes' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|(name, _)| *name)
}

/// True if a probe of this name exists.
pub fn exists(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Allocates a probe. The error says what is wrong with its parameters.
pub fn make(name: &str, params: &Params) -> Result<Box<dyn Probe>, String> {
    let (_, make) = REGISTRY.iter().find(|(known, _)| *known == name).ok_or(format!("no probe {name}"))?;
    let mut reader = Reader { params, known: Vec::new() };
    let probe = make(&mut reader)?;
    match params.keys().find(|key| !reader.known.contains(&key.as_str())) {
        Some(key) => Err(format!("{name} has no parameter {key}, only {}", reader.known.join(", "))),
        None => Ok(probe),
    }
}

/// Reads parameters with their bounds, and notes which there are.
pub struct Reader<'a> {
    params: &'a Params,
    known: Vec<&'static str>,
}

impl Reader<'_> {
    fn integer(&mut self, name: &'static str, default: u64, least: u64, most: u64) -> Result<u64, String> {
        self.known.push(name);
        let value = match self.params.get(name) {
            None => Some(default),
            Some(Scalar::Int(value)) => u64::try_from(*value).ok(),
            Some(_) => None,
        };
        value
            .filter(|value| (least..=most).contains(value))
            .ok_or(format!("{name} is a whole number from {least} to {most}"))
    }

    fn text(&mut self, name: &'static str, default: &str) -> Result<String, String> {
        self.known.push(name);
        match self.params.get(name) {
            None => Ok(default.to_owned()),
            Some(Scalar::Text(text)) => Ok(text.clone()),
            Some(_) => Err(format!("{name} is a text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, key: &str, value: Scalar) -> String {
        match make(name, &Params::from([(key.to_owned(), value)])) {
            Ok(_) => panic!("{key} was taken"),
            Err(text) => text,
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        assert!(refused("primes", "max_primes", Scalar::Int(5)).contains("max_primes"));
        assert!(refused("primes", "max_prime", Scalar::Text("5".to_owned())).contains("whole number"));
        assert!(refused("primes", "max_prime", Scalar::Int(-5)).contains("whole number"));
        assert!(refused("stream", "array_bytes", Scalar::Int(i64::MAX)).contains("whole number"));
        assert!(refused("calls", "call", Scalar::Int(5)).contains("text"));
    }

    #[test]
    fn what_a_kernel_lacks_is_told_from_what_went_wrong() {
        let of = |code| Hindrance::of("a futex", &io::Error::from_raw_os_error(code));
        assert!(matches!(of(libc::ENOSYS), Hindrance::Unsupported(text) if text.starts_with("a futex: ")));
        assert!(matches!(of(libc::ENOSPC), Hindrance::Failed(text) if text.contains("space")));
    }
}
