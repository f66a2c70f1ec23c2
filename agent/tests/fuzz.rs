//! Whatever comes in: no panic, no more memory than one frame and one feed, and what was written is read again.

#![allow(clippy::unwrap_used)] // clippy's setting for tests knows only functions that are marked as such

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use tare_agent::frame::{Decoder, Frame, FrameError, HEADER, MAX_PAYLOAD, encode_data, encode_message};
use tare_agent::message::{
    Bare, Code, Exec, Get, Probe, Put, Refusal, Reply, Request, Scalar, Slice, Slices, parse_request,
};

/// All frames of a stream that is fed in pieces that end at the given places, and how it went.
fn decode(stream: &[u8], cuts: &[usize]) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for pair in places.windows(2) {
        decoder.feed(&stream[pair[0]..pair[1]]);
        assert!(decoder.pending() <= HEADER + MAX_PAYLOAD + pair[1] - pair[0]);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(()))
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        vec(any::<u8>(), 0..200).prop_map(Frame::Message),
        (any::<u32>(), 0..3_u8, vec(any::<u8>(), 0..200)).prop_map(|(id, channel, bytes)| Frame::Data {
            id,
            channel,
            bytes
        }),
    ]
}

fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut stream = Vec::new();
    for frame in frames {
        match frame {
            Frame::Message(json) => encode_message(json, &mut stream).unwrap(),
            Frame::Data { id, channel, bytes } => encode_data(*id, *channel, bytes, &mut stream).unwrap(),
        }
    }
    stream
}

fn path() -> impl Strategy<Value = String> {
    "/[^\u{0}]{0,40}"
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::Int),
        // Not whole: those may come back as integers.
        (-1000_i32..1000).prop_map(|number| Scalar::Float(f64::from(number) + 0.5)),
        any::<String>().prop_map(Scalar::Text),
    ]
}

fn exec() -> impl Strategy<Value = Request> {
    let words = vec("[^\u{0}]{1,20}", 1..5);
    let env = btree_map("[^=\u{0}]{1,9}", "[^\u{0}]{0,20}", 0..5);
    (any::<u32>(), words, env, path(), any::<bool>(), 1..=86_400_000_u64, 0..=67_108_864_u64).prop_map(
        |(id, argv, env, cwd, stdin, time_limit_ms, output_cap)| {
            Request::Exec(Exec { id, argv, env, cwd, stdin, time_limit_ms, output_cap })
        },
    )
}

fn slices() -> impl Strategy<Value = Request> {
    (any::<u32>(), vec((0..1_000_000_u64, 0..1_000_000_u64), 0..20)).prop_map(|(id, gaps)| {
        let mut now = 0;
        let slices = gaps.iter().map(|&(gap, duration_ns)| {
            let start_ns = now + gap;
            now = start_ns + duration_ns;
            Slice { start_ns, duration_ns }
        });
        Request::Slices(Slices { id, slices: slices.collect() })
    })
}

fn request() -> impl Strategy<Value = Request> {
    let params = btree_map("[a-z_]{1,9}", scalar(), 0..5);
    prop_oneof![
        any::<u32>().prop_map(|id| Request::Ping(Bare { id })),
        any::<u32>().prop_map(|id| Request::Kill(Bare { id })),
        any::<u32>().prop_map(|id| Request::Shutdown(Bare { id })),
        exec(),
        slices(),
        (any::<u32>(), path(), 0..=0o7777_u32, 0..1_u64 << 40).prop_map(|(id, path, mode, size)| Request::Put(Put {
            id,
            path,
            mode,
            size
        })),
        (any::<u32>(), path(), 0..1_u64 << 40).prop_map(|(id, path, cap)| Request::Get(Get { id, path, cap })),
        (any::<u32>(), "[a-z]{0,64}", params, 0..86_400_000_000_000_u64, any::<bool>()).prop_map(
            |(id, name, params, warmup_ns, pinned)| Request::Probe(Probe { id, name, params, warmup_ns, pinned })
        ),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_frames_or_refused(stream in vec(any::<u8>(), 0..2000), cuts in vec(any::<usize>(), 0..8)) {
        let _ = decode(&stream, &cuts);
    }

    #[test]
    fn any_bytes_after_a_right_start_are_frames_or_refused(
        kind in 1..3_u8, length in any::<u32>(), rest in vec(any::<u8>(), 0..500), cuts in vec(any::<usize>(), 0..4),
    ) {
        let mut stream = vec![b'T', b'R', 1, kind];
        stream.extend(length.to_le_bytes());
        stream.extend(rest);
        let (_, result) = decode(&stream, &cuts);
        prop_assert!(length as usize <= MAX_PAYLOAD || result == Err(FrameError::TooLong));
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut(
        frames in vec(frame(), 0..6), cuts in vec(any::<usize>(), 0..12),
    ) {
        let stream = encode(&frames);
        prop_assert_eq!(decode(&stream, &cuts), (frames, Ok(())));
    }

    #[test]
    fn what_is_missing_is_waited_for(frames in vec(frame(), 1..4), lost in any::<usize>()) {
        let stream = encode(&frames);
        let (got, result) = decode(&stream[..lost % stream.len()], &[]);
        prop_assert_eq!(result, Ok(()));
        prop_assert!(got.len() < frames.len());
        prop_assert_eq!(&got[..], &frames[..got.len()]);
    }

    #[test]
    fn one_wrong_byte_is_no_panic(frames in vec(frame(), 1..4), place in any::<usize>(), value in any::<u8>()) {
        let mut stream = encode(&frames);
        let place = place % stream.len();
        stream[place] = value;
        for frame in decode(&stream, &[place]).0 {
            if let Frame::Message(json) = frame {
                let _ = parse_request(&json);
            }
        }
    }

    #[test]
    fn requests_are_read_as_they_were_written(request in request()) {
        let json = serde_json::to_vec(&request).unwrap();
        prop_assert_eq!(parse_request(&json).unwrap(), request);
    }

    #[test]
    fn any_text_is_a_request_or_refused(json in any::<String>()) {
        let _ = parse_request(json.as_bytes());
    }

    #[test]
    fn a_damaged_request_is_a_request_or_refused(
        request in request(), place in any::<usize>(), value in any::<u8>(), cut in any::<usize>(),
    ) {
        let whole = serde_json::to_vec(&request).unwrap();
        let (place, cut) = (place % whole.len(), cut % whole.len());
        prop_assert!(parse_request(&whole[..cut]).is_err());
        let mut damaged = whole;
        damaged[place] = value; // which may be the brace that ends it where it is cut
        let _ = parse_request(&damaged);
        let _ = parse_request(&damaged[..cut]);
    }

    #[test]
    fn refusals_are_read_as_they_were_written(id in option::of(any::<u32>()), text in any::<String>()) {
        let reply = Reply::Error(Refusal { id, code: Code::Io, text });
        let json = serde_json::to_vec(&reply).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Reply>(&json).unwrap(), reply);
    }
}
