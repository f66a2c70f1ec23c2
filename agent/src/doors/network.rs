//! Ways by networks and sockets.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, sendto, socket,
    socket_with,
};

use super::word::{self, OK, Tried, Word, best, word};
use super::{Bait, Way, here, way};
use crate::sys;

/// By then the other end has answered.
const DIAL: Duration = Duration::from_secs(2);
const SNIFF: Duration = Duration::from_secs(3);
const LONGEST: usize = 200;
const ALL_FRAMES: u16 = 3;
const SOL_PACKET: i32 = 263;
const ADD_MEMBERSHIP: i32 = 1;
const PROMISCUOUS: u16 = 1;
const VSOCK: i32 = 40;
const VSOCK_TIMEOUT: i32 = 6;
const HYPERVISOR: u32 = 2;

fn by_connect<'a>(name: &str, connected: impl FnOnce() -> io::Result<UnixStream> + 'a) -> Vec<Way<'a>> {
    vec![way(name, move || word(connected().map(drop).map_err(word::of)))]
}

pub fn try_abstract<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    by_connect("by connect", move || UnixStream::connect_addr(&UnixAddress::from_abstract_name(bait.text("socket"))?))
}

pub fn try_sockets<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    if bait.text("daemons").is_empty() {
        return here("no such daemon listens on the host");
    }
    vec![way("by connect", move || {
        best(bait.list("daemons").map(|path| word(UnixStream::connect(path).map(drop).map_err(word::of))))
    })]
}

/// The other instance, which the host has started.
pub fn try_reach<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("by TCP", move || {
        let others = bait.list("other").filter_map(|address| address.parse().ok());
        let targets = others.map(|address| Target { name: "other", kind: SocketType::STREAM, address }).collect();
        best(dialled(targets).remove("other").unwrap_or_default())
    })]
}

/// All frames of all links, with the links told to take also frames of others (PACKET_MR_PROMISC).
pub fn try_sniff<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    vec![way("by a packet socket", move || sniffed(bait.text("sniffed")).unwrap_or_else(|word| word))]
}

fn sniffed(mark: &str) -> Tried<Word> {
    let protocol = NonZeroU32::new(ALL_FRAMES.to_be().into()).map(Protocol::from_raw);
    let listening = socket(AddressFamily::PACKET, SocketType::RAW, protocol).map_err(word::of)?;
    for link in 1..=16_i32 {
        let request = [&link.to_ne_bytes()[..], &PROMISCUOUS.to_ne_bytes(), &[0; 10]].concat();
        let _ = sys::set_option(&listening, SOL_PACKET, ADD_MEMBERSHIP, &request);
    }
    let until = Instant::now() + SNIFF;
    let mut frame = [0; 2048];
    while Instant::now() < until {
        let mut ready = [PollFd::new(&listening, PollFlags::IN)];
        if poll(&mut ready, Some(&timespec(Duration::from_millis(200)))).unwrap_or(0) == 0 {
            continue;
        }
        let Ok((length, _)) = recv(&listening, &mut frame, RecvFlags::empty()) else { continue };
        if let Some(secret) = after_mark(&frame[..length.min(frame.len())], mark) {
            return Ok(format!("={secret}"));
        }
    }
    Ok("not seen".to_owned())
}

/// The digits that follow a mark.
fn after_mark(frame: &[u8], mark: &str) -> Option<String> {
    let text = word::shown(frame);
    let found = text.match_indices(mark).map(|(at, _)| &text[at + mark.len()..]);
    let digits = found.map(|rest| rest.chars().take_while(|c| matches!(c, '0'..='9' | 'a'..='f')).collect::<String>());
    digits.into_iter().find(|digits| !digits.is_empty())
}

/// A datagram that says it is the other's (udp(7), raw(7)); the host looks whether it came.
pub fn try_spoof<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let given = (bait.text("spoofed").parse().ok(), bait.text("told").parse().ok(), bait.get("port"));
    let (Some(from), Some(to), Some(_)) = given else { return here("the other has no address of its own") };
    vec![way("by a raw socket", move || {
        word_of_sent(from, to, bait.number("port"), bait.text("spoof")).unwrap_or_else(word::of)
    })]
}

