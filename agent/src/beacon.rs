//! The start-up mark: one UDP datagram that tells the host that the sandbox is up and its network works.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Longest token, in bytes.
pub const TOKEN_MAX: usize = 64;

/// Where to send which bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Beacon {
    pub target: SocketAddr,
    pub token: Vec<u8>,
}

/// Reads `ADDR:PORT` and the token's hex digits.
pub fn parse(target: &str, token: &str) -> Result<Beacon, String> {
    let target = target.parse().map_err(|_| format!("{target:?} is not ADDRESS:PORT of a beacon"))?;
    let token = unhex(token)
        .filter(|bytes| (1..=TOKEN_MAX).contains(&bytes.len()))
        .ok_or(format!("a token is 1 to {TOKEN_MAX} bytes in hex digits, not {token:?}"))?;
    Ok(Beacon { target, token })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let values: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok())).collect();
    let values = values?;
    let (pairs, rest) = values.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Sends the token once. An error says why it could not leave; the network may still lose it.
pub fn send(beacon: &Beacon) -> std::io::Result<()> {
    let any = match beacon.target {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    socket.send_to(&beacon.token, beacon.target).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_datagram_is_the_token() {
        let host = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = host.local_addr().unwrap().to_string();
        send(&parse(&target, "c0FFee").unwrap()).unwrap();
        let mut got = [0; 16];
        let length = host.recv(&mut got).unwrap();
        assert_eq!(&got[..length], [0xc0, 0xff, 0xee]);
    }

    #[test]
    fn tokens_are_whole_bytes_and_bounded() {
        for bad in ["", "0", "abc", "+1", &"00".repeat(TOKEN_MAX + 1)] {
            assert!(parse("127.0.0.1:9", bad).is_err(), "{bad}");
        }
    }
}
