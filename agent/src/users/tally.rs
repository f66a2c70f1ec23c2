//! The outcomes of all requests, by seconds: a request's time is in the second in which it was due, its end in the one in
//! which it ended. The sum at the end shows a report that was damaged.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

const SECOND_NS: u64 = 1_000_000_000;
/// Binary digits to which times are kept, which is 0.8 %.
const DIGITS: u32 = 8;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Answered well: out of the cache, past it, or without a word of it.
    Success(Option<bool>),
    /// HTTP 5xx.
    ServerError,
    /// Refused or broken off.
    TransportError,
    /// The user did not wait any longer, which is one too.
    Timeout,
}

/// Times in us and how many there are of each.
type Times = BTreeMap<u64, u64>;

#[derive(Debug, Default)]
struct Window {
    due: u64,
    successes: u64,
    server_errors: u64,
    transport_errors: u64,
    timeouts: u64,
    dropped: u64,
    hits: u64,
    misses: u64,
    took: Times,
}

/// A window for each second, and one for what ends after the last.
#[derive(Debug)]
pub struct Tally {
    begin_ns: u64,
    limit_ns: u64,
    users: usize,
    windows: Vec<Window>,
    late: Times,
}

impl Tally {
    pub fn new(users: usize, seconds: usize, begin_ns: u64, limit_ns: u64) -> Self {
        let windows = (0..=seconds).map(|_| Window::default()).collect();
        Self { begin_ns, limit_ns, users, windows, late: Times::new() }
    }

    fn at(&mut self, instant_ns: u64) -> &mut Window {
        let second = usize::try_from(instant_ns.saturating_sub(self.begin_ns) / SECOND_NS).unwrap_or(usize::MAX);
        let last = self.windows.len() - 1;
        &mut self.windows[second.min(last)]
    }

    /// A request was sent so much later than its user could have.
    pub fn sent(&mut self, late_ns: u64) {
        count(&mut self.late, late_ns);
    }

    /// A request that was due then ended now, and `dropped` others will not be made for that.
    pub fn ended(&mut self, due_ns: u64, now_ns: u64, end: End, dropped: u64) {
        // Who gets no page does not care how soon: a site must not look fast for failing fast.
        let took_ns = if matches!(end, End::Success(_)) { (now_ns - due_ns).min(self.limit_ns) } else { self.limit_ns };
        let window = self.at(due_ns);
        window.due += 1;
        count(&mut window.took, took_ns);
        let window = self.at(now_ns);
        window.dropped += dropped;
        match end {
            End::Success(from_cache) => {
                window.successes += 1;
                window.hits += u64::from(from_cache == Some(true));
                window.misses += u64::from(from_cache == Some(false));
            }
            End::ServerError => window.server_errors += 1,
            End::TransportError => window.transport_errors += 1,
            End::Timeout => {
                window.transport_errors += 1;
                window.timeouts += 1;
            }
        }
    }

    pub fn successes(&self) -> u64 {
        self.windows.iter().map(|window| window.successes).sum()
    }

    pub fn due(&self) -> u64 {
        self.windows.iter().map(|window| window.due).sum()
    }

    /// The time that a percentage of the requests took at most, in ns.
    #[cfg(test)]
    pub fn within_ns(&self, percent: u64) -> u64 {
        let mut all = Times::new();
        for (us, times) in self.windows.iter().flat_map(|window| &window.took) {
            *all.entry(*us).or_default() += times;
        }
        let mut left = (all.values().sum::<u64>() * percent).div_ceil(100);
        for (us, times) in all {
            left = left.saturating_sub(times);
            if left == 0 {
                return us * 1000;
            }
        }
        0
    }
}

fn count(times: &mut Times, ns: u64) {
    let us = ns / 1000;
    let more = (u64::BITS - us.leading_zeros()).saturating_sub(DIGITS);
    *times.entry(us >> more << more).or_default() += 1;
}

fn listed(times: &Times) -> String {
    times.iter().fold(String::new(), |mut text, (us, count)| {
        // Into a string nothing fails.
        let _ = write!(text, " {us}:{count}");
        text
    })
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (users, seconds, limit_ms) = (self.users, self.windows.len() - 1, self.limit_ns / 1_000_000);
        let mut told = format!("users {users} seconds {seconds} limit {limit_ms} ms\n");
        for (at, each) in self.windows.iter().enumerate() {
            writeln!(
                told,
                "window {at} due {} successes {} server-errors {} transport-errors {} timeouts {} dropped {} hits {} \
                 misses {}\ntook {at}{}",
                each.due,
                each.successes,
                each.server_errors,
                each.transport_errors,
                each.timeouts,
                each.dropped,
                each.hits,
                each.misses,
                listed(&each.took),
            )?;
        }
        writeln!(told, "late{}", listed(&self.late))?;
        let sum: u64 = told.bytes().map(u64::from).sum();
        writeln!(out, "{told}sum {sum}\nend")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_timed_where_it_was_due_and_counted_where_it_ended() {
        let mut tally = Tally::new(3, 2, 1_000, 2 * SECOND_NS);
        tally.sent(60_000);
        tally.ended(1_000, 1_000 + 500_000, End::Success(Some(true)), 0);
        tally.ended(1_000, 1_000 + SECOND_NS, End::Success(Some(false)), 0);
        tally.ended(1_000 + SECOND_NS, 1_000 + SECOND_NS + 1, End::ServerError, 9);
        tally.ended(1_000 + SECOND_NS, 1_000 + 3 * SECOND_NS, End::Timeout, 4);
        tally.ended(1_000 + SECOND_NS, 1_000 + SECOND_NS, End::TransportError, 0);
        let told = tally.to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(
            lines[..8],
            [
                "users 3 seconds 2 limit 2000 ms",
                "window 0 due 2 successes 1 server-errors 0 transport-errors 0 timeouts 0 dropped 0 hits 1 misses 0",
                "took 0 500:1 999424:1",
                "window 1 due 3 successes 1 server-errors 1 transport-errors 1 timeouts 0 dropped 9 hits 0 misses 1",
                "took 1 1998848:3",
                "window 2 due 0 successes 0 server-errors 0 transport-errors 1 timeouts 1 dropped 4 hits 0 misses 0",
                "took 2",
                "late 60:1",
            ]
        );
        let before: u64 = told[..told.find("sum ").unwrap()].bytes().map(u64::from).sum();
        assert_eq!(lines[8..], [format!("sum {before}").as_str(), "end"]);
        assert_eq!((tally.due(), tally.successes()), (5, 2));
        assert_eq!((tally.within_ns(20), tally.within_ns(40)), (500_000, 999_424_000));
    }
}
