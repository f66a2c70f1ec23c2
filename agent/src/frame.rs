//! Frames: magic, version, kind and length, then the payload. All integers are little-endian.

use thiserror::Error;

pub const MAGIC: [u8; 2] = *b"TR";
pub const VERSION: u8 = 1;
pub const HEADER: usize = 8;
/// Longest payload, in bytes.
pub const MAX_PAYLOAD: usize = 262_144;
/// Bytes of a data frame's payload before its contents: request id and channel.
pub const DATA_HEADER: usize = 5;

const KIND_MESSAGE: u8 = 1;
const KIND_DATA: u8 = 2;

/// To the agent: a command's stdin, or a file's contents.
pub const STDIN: u8 = 0;
/// To the host: a command's stdout, or a file's contents.
pub const STDOUT: u8 = 1;
/// To the host: a command's stderr.
pub const STDERR: u8 = 2;

/// One frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON, not yet read.
    Message(Vec<u8>),
    /// Contents of a channel of request `id`; empty at the channel's end.
    Data { id: u32, channel: u8, bytes: Vec<u8> },
}

/// The reason why bytes are not a frame. The names are those of the golden frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("bad-magic")]
    Magic,
    #[error("bad-version")]
    Version,
    #[error("bad-kind")]
    Kind,
    #[error("too-long")]
    TooLong,
    #[error("short-data")]
    ShortData,
    #[error("bad-channel")]
    Channel,
}

/// Turns a stream of bytes into frames. Holds at most one frame and what was fed with it.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    read: usize,
}

impl Decoder {
    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that are held and not yet given out.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// The next whole frame, or None until more is fed. After an error the stream is lost: there is no way to
    /// tell where the next frame would start.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let held = &self.buffer[self.read..];
        check_start(held)?;
        let Some((header, rest)) = held.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if length > MAX_PAYLOAD {
            return Err(FrameError::TooLong);
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = decode_payload(header[3], payload)?;
        self.read += HEADER + length;
        Ok(Some(frame))
    }
}

/// Refuses a wrong start as soon as it can be seen, so that a giant "length" is never waited for.
fn check_start(held: &[u8]) -> Result<(), FrameError> {
    let magic = held.len().min(MAGIC.len());
    if held[..magic] != MAGIC[..magic] {
        return Err(FrameError::Magic);
    }
    if held.get(2).is_some_and(|&version| version != VERSION) {
        return Err(FrameError::Version);
    }
    if held.get(3).is_some_and(|kind| ![KIND_MESSAGE, KIND_DATA].contains(kind)) {
        return Err(FrameError::Kind);
    }
    Ok(())
}

fn decode_payload(kind: u8, payload: &[u8]) -> Result<Frame, FrameError> {
    if kind == KIND_MESSAGE {
        return Ok(Frame::Message(payload.to_vec()));
    }
    let (start, bytes) = payload.split_first_chunk::<DATA_HEADER>().ok_or(FrameError::ShortData)?;
    let [a, b, c, d, channel] = *start;
    if channel > STDERR {
        return Err(FrameError::Channel);
    }
    Ok(Frame::Data { id: u32::from_le_bytes([a, b, c, d]), channel, bytes: bytes.to_vec() })
}

/// Appends a message's frame; `TooLong` when its payload passes the limit.
pub fn encode_message(json: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    if json.len() > MAX_PAYLOAD {
        return Err(FrameError::TooLong);
    }
    header(KIND_MESSAGE, json.len(), out);
    out.extend_from_slice(json);
    Ok(())
}

/// Appends a data frame; `TooLong` when its payload passes the limit.
pub fn encode_data(id: u32, channel: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    let length = DATA_HEADER + bytes.len();
    if length > MAX_PAYLOAD {
        return Err(FrameError::TooLong);
    }
    header(KIND_DATA, length, out);
    out.extend_from_slice(&id.to_le_bytes());
    out.push(channel);
    out.extend_from_slice(bytes);
    Ok(())
}

fn header(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.push(kind);
    // Callers hold `length` to MAX_PAYLOAD.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
}
