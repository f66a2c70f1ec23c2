//! One running command: its pipes, its limits, its end.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::clock;
use crate::frame::{STDERR, STDOUT};
use crate::message::{self, Code, Counted, Exited, Reply, STDIN_WINDOW};
use crate::outbox::Outbox;
use crate::sys::{self, Reaped};

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Consumed stdin is granted anew in steps of this many bytes.
const CREDIT_STEP: u64 = STDIN_WINDOW / 4;

/// The reason why a command did not start.
pub struct SpawnError {
    pub code: Code,
    pub text: String,
}

/// A command from its start until its `exited` is queued. Leads a process group of its own.
pub struct Execution {
    id: u32,
    pid: Pid,
    stdout: Output,
    stderr: Output,
    stdin: Option<Input>,
    started_ns: u64,
    spawn_ns: u64,
    deadline_ns: u64,
    timed_out: bool,
    /// Its exit, and the time of it.
    end: Option<(Reaped, u64)>,
}

impl Execution {
    /// Starts the command; `received_ns` is when its request was there.
    pub fn start(request: &message::Exec, received_ns: u64) -> Result<Self, SpawnError> {
        rustix::process::chdir(request.cwd.as_str())
            .map_err(|error| refused(error.into(), &format!("working directory {}", request.cwd)))?;
        let child = spawn(request);
        // The agent itself stays out of the way of unmounts.
        let home = rustix::process::chdir("/");
        let (started_ns, mut child) = child?;
        let io_failed = |error: io::Error| refused(error, "pipes");
        home.map_err(|error| io_failed(error.into()))?;
        let spawned_ns = clock::now_ns();
        let pid = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io_failed(io::Error::from(ErrorKind::InvalidData)))?;
        Ok(Self {
            id: request.id,
            pid,
            stdout: Output::new(child.stdout.take().map(OwnedFd::from), request.output_cap).map_err(io_failed)?,
            stderr: Output::new(child.stderr.take().map(OwnedFd::from), request.output_cap).map_err(io_failed)?,
            stdin: child
                .stdin
                .take()
                .filter(|_| request.stdin)
                .map(|pipe| Input::new(OwnedFd::from(pipe)))
                .transpose()
                .map_err(io_failed)?,
            started_ns,
            spawn_ns: spawned_ns.saturating_sub(received_ns),
            deadline_ns: started_ns + request.time_limit_ms * 1_000_000,
            timed_out: false,
            end: None,
        })
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The instant of the time limit; None once it has passed, or the command is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        (!self.timed_out && self.end.is_none()).then_some(self.deadline_ns)
    }

    /// Kills the group if the time limit is over.
    pub fn check_deadline(&mut self, now_ns: u64) {
        if self.deadline_ns().is_some_and(|deadline| deadline <= now_ns) {
            self.timed_out = true;
            self.kill();
        }
    }

    /// SIGKILL to the group. Its leader is not reaped yet, so the number cannot be another's.
    pub fn kill(&self) {
        if self.end.is_none() {
            // An error means that the group is gone already, which is the goal.
            let _gone = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Notes the leader's death. The caller has killed what was left of the group before reaping, so what is in
    /// the pipes now is all that the command said; a process that fled the group may hold them open for ever.
    pub fn ended(&mut self, reaped: Reaped, outbox: &mut Outbox) {
        self.end = Some((reaped, clock::now_ns()));
        self.stdin = None;
        for (output, channel) in [(&mut self.stdout, STDOUT), (&mut self.stderr, STDERR)] {
            output.limit_to_present(self.id, channel, outbox);
        }
    }

    /// Descriptors to read that may be read now.
    pub fn readable(&self, room: bool) -> impl Iterator<Item = (u8, BorrowedFd<'_>)> {
        [(STDOUT, &self.stdout), (STDERR, &self.stderr)]
            .into_iter()
            .filter(move |(_, output)| room || output.capped())
            .filter_map(|(channel, output)| Some((channel, output.pipe.as_ref()?.as_fd())))
    }

    /// The descriptor to write, if there is something to write.
    pub fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().and_then(Input::wants)
    }

    /// Reads once from an output channel.
    pub fn read(&mut self, channel: u8, scratch: &mut [u8], outbox: &mut Outbox) {
        let output = if channel == STDOUT { &mut self.stdout } else { &mut self.stderr };
        output.read(self.id, channel, scratch, outbox);
    }

    /// Takes stdin from the host; an error when it sends more than was granted.
    pub fn feed(&mut self, bytes: Vec<u8>, outbox: &mut Outbox) -> Result<(), &'static str> {
        let Some(input) = &mut self.stdin else {
            return Ok(()); // over, or closed: the host could not know yet
        };
        input.feed(bytes)?;
        self.write(outbox);
        Ok(())
    }

    /// Writes what the command takes of its stdin, and grants the host that much anew.
    pub fn write(&mut self, outbox: &mut Outbox) {
        let Some(input) = &mut self.stdin else { return };
        let over = input.write();
        if let Some(bytes) = input.grant() {
            outbox.reply(&Reply::Credit(Counted { id: self.id, bytes }));
        }
        if over {
            self.stdin = None;
        }
    }

    /// The last word, once the command is dead and all its output is queued.
    pub fn farewell(&self) -> Option<Reply> {
        let (reaped, ended_ns) = self.end?;
        if self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            return None;
        }
        Some(Reply::Exited(Exited {
            id: self.id,
            code: reaped.code,
            signal: reaped.signal,
            timed_out: self.timed_out,
            wall_ns: ended_ns.saturating_sub(self.started_ns),
            spawn_ns: self.spawn_ns,
            user_ns: reaped.user_ns,
            system_ns: reaped.system_ns,
            max_rss_bytes: reaped.max_rss_bytes,
            stdout_bytes: self.stdout.produced,
            stderr_bytes: self.stderr.produced,
            truncated: self.stdout.truncated() || self.stderr.truncated(),
        }))
    }
}

