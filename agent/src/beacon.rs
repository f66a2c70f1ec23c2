//! The start-up mark: one UDP datagram that tells the host that the sandbox is up and its network works.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The receiver, and the text for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Beacon {
    pub target: SocketAddr,
    /// Made here and said in the greeting. On the command line every user of the host could read it, and send it first.
    pub token: String,
}

/// Reads `ADDR:PORT`.
pub fn parse(target: &str) -> Result<SocketAddr, String> {
    target.parse().map_err(|_| format!("{target:?} is not ADDRESS:PORT of a beacon"))
}

impl Beacon {
    /// A beacon with a token that cannot be guessed: a hash under keys that the kernel drew at random.
    pub fn new(target: SocketAddr) -> Self {
        let keyed = RandomState::new();
        Self { target, token: format!("{:016x}{:016x}", keyed.hash_one(0), keyed.hash_one(1)) }
    }

    /// Sends the token once. An error says why it could not leave; the network may still lose it.
    pub fn send(&self) -> std::io::Result<()> {
        let any = match self.target {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.send_to(self.token.as_bytes(), self.target).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_datagram_is_the_token_and_each_start_has_its_own() {
        let host = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = host.local_addr().unwrap();
        let beacon = Beacon::new(parse(&target.to_string()).unwrap());
        beacon.send().unwrap();
        let mut got = [0; 64];
        let length = host.recv(&mut got).unwrap();
        assert_eq!(&got[..length], beacon.token.as_bytes());
        assert_eq!(length, 32);
        assert_ne!(beacon.token, Beacon::new(target).token);
        assert_ne!(beacon.token[..16], beacon.token[16..]);
    }
}
