//! Processes: fork, exit and wait; and with a program in between.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use libc::{c_char, c_int, c_long};

use super::{Call, Kind, Repeat, exactly, succeeded};

pub const KINDS: [Kind; 2] = [Kind::new("fork", |_| Ok(Box::new(Fork))), Kind::new("exec", exec)];

/// The agent's command that does nothing, which is the program to start.
pub const NOTHING: &str = "nothing";

const NONE: c_long = 0;

/// Makes a child that is a copy of this process with this thread alone; `in_child` is all that it does.
///
/// The call itself and not the C library's fork, which does more (locks, handlers): only the kernel's part is wanted.
/// The child may only make system calls: whatever other threads had locked stays locked in it.
pub fn fork(in_child: impl FnOnce() -> c_int) -> io::Result<c_long> {
    // SAFETY: with no new stack and no flags but the signal of its end, it is fork(2); what the child may do is the
    // caller's to know (above).
    let child = unsafe { libc::syscall(libc::SYS_clone, c_long::from(libc::SIGCHLD), NONE, NONE, NONE, NONE) };
    if child == 0 {
        let code = c_long::from(in_child());
        loop {
            // SAFETY: ends this process.
            unsafe { libc::syscall(libc::SYS_exit_group, code) };
        }
    }
    succeeded(child)
}

/// Waits for a child of ours, which is to end with code 0.
pub fn wait(child: c_long) -> io::Result<()> {
    let mut status: c_int = 0;
    let no_usage = ptr::null_mut::<libc::rusage>();
    // SAFETY: `status` is writable for the call; usage is not requested.
    exactly(unsafe { libc::syscall(libc::SYS_wait4, child, &raw mut status, NONE, no_usage) }, child)?;
    if status == 0 { Ok(()) } else { Err(io::Error::other(format!("the child ended with status {status:#x}"))) }
}

struct Fork;

impl Call for Fork {
    fn call(&mut self) -> io::Result<()> {
        wait(fork(|| 0)?)
    }
}

/// fork(2), execve(2) of a small static program that ends at once (the agent itself), wait(2).
struct Exec {
    program: CString,
    argument: CString,
}

fn exec(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    // A test's own program is all tests: started with an argument, it would run them and so start itself again.
    let program = if cfg!(test) { PathBuf::from("/bin/true") } else { std::env::current_exe()? };
    Ok(Box::new(Exec::new(&program)?))
}

impl Exec {
    fn new(program: &Path) -> io::Result<Self> {
        Ok(Self { program: CString::new(program.as_os_str().as_bytes())?, argument: CString::new(NOTHING)? })
    }
}

/// The exit code of a child whose program could not be started.
const NO_PROGRAM: c_int = 127;

impl Call for Exec {
    fn call(&mut self) -> io::Result<()> {
        let argv: [*const c_char; 3] = [self.program.as_ptr(), self.argument.as_ptr(), ptr::null()];
        let environment: [*const c_char; 1] = [ptr::null()];
        let child = fork(|| {
            // SAFETY: a path that ends with NUL, and two lists of such that end with null.
            unsafe { libc::syscall(libc::SYS_execve, argv[0], argv.as_ptr(), environment.as_ptr()) };
            NO_PROGRAM
        })?;
        wait(child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_child_ended_is_told() {
        assert!(wait(fork(|| 0).unwrap()).is_ok());
        assert!(wait(fork(|| 3).unwrap()).unwrap_err().to_string().contains("0x300"));
    }

    #[test]
    fn a_program_is_run_and_one_that_is_missing_is_an_error() {
        assert!(Exec::new(Path::new("/bin/true")).unwrap().call().is_ok());
        assert!(Exec::new(Path::new("/bin/false")).unwrap().call().is_err());
        let missing = Exec::new(Path::new("/no/such/program")).unwrap().call();
        assert!(missing.unwrap_err().to_string().contains("0x7f00"));
    }
}
