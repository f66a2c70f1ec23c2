//! Users of a site, or of a store of keys, all in one thread: each asks when its next request is due, however slow the
//! answers come. Many users who make a search of few requests each are a load of a constant rate.
//!
//! An open loop, with latency as wrk2 has it: from the instant at which a request was due. A client that asks only once it
//! has an answer asks nothing while the site stands still, and so hardly sees it (coordinated omission). A user has one
//! request under way, as a person does: what is due meanwhile waits, and its time counts.

mod connection;
mod protocol;
mod schedule;
mod tally;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::str::FromStr;

use rustix::event::{Timespec, epoll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::clock::now_ns;
use connection::{Connection, Progress};
use protocol::Protocol;
use schedule::{Habits, User};
use tally::End;
pub use tally::Tally;

/// The timer's place among the users' numbers.
const TIMER: u64 = u64::MAX;
/// The longest time and the most users that are sensible.
const DAY_MS: u64 = 86_400_000;
const MAX_USERS: u64 = 20_000;

/// What is to be done: `http|redis ADDRESS PORT USERS SECONDS THINK_US PACE_US LIMIT_MS SEARCHES WORDS SEED REQUEST...`;
/// a request is a path of HTTP, or a command of Redis.
#[derive(Debug, PartialEq)]
pub struct Users {
    server: SocketAddrV4,
    users: usize,
    seconds: usize,
    limit_ns: u64,
    seed: u64,
    habits: Habits,
}

impl Users {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let protocol: Protocol = word::<String>(&mut words, "protocol")?.parse()?;
        let address: Ipv4Addr = word(&mut words, "address")?;
        let server = SocketAddrV4::new(address, word(&mut words, "port")?);
        let users = within(&mut words, "number of users", 1..=MAX_USERS)?;
        let seconds = within(&mut words, "number of seconds", 1..=86_400)?;
        let think_us = within(&mut words, "time to think in us", 1..=1000 * DAY_MS)?;
        let pace_us = within(&mut words, "time between requests in us", 0..=1000 * DAY_MS)?;
        let limit_ms = within(&mut words, "time limit in ms", 1..=DAY_MS)?;
        let searches = within(&mut words, "number of searches", 1..=u64::MAX)?;
        let count = within(&mut words, "number of words", 1..=1 << 32)?;
        let seed = word(&mut words, "seed")?;
        let requests: Vec<String> = words.collect();
        if requests.is_empty() || !requests.iter().all(|request| protocol.takes(request)) {
            return Err(format!("paths begin with /, commands with a letter, and these do not: {requests:?}"));
        }
        if pace_us * requests.len() as u64 > think_us / 2 {
            return Err(format!("{} requests every {pace_us} us do not fit between two searches", requests.len()));
        }
        let (us, ms) = (1_000, 1_000_000);
        let habits =
            Habits { protocol, think_ns: think_us * us, pace_ns: pace_us * us, searches, words: count, requests };
        // Both were held to what fits anywhere.
        let (users, seconds) = (usize::try_from(users).unwrap_or(1), usize::try_from(seconds).unwrap_or(1));
        Ok(Self { server, users, seconds, limit_ns: limit_ms * ms, seed, habits })
    }

    /// Asks until the time is over and all that was asked has ended. The error is a fault of this side, an answer that is
    /// none (404 among them), or that nothing was answered well.
    pub fn run(&self) -> Result<Tally, String> {
        Crowd::new(self).map_err(|error| error.to_string())?.run()
    }
}

fn word<T: FromStr>(words: &mut impl Iterator<Item = String>, what: &str) -> Result<T, String> {
    let text = words.next().ok_or(format!("{what} is missing"))?;
    text.parse().map_err(|_| format!("{text:?} is no {what}"))
}

fn within(
    words: &mut impl Iterator<Item = String>,
    what: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, String> {
    let number = word(words, what)?;
    if range.contains(&number) { Ok(number) } else { Err(format!("{number} is no {what}")) }
}

/// A user at work.
struct Person {
    user: User,
    connection: Option<Connection>,
    asking: bool,
    /// The time of the previous answer: the user could not ask earlier.
    free_ns: u64,
    /// Changes with all that it does, so that a timer which was for something else is known.
    turn: u64,
}

struct Crowd<'a> {
    task: &'a Users,
    end_ns: u64,
    poll: OwnedFd,
    timer: OwnedFd,
    /// When something is to be done for which user, if it is still at that turn.
    alarms: BinaryHeap<Reverse<(u64, usize, u64)>>,
    people: Vec<Person>,
    at_work: usize,
    tally: Tally,
    host: String,
    first_failure: Option<String>,
}

impl<'a> Crowd<'a> {
    fn new(task: &'a Users) -> io::Result<Self> {
        let most = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        let begin_ns = now_ns();
        let mut crowd = Self {
            task,
            end_ns: begin_ns + task.seconds as u64 * 1_000_000_000,
            poll,
            timer,
            alarms: BinaryHeap::new(),
            people: Vec::with_capacity(task.users),
            at_work: task.users,
            tally: Tally::new(task.users, task.seconds, begin_ns, task.limit_ns),
            host: task.server.to_string(),
            first_failure: None,
        };
        for number in 0..task.users {
            let user = User::new(&task.habits, task.seed, number as u64, begin_ns);
            crowd.people.push(Person { user, connection: None, asking: false, free_ns: begin_ns, turn: 0 });
            crowd.wait_for_due(number);
        }
        Ok(crowd)
    }

