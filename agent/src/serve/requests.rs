//! The host's requests: read, started, fed, killed.

use super::{Agent, End, ServeError};
use crate::clock::now_ns;
use crate::exec::Execution;
use crate::files::{Get, Put};
use crate::message::{self, Code, Counted, Pong, Reply, Request, parse_request};
use crate::pace::Pacer;
use crate::probes;

/// Most requests under way at once.
const MAX_LIVE: usize = 64;

impl Agent {
    /// Data of a request that is over is dropped: the host could not know yet.
    pub(super) fn take_data(&mut self, id: u32, bytes: Vec<u8>) -> Option<End> {
        if let Some(exec) = self.execs.get_mut(&id) {
            if let Err(why) = exec.feed(bytes, &mut self.outbox) {
                return Some(End::Fault(ServeError::Message(why.to_owned())));
            }
        } else if let Some(mut put) = self.puts.remove(&id) {
            match put.feed(&bytes) {
                Ok(false) => {
                    self.puts.insert(id, put);
                }
                Ok(true) => match put.finish() {
                    Ok(bytes) => self.outbox.reply(&Reply::Done(Counted { id, bytes })),
                    Err(error) => self.refuse_file(id, &error),
                },
                Err(error) => self.refuse_file(id, &error),
            }
        }
        None
    }

    pub(super) fn answer(&mut self, json: &[u8]) -> Result<Option<End>, ServeError> {
        let request = match parse_request(json) {
            Ok(request) => request,
            Err(message::MessageError { id: None, text }) => return Err(ServeError::Message(text)),
            // Not for an id that is in use: its own answer is still to come.
            Err(error) if error.id.is_some_and(|id| self.is_live(id)) => return Err(ServeError::Message(error.text)),
            Err(error) => {
                self.outbox.refuse(error.id, Code::BadRequest, &error.text);
                return Ok(None);
            }
        };
        let id = request.id();
        match request {
            Request::Kill(_) => {
                self.kill(id);
                return Ok(None);
            }
            Request::Slices(slices) => {
                if self.pacers.get(&id).is_some_and(|pacer| !pacer.plan(slices.slices)) {
                    return Err(ServeError::Message("slices were given twice".to_owned()));
                }
                return Ok(None);
            }
            Request::Shutdown(_) => return Ok(Some(End::Shutdown { id })),
            _ => {}
        }
        if self.is_live(id) {
            return Err(ServeError::Message(format!("id {id} is in use")));
        }
        match request {
            Request::Ping(_) => self.outbox.reply(&Reply::Pong(Pong { id, clock_ns: now_ns() })),
            _ if self.live() >= MAX_LIVE => {
                self.outbox.refuse(Some(id), Code::Busy, &format!("{MAX_LIVE} requests are under way"));
            }
            other => self.begin(other)?,
        }
        Ok(None)
    }

    /// Begins what takes its time.
    fn begin(&mut self, request: Request) -> Result<(), ServeError> {
        match request {
            Request::Exec(exec) => return self.begin_exec(&exec),
            Request::Put(put) => match Put::open(&put) {
                Ok(open) => drop(self.puts.insert(put.id, open)),
                Err(error) => self.refuse_file(put.id, &error),
            },
            Request::Get(get) => match Get::open(&get) {
                Ok(open) => drop(self.gets.insert(get.id, open)),
                Err(error) => self.refuse_file(get.id, &error),
            },
            Request::Probe(probe) => self.begin_probe(probe),
            Request::Ping(_) | Request::Kill(_) | Request::Slices(_) | Request::Shutdown(_) => {}
        }
        Ok(())
    }

    fn begin_exec(&mut self, request: &message::Exec) -> Result<(), ServeError> {
        match Execution::start(request, now_ns()) {
            Ok(exec) => drop(self.execs.insert(request.id, exec)),
            Err(error) => self.outbox.refuse(Some(request.id), error.code, &error.text),
        }
        // Deaths during the start were not signalled (see exec::spawn).
        Ok(self.reap()?)
    }

    fn begin_probe(&mut self, request: message::Probe) {
        let id = request.id;
        if !probes::exists(&request.name) {
            let known: Vec<&str> = probes::names().collect();
            let text = format!("no probe {}, only {}", request.name, known.join(", "));
            self.outbox.refuse(Some(id), Code::UnknownProbe, &text);
            return;
        }
        match Pacer::start(request, self.mailbox.clone()) {
            Ok(pacer) => drop(self.pacers.insert(id, pacer)),
            Err(error) => self.outbox.refuse(Some(id), Code::Io, &format!("no thread for the probe: {error}")),
        }
    }

    fn live(&self) -> usize {
        self.execs.len() + self.puts.len() + self.gets.len() + self.pacers.len()
    }

    fn is_live(&self, id: u32) -> bool {
        self.execs.contains_key(&id)
            || self.puts.contains_key(&id)
            || self.gets.contains_key(&id)
            || self.pacers.contains_key(&id)
    }

    fn kill(&self, id: u32) {
        if let Some(exec) = self.execs.get(&id) {
            exec.kill();
        }
        if let Some(pacer) = self.pacers.get(&id) {
            pacer.stop();
        }
    }
}
