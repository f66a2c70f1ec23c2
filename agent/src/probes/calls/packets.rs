//! Packets through the instance's own loopback, out and in by one thread: the network stack's work and no wire.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::time::Duration;

use libc::c_long;

use super::{Call, Kind, Repeat, exactly};
use crate::sys;

pub const KINDS: [Kind; 4] = [
    Kind::new("udp-packet", |_| udp(1)),
    Kind::new("udp-kib", |_| udp(CHUNK)).counting(CHUNK_KIB),
    Kind::new("tcp-packet", |_| tcp(1)).counting(2),
    Kind::new("tcp-kib", |_| tcp(CHUNK)).counting(2 * CHUNK_KIB),
];

const CHUNK_KIB: u64 = 16;
/// Fits a packet of loopback (65,536 bytes) and every socket's buffer.
const CHUNK: usize = CHUNK_KIB as usize * 1024;
/// A packet that has not arrived after this time is lost: an error instead of an endless wait.
const LOST: Duration = Duration::from_secs(2);
const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

fn move_all(number: c_long, fd: RawFd, buffer: &mut [u8], flags: i32) -> io::Result<()> {
    let (fd, size, flags) = (c_long::from(fd), buffer.len(), c_long::from(flags));
    let (nobody, no_length) = (ptr::null_mut::<libc::sockaddr>(), 0 as c_long);
    // SAFETY: the buffer is writable and has this size; no address is given. The number is that of sendto or recvfrom.
    let moved = unsafe { libc::syscall(number, fd, buffer.as_mut_ptr(), size, flags, nobody, no_length) };
    exactly(moved, size as c_long)
}

fn send(fd: RawFd, buffer: &mut [u8]) -> io::Result<()> {
    move_all(libc::SYS_sendto, fd, buffer, libc::MSG_NOSIGNAL)
}

/// A datagram comes whole; of a stream, all of it is waited for.
fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<()> {
    move_all(libc::SYS_recvfrom, fd, buffer, libc::MSG_WAITALL)
}

/// Gives this thread a network namespace of its own with a loopback, where it may. What has the host's network has its
/// packet rules and its tracking of connections in each packet's way else, which no container has in its own.
fn apart_from_packet_rules() -> io::Result<()> {
    match sys::new_network() {
        Ok(()) => sys::raise_loopback(),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EINVAL | libc::ENOSYS)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A socket that sends datagrams to itself.
struct Udp {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

fn udp(size: usize) -> io::Result<Box<dyn Repeat>> {
    apart_from_packet_rules()?;
    let socket = UdpSocket::bind(ANYWHERE)?;
    socket.connect(socket.local_addr()?)?;
    socket.set_read_timeout(Some(LOST))?;
    Ok(Box::new(Udp { socket, buffer: vec![1; size] }))
}

impl Call for Udp {
    fn call(&mut self) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        send(fd, &mut self.buffer)?;
        receive(fd, &mut self.buffer)
    }
}

/// Both ends of a connection. Data goes there and the same back, so that each acknowledges the other and no delayed
/// acknowledgement is waited for.
struct Tcp {
    ends: [TcpStream; 2],
    buffer: Vec<u8>,
}

fn tcp(size: usize) -> io::Result<Box<dyn Repeat>> {
    apart_from_packet_rules()?;
    let listener = TcpListener::bind(ANYWHERE)?;
    // The kernel completes it, before anybody accepts.
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _address) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(LOST))?;
        end.set_write_timeout(Some(LOST))?;
    }
    Ok(Box::new(Tcp { ends: [near, far], buffer: vec![1; size] }))
}

impl Call for Tcp {
    fn call(&mut self) -> io::Result<()> {
        let [near, far] = [self.ends[0].as_raw_fd(), self.ends[1].as_raw_fd()];
        send(near, &mut self.buffer)?;
        receive(far, &mut self.buffer)?;
        send(far, &mut self.buffer)?;
        receive(near, &mut self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> std::path::PathBuf {
        std::fs::read_link("/proc/thread-self/ns/net").unwrap()
    }

    #[test]
    fn a_thread_that_may_has_a_network_of_its_own_and_others_keep_theirs() {
        let before = network();
        let within = std::thread::spawn(|| {
            udp(1).unwrap();
            network()
        });
        assert_eq!(within.join().unwrap() != before, rustix::process::geteuid().is_root());
        assert_eq!(network(), before);
    }
}
