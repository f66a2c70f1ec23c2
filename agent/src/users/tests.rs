use super::*;
use crate::exchange::Client;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nX-Cache: hit\r\nContent-Length: 4\r\n\r\npage";

/// A server on a free port, for as long as the test's process lives: a thread a connection, each request answered with
/// what `answer` returns; None ends the connection.
fn served(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let Some(answered) = answer(&String::from_utf8_lossy(&buffer[..count])) else { return };
                    if stream.write_all(&answered).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn users(port: u16, line: &str) -> Users {
    let all = format!("http 127.0.0.1 {port} {line}");
    Users::parse(all.split_whitespace().map(str::to_owned)).unwrap()
}

fn counted(tally: &Tally, name: &str) -> u64 {
    let told = tally.to_string();
    let value = |line: &str| line.split(' ').skip_while(|word| *word != name).nth(1).unwrap().parse::<u64>().unwrap();
    told.lines().filter(|line| line.starts_with("window ")).map(value).sum()
}

#[test]
fn a_pause_of_the_server_is_in_an_open_loops_percentiles_and_not_in_a_closed_ones() {
    // One second of three nothing is answered, on any connection; a closed loop has one request under way meanwhile.
    fn pausing() -> u16 {
        let begin = Instant::now();
        served(move |_| {
            let since = begin.elapsed();
            if (Duration::from_secs(1)..Duration::from_secs(2)).contains(&since) {
                thread::sleep(Duration::from_secs(2).saturating_sub(since));
            }
            Some([PAGE, b""].concat())
        })
    }
    let closed = thread::spawn(|| {
        let line = format!("http 127.0.0.1 {} 3 0 4 /", pausing());
        let told = Client::parse(line.split_whitespace().map(str::to_owned)).unwrap().run().unwrap().to_string();
        let p99 = told.lines().find_map(|line| line.strip_prefix("p99 ")?.strip_suffix(" us")).unwrap();
        p99.parse::<f64>().unwrap() / 1000.0
    });
    let tally = users(pausing(), "20 3 100000 5000 20000 25 10 1 / /a /b").run().unwrap();
    assert!(tally.due() > 1000, "{}", tally.due());
    assert_eq!(counted(&tally, "transport-errors"), 0);
    let p99_ms = tally.within_ns(99) / 1_000_000;
    assert!(p99_ms > 900, "{p99_ms}");
    let closed_ms = closed.join().unwrap();
    assert!(closed_ms < 300.0, "{closed_ms}");
}

#[test]
fn a_pause_of_a_store_at_a_constant_rate_is_in_the_percentiles() {
    // 1000 requests a second on 20 connections: what is due in the half of a second, of three, in which it stands still, is
    // a sixth of all, and waited for a quarter of a second on average.
    let begin = Instant::now();
    let port = served(move |request| {
        let since = begin.elapsed();
        if (Duration::from_millis(1000)..Duration::from_millis(1500)).contains(&since) {
            thread::sleep(Duration::from_millis(1500).saturating_sub(since));
        }
        Some(if request.starts_with("SET ") { b"+OK\r\n".to_vec() } else { b"$1\r\nx\r\n".to_vec() })
    });
    let words = ["redis", "127.0.0.1", &port.to_string(), "20", "3", "40000", "10000", "5000", "1000000", "100", "1"];
    let requests = ["SET {7} x", "GET {7}"];
    let tally = Users::parse(words.into_iter().chain(requests).map(str::to_owned)).unwrap().run().unwrap();
    assert!((2700..3300).contains(&tally.due()), "{}", tally.due());
    assert_eq!((counted(&tally, "transport-errors"), counted(&tally, "misses")), (0, 0));
    assert!(counted(&tally, "hits").abs_diff(tally.due() / 2) < 100);
    let p99_ms = tally.within_ns(99) / 1_000_000;
    assert!(p99_ms > 400, "{p99_ms}");
}

#[test]
fn each_request_is_made_once_in_its_order() {
    let asked = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&asked);
    let port = served(move |request| {
        assert!(request.contains("\r\nCookie: user="));
        seen.fetch_add(1, Ordering::Relaxed);
        Some(PAGE.to_vec())
    });
    let tally = users(port, "5 1 200000 10000 10000 2 10 1 / /word?w={7}").run().unwrap();
    assert_eq!(tally.due(), asked.load(Ordering::Relaxed));
    assert_eq!((counted(&tally, "hits"), tally.successes()), (tally.due(), tally.due()));
    // Some 5 searches of 2 requests for each of 5 users.
    assert!((30..70).contains(&tally.due()), "{}", tally.due());
}