fn word_of_sent(from: Ipv4Addr, to: Ipv4Addr, port: u16, text: &str) -> Result<Word, Errno> {
    let raw = socket(AddressFamily::INET, SocketType::RAW, NonZeroU32::new(255).map(Protocol::from_raw))?;
    sendto(&raw, &datagram(from, to, port, text.as_bytes()), SendFlags::empty(), &SocketAddrV4::new(to, 0))?;
    Ok("sent".to_owned())
}

/// A whole packet: headers of IPv4 and UDP, whose checksums the kernel makes or nobody needs.
fn datagram(from: Ipv4Addr, to: Ipv4Addr, port: u16, text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + text.len()).unwrap_or(u16::MAX);
    let mut packet = vec![0x45, 0];
    for field in [length.saturating_add(20), 0, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend([64, 17, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    for field in [9, port, length, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(text);
    packet
}

/// An address to connect to, under the name of what may answer there.
struct Target {
    name: &'static str,
    kind: SocketType,
    address: SocketAddr,
}

/// A socket that has begun to connect; `up` once the other end has taken the connection.
struct Dialling {
    name: &'static str,
    kind: SocketType,
    socket: OwnedFd,
    up: bool,
}

fn begun(target: &Target) -> Result<Dialling, Errno> {
    let family = if target.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, target.kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &target.address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    let up = target.kind == SocketType::DGRAM;
    if up {
        let _ = send(&socket, b"tare?", SendFlags::empty());
    }
    Ok(Dialling { name: target.name, kind: target.kind, socket, up })
}

impl Dialling {
    /// The result of a ready socket; None while more is to come.
    fn heard(&mut self) -> Option<Word> {
        if !self.up {
            return match socket_error(&self.socket) {
                Ok(Ok(())) => {
                    self.up = true;
                    None
                }
                Ok(Err(error)) | Err(error) => Some(word::of(error)),
            };
        }
        let mut text = [0; LONGEST];
        Some(match recv(&self.socket, &mut text, RecvFlags::empty()) {
            Ok((0, _)) => "silent".to_owned(),
            Ok((length, _)) => word::read(&text[..length.min(LONGEST)]),
            Err(error) => word::of(error),
        })
    }

    fn wanted(&self) -> PollFlags {
        if self.up { PollFlags::IN } else { PollFlags::OUT }
    }

    fn unheard(&self) -> &'static str {
        if self.up && self.kind == SocketType::STREAM { "silent" } else { "no answer" }
    }
}

/// What came of connecting to all of these addresses at once, by their names: what the other end said, or that it took the
/// connection and was silent.
fn dialled(targets: Vec<Target>) -> BTreeMap<&'static str, Vec<Word>> {
    let mut words: BTreeMap<&'static str, Vec<Word>> = BTreeMap::new();
    let mut waiting = Vec::new();
    for target in targets {
        match begun(&target) {
            Ok(dialling) => waiting.push(dialling),
            Err(error) => words.entry(target.name).or_default().push(word::of(error)),
        }
    }
    let until = Instant::now() + DIAL;
    while !waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled: Vec<_> = waiting.iter().map(|of| PollFd::new(&of.socket, of.wanted())).collect();
        if left.is_zero() || poll(&mut polled, Some(&timespec(left))).unwrap_or(0) == 0 {
            break;
        }
        let ready: Vec<bool> = polled.iter().map(|of| !of.revents().is_empty()).collect();
        for (at, _) in ready.iter().enumerate().rev().filter(|(_, ready)| **ready) {
            if let Some(word) = waiting[at].heard() {
                words.entry(waiting.swap_remove(at).name).or_default().push(word);
            }
        }
    }
    for dialling in waiting {
        words.entry(dialling.name).or_default().push(dialling.unheard().to_owned());
    }
    words
}

fn timespec(of: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(of.as_secs()).unwrap_or(i64::MAX), tv_nsec: of.subsec_nanos().into() }
}

/// Where the host may be, as seen from here: its own addresses, the next hop of each route, and what the networks of QEMU,
/// passt and slirp4netns take for the host.
fn hosts(bait: &Bait<'_>, routes: &str) -> Vec<Ipv4Addr> {
    let own = bait.list("addresses").filter_map(|address| address.parse().ok());
    let hops = routes.lines().filter_map(|line| {
        let hop = line.split_whitespace().nth(2).filter(|hop| hop.len() == 8)?;
        u32::from_str_radix(hop, 16).ok().map(|hop| Ipv4Addr::from(hop.to_le_bytes()))
    });
    let others = [[127, 0, 0, 1], [10, 0, 2, 2], [169, 254, 1, 2]].map(Ipv4Addr::from);
    once_each(own.chain(hops).chain(others).filter(|address| !address.is_unspecified()))
}

