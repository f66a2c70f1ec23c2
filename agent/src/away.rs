//! A host that is not at stdin and stdout: it listens on a virtio socket (vsock(7)) or by TCP.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use crate::clock::now_ns;
use crate::sys;

/// Time limit for connecting to the host again.
const AGAIN_NS: u64 = 60_000_000_000;
const RETRY: std::time::Duration = std::time::Duration::from_millis(1);

/// The address at which the host listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// `cid`: the machine's number, seen from here; 2 is the machine below.
    Vsock {
        cid: u32,
        port: u32,
    },
    Tcp(SocketAddr),
}

/// Reads `vsock:CID:PORT` or `tcp:ADDRESS:PORT`.
pub fn parse(text: &str) -> Result<Host, String> {
    let host = match text.split_once(':') {
        Some(("vsock", rest)) => rest
            .split_once(':')
            .and_then(|(cid, port)| Some(Host::Vsock { cid: cid.parse().ok()?, port: port.parse().ok()? })),
        Some(("tcp", rest)) => rest.parse().ok().map(Host::Tcp),
        _ => None,
    };
    host.ok_or(format!("{text:?} is no host: vsock:CID:PORT or tcp:ADDRESS:PORT"))
}

/// Connects, and makes the connection stdin and stdout of this process.
pub fn take_place(host: Host) -> io::Result<()> {
    let connection = connect(host)
        .map_err(|error| io::Error::new(error.kind(), format!("no connection to the host at {host:?}: {error}")))?;
    rustix::stdio::dup2_stdin(&connection)?;
    rustix::stdio::dup2_stdout(&connection)?;
    Ok(())
}

/// Connects again after a connection has ended: the host may not listen yet. Gives up after `AGAIN_NS`.
pub fn take_place_again(host: Host) -> io::Result<()> {
    let limit = now_ns() + AGAIN_NS;
    loop {
        match take_place(host) {
            Err(_) if now_ns() < limit => std::thread::sleep(RETRY),
            done => return done,
        }
    }
}

/// A connection to the host.
pub fn connect(host: Host) -> io::Result<OwnedFd> {
    match host {
        Host::Vsock { cid, port } => sys::connect_vsock(cid, port),
        Host::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            // Answers are small and waited for.
            stream.set_nodelay(true)?;
            Ok(stream.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_a_kind_and_an_address() {
        assert_eq!(parse("vsock:2:5000"), Ok(Host::Vsock { cid: 2, port: 5000 }));
        assert_eq!(parse("tcp:10.0.0.1:99"), Ok(Host::Tcp(SocketAddr::from(([10, 0, 0, 1], 99)))));
        for bad in ["", "2:5000", "vsock:2", "vsock:host:1", "vsock:2:-1", "vsock:2:4294967296", "tcp:9", "tcp:host:9"]
        {
            assert!(parse(bad).unwrap_err().contains("vsock:CID:PORT"), "{bad}");
        }
    }

    #[test]
    fn a_host_that_does_not_listen_is_an_error_that_says_where() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = take_place(Host::Tcp(nobody)).unwrap_err();
        assert!(error.to_string().contains(&nobody.to_string()), "{error}");
    }
}
