//! Two that wait for each other: processes by pipes, threads by futexes. A call is there and back.
//!
//! On one CPU each way is a switch to the other. On more, where the host lets them be on two, the other may be awake
//! still when its message comes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use libc::{c_int, c_long};
use rustix::pipe::{PipeFlags, pipe_with};

use super::processes::{fork, wait};
use super::{Call, Kind, Repeat, exactly, succeeded};

pub const KINDS: [Kind; 2] = [Kind::new("pipe", pipe), Kind::new("futex", futex)];

const ONE: c_long = 1;

/// A byte through a pipe to a child, which sends it back through another: lmbench's lat_pipe, perf's sched pipe.
struct Pipe {
    /// Taken when it is dropped: the child ends at the end of its input.
    ends: Option<(OwnedFd, OwnedFd)>,
    child: c_long,
}

fn pipe(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let (in_child, to_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_child, out_of_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let (input, output) = (in_child.as_raw_fd(), out_of_child.as_raw_fd());
    let child = fork(|| echo(input, output))?;
    Ok(Box::new(Pipe { ends: Some((to_child, from_child)), child }))
}

fn one_byte(number: c_long, fd: RawFd, byte: &mut u8) -> c_long {
    // SAFETY: the byte is writable; the number is that of read or write.
    unsafe { libc::syscall(number, c_long::from(fd), ptr::from_mut(byte), ONE) }
}

/// The child's life: system calls alone (see `fork`).
fn echo(input: RawFd, output: RawFd) -> c_int {
    let mut byte = 0;
    if !only_these(input, output) {
        return 1;
    }
    while one_byte(libc::SYS_read, 0, &mut byte) == 1 {
        if one_byte(libc::SYS_write, 1, &mut byte) != 1 {
            return 2;
        }
    }
    0
}

/// Makes two descriptors 0 and 1 and closes the others: the pipes' other ends, so that their end is seen, and the
/// agent's stream, which is not to outlive the agent here. Neither of the two is 0, 1 or 2: the agent has those.
fn only_these(input: RawFd, output: RawFd) -> bool {
    /// Beyond what the agent ever has open.
    const MANY: c_long = 1024;
    let moved = |fd: RawFd, to: c_long| {
        // SAFETY: what is at `to` is the agent's, which is another process.
        unsafe { libc::syscall(libc::SYS_dup3, c_long::from(fd), to, 0 as c_long) == to }
    };
    if !(moved(input, 0) && moved(output, 1)) {
        return false;
    }
    for fd in 2..MANY {
        // SAFETY: nothing of this process uses it.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
    true
}

impl Call for Pipe {
    fn call(&mut self) -> io::Result<()> {
        let Some((to, from)) = &self.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut byte = 1;
        exactly(one_byte(libc::SYS_write, to.as_raw_fd(), &mut byte), ONE)?;
        exactly(one_byte(libc::SYS_read, from.as_raw_fd(), &mut byte), ONE)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.ends.take());
        let _ended = wait(self.child);
    }
}

/// The word that two threads share; 0: neither has anything to do.
#[derive(Default)]
struct Table {
    there: AtomicU32,
    back: AtomicU32,
}

const MESSAGE: u32 = 1;
const END: u32 = 2;

/// Sleeps while the word is 0; then it is 0 again, and what it was is returned.
fn take(word: &AtomicU32) -> io::Result<u32> {
    loop {
        let value = word.swap(0, Ordering::Acquire);
        if value != 0 {
            return Ok(value);
        }
        let (wait, no_limit) =
            (c_long::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), ptr::null::<libc::timespec>());
        // SAFETY: the word lives through the call.
        let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, 0 as c_long, no_limit) };
        if result < 0 {
            match io::Error::last_os_error() {
                error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {}
                error => return Err(error),
            }
        }
    }
}

/// Writes the word and wakes who sleeps at it.
fn give(word: &AtomicU32, value: u32) -> io::Result<()> {
    word.store(value, Ordering::Release);
    let wake = c_long::from(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
    // SAFETY: the word lives through the call.
    succeeded(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, ONE) }).map(drop)
}

/// A word that another thread waits for, and its answer: futex(2), wake and wait on either side.
struct Futex {
    table: Arc<Table>,
    other: Option<JoinHandle<()>>,
}

fn futex(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let table = Arc::new(Table::default());
    // Without the call the other could not even wait: seen here, and not by waiting for it.
    give(&table.there, 0)?;
    let shared = Arc::clone(&table);
    let answer =
        move || while take(&shared.there).is_ok_and(|word| word == MESSAGE) && give(&shared.back, 1).is_ok() {};
    let other = thread::Builder::new().name("futex".to_owned()).spawn(answer)?;
    Ok(Box::new(Futex { table, other: Some(other) }))
}

impl Call for Futex {
    fn call(&mut self) -> io::Result<()> {
        give(&self.table.there, MESSAGE)?;
        take(&self.table.back).map(drop)
    }
}

impl Drop for Futex {
    fn drop(&mut self) {
        let told = give(&self.table.there, END);
        if let (Ok(()), Some(other)) = (told, self.other.take()) {
            // It has no way to panic; its end is all that counts.
            let _ended = other.join();
        }
    }
}
