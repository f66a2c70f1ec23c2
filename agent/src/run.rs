//! An application as it is to be started: as its user, in its folder; and a word when it is in service.
//!
//! `run [--user USER[:GROUP]] [--directory DIR] [--env NAME=VALUE]... [--ready tcp:PORT|http:PORT:PATH|command|output]
//! [--at ADDRESS] [--ask WORD]... [--within SECONDS] [--limits NAME:VALUE,...] [--confined UID [--keep net-raw]] --
//! PROGRAM [ARG...]`. It is for roots that have no shell, `env` or `su`. Confined (`crate::confine`) is what the host's
//! client runs. Users are looked up in the root's own `/etc/passwd` and `/etc/group`, as container engines do; a number needs no
//! entry. Without `--ready` the program takes this process's place. With it the program is a child in the same process
//! group, its standard error joined to its output, and `READY` is printed on a line of its own once it answers: at
//! `--at` (the loopback interface, where it is not given), or once the command of all `--ask` ends with 0.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Gid, Uid};

use crate::confine::{self, Confinement};
use crate::limits::Limits;

/// The line that is printed when the application answers.
pub const READY: &str = "tare: the application is ready";
/// Pause between two looks at the port.
const PAUSE: Duration = Duration::from_millis(5);
/// A program that asks costs more than a look at a port.
const PAUSE_BETWEEN_PROGRAMS: Duration = Duration::from_millis(50);
/// Time limit of one connection.
const LIMIT: Duration = Duration::from_secs(2);
/// The instance's data volume: it is given to the application's user.
const DATA: &str = "/data";
/// The environment of a confined program, besides the given variables.
const KEPT_IN_CONFINEMENT: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Bytes of a page that are read, at most, for its first line.
const HEAD: u64 = 4096;

/// The sign that the application is in service.
#[derive(Debug, PartialEq, Clone)]
enum Ready {
    Tcp(u16),
    Http(u16, String),
    /// The program of `--ask` ends with 0.
    Command,
    /// The host looks for it in the output, to which standard error is joined.
    Output,
}

/// The program to run, and its settings.
#[derive(Debug, PartialEq)]
pub struct Application {
    user: Option<String>,
    directory: Option<String>,
    env: Vec<(String, String)>,
    ready: Option<Ready>,
    at: Ipv4Addr,
    ask: Vec<String>,
    within: Duration,
    limits: Limits,
    confinement: Option<Confinement>,
    argv: Vec<String>,
}

/// The reason why it does not run.
#[derive(Debug)]
pub enum RunError {
    /// This sandbox does not have that user.
    User(String),
    Failed(String),
}

impl RunError {
    /// The agent's exit code: by EX_UNAVAILABLE of sysexits.h the host knows that the platform cannot do it.
    pub fn code(&self) -> u8 {
        match self {
            Self::User(_) => 69,
            Self::Failed(_) => 1,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(text) | Self::Failed(text) => out.write_str(text),
        }
    }
}

