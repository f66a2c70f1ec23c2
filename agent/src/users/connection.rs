//! A connection of one user: it never waits, so that one thread has all users.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::protocol::{Answer, Protocol};

/// Errors that a network or server causes; all others are faults of this program or machine.
const BROKEN: [Errno; 8] = [
    Errno::CONNREFUSED,
    Errno::CONNRESET,
    Errno::CONNABORTED,
    Errno::PIPE,
    Errno::TIMEDOUT,
    Errno::HOSTUNREACH,
    Errno::NETUNREACH,
    Errno::NOTCONN,
];
/// The progress of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    UnderWay,
    Answered(Answer),
    Broken(String),
}

/// One stream, and the request under way on it.
pub struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    connected: bool,
    request: Vec<u8>,
    sent: usize,
    got: Vec<u8>,
}

impl Connection {
    /// Begins to connect. The error is the machine's.
    pub fn open(server: SocketAddrV4, protocol: Protocol) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &server) {
            // A refusal that comes at once is found again when the request is to be sent.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) if BROKEN.contains(&error) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        Ok(Self { stream, protocol, connected: false, request: Vec::new(), sent: 0, got: Vec::new() })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The next request; the one before was answered.
    pub fn ask(&mut self, request: Vec<u8>) {
        self.request = request;
        self.sent = 0;
        self.got.clear();
    }

    /// True if the server closed it while no request was under way.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.stream.read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Goes on as far as it can without waiting. The error is what is no answer at all, or the machine's.
    pub fn go_on(&mut self) -> Result<Progress, String> {
        match self.attempt() {
            Ok(progress) => progress,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Progress::UnderWay),
            Err(error) if Errno::from_io_error(&error).is_some_and(|code| BROKEN.contains(&code)) => {
                Ok(Progress::Broken(error.to_string()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn attempt(&mut self) -> io::Result<Result<Progress, String>> {
        if !self.connected {
            sockopt::socket_error(&self.stream)??;
        }
        while self.sent < self.request.len() {
            // A socket that is still connecting says NOTCONN on some kernels, and that it would block on others.
            self.sent += match self.stream.write(&self.request[self.sent..]) {
                Err(error) if !self.connected && error.kind() == ErrorKind::NotConnected => {
                    return Ok(Ok(Progress::UnderWay));
                }
                written => written?,
            };
            self.connected = true;
        }
        let mut buffer = [0; 1 << 14];
        loop {
            match self.protocol.read(&self.got) {
                Ok(None) => {}
                Ok(Some(answer)) => return Ok(Ok(Progress::Answered(answer))),
                Err(what) => return Ok(Err(what)),
            }
            match self.stream.read(&mut buffer)? {
                0 => return Ok(Ok(Progress::Broken("ended before its answer was whole".to_owned()))),
                count => self.got.extend_from_slice(&buffer[..count]),
            }
        }
    }
}
