//! The agent of tare: a small program inside a sandbox that does the work which the host asks for over a byte
//! stream. `docs/protocol.md` is its contract; `serve` is where requests become work.
//!
//! One thread waits in `poll` for everything (the host, the children's pipes, their deaths, the probes), so an
//! idle agent costs nothing and every buffer has one owner and one bound. Only probes have threads of their own.

pub mod away;
pub mod beacon;
pub mod cli;
pub mod clock;
pub mod confine;
pub mod doors;
pub mod exchange;
pub mod exec;
pub mod facts;
pub mod files;
pub mod frame;
pub mod init;
pub mod limits;
pub mod mark;
pub mod message;
pub mod outbox;
pub mod pace;
pub mod probes;
pub mod renew;
pub mod run;
pub mod serve;
pub mod sys;
pub mod users;