    fn run(mut self) -> Result<Tally, String> {
        let mut events = Vec::with_capacity(256);
        loop {
            self.ring()?;
            if self.at_work == 0 {
                break;
            }
            self.set_timer().map_err(|error| format!("timer: {error}"))?;
            events.clear();
            match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("epoll: {error}")),
            }
            for event in &events {
                match event.data.u64() {
                    TIMER => {
                        // Its count says nothing: the alarms have the instants.
                        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                    }
                    number => self.go_on(usize::try_from(number).unwrap_or(usize::MAX))?,
                }
            }
        }
        if self.tally.successes() == 0 {
            let why = self.first_failure.unwrap_or_else(|| "no answer in time".to_owned());
            return Err(format!("none of {} requests was answered well: {why}", self.tally.due()));
        }
        Ok(self.tally)
    }

    /// All that is to be done by now.
    fn ring(&mut self) -> Result<(), String> {
        while let Some(&Reverse((instant_ns, number, turn))) = self.alarms.peek() {
            if instant_ns > now_ns() {
                break;
            }
            self.alarms.pop();
            let person = &self.people[number];
            if person.turn != turn {
                continue;
            }
            if person.asking {
                self.end(number, End::Timeout);
            } else {
                self.ask(number)?;
            }
        }
        Ok(())
    }

    fn set_timer(&self) -> io::Result<()> {
        let Some(Reverse((instant_ns, _, _))) = self.alarms.peek() else { return Ok(()) };
        let split = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
        let at = Timespec { tv_sec: split(instant_ns / 1_000_000_000), tv_nsec: split(instant_ns % 1_000_000_000) };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    /// The user's next request is waited for; where it is due after the end, the user goes home.
    fn wait_for_due(&mut self, number: usize) {
        let person = &mut self.people[number];
        person.turn += 1;
        person.asking = false;
        let due_ns = person.user.due_ns(&self.task.habits);
        if due_ns < self.end_ns {
            self.alarms.push(Reverse((due_ns, number, person.turn)));
        } else {
            person.connection = None;
            self.at_work -= 1;
        }
    }

    fn ask(&mut self, number: usize) -> Result<(), String> {
        let failed = |error: io::Error| format!("connecting: {error}");
        let person = &mut self.people[number];
        let due_ns = person.user.due_ns(&self.task.habits);
        let late_ns = now_ns().saturating_sub(due_ns.max(person.free_ns));
        if late_ns >= self.task.limit_ns {
            // The site had no chance to answer in time.
            return Err(format!("a request was sent {late_ns} ns late: it is this side that has no time"));
        }
        self.tally.sent(late_ns);
        if person.connection.as_mut().is_some_and(Connection::is_over) {
            person.connection = None;
        }
        let connection = match person.connection.take() {
            Some(connection) => connection,
            None => {
                let made = Connection::open(self.task.server, self.task.habits.protocol).map_err(failed)?;
                let both = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
                epoll::add(&self.poll, made.fd(), epoll::EventData::new_u64(number as u64), both)
                    .map_err(|error| failed(error.into()))?;
                made
            }
        };
        person.connection.insert(connection).ask(person.user.request(&self.task.habits, &self.host));
        person.turn += 1;
        person.asking = true;
        self.alarms.push(Reverse((due_ns + self.task.limit_ns, number, person.turn)));
        self.go_on(number)
    }

    /// Something came for a user, or can be sent.
    fn go_on(&mut self, number: usize) -> Result<(), String> {
        let Some(person) = self.people.get_mut(number) else { return Ok(()) };
        let (true, Some(connection)) = (person.asking, person.connection.as_mut()) else { return Ok(()) };
        match connection.go_on()? {
            Progress::UnderWay => {}
            Progress::Broken(why) => {
                self.first_failure.get_or_insert(why);
                self.end(number, End::TransportError);
            }
            Progress::Answered(answer) => {
                if answer.last {
                    person.connection = None;
                }
                match answer.status {
                    200..=399 => self.end(number, End::Success(answer.from_cache)),
                    500..=599 => {
                        self.first_failure.get_or_insert(format!("HTTP {}", answer.status));
                        self.end(number, End::ServerError);
                    }
                    other => return Err(format!("the site answers with HTTP {other}: it is not the one to ask")),
                }
            }
        }
        Ok(())
    }

    /// The request under way is over; the user goes on, without the rest of this search where it failed.
    fn end(&mut self, number: usize, end: End) {
        let person = &mut self.people[number];
        let (now_ns, due_ns) = (now_ns(), person.user.due_ns(&self.task.habits));
        let (dropped, new_session) = match end {
            End::Success(_) => (0, person.user.advance(&self.task.habits)),
            End::ServerError | End::TransportError | End::Timeout => person.user.give_up(&self.task.habits),
        };
        if new_session || matches!(end, End::TransportError | End::Timeout) {
            person.connection = None;
        }
        person.free_ns = now_ns;
        self.tally.ended(due_ns, now_ns, end, dropped);
        self.wait_for_due(number);
    }
}

#[cfg(test)]
mod tests;
