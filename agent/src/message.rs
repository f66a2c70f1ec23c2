//! Messages: what the JSON in a message frame may say. `protocol/schema.json` is the same for other languages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The protocol's version, sent in `hello`.
pub const PROTOCOL: u32 = 1;
/// Most bytes of stdin that the host may send to a command before the agent grants more by `credit`.
pub const STDIN_WINDOW: u64 = 262_144;
pub const MAX_ARGV: usize = 256;
pub const MAX_ENV: usize = 256;
pub const MAX_PATH: usize = 4096;
pub const MAX_TIME_LIMIT_MS: u64 = 86_400_000;
pub const MAX_OUTPUT_CAP: u64 = 67_108_864;
pub const MAX_FILE: u64 = 1 << 40;
pub const MAX_PARAMS: usize = 32;
pub const MAX_NAME: usize = 64;
pub const MAX_SLICES: usize = 1000;
/// Longest text of an error, in characters.
pub const MAX_TEXT: usize = 1024;
/// Longest warm-up and slice, in ns: a day.
pub const MAX_SPAN_NS: u64 = 86_400_000_000_000;
/// Instants stay below this, so that sums cannot overflow on either side.
pub const MAX_INSTANT_NS: u64 = 1 << 62;

/// The host's requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request {
    Ping(Bare),
    Exec(Exec),
    Kill(Bare),
    Put(Put),
    Get(Get),
    Probe(Probe),
    Slices(Slices),
    Shutdown(Bare),
}

/// A request that says no more than its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bare {
    pub id: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    pub id: u32,
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub stdin: bool,
    pub time_limit_ms: u64,
    pub output_cap: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    pub id: u32,
    pub path: String,
    pub mode: u32,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    pub id: u32,
    pub path: String,
    pub cap: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub id: u32,
    pub name: String,
    pub params: BTreeMap<String, Scalar>,
    pub warmup_ns: u64,
    /// True if its thread stays on one CPU: the last that it may use.
    pub pinned: bool,
}

/// The turns of a probe that was requested before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    pub id: u32,
    pub slices: Vec<Slice>,
}

/// One turn, on the agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    pub start_ns: u64,
    pub duration_ns: u64,
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

/// The agent's messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Reply {
    Hello(Hello),
    Pong(Pong),
    Credit(Counted),
    Exited(Exited),
    Done(Counted),
    Ready(Ready),
    Probed(Probed),
    Error(Refusal),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub protocol: u32,
    pub agent: String,
    pub pid: u32,
    pub clock_ns: u64,
    pub began_ns: u64,
    pub uptime_ns: u64,
    pub userspace_ns: Option<u64>,
    pub cpus: u32,
    pub memory_bytes: u64,
    pub kernel: String,
    pub image: Option<String>,
    pub beacon: Option<String>,
    pub probes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pong {
    pub id: u32,
    pub clock_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    pub id: u32,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    pub id: u32,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub wall_ns: u64,
    pub spawn_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub max_rss_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub truncated: bool,
}

/// A probe is allocated and warm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    pub id: u32,
    pub warmup_work: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probed {
    pub id: u32,
    pub parts: Vec<String>,
    pub slices: Vec<Turn>,
}

/// The work of one slice; `work` and `wall_ns` follow the order of `parts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub start_ns: u64,
    pub end_ns: u64,
    pub work: Vec<u64>,
    pub wall_ns: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    pub id: Option<u32>,
    pub code: Code,
    pub text: String,
}

/// The reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    BadRequest,
    NotFound,
    Denied,
    Io,
    TooBig,
    Busy,
    UnknownProbe,
    SpawnFailed,
    ProbeFailed,
    Unsupported,
}

/// The reason why a message cannot be used.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct MessageError {
    /// The request's id, if it is known.
    pub id: Option<u32>,
    pub text: String,
}

/// Reads a request and holds it to its bounds.
pub fn parse_request(json: &[u8]) -> Result<Request, MessageError> {
    let request: Request =
        serde_json::from_slice(json).map_err(|error| MessageError { id: find_id(json), text: error.to_string() })?;
    let id = Some(request.id());
    request.check().map_err(|text| MessageError { id, text: text.to_owned() })?;
    Ok(request)
}

/// The id of a message that is otherwise not understood, for the error that its sender gets.
fn find_id(json: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct OnlyId {
        id: u32,
    }
    serde_json::from_slice(json).ok().map(|OnlyId { id }| id)
}