impl From<String> for RunError {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// A user's numbers: the user, its group, and the other groups that it is in.
#[derive(Debug, PartialEq)]
struct Identity {
    user: u32,
    group: u32,
    others: Vec<u32>,
    home: Option<String>,
}

impl Application {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut read = Self {
            user: None,
            directory: None,
            env: vec![],
            ready: None,
            at: Ipv4Addr::LOCALHOST,
            ask: vec![],
            within: LIMIT,
            limits: Limits::default(),
            confinement: None,
            argv: vec![],
        };
        while let Some(option) = words.next() {
            if option == "--" {
                read.argv = words.collect();
                break;
            }
            let value = words.next().ok_or(format!("{option} lacks its value"))?;
            match option.as_str() {
                "--user" => read.user = Some(value),
                "--directory" => read.directory = Some(value),
                "--env" => {
                    let (name, text) = value.split_once('=').ok_or(format!("{value:?} is no NAME=VALUE"))?;
                    read.env.push((name.to_owned(), text.to_owned()));
                }
                "--ready" => read.ready = Some(parse_ready(&value)?),
                "--at" => read.at = value.parse().map_err(|_| format!("{value:?} is no IPv4 address"))?,
                "--ask" => read.ask.push(value),
                "--within" => read.within = seconds(&value)?,
                "--limits" => read.limits = Limits::parse(&value)?,
                "--confined" => read.confinement = Some(Confinement::of(&value)?),
                "--keep" => {
                    let confinement = read.confinement.as_mut().ok_or("--keep comes after --confined".to_owned())?;
                    confinement.kept |= confine::right(&value)?;
                }
                _ => return Err(format!("unknown option {option:?}")),
            }
        }
        if read.argv.is_empty() {
            return Err("there is no program to run".to_owned());
        }
        if (read.ready == Some(Ready::Command)) == read.ask.is_empty() {
            return Err("--ready command and --ask go together".to_owned());
        }
        if read.ready.is_some() && read.confinement.is_some() {
            return Err("--confined goes without --ready".to_owned());
        }
        Ok(read)
    }

    /// Runs it. Returns only if that failed, or if it ended after it was in service.
    pub fn run(&self) -> Result<(), RunError> {
        match &self.ready {
            None => self.become_it(),
            Some(ready) => {
                // Its last words then stand beside the report on it.
                rustix::stdio::dup2_stderr(io::stdout()).map_err(|error| format!("standard error: {error}"))?;
                if *ready == Ready::Output { self.become_it() } else { self.watch(ready) }
            }
        }
    }

