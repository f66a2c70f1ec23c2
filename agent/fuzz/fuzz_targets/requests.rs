//! Any bytes as a request: refused, or within its bounds and the same when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_agent::message::{Probe, Request, Scalar, parse_request};

/// JSON's numbers are decimal: only these may come back as a neighbour of what they were.
fn has_a_fraction(request: &Request) -> bool {
    let Request::Probe(Probe { params, .. }) = request else { return false };
    params.values().any(|value| matches!(value, Scalar::Float(_)))
}

fuzz_target!(|json: &[u8]| {
    match parse_request(json) {
        Ok(request) => {
            let written = serde_json::to_vec(&request).expect("a request can be written");
            let again = parse_request(&written).expect("what was written can be read");
            assert!(again == request || has_a_fraction(&request));
        }
        Err(error) => assert!(!error.text.is_empty()),
    }
});
