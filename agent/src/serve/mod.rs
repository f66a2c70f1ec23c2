//! The loop: one thread that waits for the host, the children and the probes, and answers.

mod requests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use thiserror::Error;

use crate::beacon::Beacon;
use crate::clock::now_ns;
use crate::exec::Execution;
use crate::facts::{self, Began};
use crate::files::{FileError, Get, Put};
use crate::frame::{Decoder, Frame, FrameError, STDERR, STDIN, STDOUT};
use crate::init::Off;
use crate::limits::Limits;
use crate::message::{Code, Counted, Reply};
use crate::outbox::Outbox;
use crate::pace::{Event, Mailbox, Pacer};
use crate::{away, init, mark, sys};

/// Bytes that are read at once, from the host and from children.
const SCRATCH: usize = 65_536;
/// Time limit for writing the last words, in ns.
const FAREWELL_NS: u64 = 2_000_000_000;

/// The reason why serving ended, if not by `shutdown` or the end of the stream.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("what the host sent is not the protocol: {0}")]
    Frame(#[from] FrameError),
    #[error("what the host sent cannot be answered: {0}")]
    Message(String),
    #[error("the machine refuses: {0}")]
    Io(#[from] io::Error),
}

/// The reason why the loop ends.
enum End {
    HostGone,
    Shutdown { id: u32 },
    Fault(ServeError),
}

/// How the host is served, as the command line says.
#[derive(Debug, Default, PartialEq)]
pub struct Serving {
    /// Where the start-up mark goes.
    pub beacon: Option<SocketAddr>,
    /// As PID 1, it mounts what a system needs first, and switches the machine off at the end.
    pub init: bool,
    /// The kernel's uptime when the guest's userspace began, in ns: the boot's scripts know it.
    pub userspace_ns: Option<u64>,
    /// The host's address, if it is not at stdin and stdout.
    pub away: Option<away::Host>,
    /// True to wait for a byte first.
    pub held: bool,
    /// True to connect again where the connection to a host that is away has ended, as a snapshot ends it.
    pub again: bool,
    pub off: Off,
    /// What all that it runs inherits.
    pub limits: Limits,
}

/// Serves the host until it is gone or says `shutdown`.
pub fn serve(serving: Serving) -> Result<(), ServeError> {
    if serving.held {
        hold(serving.away)?;
    }
    let began = Began::now(serving.userspace_ns);
    let machine = serving.init && std::process::id() == 1;
    if machine {
        init::mount_all();
    }
    serving.limits.assume(machine);
    if let Some(host) = serving.away {
        away::take_place(host)?;
    }
    let (host_in, host_out) = (io::stdin(), io::stdout());
    unblock()?;
    let beacon = serving.beacon.map(Beacon::new);
    let mut outbox = Outbox::default();
    outbox.reply(&Reply::Hello(facts::hello(began, beacon.as_ref().map(|beacon| beacon.token.clone()))));
    mark::ready();
    outbox.flush(host_out.as_fd())?;
    if let Some(Err(error)) = beacon.map(|beacon| beacon.send()) {
        eprintln!("tare-agent: the beacon was not sent: {error}");
    }
    let mut agent = Agent::new(outbox)?;
    let mut end = agent.run(host_in.as_fd(), host_out.as_fd());
    if let (true, Some(host)) = (serving.again, serving.away) {
        while matches!(end, End::HostGone) && away::take_place_again(host).is_ok() {
            unblock()?;
            agent.connected_anew();
            end = agent.run(host_in.as_fd(), host_out.as_fd());
        }
    }
    agent.kill_all();
    let result = agent.take_leave(end, host_out.as_fd());
    if machine {
        init::switch_off(serving.off)?;
    }
    result
}

/// Makes stdin and stdout return at once.
fn unblock() -> io::Result<()> {
    set_nonblocking(io::stdin().as_fd())?;
    set_nonblocking(io::stdout().as_fd())
}

/// Says by a dot that it is there, and waits for a byte: meanwhile a snapshot of it is taken, and begun anew from there.
/// If the host is away, the end of that connection counts as a byte: a snapshot's connections are gone.
fn hold(away: Option<away::Host>) -> io::Result<()> {
    let mut byte = [0];
    if let Some(host) = away {
        let connection = away::connect(host)?;
        rustix::io::write(&connection, b".")?;
        let _ = rustix::io::read(&connection, &mut byte);
    } else {
        rustix::io::write(io::stdout(), b".")?;
        rustix::io::read(io::stdin(), &mut byte)?;
    }
    Ok(())
}

/// Returns true if an error means that the reader or the connection is gone.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// The kind of a descriptor in the poll set.
#[derive(Clone, Copy)]
enum Source {
    HostIn,
    HostOut,
    Children,
    Probes,
    ReadExec { id: u32, channel: u8 },
    WriteExec { id: u32 },
}

struct Agent {
    decoder: Decoder,
    outbox: Outbox,
    execs: BTreeMap<u32, Execution>,
    puts: BTreeMap<u32, Put>,
    gets: BTreeMap<u32, Get>,
    pacers: BTreeMap<u32, Pacer>,
    children: OwnedFd,
    wake: Arc<OwnedFd>,
    mailbox: Mailbox,
    events: Receiver<Event>,
    scratch: Vec<u8>,
}

impl Agent {
    fn new(outbox: Outbox) -> io::Result<Self> {
        sys::heed_signals();
        // Before any thread is started, so that none of them takes the signal away.
        sys::block_sigchld()?;
        // Orphans come here to be reaped, as they do for PID 1. Without that they go to another who reaps them.
        let _elsewhere = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (queue, events) = channel();
        Ok(Self {
            decoder: Decoder::default(),
            outbox,
            execs: BTreeMap::new(),
            puts: BTreeMap::new(),
            gets: BTreeMap::new(),
            pacers: BTreeMap::new(),
            children: sys::child_events()?,
            mailbox: Mailbox::new(queue, Arc::clone(&wake)),
            wake,
            events,
            scratch: vec![0; SCRATCH],
        })
    }

    fn run(&mut self, host_in: BorrowedFd<'_>, host_out: BorrowedFd<'_>) -> End {
        loop {
            match self.turn(host_in, host_out) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(ServeError::Io(error)) if is_gone(&error) => return End::HostGone,
                Err(fault) => return End::Fault(fault),
            }
        }
    }

    /// Drops partial frames of the previous connection. Requests that still run are answered on the new one.
    fn connected_anew(&mut self) {
        self.decoder = Decoder::default();
        self.outbox.clear();
    }

    /// Waits for something to do and does it. Children are looked after first: their wall times end there.
    fn turn(&mut self, host_in: BorrowedFd<'_>, host_out: BorrowedFd<'_>) -> Result<Option<End>, ServeError> {
        let ready = self.wait(host_in, host_out)?;
        if ready.iter().any(|source| matches!(source, Source::Children)) {
            self.drain_child_events();
            self.reap()?;
        }
        let now = now_ns();
        self.execs.values_mut().for_each(|exec| exec.check_deadline(now));
        let mut end = None;
        for source in ready {
            match source {
                Source::HostIn => end = self.read_host(host_in)?,
                Source::Probes => self.hear_probes(),
                Source::ReadExec { id, channel } => {
                    if let Some(exec) = self.execs.get_mut(&id) {
                        exec.read(channel, &mut self.scratch, &mut self.outbox);
                    }
                }
                Source::WriteExec { id } => {
                    if let Some(exec) = self.execs.get_mut(&id) {
                        exec.write(&mut self.outbox);
                    }
                }
                Source::HostOut | Source::Children => {}
            }
        }
        self.read_files();
        self.finish_execs();
        self.outbox.flush(host_out)?;
        Ok(end)
    }

    /// Sleeps until a descriptor is ready or a time limit is over. Without requests, nothing ever wakes it.
    fn wait(&self, host_in: BorrowedFd<'_>, host_out: BorrowedFd<'_>) -> io::Result<Vec<Source>> {
        let timeout = self.timeout();
        let mut sources = Vec::new();
        let mut set = Vec::new();
        let mut add = |source, fd, flags| {
            sources.push(source);
            set.push(PollFd::from_borrowed_fd(fd, flags));
        };
        // A probe may start processes and wait for them by itself: each of their deaths would wake this thread for
        // nothing, in the middle of a measurement. Orphans have time until the probe is over.
        if self.pacers.is_empty() || !self.execs.is_empty() {
            add(Source::Children, self.children.as_fd(), PollFlags::IN);
        }
        add(Source::Probes, self.wake.as_fd(), PollFlags::IN);
        if self.outbox.has_control_room() {
            add(Source::HostIn, host_in, PollFlags::IN);
        }
        if self.outbox.waiting() > 0 {
            add(Source::HostOut, host_out, PollFlags::OUT);
        }
        for (&id, exec) in &self.execs {
            for (channel, fd) in exec.readable(self.outbox.has_data_room()) {
                add(Source::ReadExec { id, channel }, fd, PollFlags::IN);
            }
            if let Some(fd) = exec.writable() {
                add(Source::WriteExec { id }, fd, PollFlags::OUT);
            }
        }
        match poll(&mut set, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = sources.into_iter().zip(&set);
        Ok(ready.filter(|(_, polled)| !polled.revents().is_empty()).map(|(source, _)| source).collect())
    }

    fn timeout(&self) -> Option<Timespec> {
        let left_ns = if !self.gets.is_empty() && self.outbox.has_data_room() {
            0
        } else {
            let next = self.execs.values().filter_map(Execution::deadline_ns).min()?;
            next.saturating_sub(now_ns())
        };
        Timespec::try_from(std::time::Duration::from_nanos(left_ns)).ok()
    }

    fn drain_child_events(&mut self) {
        // The bytes do not matter: one signal may stand for many deaths, so every dead child is looked for anyway.
        while rustix::io::read(&self.children, &mut self.scratch[..]).is_ok_and(|count| count > 0) {}
    }

    /// Takes every dead child: the commands', whose groups are ended first while their numbers are still taken,
    /// and orphans that came to us.
    fn reap(&mut self) -> io::Result<()> {
        while let Some(pid) = sys::peek_dead()? {
            let id = self.execs.iter().find(|(_, exec)| exec.pid() == pid).map(|(&id, _)| id);
            let exec = id.and_then(|id| self.execs.get_mut(&id));
            if let Some(exec) = &exec {
                exec.kill();
            }
            let reaped = sys::reap(pid)?;
            match (exec, reaped) {
                (Some(exec), Some(reaped)) => exec.ended(reaped, &mut self.outbox),
                (None, Some(_orphan)) => {}
                (_, None) => break,
            }
        }
        Ok(())
    }

    fn finish_execs(&mut self) {
        let outbox = &mut self.outbox;
        self.execs.retain(|_, exec| match exec.farewell() {
            Some(reply) => {
                outbox.reply(&reply);
                false
            }
            None => true,
        });
    }

    fn hear_probes(&mut self) {
        let _count = rustix::io::read(&*self.wake, &mut self.scratch[..8]);
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Ready(ready) => self.outbox.reply(&Reply::Ready(ready)),
                Event::Probed(probed) => {
                    self.pacers.remove(&probed.id);
                    self.outbox.reply(&Reply::Probed(probed));
                }
                Event::Failed { id, code, text } => {
                    self.pacers.remove(&id);
                    self.outbox.refuse(Some(id), code, &text);
                }
            }
        }
    }

    /// Sends a piece of each file that is being got, while there is room.
    fn read_files(&mut self) {
        let ids: Vec<u32> = self.gets.keys().copied().collect();
        for id in ids {
            let Some(get) = self.gets.get_mut(&id).filter(|_| self.outbox.has_data_room()) else { continue };
            match get.read(&mut self.scratch) {
                Ok([]) => {
                    let bytes = get.sent();
                    self.gets.remove(&id);
                    self.outbox.data(id, STDOUT, &[]);
                    self.outbox.reply(&Reply::Done(Counted { id, bytes }));
                }
                Ok(bytes) => self.outbox.data(id, STDOUT, bytes),
                Err(error) => {
                    self.gets.remove(&id);
                    self.refuse_file(id, &error);
                }
            }
        }
    }

    fn refuse_file(&mut self, id: u32, error: &FileError) {
        self.outbox.refuse(Some(id), error.code, &error.text);
    }

    fn read_host(&mut self, host_in: BorrowedFd<'_>) -> Result<Option<End>, ServeError> {
        match rustix::io::read(host_in, &mut self.scratch[..]) {
            Ok(0) => return Ok(Some(End::HostGone)),
            Ok(count) => self.decoder.feed(&self.scratch[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        while let Some(frame) = self.decoder.next_frame()? {
            let end = match frame {
                Frame::Message(json) => self.answer(&json)?,
                Frame::Data { channel: STDOUT | STDERR, .. } => return Err(FrameError::Channel.into()),
                Frame::Data { id, channel: STDIN.., bytes } => self.take_data(id, bytes),
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    fn kill_all(&self) {
        self.execs.values().for_each(Execution::kill);
        self.pacers.values().for_each(Pacer::stop);
    }

    /// Says the last words and waits a moment for them to be taken.
    fn take_leave(&mut self, end: End, host_out: BorrowedFd<'_>) -> Result<(), ServeError> {
        let result = match end {
            End::HostGone => return Ok(()),
            End::Shutdown { id } => {
                self.outbox.reply(&Reply::Done(Counted { id, bytes: 0 }));
                Ok(())
            }
            End::Fault(fault) => {
                self.outbox.refuse(None, Code::BadRequest, &fault.to_string());
                Err(fault)
            }
        };
        let limit = now_ns() + FAREWELL_NS;
        while self.outbox.flush(host_out).is_ok() && self.outbox.waiting() > 0 && now_ns() < limit {
            let left = std::time::Duration::from_nanos(limit.saturating_sub(now_ns()));
            let mut set = [PollFd::from_borrowed_fd(host_out, PollFlags::OUT)];
            let _ready = poll(&mut set, Timespec::try_from(left).ok().as_ref());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_is_held_says_so_and_goes_on_when_the_host_leaves() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = away::Host::Tcp(listener.local_addr().unwrap());
        let held = std::thread::spawn(move || hold(Some(host)));
        let (mut connection, _) = listener.accept().unwrap();
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b".");
        assert!(!held.is_finished());
        drop(connection);
        held.join().unwrap().unwrap();
    }

    #[test]
    fn a_connection_that_was_reset_is_a_host_that_is_gone() {
        for errno in [Errno::CONNRESET, Errno::PIPE, Errno::NOTCONN] {
            assert!(is_gone(&errno.into()), "{errno}");
        }
        assert!(!is_gone(&Errno::IO.into()));
    }

    #[test]
    fn nobody_waits_for_a_host_that_is_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = away::Host::Tcp(listener.local_addr().unwrap());
        drop(listener);
        assert!(hold(Some(host)).is_err());
    }
}