    fn become_it(&self) -> Result<(), RunError> {
        let identity = self.user.as_deref().map(identify).transpose()?;
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        if self.confinement.is_some() {
            // A load tool's output must not follow the locale of whoever started the host's side.
            command.env_clear();
            command.envs(KEPT_IN_CONFINEMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        if let Some(identity) = &identity {
            if let Some(home) = &identity.home {
                command.env("HOME", home);
            }
            identity.assume().map_err(RunError::User)?;
        }
        self.limits.assume(false);
        if let Some(confinement) = self.confinement {
            confinement.assume().map_err(|error| format!("to give up root's rights: {error}"))?;
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            std::env::set_current_dir(directory).map_err(|error| format!("the folder {directory}: {error}"))?;
        }
        Err(format!("{}: {}", self.argv[0], command.exec()).into())
    }

    /// Starts itself again without `--ready`, and looks until the port answers.
    fn watch(&self, ready: &Ready) -> Result<(), RunError> {
        let until = Instant::now() + self.within;
        let pause = if *ready == Ready::Command { PAUSE_BETWEEN_PROGRAMS } else { PAUSE };
        self.wait_for_silence(ready, until, pause)?;
        let mut child = self.again(&self.argv).spawn().map_err(|error| format!("{}: {error}", self.argv[0]))?;
        loop {
            if let Some(status) = ended(&mut child)? {
                return Err(format!("{} ended before it was ready: {status}", self.argv[0]).into());
            }
            match self.answered(ready, until) {
                Ok(()) => break,
                Err(why) if Instant::now() >= until => {
                    return Err(format!("not ready within {:.1} s: {why}", self.within.as_secs_f64()).into());
                }
                Err(_) => sleep(pause),
            }
        }
        let mut output = io::stdout();
        writeln!(output, "\n{READY}").and_then(|()| output.flush()).map_err(|error| error.to_string())?;
        let status = child.wait().map_err(|error| error.to_string())?;
        Err(format!("{} ended: {status}", self.argv[0]).into())
    }

    fn answered(&self, ready: &Ready, until: Instant) -> Result<(), String> {
        if *ready == Ready::Command { self.asked(until) } else { ready.answered(self.at) }
    }

    /// A server that was killed just now may hold the port for a moment, and its answer would be taken for the next
    /// one's, which cannot listen meanwhile.
    fn wait_for_silence(&self, ready: &Ready, until: Instant, pause: Duration) -> Result<(), String> {
        while self.answered(ready, until).is_ok() {
            if Instant::now() >= until {
                return Err("another server answers there already".to_owned());
            }
            sleep(pause);
        }
        Ok(())
    }

    /// This program again, which becomes another one as the application's user, in its folder.
    fn again(&self, argv: &[String]) -> Command {
        let mut child = Command::new("/proc/self/exe");
        child.arg("run");
        for (name, value) in &self.env {
            child.arg("--env").arg(format!("{name}={value}"));
        }
        for (option, value) in [("--user", &self.user), ("--directory", &self.directory)] {
            if let Some(value) = value {
                child.arg(option).arg(value);
            }
        }
        child.arg("--").args(argv.iter().map(OsString::from));
        child
    }

    /// Runs the program of `--ask` once. The error says how it exited.
    fn asked(&self, until: Instant) -> Result<(), String> {
        let failed = |error: io::Error| format!("{}: {error}", self.ask[0]);
        let mut question = self.again(&self.ask);
        question.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut question = question.spawn().map_err(failed)?;
        loop {
            match question.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{} ended with {status}", self.ask[0])),
                None if Instant::now() >= until => {
                    question.kill().and_then(|()| question.wait()).map_err(failed)?;
                    return Err(format!("{} had not ended", self.ask[0]));
                }
                None => sleep(PAUSE),
            }
        }
    }
}

impl Ready {
    /// The error says what was seen instead.
    fn answered(&self, at: Ipv4Addr) -> Result<(), String> {
        let port = match self {
            Self::Tcp(port) | Self::Http(port, _) => *port,
            Self::Command | Self::Output => return Ok(()),
        };
        let address = SocketAddrV4::new(at, port).into();
        let failed = |error: io::Error| format!("port {port}: {error}");
        let mut stream = TcpStream::connect_timeout(&address, LIMIT).map_err(failed)?;
        let Self::Http(_, path) = self else { return Ok(()) };
        stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
        // In one piece: to the first of several a hasty server would answer, and close.
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut page = Vec::new();
        stream.take(HEAD).read_to_end(&mut page).map_err(failed)?;
        let text = String::from_utf8_lossy(&page);
        let first = text.lines().next().unwrap_or_default();
        match first.split(' ').nth(1) {
            Some("200") if first.starts_with("HTTP/1.") => Ok(()),
            _ => Err(format!("port {port} answers {path} with {:?}", first.chars().take(80).collect::<String>())),
        }
    }
}

impl Identity {
    /// Becomes this user for good. The data volume is given to it first, where this process may.
    fn assume(&self) -> Result<(), String> {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        // Without the volume, or the right to give it away, there is only nothing to write to.
        let _as_it_was = rustix::fs::chown(DATA, Some(user), Some(group));
        let others: Vec<Gid> = self.others.iter().copied().map(Gid::from_raw).collect();
        let failed = |error| format!("to become user {}: {error}", self.user);
        rustix::thread::set_thread_groups(&others).map_err(failed)?;
        rustix::thread::set_thread_gid(group).map_err(failed)?;
        rustix::thread::set_thread_uid(user).map_err(failed)
    }
}

fn ended(child: &mut Child) -> Result<Option<std::process::ExitStatus>, String> {
    child.try_wait().map_err(|error| error.to_string())
}

fn parse_ready(text: &str) -> Result<Ready, String> {
    let port = |word: &str| word.parse().map_err(|_| format!("{word:?} is no port"));
    match text.split_once(':') {
        None if text == "output" => Ok(Ready::Output),
        None if text == "command" => Ok(Ready::Command),
        Some(("tcp", word)) => Ok(Ready::Tcp(port(word)?)),
        Some(("http", rest)) => {
            let (word, path) = rest.split_once(':').ok_or(format!("{text:?} has no path"))?;
            Ok(Ready::Http(port(word)?, path.to_owned()))
        }
        _ => Err(format!("{text:?} is neither tcp:PORT nor http:PORT:PATH nor command nor output")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(value) if (0.0..=86_400.0).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err(format!("{text:?} is no time in seconds")),
    }
}

/// The numbers of `USER[:GROUP]`, each a name or a number.
fn identify(text: &str) -> Result<Identity, String> {
    let file = |path| fs::read_to_string(path).unwrap_or_default();
    identity_of(text, &file("/etc/passwd"), &file("/etc/group"))
}

fn identity_of(text: &str, users: &str, groups: &str) -> Result<Identity, String> {
    let (name, group) = text.split_once(':').map_or((text, None), |(name, group)| (name, Some(group)));
    let number: Option<u32> = name.parse().ok();
    let entry = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| {
        fields.len() >= 6 && (fields[0] == name || (number.is_some() && fields[2].parse().ok() == number))
    });
    let from_entry = |index: usize| entry.as_ref().and_then(|fields| fields[index].parse().ok());
    let user = from_entry(2).or(number).ok_or(format!("there is no user {name:?} in /etc/passwd"))?;
    let known = || groups.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() >= 3);
    let group_number = match group {
        None => from_entry(3).unwrap_or(0),
        Some(group) => known()
            .find(|fields| fields[0] == group)
            .and_then(|fields| fields[2].parse().ok())
            .or_else(|| group.parse().ok())
            .ok_or(format!("there is no group {group:?} in /etc/group"))?,
    };
    // Whoever names a group gets that one alone, as with container engines.
    let others = match (&entry, group) {
        (Some(fields), None) => known()
            .filter(|line| line.get(3).is_some_and(|members| members.split(',').any(|member| member == fields[0])))
            .filter_map(|line| line[2].parse().ok())
            .collect(),
        _ => vec![],
    };
    let home = entry.as_ref().map(|fields| fields[5].to_owned()).filter(|home| !home.is_empty());
    Ok(Identity { user, group: group_number, others, home })
}