fn spawn(request: &message::Exec) -> Result<(u64, std::process::Child), SpawnError> {
    let path = request.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let program = find_program(&request.argv[0], path)?;
    let mut command = Command::new(program);
    command
        .arg0(&request.argv[0])
        .args(&request.argv[1..])
        .env_clear()
        .envs([("PATH", DEFAULT_PATH), ("HOME", "/root"), ("LANG", "C.UTF-8")])
        .envs(&request.env)
        // A pipe without a writer stands for no stdin: /dev/null may be missing in a bare root.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let unmasked = sys::unblock_sigchld();
    let started_ns = clock::now_ns();
    let child = command.spawn();
    // A death that was signalled in between is found all the same: the caller looks after each start.
    let masked = sys::block_sigchld();
    let failed = |error| refused(error, &request.argv[0]);
    unmasked.and(masked).map_err(failed)?;
    Ok((started_ns, child.map_err(failed)?))
}

/// Looks the program up here, so that the standard library can use posix_spawn, and the error names the cause.
fn find_program(name: &str, path: &str) -> Result<PathBuf, SpawnError> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    path.split(':')
        .map(|folder| Path::new(folder).join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok())
        .ok_or_else(|| SpawnError { code: Code::NotFound, text: format!("no program {name} in {path}") })
}

fn refused(error: io::Error, what: &str) -> SpawnError {
    let code = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Code::NotFound,
        ErrorKind::PermissionDenied => Code::Denied,
        _ => Code::SpawnFailed,
    };
    SpawnError { code, text: format!("{what}: {error}") }
}

