//! The command line: `serve [--beacon ADDR:PORT --token HEX] [--init]`, and `version`.

use std::process::ExitCode;

use crate::beacon::{self, Beacon};
use crate::serve;

const USAGE: &str = "usage: tare-agent serve [--beacon ADDR:PORT --token HEX] [--init] | tare-agent version";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    Version,
    Serve { beacon: Option<Beacon>, init: bool },
}

/// Does what the arguments say; 2 for arguments that cannot be understood.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    match parse(args) {
        Ok(Task::Version) => {
            println!("tare-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Task::Serve { beacon, init }) => match serve::serve(beacon.as_ref(), init) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tare-agent: {error}");
                ExitCode::FAILURE
            }
        },
        Err(what) => {
            eprintln!("tare-agent: {what}; {USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Reads the arguments, program name left out.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Task, String> {
    match args.next().as_deref() {
        Some("version" | "--version") => Ok(Task::Version),
        Some("serve") => parse_serve(args),
        Some(other) => Err(format!("unknown command {other:?}")),
        None => Err("no command".to_owned()),
    }
}

fn parse_serve(mut args: impl Iterator<Item = String>) -> Result<Task, String> {
    let (mut target, mut token, mut init) = (None, None, false);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} lacks its value"));
        match option.as_str() {
            "--beacon" => target = Some(value()?),
            "--token" => token = Some(value()?),
            "--init" => init = true,
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    let beacon = match (target, token) {
        (Some(target), Some(token)) => Some(beacon::parse(&target, &token)?),
        (None, None) => None,
        _ => return Err("--beacon and --token go together".to_owned()),
    };
    Ok(Task::Serve { beacon, init })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn serve_takes_a_beacon_with_its_token() {
        let Ok(Task::Serve { beacon: Some(beacon), init: true }) =
            parsed("serve --init --beacon 10.0.0.1:99 --token 00ff")
        else {
            panic!("not understood");
        };
        assert_eq!(beacon.token, [0, 255]);
        assert_eq!(beacon.target.port(), 99);
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(parsed("").unwrap_err().contains("no command"));
        assert!(parsed("dance").unwrap_err().contains("dance"));
        assert!(parsed("serve --loud").unwrap_err().contains("--loud"));
        assert!(parsed("serve --beacon").unwrap_err().contains("lacks its value"));
        assert!(parsed("serve --beacon 10.0.0.1:99").unwrap_err().contains("go together"));
        assert!(parsed("serve --beacon nowhere --token 00").unwrap_err().contains("nowhere"));
        assert!(parsed("serve --beacon 10.0.0.1:99 --token 0x").unwrap_err().contains("token"));
    }
}