/// The same by IPv6, with a scope: each of a link's own addresses is tried on each link.
fn hosts_by_ipv6(bait: &Bait<'_>, routes: &str, addresses: &str) -> Vec<(Ipv6Addr, u32)> {
    let own = bait.list("addresses").filter_map(|address| address.parse().ok());
    let hops = routes.lines().filter_map(|line| {
        let hop = u128::from_str_radix(line.split_whitespace().nth(4)?, 16).ok()?;
        (hop != 0).then(|| Ipv6Addr::from(hop))
    });
    let others =
        [Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)];
    let links: Vec<u32> = addresses
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let link = u32::from_str_radix(fields.next()?, 16).ok()?;
            (fields.nth(1) == Some("20")).then_some(link)
        })
        .collect();
    let of_link = |address: &Ipv6Addr| address.segments()[0] == 0xfe80;
    let hosts = once_each(own.chain(hops).chain(others));
    hosts
        .into_iter()
        .flat_map(|host| if of_link(&host) { links.clone() } else { vec![0] }.into_iter().map(move |link| (host, link)))
        .collect()
}

fn once_each<T: Copy + Eq + std::hash::Hash>(of: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    of.filter(|item| seen.insert(*item)).collect()
}

/// All that is dialled, by its name: each takes its time where a filter drops what is sent, so it is done at once.
#[derive(Default)]
pub struct Network(OnceCell<BTreeMap<&'static str, Vec<Word>>>);

impl Network {
    fn words(&self, bait: &Bait<'_>) -> &BTreeMap<&'static str, Vec<Word>> {
        self.0.get_or_init(|| dialled(targets(bait)))
    }

    pub fn try_host_ports<'a>(&self, bait: &Bait<'_>) -> Vec<Way<'a>> {
        let words = self.words(bait).iter().filter(|(name, _)| name.starts_with("a service"));
        words.map(|(name, words)| (*name, best(words.clone()))).map(|(name, word)| way(name, || word)).collect()
    }

    /// The other end accepted; it is sent nothing.
    pub fn try_metadata<'a>(&self, bait: &Bait<'_>) -> Vec<Way<'a>> {
        let words = self.words(bait).iter().filter(|(name, _)| name.starts_with("metadata"));
        let words = words.map(|(name, words)| (*name, best(words.clone())));
        let ways: Vec<_> =
            words.map(|(name, word)| way(name, move || if word == "silent" { OK.to_owned() } else { word })).collect();
        if ways.is_empty() { here("the host reaches none") } else { ways }
    }
}

fn targets(bait: &Bait<'_>) -> Vec<Target> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let hosts = hosts(bait, &read("/proc/net/route"));
    let mut targets = Vec::new();
    for (name, kind, given) in [
        ("a service on all addresses", SocketType::STREAM, "every"),
        ("a service on its loopback", SocketType::STREAM, "loopback"),
        ("a service of UDP", SocketType::DGRAM, "datagrams"),
    ] {
        let port = bait.number(given);
        targets.extend(hosts.iter().map(|&host| Target { name, kind, address: SocketAddrV4::new(host, port).into() }));
    }
    let (name, kind, port) = ("a service of IPv6", SocketType::STREAM, bait.number("every6"));
    if port != 0 {
        let hosts = hosts_by_ipv6(bait, &read("/proc/net/ipv6_route"), &read("/proc/net/if_inet6"));
        let addresses = hosts.into_iter().map(|(host, link)| SocketAddrV6::new(host, port, 0, link).into());
        targets.extend(addresses.map(|address| Target { name, kind, address }));
    }
    for (name, given) in [("metadata by IPv4", "metadata"), ("metadata by IPv6", "metadata6")] {
        let address = bait.get(given).and_then(|address| address.parse::<IpAddr>().ok());
        targets.extend(address.map(|address| Target { name, kind, address: SocketAddr::new(address, 80) }));
    }
    targets
}

