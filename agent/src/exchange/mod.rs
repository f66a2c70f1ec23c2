//! Requests and answers over a network, one at a time: the servers in an instance (`answer`) and the clients at the
//! other side (`ask`), as commands of the agent's. Plain blocking sockets: a call each way and nothing else.

mod answer;
mod ask;
mod figures;

use std::str::FromStr;

pub use answer::Server;
pub use ask::Client;

/// The kinds of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A datagram and its echo.
    Udp,
    /// A message and its echo on one connection.
    Tcp,
    /// The same with a connection for each, which the server closes.
    TcpEach,
    /// A page over HTTP/1.0, a connection for each.
    Http,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            "tcp-each" => Ok(Self::TcpEach),
            "http" => Ok(Self::Http),
            other => Err(format!("no exchange {other:?}: udp, tcp, tcp-each or http")),
        }
    }
}

/// The next word as a number or address. The error names what it should have been.
fn word<T: FromStr>(words: &mut impl Iterator<Item = String>, what: &str) -> Result<T, String> {
    let text = words.next().ok_or(format!("{what} is missing"))?;
    text.parse().map_err(|_| format!("{text:?} is no {what}"))
}

/// The kind, and the size in bytes of what is asked for (of a page: of what is answered).
fn kind_and_size(kind: Kind, size: usize) -> Result<(Kind, usize), String> {
    // A request begins with its number; a datagram over IPv4 has at most so many bytes.
    let sizes = match kind {
        Kind::Udp => 8..=65_507,
        Kind::Tcp | Kind::TcpEach => 8..=1 << 30,
        Kind::Http => 0..=1 << 30,
    };
    if sizes.contains(&size) { Ok((kind, size)) } else { Err(format!("{size} bytes are no size for it")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split_whitespace().map(str::to_owned)
    }

    /// A server on a free port, for as long as the test's process lives.
    fn served(line: &str) -> u16 {
        let server = Server::parse(words(&line.replace("PORT", "0"))).unwrap();
        let bound = server.bind().unwrap();
        let port = bound.port().unwrap();
        thread::spawn(move || bound.run());
        port
    }

    fn asked(kind: &str, port: u16, size: usize) -> Result<String, String> {
        let more = if kind == "http" { " /page" } else { "" };
        let line = format!("{kind} 127.0.0.1 {port} 0.5 0.01 {size}{more}");
        Client::parse(words(&line))?.run().map(|figures| figures.to_string())
    }

    #[test]
    fn each_server_answers_its_client() {
        for (kind, size) in [("udp", 64), ("udp", 9000), ("tcp", 64), ("tcp", 200_000), ("tcp-each", 9000), ("http", 0)]
        {
            let told = asked(kind, served(&format!("{kind} PORT {size}")), size).unwrap();
            assert!(told.starts_with("answered ") && told.ends_with("\nend\n"), "{kind}: {told}");
            assert!(told.contains("\nlost 0\n"), "{kind}: {told}");
        }
    }

    #[test]
    fn a_page_is_as_long_as_was_asked_for() {
        let mut stream = TcpStream::connect(("127.0.0.1", served("http PORT 5000"))).unwrap();
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.0 200 OK\r\nContent-Length: 5000\r\n"), "{page}");
        assert_eq!(page.split_once("\r\n\r\n").unwrap().1.len(), 5000);
    }

    /// A server that answers every connection with this, whatever the request is.
    fn liar(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _some = stream.read(&mut [0; 4096]);
                let _gone = std::io::Write::write_all(&mut stream, answer);
            }
        });
        port
    }

    #[test]
    fn what_is_no_answer_is_no_figure() {
        for (kind, answer, what) in [
            ("tcp", &[7_u8; 64][..], "the answer to request 1 is not the request"),
            ("tcp-each", &[7; 64], "the answer to request 1 is not the request"),
            ("tcp", b"short", "no answer to request 1"),
            ("http", b"HTTP/1.0 404 Not Found\r\n\r\n", "page 1 is none: HTTP/1.0 404 Not Found"),
            ("http", b"SSH-2.0\r\n", "page 1 is none: SSH-2.0"),
            ("http", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nshort", "page 1 is not whole"),
        ] {
            let refusal = asked(kind, liar(answer), 64).unwrap_err();
            assert!(refusal.contains(what), "{kind}: {refusal}");
        }
    }

    #[test]
    fn a_page_may_end_with_its_connection() {
        assert!(asked("http", liar(b"HTTP/1.1 200 OK\r\nServer: none\r\n\r\nall of it"), 64).is_ok());
    }

    #[test]
    fn a_server_listens_on_the_address_that_it_is_given_alone() {
        let port = served("tcp PORT 64 127.0.0.9");
        assert!(TcpStream::connect(("127.0.0.9", port)).is_ok());
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }

    #[test]
    fn a_port_that_nobody_is_at_is_said() {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        assert!(asked("tcp", free, 64).unwrap_err().contains("connect"));
        assert!(asked("udp", free, 64).unwrap_err().contains("no answer to"));
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (line, what) in [
            ("", "exchange is missing"),
            ("carrier-pigeon 1 2", "carrier-pigeon"),
            ("udp 99999 64", "99999"),
            ("udp 1 4", "4 bytes"),
            ("tcp 1 64 more", "more"),
            ("tcp 1 64 127.0.0.1 more", "more"),
        ] {
            assert!(Server::parse(words(line)).err().unwrap().contains(what), "{line}");
        }
        for (line, what) in [
            ("udp nowhere 1 1 0 64", "nowhere"),
            ("udp 127.0.0.1 1 never 0 64", "never"),
            ("udp 127.0.0.1 1 inf 0 64", "seconds"),
            ("http 127.0.0.1 1 1 0 64", "path is missing"),
        ] {
            assert!(Client::parse(words(line)).err().unwrap().contains(what), "{line}");
        }
    }
}
