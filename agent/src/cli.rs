//! The command line: `serve [--beacon ADDR:PORT] [--init] [--userspace-at SECONDS] [--host HOST] [--held] [--again]
//! [--reset] [--limits NAME:VALUE,...]`, `limits`, which prints those that it has (`crate::limits`), `version`, `nothing`, which ends at once: a small program for the probe that starts programs; and the two sides of
//! requests over a network, `answer KIND PORT SIZE` and `ask KIND ADDRESS PORT SECONDS WARMUP SIZE [PATH]`; the users of
//! a site, `users` (`crate::users`); an application as it is to be started, `run`, with the files that it reads,
//! `write PATH` (`crate::run`); a folder that is made as it was, `renew FROM TO` (`crate::renew`); and
//! `doors`, which tries the ways out of a sandbox that its input names (`crate::doors`).
//!
//! Called as `true` it succeeds: an application's root may have no other program.

use std::fmt;
use std::process::ExitCode;

use crate::away;
use crate::beacon;
use crate::doors;
use crate::exchange::{Client, Server};
use crate::init::Off;
use crate::limits::{self, Limits};
use crate::probes::NOTHING;
use crate::renew::{RenewError, Renewal};
use crate::run::{self, Application, RunError};
use crate::serve::{self, Serving};
use crate::users::Users;

const USAGE: &str = "usage: tare-agent serve [--beacon ADDR:PORT] [--init] [--userspace-at SECONDS] \
                     [--host vsock:CID:PORT|tcp:ADDR:PORT] [--held] [--again] [--reset] [--limits NAME:VALUE,...] | tare-agent limits | tare-agent answer udp|tcp|tcp-each|http PORT SIZE | \
                     tare-agent ask udp|tcp|tcp-each|http ADDR PORT SECONDS WARMUP SIZE [PATH] | \
                     tare-agent users http|redis ADDR PORT USERS SECONDS THINK_US PACE_US LIMIT_MS SEARCHES WORDS \
                     SEED REQUEST... | \
                     tare-agent run [OPTION VALUE]... -- PROGRAM... | tare-agent write PATH | \
                     tare-agent renew FROM TO | tare-agent doors | tare-agent version | tare-agent nothing";

/// The command of the command line.
#[derive(Debug, PartialEq)]
pub enum Task {
    Version,
    Nothing,
    Limits,
    Doors,
    Answer(Server),
    Ask(Client),
    Users(Users),
    Run(Application),
    Write(String),
    Renew(Renewal),
    Serve(Serving),
}

/// Does what the arguments say; 2 for arguments that cannot be understood.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    match parse(args) {
        Ok(Task::Version) => {
            println!("tare-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Task::Nothing) => ExitCode::SUCCESS,
        Ok(Task::Limits) => {
            print!("{}", limits::shown());
            ExitCode::SUCCESS
        }
        Ok(Task::Doors) => ended(doors::run()),
        Ok(Task::Answer(server)) => ended(server.run()),
        Ok(Task::Ask(client)) => ended(client.run().map(|figures| print!("{figures}"))),
        Ok(Task::Users(users)) => ended(users.run().map(|tally| print!("{tally}"))),
        Ok(Task::Run(application)) => ended_with(application.run(), RunError::code),
        Ok(Task::Renew(renewal)) => ended_with(renewal.run(), RenewError::code),
        Ok(Task::Write(path)) => ended(run::write(&path)),
        Ok(Task::Serve(serving)) => ended(serve::serve(serving)),
        Err(what) => {
            eprintln!("tare-agent: {what}; {USAGE}");
            ExitCode::from(2)
        }
    }
}

fn ended(result: Result<(), impl fmt::Display>) -> ExitCode {
    ended_with(result, |_| 1)
}

fn ended_with<E: fmt::Display>(result: Result<(), E>, code: impl Fn(&E) -> u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tare-agent: {error}");
            ExitCode::from(code(&error))
        }
    }
}

/// Reads the arguments, program name left out.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Task, String> {
    match args.next().as_deref() {
        Some("version" | "--version") => Ok(Task::Version),
        Some(NOTHING) => Ok(Task::Nothing),
        Some("limits") => Ok(Task::Limits),
        Some("doors") => Ok(Task::Doors),
        Some("answer") => Server::parse(args).map(Task::Answer),
        Some("ask") => Client::parse(args).map(Task::Ask),
        Some("users") => Users::parse(args).map(Task::Users),
        Some("run") => Application::parse(args).map(Task::Run),
        Some("renew") => Renewal::parse(args).map(Task::Renew),
        Some("write") => args.next().map(Task::Write).ok_or("no file is named".to_owned()),
        Some("serve") => parse_serve(args),
        Some(other) => Err(format!("unknown command {other:?}")),
        None => Err("no command".to_owned()),
    }
}

fn parse_serve(mut args: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut serving = Serving::default();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} lacks its value"));
        match option.as_str() {
            "--beacon" => serving.beacon = Some(beacon::parse(&value()?)?),
            "--init" => serving.init = true,
            "--held" => serving.held = true,
            "--again" => serving.again = true,
            "--reset" => serving.off = Off::Reset,
            "--userspace-at" => serving.userspace_ns = Some(nanoseconds(&value()?)?),
            "--host" => serving.away = Some(away::parse(&value()?)?),
            "--limits" => serving.limits = Limits::parse(&value()?)?,
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    Ok(Task::Serve(serving))
}

/// Seconds with a decimal point, as `/proc/uptime` has them; at most a century.
fn nanoseconds(seconds: &str) -> Result<u64, String> {
    let value: f64 = seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?;
    if !(0.0..=3.2e9).contains(&value) {
        return Err(format!("{seconds} seconds are no uptime"));
    }
    // Within the range, and never negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok((value * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn serve_takes_a_beacon() {
        let beacon = Some("10.0.0.1:99".parse().unwrap());
        assert_eq!(
            parsed("serve --init --held --beacon 10.0.0.1:99"),
            Ok(Task::Serve(Serving { beacon, init: true, held: true, ..Serving::default() }))
        );
    }

    #[test]
    fn a_restorable_machine_connects_again_and_ends_by_a_reset() {
        assert_eq!(
            parsed("serve --again --reset"),
            Ok(Task::Serve(Serving { again: true, off: Off::Reset, ..Serving::default() }))
        );
    }

    #[test]
    fn serve_takes_the_uptime_as_proc_has_it() {
        assert_eq!(
            parsed("serve --userspace-at 1.25"),
            Ok(Task::Serve(Serving { userspace_ns: Some(1_250_000_000), ..Serving::default() }))
        );
        for wrong in ["soon", "-1", "NaN", "inf", "1e300"] {
            assert!(parsed(&format!("serve --userspace-at {wrong}")).unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn nothing_is_something_to_ask_for() {
        assert_eq!(parsed(NOTHING), Ok(Task::Nothing));
        assert_eq!(parsed("doors"), Ok(Task::Doors));
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(parsed("").unwrap_err().contains("no command"));
        assert!(parsed("dance").unwrap_err().contains("dance"));
        assert!(parsed("serve --loud").unwrap_err().contains("--loud"));
        assert!(parsed("serve --beacon").unwrap_err().contains("lacks its value"));
        assert!(parsed("serve --host 2").unwrap_err().contains("CID:PORT"));
        assert!(parsed("serve --beacon nowhere").unwrap_err().contains("nowhere"));
        assert!(parsed("serve --limits loud:1").unwrap_err().contains("loud"));
    }
}