impl Request {
    pub fn id(&self) -> u32 {
        match self {
            Self::Ping(it) | Self::Kill(it) | Self::Shutdown(it) => it.id,
            Self::Exec(it) => it.id,
            Self::Put(it) => it.id,
            Self::Get(it) => it.id,
            Self::Probe(it) => it.id,
            Self::Slices(it) => it.id,
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Ping(_) | Self::Kill(_) | Self::Shutdown(_) => Ok(()),
            Self::Exec(it) => it.check(),
            Self::Put(it) => it.check(),
            Self::Get(it) => it.check(),
            Self::Probe(it) => it.check(),
            Self::Slices(it) => it.check(),
        }
    }
}

fn hold(condition: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(otherwise) }
}

fn check_path(path: &str) -> Result<(), &'static str> {
    hold(path.starts_with('/') && path.len() <= MAX_PATH, "a path is absolute and at most 4096 bytes")?;
    hold(!path.contains('\0'), "a path holds no NUL")
}

impl Exec {
    fn check(&self) -> Result<(), &'static str> {
        hold((1..=MAX_ARGV).contains(&self.argv.len()), "argv holds 1 to 256 strings")?;
        hold(!self.argv[0].is_empty(), "argv names no program")?;
        hold(!self.argv.iter().any(|arg| arg.contains('\0')), "argv holds no NUL")?;
        hold(self.env.len() <= MAX_ENV, "env holds at most 256 variables")?;
        let well_named = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        hold(self.env.keys().all(well_named), "a variable's name is not empty and holds no = and no NUL")?;
        hold(!self.env.values().any(|value| value.contains('\0')), "a variable holds no NUL")?;
        hold((1..=MAX_TIME_LIMIT_MS).contains(&self.time_limit_ms), "time_limit_ms is 1 to 86400000")?;
        hold(self.output_cap <= MAX_OUTPUT_CAP, "output_cap is at most 67108864")?;
        check_path(&self.cwd)
    }
}

impl Put {
    fn check(&self) -> Result<(), &'static str> {
        hold(self.mode <= 0o7777, "mode is at most 0o7777")?;
        hold(self.size <= MAX_FILE, "size is at most 2^40")?;
        check_path(&self.path)
    }
}

impl Get {
    fn check(&self) -> Result<(), &'static str> {
        hold(self.cap <= MAX_FILE, "cap is at most 2^40")?;
        check_path(&self.path)
    }
}

impl Probe {
    fn check(&self) -> Result<(), &'static str> {
        hold(self.name.len() <= MAX_NAME, "a probe's name is at most 64 bytes")?;
        hold(self.params.len() <= MAX_PARAMS, "params holds at most 32 values")?;
        hold(self.warmup_ns <= MAX_SPAN_NS, "warmup_ns is at most a day")
    }
}

impl Slices {
    fn check(&self) -> Result<(), &'static str> {
        hold(self.slices.len() <= MAX_SLICES, "there are at most 1000 slices")?;
        let fits = |slice: &Slice| slice.start_ns <= MAX_INSTANT_NS && slice.duration_ns <= MAX_SPAN_NS;
        hold(self.slices.iter().all(fits), "a slice starts before 2^62 ns and lasts at most a day")?;
        let ascending = self.slices.windows(2).all(|pair| pair[0].start_ns + pair[0].duration_ns <= pair[1].start_ns);
        hold(ascending, "slices ascend and do not overlap")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> MessageError {
        parse_request(json.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_id() {
        let none =
            r#"{"type":"exec","id":7,"argv":[],"env":{},"cwd":"/","stdin":false,"time_limit_ms":1,"output_cap":0}"#;
        assert_eq!(refused(none).id, Some(7));
        assert!(refused(none).text.contains("argv"));
        let relative = r#"{"type":"get","id":8,"path":"etc/passwd","cap":1}"#;
        assert!(refused(relative).text.contains("absolute"));
        let overlap =
            r#"{"type":"slices","id":9,"slices":[{"start_ns":5,"duration_ns":9},{"start_ns":6,"duration_ns":1}]}"#;
        assert!(refused(overlap).text.contains("overlap"));
    }

    #[test]
    fn unknown_fields_and_types_are_refused() {
        assert_eq!(refused(r#"{"type":"ping","id":1,"loud":true}"#).id, Some(1));
        assert!(refused(r#"{"type":"dance","id":2}"#).text.contains("dance"));
        assert_eq!(refused("[]").id, None);
    }
}