fn set_nonblocking(pipe: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe)?;
    Ok(rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

/// The reading end of a command's stdout or stderr.
struct Output {
    /// None after its end.
    pipe: Option<OwnedFd>,
    produced: u64,
    cap: u64,
    /// Once the command is dead: bytes still to read.
    rest: Option<u64>,
}

impl Output {
    fn new(pipe: Option<OwnedFd>, cap: u64) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            set_nonblocking(pipe)?;
        }
        Ok(Self { pipe, produced: 0, cap, rest: None })
    }

    fn capped(&self) -> bool {
        self.produced >= self.cap
    }

    fn truncated(&self) -> bool {
        self.produced > self.cap
    }

    fn read(&mut self, id: u32, channel: u8, scratch: &mut [u8], outbox: &mut Outbox) {
        let Some(pipe) = &self.pipe else { return };
        let rest = self.rest.map_or(usize::MAX, |rest| usize::try_from(rest).unwrap_or(usize::MAX));
        let limit = scratch.len().min(rest);
        match rustix::io::read(pipe, &mut scratch[..limit]) {
            Ok(0) => self.close(id, channel, outbox),
            Ok(count) => self.take(id, channel, &scratch[..count], outbox),
            Err(Errno::AGAIN | Errno::INTR) if self.rest.is_none() => {}
            // Nothing is there although the command is dead, or the pipe is broken: this was all.
            Err(_) => self.close(id, channel, outbox),
        }
    }

    fn take(&mut self, id: u32, channel: u8, bytes: &[u8], outbox: &mut Outbox) {
        let left = usize::try_from(self.cap.saturating_sub(self.produced)).unwrap_or(usize::MAX);
        let sent = &bytes[..bytes.len().min(left)];
        if !sent.is_empty() {
            outbox.data(id, channel, sent);
        }
        self.produced += bytes.len() as u64;
        if let Some(rest) = &mut self.rest {
            *rest = rest.saturating_sub(bytes.len() as u64);
            if *rest == 0 {
                self.close(id, channel, outbox);
            }
        }
    }

    fn limit_to_present(&mut self, id: u32, channel: u8, outbox: &mut Outbox) {
        let Some(pipe) = &self.pipe else { return };
        let present = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        self.rest = Some(present);
        if present == 0 {
            self.close(id, channel, outbox);
        }
    }

    fn close(&mut self, id: u32, channel: u8, outbox: &mut Outbox) {
        self.pipe = None;
        outbox.data(id, channel, &[]);
    }
}

/// The writing end of a command's stdin, and what waits for it: at most STDIN_WINDOW bytes.
struct Input {
    /// None once the command reads no more; what still comes is thrown away.
    pipe: Option<OwnedFd>,
    queue: VecDeque<u8>,
    window: u64,
    consumed: u64,
    /// The host has sent the end.
    closing: bool,
}

impl Input {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&pipe)?;
        Ok(Self { pipe: Some(pipe), queue: VecDeque::new(), window: STDIN_WINDOW, consumed: 0, closing: false })
    }

    fn wants(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }

    fn feed(&mut self, bytes: Vec<u8>) -> Result<(), &'static str> {
        if self.closing {
            return Err("stdin was sent after its end");
        }
        self.closing = bytes.is_empty();
        let length = bytes.len() as u64;
        self.window = self.window.checked_sub(length).ok_or("more stdin was sent than was granted")?;
        if self.pipe.is_some() {
            self.queue.extend(bytes);
        } else {
            self.consumed += length;
        }
        Ok(())
    }

    /// Writes what the pipe takes; true when stdin is over.
    fn write(&mut self) -> bool {
        while let (Some(pipe), false) = (&self.pipe, self.queue.is_empty()) {
            match rustix::io::write(pipe, self.queue.as_slices().0) {
                Ok(count) => {
                    self.queue.drain(..count);
                    self.consumed += count as u64;
                }
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => {}
                Err(_) => self.give_up(),
            }
        }
        self.closing
    }

    fn give_up(&mut self) {
        self.pipe = None;
        self.consumed += self.queue.len() as u64;
        self.queue = VecDeque::new();
    }

    fn grant(&mut self) -> Option<u64> {
        if self.closing || self.consumed < CREDIT_STEP {
            return None;
        }
        self.window += self.consumed;
        Some(std::mem::take(&mut self.consumed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdin_beyond_the_window_is_refused_and_consumed_bytes_are_granted_anew() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut input = Input::new(writer).unwrap();
        input.feed(vec![1; STDIN_WINDOW as usize]).unwrap();
        assert_eq!(input.feed(vec![1]), Err("more stdin was sent than was granted"));
        let mut input = Input { window: STDIN_WINDOW, ..input };
        input.queue.truncate(CREDIT_STEP as usize);
        drop(reader); // the command closed its stdin: all is consumed, nothing is kept
        assert!(!input.write());
        assert_eq!(input.grant(), Some(CREDIT_STEP));
        assert_eq!(input.queue.capacity(), 0);
    }

    #[test]
    fn programs_are_found_on_the_given_path_only() {
        assert_eq!(find_program("sh", "/nowhere:/bin").ok(), Some(PathBuf::from("/bin/sh")));
        let Err(error) = find_program("sh", "/nowhere") else { panic!("found") };
        assert_eq!(error.code, Code::NotFound);
    }
}
