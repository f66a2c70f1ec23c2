//! The cost of one system call, or of one service of a kernel: the same call repeatedly, each checked.
//!
//! The calls are made as such (`libc::syscall`), not through a C library that adds its own: its points of
//! cancellation, for one, cost tens of nanoseconds.

mod bytes;
mod files;
mod ipc;
mod memory;
mod packets;
mod plain;
mod processes;

pub use processes::NOTHING;

use std::io;
use std::path::{Path, PathBuf};

use libc::c_long;

use super::{Hindrance, Probe, Reader};

const PARTS: [&str; 1] = ["calls"];
/// The folder of calls that need a file, unless the host names another.
const FOLDER: &str = "/data";

/// A call that can be made again and again.
trait Call: Send {
    /// Makes it once; an error when it did not do what it should. Allocates nothing.
    fn call(&mut self) -> io::Result<()>;
}

/// The number of calls so far, of the wrong ones, and the last error.
#[derive(Default)]
struct Tally {
    made: u64,
    wrong: u64,
    last: Option<io::Error>,
}

/// A loop over one call: the compiler makes one for each kind, without a detour at each call.
trait Repeat: Send {
    fn repeat(&mut self, times: u64, tally: &mut Tally);
}

impl<C: Call> Repeat for C {
    fn repeat(&mut self, times: u64, tally: &mut Tally) {
        for _ in 0..times {
            if let Err(error) = self.call() {
                tally.wrong += 1;
                tally.last = Some(error);
            }
        }
        tally.made += times;
    }
}

/// A call by its name: how its files, descriptors and partners are made. It may leave a file in the folder while it
/// lives.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    open: fn(&Path) -> io::Result<Box<dyn Repeat>>,
    /// The amount that a call counts (KiB for calls that are counted by them).
    work: u64,
}

impl Kind {
    const fn new(name: &'static str, open: fn(&Path) -> io::Result<Box<dyn Repeat>>) -> Self {
        Self { name, open, work: 1 }
    }

    const fn counting(self, work: u64) -> Self {
        Self { work, ..self }
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    let by_file: [&[Kind]; 7] =
        [&plain::KINDS, &bytes::KINDS, &memory::KINDS, &processes::KINDS, &ipc::KINDS, &files::KINDS, &packets::KINDS];
    by_file.into_iter().flatten().copied()
}

struct Calls {
    kind: Kind,
    folder: PathBuf,
    ready: Option<Box<dyn Repeat>>,
    tally: Tally,
}

pub fn make(params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    let folder = PathBuf::from(params.text("folder", FOLDER)?);
    let name = params.text("call", "getpid")?;
    let Some(kind) = kinds().find(|kind| kind.name == name) else {
        let known: Vec<&str> = kinds().map(|kind| kind.name).collect();
        // The end is what is always shown of a long line.
        return Err(format!("the calls are {}; there is no call {name}", known.join(", ")));
    };
    Ok(Box::new(Calls { kind, folder, ready: None, tally: Tally::default() }))
}

impl Probe for Calls {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        1 << 20
    }

    fn prepare(&mut self) -> Result<(), Hindrance> {
        let name = self.kind.name;
        let mut call = (self.kind.open)(&self.folder).map_err(|error| Hindrance::of(name, &error))?;
        call.repeat(1, &mut self.tally);
        self.ready = Some(call);
        self.tally.last.take().map_or(Ok(()), |error| Err(Hindrance::of(name, &error)))
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        let Some(call) = &mut self.ready else { return 0 };
        call.repeat(units, &mut self.tally);
        units * self.kind.work
    }

    fn verify(&mut self) -> Result<(), String> {
        let Tally { made, wrong, last } = &self.tally;
        match last {
            None => Ok(()),
            Some(error) => {
                Err(format!("{wrong} of {made} times {} did not do what it should: {error}", self.kind.name))
            }
        }
    }
}

/// Holds a system call's result to the only right one.
fn exactly(result: c_long, right: c_long) -> io::Result<()> {
    if result == right { Ok(()) } else { Err(amiss(result)) }
}

/// Returns the result of a system call, or its error.
fn succeeded(result: c_long) -> io::Result<c_long> {
    if result >= 0 { Ok(result) } else { Err(amiss(result)) }
}

#[cold]
fn amiss(result: c_long) -> io::Error {
    if result < 0 { io::Error::last_os_error() } else { io::Error::other(format!("it gave {result}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Scalar;
    use crate::probes;

    /// A folder of a test's own, gone with it.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tare-calls-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // Only while it is empty: what a call left there is a test's failure.
            std::fs::remove_dir(&self.0).unwrap();
        }
    }

    fn calls(name: &str, folder: &Path) -> Box<dyn Probe> {
        let text = |value: &str| Scalar::Text(value.to_owned());
        let folder = text(folder.to_str().unwrap());
        let params = probes::Params::from([("call".to_owned(), text(name)), ("folder".to_owned(), folder)]);
        probes::make("calls", &params).unwrap()
    }

    #[test]
    fn every_call_can_be_made_and_leaves_nothing() {
        for kind in kinds() {
            let folder = Folder::new(kind.name);
            let mut probe = calls(kind.name, &folder.0);
            assert_eq!(probe.prepare(), Ok(()), "{}", kind.name);
            assert_eq!(probe.run(0, 20), 20 * kind.work, "{}", kind.name);
            assert_eq!(probe.verify(), Ok(()), "{}", kind.name);
        }
    }

    #[test]
    fn names_are_taken_once() {
        let mut names: Vec<&str> = kinds().map(|kind| kind.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), kinds().count());
    }

    #[test]
    fn an_unknown_call_is_refused_with_those_that_there_are() {
        let params = probes::Params::from([("call".to_owned(), Scalar::Text("getpit".to_owned()))]);
        let Err(text) = probes::make("calls", &params) else { panic!("taken") };
        assert!(text.contains("getpit") && text.contains("getpid"));
    }

    #[test]
    fn a_folder_that_is_missing_is_a_hindrance() {
        let mut probe = calls("file-create", Path::new("/no/such/folder"));
        let Err(Hindrance::Unsupported(text)) = probe.prepare() else { panic!("prepared") };
        assert!(text.starts_with("file-create: "), "{text}");
    }

    struct Failing(u64);

    impl Call for Failing {
        fn call(&mut self) -> io::Result<()> {
            self.0 += 1;
            if self.0.is_multiple_of(3) { Err(io::Error::from_raw_os_error(libc::EBADF)) } else { Ok(()) }
        }
    }

    #[test]
    fn errors_are_counted_and_told() {
        let open: fn(&Path) -> io::Result<Box<dyn Repeat>> = |_| Ok(Box::new(Failing(0)));
        let kind = Kind::new("failing", open);
        let mut probe = Calls { kind, folder: PathBuf::new(), ready: None, tally: Tally::default() };
        assert_eq!(probe.prepare(), Ok(()));
        probe.run(0, 8);
        assert!(probe.verify().unwrap_err().starts_with("3 of 9 times failing "));
    }

    #[test]
    fn a_result_is_held_to_the_right_one() {
        assert!(exactly(4096, 4096).is_ok());
        assert!(exactly(1, 4096).unwrap_err().to_string().contains("it gave 1"));
        assert!(succeeded(0).is_ok());
    }
}
