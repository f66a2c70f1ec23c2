//! The queue of bytes to write to the host, with its bounds.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::frame::{self, DATA_HEADER, MAX_PAYLOAD};
use crate::message::{Code, MAX_TEXT, Refusal, Reply};

/// Above this many waiting bytes, nothing more is read from children and files.
const DATA_ROOM: usize = 1 << 20;
/// Above this many, nothing more is read from the host either. Data alone never gets here, so that a flood cannot
/// keep a `kill` from being heard; only a host that asks and never reads does.
const CONTROL_ROOM: usize = 4 << 20;

/// Frames in the order in which they will be written. Bounded, as long as its users ask for room first: at most
/// CONTROL_ROOM, and the answers to one read of the host's requests.
#[derive(Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub fn has_data_room(&self) -> bool {
        self.waiting() < DATA_ROOM
    }

    pub fn has_control_room(&self) -> bool {
        self.waiting() < CONTROL_ROOM
    }

    /// Queues a message. One that is too long for a frame becomes a refusal of its request.
    pub fn reply(&mut self, reply: &Reply) {
        let json = serde_json::to_vec(reply).unwrap_or_default();
        if json.is_empty() || frame::encode_message(&json, &mut self.bytes).is_err() {
            self.refuse(reply_id(reply), Code::TooBig, "the answer does not fit into a frame");
        }
    }

    /// Queues an `error`; the text is cut to its bound.
    pub fn refuse(&mut self, id: Option<u32>, code: Code, text: &str) {
        let text = text.chars().take(MAX_TEXT).collect();
        self.reply(&Reply::Error(Refusal { id, code, text }));
    }

    /// Queues contents of a channel, in as many frames as it takes; no bytes at all is the channel's end.
    pub fn data(&mut self, id: u32, channel: u8, bytes: &[u8]) {
        if bytes.is_empty() {
            self.one(id, channel, bytes);
        }
        for piece in bytes.chunks(MAX_PAYLOAD - DATA_HEADER) {
            self.one(id, channel, piece);
        }
    }

    fn one(&mut self, id: u32, channel: u8, piece: &[u8]) {
        let encoded = frame::encode_data(id, channel, piece, &mut self.bytes);
        debug_assert!(encoded.is_ok(), "pieces are cut to fit");
    }

    /// Drops all that is queued.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// Writes what the descriptor takes without blocking.
    pub fn flush(&mut self, to: BorrowedFd<'_>) -> io::Result<()> {
        while self.waiting() > 0 {
            match rustix::io::write(to, &self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.compact();
        Ok(())
    }

    fn compact(&mut self) {
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(DATA_ROOM);
        } else if self.written > DATA_ROOM / 2 {
            self.bytes.drain(..self.written);
        } else {
            return;
        }
        self.written = 0;
    }
}

fn reply_id(reply: &Reply) -> Option<u32> {
    match reply {
        Reply::Hello(_) => None,
        Reply::Pong(it) => Some(it.id),
        Reply::Credit(it) | Reply::Done(it) => Some(it.id),
        Reply::Exited(it) => Some(it.id),
        Reply::Ready(it) => Some(it.id),
        Reply::Probed(it) => Some(it.id),
        Reply::Error(it) => it.id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Decoder, Frame};
    use crate::message::Probed;

    fn frames(outbox: &Outbox) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        decoder.feed(&outbox.bytes);
        std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
    }

    #[test]
    fn an_answer_that_does_not_fit_is_an_error_for_its_request() {
        let mut outbox = Outbox::default();
        outbox.reply(&Reply::Probed(Probed { id: 3, parts: vec!["x".repeat(MAX_PAYLOAD)], slices: vec![] }));
        let [Frame::Message(json)] = &frames(&outbox)[..] else { panic!("one message") };
        let Ok(Reply::Error(refusal)) = serde_json::from_slice(json) else { panic!("a refusal") };
        assert_eq!((refusal.id, refusal.code), (Some(3), Code::TooBig));
    }

    #[test]
    fn long_contents_go_in_many_frames_and_none_is_the_end() {
        let mut outbox = Outbox::default();
        outbox.data(1, 1, &vec![7; MAX_PAYLOAD + 1]);
        outbox.data(1, 1, &[]);
        let sizes: Vec<usize> = frames(&outbox)
            .iter()
            .map(|frame| match frame {
                Frame::Data { bytes, .. } => bytes.len(),
                Frame::Message(_) => panic!("no message was sent"),
            })
            .collect();
        assert_eq!(sizes, [MAX_PAYLOAD - DATA_HEADER, DATA_HEADER + 1, 0]);
    }
}
