//! The servers: each prints that it listens, and answers until it is killed.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};

use super::{Kind, kind_and_size, word};

/// The order for a server: `KIND PORT SIZE [ADDRESS]`; 0 is a free port, and without an address it listens on all.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    kind: Kind,
    size: usize,
    address: SocketAddrV4,
}

/// A server that is reachable.
pub enum Bound {
    Udp(UdpSocket),
    Tcp(TcpListener, Answer),
}

/// The answer to a connection.
pub enum Answer {
    /// An echo, closed after this many bytes; None: when the client closes it.
    Echo(Option<usize>),
    /// This, once it has asked.
    Page(Vec<u8>),
}

impl Server {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let kind = word::<String>(&mut words, "exchange")?.parse()?;
        let port = word(&mut words, "port")?;
        let (kind, size) = kind_and_size(kind, word(&mut words, "size in bytes")?)?;
        let mut words = words.peekable();
        let ip = if words.peek().is_some() { word(&mut words, "IPv4 address")? } else { Ipv4Addr::UNSPECIFIED };
        match words.next() {
            Some(more) => Err(format!("unknown word {more:?}")),
            None => Ok(Self { kind, size, address: SocketAddrV4::new(ip, port) }),
        }
    }

    pub fn bind(&self) -> io::Result<Bound> {
        if self.kind == Kind::Udp {
            return UdpSocket::bind(self.address).map(Bound::Udp);
        }
        // The standard library lets a port be taken again whose connections wait for their end (SO_REUSEADDR).
        let listener = TcpListener::bind(self.address)?;
        let answer = match self.kind {
            Kind::TcpEach => Answer::Echo(Some(self.size)),
            Kind::Http => Answer::Page(page(self.size)),
            Kind::Udp | Kind::Tcp => Answer::Echo(None),
        };
        Ok(Bound::Tcp(listener, answer))
    }

    /// Listens, says so, and answers; it returns with an error alone.
    pub fn run(&self) -> Result<(), String> {
        let bound = self.bind().map_err(|error| format!("listening on {}: {error}", self.address))?;
        println!("serving");
        io::stdout().flush().map_err(|error| error.to_string())?;
        bound.run().map_err(|error| error.to_string())
    }
}

impl Bound {
    #[cfg(test)]
    pub fn port(&self) -> io::Result<u16> {
        Ok(match self {
            Self::Udp(socket) => socket.local_addr()?,
            Self::Tcp(listener, _) => listener.local_addr()?,
        }
        .port())
    }

    /// Answers, one after the other, until its socket fails.
    pub fn run(&self) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        match self {
            Self::Udp(socket) => loop {
                let (count, from) = socket.recv_from(&mut buffer)?;
                // A client that is gone is no reason to end.
                let _gone = socket.send_to(&buffer[..count], from);
            },
            Self::Tcp(listener, answer) => loop {
                let (stream, _) = listener.accept()?;
                let _gone = serve(stream, answer, &mut buffer);
            },
        }
    }
}

fn page(size: usize) -> Vec<u8> {
    let mut page = format!("HTTP/1.0 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n").into_bytes();
    page.resize(page.len() + size, b'x');
    page
}

fn serve(mut stream: TcpStream, answer: &Answer, buffer: &mut [u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match answer {
        Answer::Echo(most) => {
            let mut echoed = 0;
            while most.is_none_or(|most| echoed < most) {
                let count = stream.read(buffer)?;
                if count == 0 {
                    break;
                }
                stream.write_all(&buffer[..count])?;
                echoed += count;
            }
        }
        Answer::Page(page) => {
            let mut asked = 0;
            while !buffer[..asked].ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer[asked..])?;
                if count == 0 {
                    return Ok(());
                }
                asked += count;
            }
            if buffer.starts_with(b"GET /") {
                stream.write_all(page)?;
            }
        }
    }
    Ok(())
}
