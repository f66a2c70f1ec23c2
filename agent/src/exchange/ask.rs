//! The clients: one request at a time for a number of seconds, each answer compared with the request.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

use super::figures::Figures;
use super::{Kind, kind_and_size, word};
use crate::clock::now_ns;

/// A datagram without an answer after this time is lost.
const UDP_LIMIT: Duration = Duration::from_secs(1);
/// A connection that is silent for so long is broken.
const TCP_LIMIT: Duration = Duration::from_secs(5);
/// Most of a server's first line that is shown.
const SHOWN: usize = 80;

/// The order for a client: `KIND ADDRESS PORT SECONDS WARMUP SIZE`, and for pages their path.
#[derive(Debug, PartialEq)]
pub struct Client {
    kind: Kind,
    server: SocketAddrV4,
    seconds: f64,
    warm_up: f64,
    size: usize,
    path: String,
}

impl Client {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let kind = word::<String>(&mut words, "exchange")?.parse()?;
        let address: Ipv4Addr = word(&mut words, "address")?;
        let server = SocketAddrV4::new(address, word(&mut words, "port")?);
        let (seconds, warm_up) = (word(&mut words, "number of seconds")?, word(&mut words, "warm-up in seconds")?);
        for span in [seconds, warm_up] {
            if !(0.0..=86_400.0).contains(&span) {
                return Err(format!("{span} seconds are no time for it"));
            }
        }
        let (kind, size) = kind_and_size(kind, word(&mut words, "size in bytes")?)?;
        let path = if kind == Kind::Http { word(&mut words, "path")? } else { String::new() };
        match words.next() {
            Some(more) => Err(format!("unknown word {more:?}")),
            None => Ok(Self { kind, server, seconds, warm_up, size, path }),
        }
    }

    /// Asks until its time is over. The error is what was wrong with an answer.
    pub fn run(&self) -> Result<Figures, String> {
        match self.kind {
            Kind::Udp => {
                let socket = self.socket().map_err(|error| format!("socket: {error}"))?;
                let mut got = vec![0; 1 << 16];
                let mut request = vec![b'x'; self.size];
                self.paced(|number| {
                    request[..8].copy_from_slice(&number.to_le_bytes());
                    datagram(&socket, &request, &mut got).map_err(|error| format!("request {number}: {error}"))
                })
            }
            Kind::Tcp => {
                let mut stream = self.connected()?;
                let (mut request, mut got) = (vec![b'x'; self.size], vec![0; self.size + 1]);
                self.paced(|number| {
                    request[..8].copy_from_slice(&number.to_le_bytes());
                    echoed(&mut stream, number, &request, &mut got, false).map(|()| true)
                })
            }
            Kind::TcpEach => {
                let (mut request, mut got) = (vec![b'x'; self.size], vec![0; self.size + 1]);
                self.paced(|number| {
                    request[..8].copy_from_slice(&number.to_le_bytes());
                    let mut stream = self.connected()?;
                    echoed(&mut stream, number, &request, &mut got, true).map(|()| true)
                })
            }
            Kind::Http => {
                let request = format!("GET {} HTTP/1.0\r\nHost: {}\r\n\r\n", self.path, self.server.ip()).into_bytes();
                let mut got = Vec::new();
                self.paced(|number| {
                    got.clear();
                    let mut stream = self.connected()?;
                    fetched(&mut stream, number, &request, &mut got).map(|()| true)
                })
            }
        }
    }

    /// Makes requests from now on; those of the warm-up are not counted. `ask`: whether it was answered, by its number.
    fn paced(&self, mut ask: impl FnMut(u64) -> Result<bool, String>) -> Result<Figures, String> {
        let begin = now_ns() + nanoseconds(self.warm_up);
        let end = begin + nanoseconds(self.seconds);
        let (mut took, mut lost, mut lost_before, mut number) = (Vec::with_capacity(1 << 20), 0, 0, 0);
        loop {
            let at = now_ns();
            if at >= end {
                // If nothing answers, one request may outlast a short time.
                let unanswered = if took.is_empty() { lost + lost_before } else { lost };
                return Figures::of(took, unanswered, at - begin);
            }
            number += 1;
            match (ask(number)?, at >= begin) {
                (true, true) => took.push(now_ns() - at),
                (true, false) => {}
                (false, true) => lost += 1,
                (false, false) => lost_before += 1,
            }
        }
    }

    fn socket(&self) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(self.server)?;
        Ok(socket)
    }

    fn connected(&self) -> Result<TcpStream, String> {
        let made = TcpStream::connect(self.server).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TCP_LIMIT))?;
            stream.set_write_timeout(Some(TCP_LIMIT))?;
            Ok(stream)
        });
        made.map_err(|error| format!("connect: {error}"))
    }
}

