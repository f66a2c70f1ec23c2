//! Users' requests to a server, and the end of its answers.

use std::str::FromStr;

/// Characters of a server's answer that are shown at most.
const SHOWN: usize = 80;
/// The longest head of an answer.
const LONGEST_HEAD: usize = 1 << 16;

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// True if it came out of a cache; None if it does not say so.
    pub from_cache: Option<bool>,
    /// True if the server closes the connection after it.
    pub last: bool,
}

/// The protocol between users and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http,
    /// A command in a line, answered with a line, or with as many bytes as a line says (RESP).
    Redis,
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "http" => Ok(Self::Http),
            "redis" => Ok(Self::Redis),
            other => Err(format!("no protocol {other:?}: http or redis")),
        }
    }
}

impl Protocol {
    /// True if it can make a request of this.
    pub fn takes(self, request: &str) -> bool {
        let begins = |first: char| if self == Self::Http { first == '/' } else { first.is_ascii_alphabetic() };
        request.starts_with(begins) && request.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    }

    /// An answer, once it is whole. The error says what came instead of one.
    pub fn read(self, got: &[u8]) -> Result<Option<Answer>, String> {
        match self {
            Self::Http => read_http(got),
            Self::Redis => read_redis(got),
        }
    }
}

fn read_http(got: &[u8]) -> Result<Option<Answer>, String> {
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

/// A key that is not there is no error: the answer came past the cache.
fn read_redis(got: &[u8]) -> Result<Option<Answer>, String> {
    let strange = || format!("no answer of Redis: {:?}", String::from_utf8_lossy(&got[..got.len().min(SHOWN)]));
    let Some(line) = got.windows(2).position(|part| part == b"\r\n") else {
        return if got.len() > LONGEST_HEAD { Err(strange()) } else { Ok(None) };
    };
    let (whole, from_cache) = match got.split_first() {
        Some((b'+' | b':', _)) => (line + 2, None),
        Some((b'$', _)) => match String::from_utf8_lossy(&got[1..line]).parse::<i64>() {
            Ok(-1) => (line + 2, Some(false)),
            Ok(length) => (usize::try_from(length).map_err(|_| strange())?.saturating_add(line + 4), Some(true)),
            Err(_) => return Err(strange()),
        },
        _ => return Err(strange()),
    };
    match got.len() {
        count if count < whole => Ok(None),
        count if count > whole => Err(format!("{} bytes after an answer of {whole}", count - whole)),
        _ => Ok(Some(Answer { status: 200, from_cache, last: false })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nX-Cache: miss\r\nContent-Length: 5\r\n\r\nhello";
        for length in 0..whole.len() {
            assert_eq!(Protocol::Http.read(&whole[..length]), Ok(None), "{length}");
        }
        assert_eq!(Protocol::Http.read(whole), Ok(Some(Answer { status: 200, from_cache: Some(false), last: false })));
        let ended = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nConnection: close\r\n\r\n";
        assert_eq!(Protocol::Http.read(ended), Ok(Some(Answer { status: 502, from_cache: None, last: true })));
    }

    #[test]
    fn what_is_no_answer_is_said() {
        for wrong in [
            &b"SSH-2.0-OpenSSH\r\n\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\n",
            b"HTTP/1.1 fine\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(Protocol::Http.read(wrong).unwrap_err().starts_with("no answer of HTTP/1.1"));
        }
        assert!(
            Protocol::Http
                .read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc")
                .unwrap_err()
                .starts_with("2 bytes after")
        );
        assert!(Protocol::Http.read(&vec![b'x'; LONGEST_HEAD + 1]).is_err());
    }

    #[test]
    fn an_answer_of_redis_is_read_once_it_is_whole() {
        for (whole, from_cache) in [
            (&b"+OK\r\n"[..], None),
            (b":17\r\n", None),
            (b"$5\r\nhe\r\no\r\n", Some(true)),
            (b"$0\r\n\r\n", Some(true)),
            (b"$-1\r\n", Some(false)),
        ] {
            for length in 0..whole.len() {
                assert_eq!(Protocol::Redis.read(&whole[..length]), Ok(None), "{length}");
            }
            assert_eq!(Protocol::Redis.read(whole), Ok(Some(Answer { status: 200, from_cache, last: false })));
        }
        for wrong in [&b"-ERR unknown command\r\n"[..], b"HTTP/1.1 200 OK\r\n", b"$x\r\n", b"$-7\r\n", b"\r\n"] {
            assert!(Protocol::Redis.read(wrong).unwrap_err().starts_with("no answer of Redis"));
        }
        assert_eq!(Protocol::Redis.read(b"+OK\r\n+").unwrap_err(), "1 bytes after an answer of 5");
    }

    #[test]
    fn a_request_is_one_line() {
        assert!(Protocol::Http.takes("/word?w={7}") && !Protocol::Http.takes("word"));
        assert!(Protocol::Redis.takes("GET {7}") && !Protocol::Redis.takes("/GET"));
        for wrong in ["", "GET a\r\nFLUSHALL", "GET \u{e9}"] {
            assert!(!Protocol::Redis.takes(wrong) && !Protocol::Http.takes(&format!("/{wrong}\n")));
        }
    }
}
