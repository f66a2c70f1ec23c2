//! Calls that need nothing but a kernel: a process's number, clocks, a signal to oneself, an event that is there.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, c_long};
use rustix::event::{EventfdFlags, eventfd};

use super::{Call, Kind, Repeat, exactly, succeeded};
use crate::clock::now_ns;

pub const KINDS: [Kind; 5] = [
    Kind::new("getpid", getpid),
    Kind::new("clock-vdso", clock_vdso),
    Kind::new("clock-syscall", clock_syscall),
    Kind::new("signal", signal),
    Kind::new("epoll", epoll),
];

/// The call that does nothing: what it costs to get into the kernel and out again.
struct Getpid {
    own: c_long,
}

fn getpid(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    Ok(Box::new(Getpid { own: c_long::from(std::process::id() as c_int) }))
}

impl Call for Getpid {
    fn call(&mut self) -> io::Result<()> {
        // SAFETY: takes no arguments.
        exactly(unsafe { libc::syscall(libc::SYS_getpid) }, self.own)
    }
}

/// The clock as programs read it: without a system call where the kernel gives its page of code (vDSO) for that.
struct ClockVdso {
    last_ns: u64,
}

fn clock_vdso(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    Ok(Box::new(ClockVdso { last_ns: 0 }))
}

fn ascending(last_ns: &mut u64, now_ns: u64) -> io::Result<()> {
    if now_ns < *last_ns || now_ns == 0 {
        return Err(io::Error::other("the clock went backwards"));
    }
    *last_ns = now_ns;
    Ok(())
}

impl Call for ClockVdso {
    fn call(&mut self) -> io::Result<()> {
        ascending(&mut self.last_ns, now_ns())
    }
}

/// The clock by a system call.
struct ClockSyscall {
    last_ns: u64,
}

fn clock_syscall(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    Ok(Box::new(ClockSyscall { last_ns: 0 }))
}

impl Call for ClockSyscall {
    fn call(&mut self) -> io::Result<()> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let clock = c_long::from(libc::CLOCK_MONOTONIC);
        // SAFETY: `time` is writable for the call.
        exactly(unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) }, 0)?;
        // Neither is ever negative.
        ascending(&mut self.last_ns, time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }
}

/// A signal that a thread sends to itself, and its handler: tgkill, so that no other thread takes it.
struct Signal {
    process: c_long,
    thread: c_long,
}

/// Ignored by default, so that a late signal kills no process.
const SIGNAL: c_int = libc::SIGURG;
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_signal: c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn signal(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let handler: extern "C" fn(c_int) = count_signal;
    // SAFETY: all zeroes is a valid sigaction: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does nothing but add to an atomic number.
    succeeded(c_long::from(unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) }))?;
    // SAFETY: takes no arguments.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    Ok(Box::new(Signal { process: c_long::from(std::process::id() as c_int), thread }))
}

impl Call for Signal {
    fn call(&mut self) -> io::Result<()> {
        let before = HANDLED.load(Ordering::Relaxed);
        // SAFETY: takes no pointers; the signal has a handler, or is ignored.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, c_long::from(SIGNAL)) };
        exactly(sent, 0)?;
        // It was handled before the call returned, for it was this thread's own.
        match HANDLED.load(Ordering::Relaxed) {
            after if after == before => Err(io::Error::other("the signal was not handled")),
            _ => Ok(()),
        }
    }
}

/// epoll_wait with a descriptor that is ready: an event counter that is never read.
struct Epoll {
    epoll: OwnedFd,
    _counter: OwnedFd,
}

fn epoll(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let counter = eventfd(1, EventfdFlags::CLOEXEC)?;
    let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?;
    let data = rustix::event::epoll::EventData::new_u64(1);
    rustix::event::epoll::add(&epoll, &counter, data, rustix::event::epoll::EventFlags::IN)?;
    Ok(Box::new(Epoll { epoll, _counter: counter }))
}

impl Call for Epoll {
    fn call(&mut self) -> io::Result<()> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let (epoll, one, at_once, mask_bytes): (c_long, c_long, c_long, c_long) =
            (c_long::from(self.epoll.as_raw_fd()), 1, 0, 8);
        let no_mask = ptr::null::<libc::sigset_t>();
        // SAFETY: `event` is writable for the call and is the one that there is room for; no mask is given.
        let ready =
            unsafe { libc::syscall(libc::SYS_epoll_pwait, epoll, &raw mut event, one, at_once, no_mask, mask_bytes) };
        exactly(ready, 1)
    }
}