/// Converts a number whose range was checked.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Sends a datagram and waits for its echo; false if it is lost. Late echoes of earlier datagrams are skipped.
fn datagram(socket: &UdpSocket, request: &[u8], got: &mut [u8]) -> io::Result<bool> {
    let until = now_ns() + u64::try_from(UDP_LIMIT.as_nanos()).unwrap_or(u64::MAX);
    if socket.send(request).is_err() {
        return wait_lost(until);
    }
    loop {
        let left = until.saturating_sub(now_ns());
        if left == 0 {
            return Ok(false);
        }
        socket.set_read_timeout(Some(Duration::from_nanos(left)))?;
        match socket.recv(got) {
            Ok(count) if got[..count] == *request => return Ok(true),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(false);
            }
            // Nobody is at the port (yet): as good as lost, and not a reason to ask again at once.
            Err(_) => return wait_lost(until),
        }
    }
}

fn wait_lost(until: u64) -> io::Result<bool> {
    std::thread::sleep(Duration::from_nanos(until.saturating_sub(now_ns())));
    Ok(false)
}

/// Sends a request and reads its echo; `to_the_end`: and that the server then ends the connection.
fn echoed(stream: &mut TcpStream, number: u64, request: &[u8], got: &mut [u8], to_the_end: bool) -> Result<(), String> {
    let failed = |error: io::Error| format!("request {number}: {error}");
    let unanswered = |error: io::Error| format!("no answer to request {number}: {error}");
    let mut count = 0;
    let mut sent = 0;
    while sent < request.len() {
        // The echo of a long request comes while it is being sent: unless it is read, both sides block.
        sent += stream.write(&request[sent..request.len().min(sent + (1 << 16))]).map_err(failed)?;
        while count < sent && sent < request.len() {
            count += some(stream, &mut got[count..sent]).map_err(unanswered)?;
        }
    }
    while to_the_end || count < request.len() {
        match stream.read(&mut got[count..]).map_err(unanswered)? {
            0 if to_the_end => break,
            0 => return Err(unanswered(io::ErrorKind::UnexpectedEof.into())),
            more => count += more,
        }
        if count == got.len() {
            break;
        }
    }
    if got[..count] == *request {
        Ok(())
    } else {
        Err(format!("the answer to request {number} is not the request: {count} bytes"))
    }
}

/// Reads at least a byte.
fn some(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    match stream.read(buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

/// Asks for a page, and reads all of it: by its Content-Length, or else to the connection's end.
fn fetched(stream: &mut TcpStream, number: u64, request: &[u8], got: &mut Vec<u8>) -> Result<(), String> {
    stream.write_all(request).map_err(|error| format!("request {number}: {error}"))?;
    let mut buffer = [0; 1 << 16];
    let whole = loop {
        match length(got) {
            Some((_, Some(_), true)) => break true,
            _ => match stream.read(&mut buffer).map_err(|error| format!("no page {number}: {error}"))? {
                0 => break matches!(length(got), Some((_, None, _))),
                count => got.extend_from_slice(&buffer[..count]),
            },
        }
    };
    // It is over for the client here: what comes beyond the page is not read.
    let _closed = stream.shutdown(Shutdown::Both);
    let first = got.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    if !is_fine(first) {
        let shown = String::from_utf8_lossy(&first[..first.len().min(SHOWN)]).into_owned();
        return Err(format!("page {number} is none: {shown}"));
    }
    if whole { Ok(()) } else { Err(format!("page {number} is not whole")) }
}

/// Of what came so far: where the page begins, how long it says that it is, and whether so much is there; None while
/// the head is not whole.
fn length(got: &[u8]) -> Option<(usize, Option<usize>, bool)> {
    let head = got.windows(4).position(|part| part == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&got[..head]).to_ascii_lowercase();
    let said = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let body = got.len() - (head + 4);
    Some((head + 4, said, said.is_some_and(|said: usize| body >= said)))
}

/// True if a status line is HTTP's with a success or a redirection.
fn is_fine(line: &[u8]) -> bool {
    let version = line.strip_prefix(b"HTTP/1.0 ").or(line.strip_prefix(b"HTTP/1.1 "));
    version.is_some_and(|code| matches!(code, [b'2' | b'3', b'0'..=b'9', b'0'..=b'9', ..]))
}
