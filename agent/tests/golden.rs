//! The golden frames, which the host's tests read too.

#![allow(clippy::unwrap_used)] // clippy's setting for tests knows only functions that are marked as such

use std::fs;
use std::path::Path;

use serde_json::Value;
use tare_agent::frame::{Decoder, Frame, encode_data, encode_message};
use tare_agent::message::{Reply, parse_request};

fn goldens() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/golden");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Reads a message and writes it again; the error is why it cannot be read.
fn rewrite(payload: &[u8], direction: &str) -> Result<Vec<u8>, String> {
    if direction == "to-agent" {
        let request = parse_request(payload).map_err(|error| error.text)?;
        Ok(serde_json::to_vec(&request).unwrap())
    } else {
        let reply: Reply = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        Ok(serde_json::to_vec(&reply).unwrap())
    }
}

fn check_valid(golden: &Value, raw: &[u8]) {
    let (name, decoded) = (&golden["name"], &golden["decoded"]);
    let mut decoder = Decoder::default();
    decoder.feed(raw);
    let mut again = Vec::new();
    match decoder.next_frame().unwrap().unwrap() {
        Frame::Data { id, channel, bytes } => {
            assert_eq!(decoded["kind"], "data", "{name}");
            assert_eq!((&decoded["id"], &decoded["channel"]), (&Value::from(id), &Value::from(channel)), "{name}");
            assert_eq!(unhex(decoded["data_hex"].as_str().unwrap()), bytes, "{name}");
            encode_data(id, channel, &bytes, &mut again).unwrap();
        }
        Frame::Message(payload) => {
            let json = rewrite(&payload, golden["direction"].as_str().unwrap()).unwrap();
            let message: Value = serde_json::from_slice(&json).unwrap();
            assert_eq!(decoded["message"], message, "{name}");
            encode_message(&json, &mut again).unwrap();
        }
    }
    assert_eq!(raw, again, "{name}");
    assert_eq!(decoder.pending(), 0, "{name}");
}

fn check_invalid(golden: &Value, raw: &[u8], expected: &str) {
    let name = &golden["name"];
    let mut decoder = Decoder::default();
    decoder.feed(raw);
    match decoder.next_frame() {
        Ok(None) => assert_eq!(expected, "truncated", "{name}"),
        Ok(Some(Frame::Message(payload))) => {
            assert_eq!(expected, "bad-message", "{name}");
            assert!(rewrite(&payload, golden["direction"].as_str().unwrap()).is_err(), "{name}");
        }
        Ok(Some(frame)) => panic!("{name}: taken as {frame:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{name}"),
    }
}

#[test]
fn golden_frames_are_read_and_written_as_the_host_does() {
    let goldens = goldens();
    assert!(goldens.len() > 40, "the golden frames are missing");
    for golden in &goldens {
        let raw = unhex(golden["frame_hex"].as_str().unwrap());
        match golden["decoded"]["error"].as_str() {
            None => check_valid(golden, &raw),
            Some(expected) => check_invalid(golden, &raw, expected),
        }
    }
}
