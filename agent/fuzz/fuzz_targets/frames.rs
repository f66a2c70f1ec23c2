//! Any bytes, cut anywhere: frames or a refusal, the same however they were cut, in the memory of one frame and one feed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_agent::frame::{Decoder, Frame, FrameError, HEADER, MAX_PAYLOAD, encode_data, encode_message};
use tare_agent::message::parse_request;

/// All frames of a stream that comes in pieces of so many bytes, and how it ended.
fn decode(stream: &[u8], piece: usize) -> (Vec<Frame>, Result<(), FrameError>) {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for bytes in stream.chunks(piece.max(1)) {
        decoder.feed(bytes);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
        assert!(decoder.pending() < HEADER + MAX_PAYLOAD);
    }
    (frames, Ok(()))
}

fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut stream = Vec::new();
    for frame in frames {
        let encoded = match frame {
            Frame::Message(json) => encode_message(json, &mut stream),
            Frame::Data { id, channel, bytes } => encode_data(*id, *channel, bytes, &mut stream),
        };
        assert_eq!(encoded, Ok(()), "what was read can be written");
    }
    stream
}

fuzz_target!(|stream: &[u8]| {
    let whole = decode(stream, stream.len());
    // The stream itself says where it is cut, so that captured streams are seeds as they are.
    let piece = stream.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    assert_eq!(decode(stream, usize::from(piece)), whole);
    assert!(stream.starts_with(&encode(&whole.0)));
    for frame in &whole.0 {
        if let Frame::Message(json) = frame {
            let _ = parse_request(json);
        }
    }
});