#[test]
fn errors_of_the_server_and_of_the_transport_are_counted_and_the_rest_of_their_searches_is_dropped() {
    let port = served(|request| match request.split(' ').nth(1) {
        Some("/fails") => Some(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => Some(PAGE.to_vec()),
    });
    let tally = users(port, "5 1 200000 5000 10000 25 10 1 / /fails /c /d").run().unwrap();
    let errors = counted(&tally, "server-errors");
    assert!(errors > 10 && counted(&tally, "transport-errors") == 0);
    assert_eq!(counted(&tally, "dropped"), 2 * errors);
    assert_eq!(tally.successes() + errors, tally.due());

    let port = served(|request| (request.split(' ').nth(1) != Some("/ends")).then(|| PAGE.to_vec()));
    let tally = users(port, "5 1 200000 5000 10000 25 10 1 / /ends /c").run().unwrap();
    let errors = counted(&tally, "transport-errors");
    assert!(errors > 10 && counted(&tally, "timeouts") == 0);
    assert_eq!(counted(&tally, "dropped"), errors);
}

#[test]
fn who_is_not_answered_in_time_gives_up() {
    let port = served(|request| {
        if request.starts_with("GET /slow") {
            thread::sleep(Duration::from_secs(3));
        }
        Some(PAGE.to_vec())
    });
    let tally = users(port, "2 2 400000 5000 1000 25 10 1 / /slow").run().unwrap();
    let timeouts = counted(&tally, "timeouts");
    assert!(timeouts > 2 && timeouts == counted(&tally, "transport-errors"));
    assert!((992..=1000).contains(&(tally.within_ns(100) / 1_000_000))); // the limit, to 0.8 %
}

#[test]
fn a_connection_that_the_server_ended_in_a_pause_is_made_anew() {
    let first = AtomicBool::new(true);
    let port = served(move |_| {
        let last = first.swap(!first.load(Ordering::Relaxed), Ordering::Relaxed);
        let head = if last { "Connection: close\r\n" } else { "" };
        Some(format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 0\r\n\r\n").into_bytes())
    });
    let tally = users(port, "2 1 100000 5000 10000 25 10 1 / /b").run().unwrap();
    assert_eq!((counted(&tally, "transport-errors"), tally.successes()), (0, tally.due()));
}

#[test]
fn what_is_no_site_is_an_error_and_no_figure() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let line = "2 1 100000 5000 10000 25 10 1 /";
    assert!(users(free, line).run().unwrap_err().contains("was answered well: Connection refused"));
    let other = served(|_| Some(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()));
    assert!(users(other, line).run().unwrap_err().contains("HTTP 404"));
    let broken = served(|_| Some(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n".to_vec()));
    assert!(users(broken, line).run().unwrap_err().contains("was answered well: HTTP 500"));
    let none = served(|_| Some(b"SSH-2.0-x\r\n\r\n\r\n".to_vec()));
    assert!(users(none, line).run().unwrap_err().contains("no answer of HTTP/1.1"));
}

#[test]
fn what_cannot_be_understood_is_named() {
    for (line, what) in [
        ("gopher", "no protocol"),
        ("http nowhere", "nowhere"),
        ("http 127.0.0.1 80 0 1 100 5 1000 25 10 1 /", "0 is no number of users"),
        ("http 127.0.0.1 80 1 1 100 5 0 25 10 1 /", "0 is no time limit"),
        ("http 127.0.0.1 80 1 1 100 5 1000 25 10 1", "paths begin with /"),
        ("http 127.0.0.1 80 1 1 100 5 1000 25 10 1 page", "paths begin with /"),
        ("redis 127.0.0.1 80 1 1 100 5 1000 25 10 1 /page", "commands with a letter"),
        ("http 127.0.0.1 80 1 1 100 50 1000 25 10 1 / /a", "do not fit between two searches"),
    ] {
        assert!(Users::parse(line.split_whitespace().map(str::to_owned)).unwrap_err().contains(what), "{line}");
    }
}