/// Copies standard input to a file; folders above it are made. `write PATH`.
pub fn write(path: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{path}: {error}");
    if let Some(above) = Path::new(path).parent() {
        fs::create_dir_all(above).map_err(failed)?;
    }
    let mut file = fs::File::create(path).map_err(failed)?;
    io::copy(&mut io::stdin(), &mut file).map(|_| ()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nredis:x:101:102::/var/lib/redis:/bin/false\nbroken\n";
    const GROUPS: &str = "root:x:0:\nredis:x:102:\nssl:x:7:www,redis\nempty:x:8:\n";

    fn parsed(line: &str) -> Result<Application, String> {
        Application::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_user_is_looked_up_as_engines_do() {
        let redis = identity_of("redis", USERS, GROUPS).unwrap();
        assert_eq!((redis.user, redis.group, redis.others), (101, 102, vec![7]));
        assert_eq!(redis.home.as_deref(), Some("/var/lib/redis"));
        let alone = identity_of("redis:ssl", USERS, GROUPS).unwrap();
        assert_eq!((alone.user, alone.group, alone.others), (101, 7, vec![]));
        let number = identity_of("999:1000", USERS, GROUPS).unwrap();
        assert_eq!((number.user, number.group, number.home), (999, 1000, None));
        let listed = identity_of("101", USERS, GROUPS).unwrap();
        assert_eq!((listed.user, listed.group), (101, 102));
        assert_eq!(identity_of("77", USERS, GROUPS).unwrap().group, 0);
        assert!(identity_of("nobody", USERS, GROUPS).unwrap_err().contains("nobody"));
        assert!(identity_of("root:wheel", USERS, GROUPS).unwrap_err().contains("wheel"));
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(parsed("").unwrap_err().contains("no program"));
        assert!(parsed("--loud 1 -- true").unwrap_err().contains("--loud"));
        assert!(parsed("--user").unwrap_err().contains("lacks its value"));
        assert!(parsed("--env NAME -- true").unwrap_err().contains("NAME=VALUE"));
        assert!(parsed("--ready udp:5 -- true").unwrap_err().contains("udp:5"));
        assert!(parsed("--ready tcp:99999 -- true").unwrap_err().contains("99999"));
        assert!(parsed("--ready http:80 -- true").unwrap_err().contains("path"));
        assert!(parsed("--at ::1 --ready tcp:1 -- true").unwrap_err().contains("::1"));
        assert!(parsed("--ready command -- true").unwrap_err().contains("--ask"));
        assert!(parsed("--ready tcp:1 --ask x -- true").unwrap_err().contains("--ask"));
        assert!(parsed("--within never -- true").unwrap_err().contains("never"));
        assert!(parsed("--limits loud:1 -- true").unwrap_err().contains("loud"));
        assert!(parsed("--confined root -- true").unwrap_err().contains("root"));
        assert!(parsed("--confined 7 --ready tcp:1 -- true").unwrap_err().contains("without --ready"));
        assert!(parsed("--keep net-raw -- true").unwrap_err().contains("--confined"));
        let whole = parsed("--ready http:80:/a --within 3 --env A=b=c -- prog --user x").unwrap();
        assert_eq!(whole.argv, ["prog", "--user", "x"]);
        assert_eq!(whole.env, [("A".to_owned(), "b=c".to_owned())]);
        assert_eq!(whole.ready, Some(Ready::Http(80, "/a".to_owned())));
    }

    fn page(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _some = stream.read(&mut [0; 1024]);
                let _gone = stream.write_all(answer);
            }
        });
        port
    }

    #[test]
    fn only_a_page_that_went_well_is_ready() {
        let port = page(b"HTTP/1.1 200 OK\r\n\r\nfine");
        assert_eq!(Ready::Tcp(port).answered(Ipv4Addr::LOCALHOST), Ok(()));
        assert_eq!(Ready::Http(port, "/".to_owned()).answered(Ipv4Addr::LOCALHOST), Ok(()));
        let busy = page(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
        assert!(Ready::Http(busy, "/".to_owned()).answered(Ipv4Addr::LOCALHOST).unwrap_err().contains("503"));
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        assert!(Ready::Tcp(free).answered(Ipv4Addr::LOCALHOST).unwrap_err().contains(&free.to_string()));
    }

    #[test]
    fn a_server_is_started_once_the_one_before_it_has_gone() {
        let before = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let ready = Ready::Tcp(before.local_addr().unwrap().port());
        let application = parsed("--ready tcp:1 -- true").unwrap();
        let soon = Instant::now() + Duration::from_millis(50);
        assert!(application.wait_for_silence(&ready, soon, PAUSE).unwrap_err().contains("already"));
        let going = thread::spawn(move || {
            sleep(Duration::from_millis(100));
            drop(before);
        });
        let began = Instant::now();
        assert_eq!(application.wait_for_silence(&ready, began + Duration::from_secs(10), PAUSE), Ok(()));
        assert!(began.elapsed() >= Duration::from_millis(50));
        going.join().unwrap();
    }

    #[test]
    fn a_server_is_asked_at_the_address_where_it_listens() {
        let port = TcpListener::bind(("127.0.0.9", 0)).unwrap();
        let there = port.local_addr().unwrap().port();
        assert_eq!(Ready::Tcp(there).answered(Ipv4Addr::new(127, 0, 0, 9)), Ok(()));
        assert!(Ready::Tcp(there).answered(Ipv4Addr::LOCALHOST).is_err());
        assert_eq!(parsed("--ready tcp:1 --at 127.0.0.9 -- true").unwrap().at, Ipv4Addr::new(127, 0, 0, 9));
    }
}