/// Sockets of a machine and its hypervisor, vsock(7): they know no network namespaces. What refuses at CID 2, or stays
/// silent, is the hypervisor: what was sent is out of the sandbox.
pub fn try_vsock<'a>(bait: &'a Bait<'a>) -> Vec<Way<'a>> {
    let given =
        bait.text("vsock").split_once(':').and_then(|(cid, port)| Some((cid.parse().ok()?, port.parse().ok()?)));
    let (cid, port): (u32, u32) = given.unwrap_or_default();
    let at = |cid: u32, port: u32| move || by_vsock(cid, port).unwrap_or_else(|word| word);
    let mut ways = vec![way("the hypervisor's services (CID 2)", at(HYPERVISOR, port.max(1)))];
    if port != 0 {
        ways.push(way("a service of the host's by its own CID", at(cid, port)));
        ways.push(way("the same by CID 1", at(1, port)));
    }
    ways
}

fn by_vsock(cid: u32, port: u32) -> Tried<Word> {
    let socket = sys::vsock().map_err(word::of)?;
    let patience = [0_i64, 500_000].map(i64::to_ne_bytes).concat(); // s and µs
    let _ = sys::set_option(&socket, VSOCK, VSOCK_TIMEOUT, &patience);
    if let Err(error) = sys::connect_vsock_by(&socket, cid, port) {
        let word = word::of(error);
        let is_there = cid == HYPERVISOR && ["ECONNRESET", "ETIMEDOUT"].contains(&word.as_str());
        return if is_there { Ok(OK.to_owned()) } else { Err(word) };
    }
    let mut text = [0; LONGEST];
    match rustix::io::read(&socket, &mut text) {
        Ok(length) if length > 0 => Ok(word::read(&text[..length])),
        _ => Ok(OK.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn next_hops_and_the_hosts_addresses_are_tried_once() {
        let mut bait = Bait::default();
        bait.0.insert("addresses", "192.168.2.1,fe80::1,0.0.0.0");
        let routes = "Iface\tDestination\tGateway\neth0\t00000000\t0102A8C0\neth0\t0002A8C0\t00000000\n";
        let found: Vec<String> = hosts(&bait, routes).iter().map(Ipv4Addr::to_string).collect();
        assert_eq!(found, ["192.168.2.1", "127.0.0.1", "10.0.2.2", "169.254.1.2"]);
        let routes = format!("{} 00 {} 00 fe80{}2 00\n", "0".repeat(32), "0".repeat(32), "0".repeat(27));
        let links =
            "fe800000000000000000000000000001 03 40 20 80 eth0\n00000000000000000000000000000001 01 80 10 80 lo\n";
        let found: Vec<_> =
            hosts_by_ipv6(&bait, &routes, links).iter().map(|(host, link)| format!("{host}%{link}")).collect();
        assert_eq!(found, ["fe80::1%3", "fe80::2%3", "::1%0", "fec0::2%0", "fd00::2%0"]);
    }

    #[test]
    fn a_datagram_has_its_headers() {
        let packet = datagram([10, 0, 0, 2].into(), [10, 0, 0, 1].into(), 0x1234, b"tare");
        assert_eq!(packet[..10], [0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17]);
        assert_eq!(packet[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
        assert_eq!(packet[20..], [0, 9, 0x12, 0x34, 0, 12, 0, 0, b't', b'a', b'r', b'e']);
    }

    #[test]
    fn a_secret_is_what_follows_its_mark() {
        assert_eq!(after_mark(b"\xff\x00mark5ec4e7!", "mark"), Some("5ec4e7".to_owned()));
        assert_eq!(after_mark(b"mark!", "mark"), None);
    }

    #[test]
    fn who_answers_is_heard_and_who_refuses_is_named() {
        let (speaking, silent) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (kind, udp) = (SocketType::STREAM, SocketType::DGRAM);
        let targets = vec![
            Target { name: "speaking", kind, address: speaking.local_addr().unwrap() },
            Target { name: "silent", kind, address: silent.local_addr().unwrap() },
            Target { name: "closed", kind, address: closed },
            Target { name: "echo", kind: udp, address: echo.local_addr().unwrap() },
        ];
        let answers = std::thread::spawn(move || {
            speaking.accept().unwrap().0.write_all(b"secret").unwrap();
            let mut text = [0; 9];
            let (length, from) = echo.recv_from(&mut text).unwrap();
            echo.send_to(&text[..length], from).unwrap();
        });
        let words = dialled(targets);
        answers.join().unwrap();
        for (name, word) in
            [("speaking", "=secret"), ("silent", "silent"), ("closed", "ECONNREFUSED"), ("echo", "=tare?")]
        {
            assert_eq!(words[name], [word], "{name}");
        }
    }
}
