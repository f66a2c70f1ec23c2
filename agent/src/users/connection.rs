//! A connection of one user: it never waits, so that one thread has all users.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// What a network or server does to a connection; all else is a fault of this program or machine.
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
/// Most of what a server says that is shown.
const SHOWN: usize = 80;
/// The longest head of an answer.
const LONGEST_HEAD: usize = 1 << 16;

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Whether it says to be out of a cache; None where it says nothing.
    pub from_cache: Option<bool>,
    /// Whether the server ends the connection with it.
    pub last: bool,
}

/// Where a request has got to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    UnderWay,
    Answered(Answer),
    Broken(String),
}

/// One stream, and the request under way on it.
pub struct Connection {
    stream: TcpStream,
    connected: bool,
    request: Vec<u8>,
    sent: usize,
    got: Vec<u8>,
}

impl Connection {
    /// Begins to connect. The error is the machine's.
    pub fn open(server: SocketAddrV4) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &server) {
            // A refusal that comes at once is found again when the request is to be sent.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) if BROKEN.contains(&error) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { stream: TcpStream::from(socket), connected: false, request: Vec::new(), sent: 0, got: Vec::new() })
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

    /// Whether the server ended it while nothing was under way.
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
            match read_answer(&self.got) {
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

/// An answer, once it is whole. The error says what came instead of one.
fn read_answer(got: &[u8]) -> Result<Option<Answer>, String> {
    let Some(head) = got.windows(4).position(|part| part == b"\r\n\r\n") else {
        return if got.len() > LONGEST_HEAD { Err(no_answer(got)) } else { Ok(None) };
    };
    let text = String::from_utf8_lossy(&got[..head]).to_ascii_lowercase();
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("http/1.1 ")?.get(..3)?.parse().ok());
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
    let (Some(status), Some(length)) = (status, field("content-length").and_then(|number| number.parse().ok())) else {
        return Err(no_answer(got));
    };
    let body: usize = got.len() - (head + 4);
    if body < length {
        return Ok(None);
    }
    if body > length {
        return Err(format!("{} bytes after an answer of {length}", body - length));
    }
    Ok(Some(Answer {
        status,
        from_cache: field("x-cache").map(|said| said == "hit"),
        last: field("connection") == Some("close"),
    }))
}

fn no_answer(got: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&got[..got.len().min(SHOWN)]);
    format!("no answer of HTTP/1.1 with a length: {shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nX-Cache: miss\r\nContent-Length: 5\r\n\r\nhello";
        for length in 0..whole.len() {
            assert_eq!(read_answer(&whole[..length]), Ok(None), "{length}");
        }
        assert_eq!(read_answer(whole), Ok(Some(Answer { status: 200, from_cache: Some(false), last: false })));
        let ended = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nConnection: close\r\n\r\n";
        assert_eq!(read_answer(ended), Ok(Some(Answer { status: 502, from_cache: None, last: true })));
    }

    #[test]
    fn what_is_no_answer_is_said() {
        for wrong in [
            &b"SSH-2.0-OpenSSH\r\n\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\n",
            b"HTTP/1.1 fine\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(read_answer(wrong).unwrap_err().starts_with("no answer of HTTP/1.1"));
        }
        assert!(
            read_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc").unwrap_err().starts_with("2 bytes after")
        );
        assert!(read_answer(&vec![b'x'; LONGEST_HEAD + 1]).is_err());
    }
}
