//! The system calls that rustix does not have, each behind a safe function.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_long, pid_t, sigset_t};

/// A child's exit, and the usage of it and of its own children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Exit status; None if a signal killed it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub max_rss_bytes: u64,
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves this thread alone into a new network namespace.
pub fn new_network() -> io::Result<()> {
    // SAFETY: it takes flags alone; descriptors that are open stay in their namespace.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Brings up the loopback of this thread's network namespace.
pub fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: an ifreq is numbers alone, for which zeros are values.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is of the type that this one reads, and lives through the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }).map(drop)
}

fn sigchld() -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: sigemptyset writes the whole set that the pointer is for.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was initialised above; SIGCHLD is a valid signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: initialised above.
    unsafe { set.assume_init() }
}

fn mask_sigchld(how: c_int) -> io::Result<()> {
    let set = sigchld();
    // SAFETY: `set` lives through the call; the old mask is not requested.
    match unsafe { libc::pthread_sigmask(how, &raw const set, ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Holds SIGCHLD back in this thread and those that it starts, so that a `child_events` descriptor tells of it.
pub fn block_sigchld() -> io::Result<()> {
    mask_sigchld(libc::SIG_BLOCK)
}

/// Lets SIGCHLD through again: a program must not inherit a mask that hides its children's deaths.
pub fn unblock_sigchld() -> io::Result<()> {
    mask_sigchld(libc::SIG_UNBLOCK)
}

/// Signals that whoever started us has ignored end this process again, and those that it starts.
///
/// A shell ignores SIGINT and SIGQUIT for what runs in its background; `nohup` ignores SIGHUP. What runs under a
/// platform must not depend on how its harness was started.
pub fn heed_signals() {
    // SIGPIPE is ignored by Rust's own start-up, which heeds it again in the programs that it starts.
    for signal in (1..=libc::SIGSYS).filter(|&signal| signal != libc::SIGPIPE) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `action` is writable for the call; nothing is changed.
        let asked = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
        // SAFETY: all zeroes is a valid sigaction, whether or not the kernel wrote into it.
        if asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN {
            // SAFETY: the default action runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// A non-blocking descriptor that is readable when a child may have died.
pub fn child_events() -> io::Result<OwnedFd> {
    let set = sigchld();
    // SAFETY: `set` lives through the call; -1 asks for a new descriptor.
    let fd = checked(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
    // SAFETY: the kernel just made this descriptor and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The process id of some dead child of this thread, which stays to be reaped; None when none is dead. Other
/// threads' children are their own: probes start processes and wait for them.
pub fn peek_dead() -> io::Result<Option<pid_t>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WNOTHREAD;
    // SAFETY: `info` is writable for the call.
    match checked(unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) }) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(error) => return Err(error),
    }
    // SAFETY: all zeroes is a valid siginfo_t, whether or not the kernel wrote into it.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid fills the child's fields, or leaves zeroes when no child is dead.
    let pid = unsafe { info.si_pid() };
    Ok((pid != 0).then_some(pid))
}

/// Takes a dead child's status; None if it was already taken.
pub fn reap(pid: pid_t) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are writable for the call.
    match checked(unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) }) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(error) => return Err(error),
    }
    // SAFETY: all zeroes is a valid rusage, and wait4 filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(Reaped {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        // Linux counts it in KiB (getrusage(2)).
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

fn timeval_ns(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds * 1_000_000_000 + micros * 1000
}

/// SIGKILL to every process that this one may signal, but itself and PID 1 (kill(2), pid -1).
pub fn kill_everything() -> io::Result<()> {
    // SAFETY: takes no pointers.
    checked(unsafe { libc::kill(-1, libc::SIGKILL) }).map(|_| ())
}

/// An argument of a system call that is made by its number.
pub enum Argument<'a> {
    Number(c_long),
    /// The memory that the call reads or fills.
    Bytes(&'a mut [u8]),
}

/// Makes one of the calls that doors are tried by. The lengths among its arguments are those of the bytes beside them.
pub fn call(number: c_long, arguments: &mut [Argument<'_>]) -> io::Result<c_long> {
    let mut words = [0; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = match argument {
            Argument::Number(number) => *number,
            // An address fits into a long on Linux.
            #[allow(clippy::cast_possible_wrap)]
            Argument::Bytes(bytes) => bytes.as_mut_ptr().expose_provenance() as c_long,
        };
    }
    let [one, two, three, four, five, six] = words;
    // SAFETY: the bytes live through the call, and these calls (`crate::doors::calls`) use no other memory of ours.
    match unsafe { libc::syscall(number, one, two, three, four, five, six) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// Takes what a call has opened.
pub fn opened(answer: c_long) -> io::Result<OwnedFd> {
    let fd = c_int::try_from(answer).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel just made this descriptor and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Starts a copy of this process, which must have one thread. Returns None in the copy.
pub fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: with one thread nothing is held by another that the copy lacks.
    checked(unsafe { libc::fork() }).map(|pid| (pid != 0).then_some(pid))
}

/// Ends this process at once, without flushing anything.
pub fn end() -> ! {
    // SAFETY: takes no pointers, and runs nothing of ours.
    unsafe { libc::_exit(0) }
}

/// Ends this process by SIGALRM after a number of seconds.
pub fn end_after(seconds: u32) {
    // SAFETY: takes no pointers; the signal's default action runs no code of ours.
    unsafe { libc::alarm(seconds) };
}

/// Sets an option of a socket that rustix does not have.
pub fn set_option(socket: &impl AsRawFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    // An option is some bytes long.
    #[allow(clippy::cast_possible_truncation)]
    let length = value.len() as libc::socklen_t;
    // SAFETY: `value` lives through the call, and `length` is its length.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// A stream to a port of another machine, or of the host, by a virtio socket.
pub fn connect_vsock(cid: u32, port: u32) -> io::Result<OwnedFd> {
    let socket = vsock()?;
    connect_vsock_by(&socket, cid, port)?;
    Ok(socket)
}

/// A virtio socket for a stream.
pub fn vsock() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel just made this descriptor and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Connects a virtio socket.
pub fn connect_vsock_by(socket: &OwnedFd, cid: u32, port: u32) -> io::Result<()> {
    // SAFETY: all zeroes is a valid sockaddr_vm.
    let mut address: libc::sockaddr_vm = unsafe { MaybeUninit::zeroed().assume_init() };
    // Both fit: 40, and a structure of 16 bytes.
    #[allow(clippy::cast_possible_truncation)]
    let (family, length) = (libc::AF_VSOCK as libc::sa_family_t, size_of::<libc::sockaddr_vm>() as libc::socklen_t);
    address.svm_family = family;
    address.svm_cid = cid;
    address.svm_port = port;
    // SAFETY: `address` lives through the call, and `length` is its length.
    checked(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}
