//! Self-paced slices: a probe works in its own thread, only in the turns that the host gave it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::now_ns;
use crate::mark;
use crate::message::{self, Code, Probed, Ready, Slice, Turn};
use crate::probes::{self, Hindrance, Probe};

/// Wall time that one part of a round should take, in ns: short against a slice, long against reading the clock.
const CHUNK_NS: u64 = 400_000;

/// A message from a probe's thread to the agent's loop.
#[derive(Debug)]
pub enum Event {
    Ready(Ready),
    Probed(Probed),
    Failed { id: u32, code: Code, text: String },
}

/// The receiver of a probe thread's events: a queue, and a descriptor that wakes the loop.
#[derive(Clone)]
pub struct Mailbox {
    queue: Sender<Event>,
    wake: Arc<OwnedFd>,
}

impl Mailbox {
    pub fn new(queue: Sender<Event>, wake: Arc<OwnedFd>) -> Self {
        Self { queue, wake }
    }

    fn post(&self, event: Event) {
        // Both fail only when the loop is gone, and with it the agent.
        let _gone = self.queue.send(event);
        let _gone = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

/// The loop's hold on a probe that runs.
pub struct Pacer {
    control: Arc<Control>,
}

#[derive(Default)]
struct Control {
    plan: Mutex<Option<Vec<Slice>>>,
    changed: Condvar,
    /// Beside the lock, so that a working probe can look without taking it.
    stopped: AtomicBool,
}

impl Pacer {
    /// Starts the probe's thread: it allocates, warms up, says `Ready`, and waits for its slices.
    pub fn start(request: message::Probe, mailbox: Mailbox) -> io::Result<Self> {
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&control);
        thread::Builder::new().name(request.name.clone()).spawn(move || {
            let event = run(&request, &shared, &mailbox);
            mailbox.post(event);
        })?;
        Ok(Self { control })
    }

    /// Gives it its turns; false when it has them already.
    pub fn plan(&self, slices: Vec<Slice>) -> bool {
        let mut plan = self.control.lock();
        let first = plan.is_none();
        if first {
            *plan = Some(slices);
            self.control.changed.notify_all();
        }
        first
    }

    /// Stops it soon; it then reports its work so far.
    pub fn stop(&self) {
        let _plan = self.control.lock();
        self.control.stopped.store(true, Ordering::Relaxed);
        self.control.changed.notify_all();
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Slice>>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Sleeps until the slices are there; none when it is stopped.
    fn wait_plan(&self) -> Vec<Slice> {
        let mut plan = self.lock();
        loop {
            if self.stopped() {
                return Vec::new();
            }
            if let Some(slices) = &*plan {
                return slices.clone();
            }
            plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps until an instant; false when it is stopped before. (The standard library sleeps here until an
    /// absolute time of CLOCK_MONOTONIC, as clock_nanosleep would, but can be woken.)
    fn wait_until(&self, instant_ns: u64) -> bool {
        let mut plan = self.lock();
        loop {
            let now = now_ns();
            if self.stopped() {
                return false;
            }
            if now >= instant_ns {
                return true;
            }
            let left = Duration::from_nanos(instant_ns - now);
            plan = self.changed.wait_timeout(plan, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn run(request: &message::Probe, control: &Control, mailbox: &Mailbox) -> Event {
    let id = request.id;
    let mut probe = match probes::make(&request.name, &request.params) {
        Ok(probe) => probe,
        Err(text) => return Event::Failed { id, code: Code::BadRequest, text },
    };
    // Before anything is made: what the probe starts inherits its CPU.
    let placed = if request.pinned { keep_on_one_cpu() } else { Ok(()) };
    if let Err(hindrance) = placed.and_then(|()| probe.prepare()) {
        let (code, text) = match hindrance {
            Hindrance::Unsupported(text) => (Code::Unsupported, text),
            Hindrance::Failed(text) => (Code::Io, text),
        };
        return Event::Failed { id, code, text };
    }
    let (units, warmup_work) = warm_up(&mut *probe, request.warmup_ns, control);
    mailbox.post(Event::Ready(Ready { id, warmup_work }));
    let mut turns = Vec::new();
    for slice in control.wait_plan() {
        if !control.wait_until(slice.start_ns) {
            break;
        }
        turns.push(turn(&mut *probe, units, slice, control));
    }
    match probe.verify() {
        Ok(()) => {
            let parts = probe.parts().iter().map(|&part| part.to_owned()).collect();
            Event::Probed(Probed { id, parts, slices: turns })
        }
        Err(text) => Event::Failed { id, code: Code::ProbeFailed, text },
    }
}

/// Keeps this thread on the last of the CPUs that it may use; the first are where a kernel's own work mostly is.
fn keep_on_one_cpu() -> Result<(), Hindrance> {
    let failed = |error: rustix::io::Errno| Hindrance::of("keeping the probe on one CPU", &error.into());
    let usable = sched_getaffinity(None).map_err(failed)?;
    let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| usable.is_set(cpu)) else { return Ok(()) };
    let mut only = CpuSet::new();
    only.set(last);
    sched_setaffinity(None, &only).map_err(failed)
}

/// Works for `warmup_ns`, at least one round, and finds how many units make a chunk. The fastest round decides: the
/// slower ones were disturbed.
fn warm_up(probe: &mut dyn Probe, warmup_ns: u64, control: &Control) -> (u64, u64) {
    let target = CHUNK_NS * probe.parts().len() as u64;
    let (mut units, mut best, mut work) = (1, 1, 0);
    let begin = now_ns();
    loop {
        probe.rest(units);
        let start = now_ns();
        work += (0..probe.parts().len()).map(|part| probe.run(part, units)).sum::<u64>();
        let end = now_ns();
        let fitting = units.saturating_mul(target) / (end - start).max(1);
        best = best.max(fitting).min(probe.max_units());
        units = best;
        if end - begin >= warmup_ns || control.stopped() {
            return (best, work);
        }
    }
}

/// Works from now to the end that was planned, so that a late start never runs into another's turn. One that comes
/// after the end does nothing.
fn turn(probe: &mut dyn Probe, units: u64, slice: Slice, control: &Control) -> Turn {
    let parts = probe.parts().len();
    let start_ns = now_ns();
    let mut turn = Turn { start_ns, end_ns: start_ns, work: vec![0; parts], wall_ns: vec![0; parts] };
    let planned_end = slice.start_ns + slice.duration_ns;
    while turn.end_ns < planned_end && !control.stopped() {
        if probe.rest(units) {
            turn.end_ns = now_ns();
        }
        for part in 0..parts {
            mark::begin();
            let work = probe.run(part, units);
            mark::end(work);
            turn.work[part] += work;
            let end = now_ns();
            turn.wall_ns[part] += end - turn.end_ns;
            turn.end_ns = end;
        }
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Scalar;
    use std::sync::mpsc::{Receiver, channel};

    const SOON: Duration = Duration::from_secs(30);

    fn start(name: &str, key: &str, value: i64) -> (Pacer, Receiver<Event>) {
        start_with(name, &[(key, Scalar::Int(value))])
    }

    fn start_with(name: &str, params: &[(&str, Scalar)]) -> (Pacer, Receiver<Event>) {
        let (queue, events) = channel();
        let wake = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        let params = params.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let request = message::Probe { id: 4, name: name.to_owned(), params, warmup_ns: 1_000_000, pinned: false };
        (Pacer::start(request, Mailbox::new(queue, Arc::new(wake))).unwrap(), events)
    }

    fn probed(events: &Receiver<Event>) -> Probed {
        match events.recv_timeout(SOON) {
            Ok(Event::Probed(probed)) => probed,
            other => panic!("{other:?}"),
        }
    }

    fn ready(events: &Receiver<Event>) {
        let Ok(Event::Ready(ready)) = events.recv_timeout(SOON) else { panic!("not ready") };
        assert!(ready.warmup_work > 0);
    }

    #[test]
    fn each_slice_lasts_as_planned_and_its_parts_fill_it() {
        let (pacer, events) = start("stream", "array_bytes", 1 << 20);
        ready(&events);
        let soon = now_ns() + 2_000_000;
        let slices: Vec<Slice> =
            (0..3).map(|turn| Slice { start_ns: soon + turn * 20_000_000, duration_ns: 10_000_000 }).collect();
        assert!(pacer.plan(slices.clone()));
        assert!(!pacer.plan(slices.clone()));
        let probed = probed(&events);
        assert_eq!(probed.parts, ["copy", "scale", "add", "triad"]);
        assert_eq!(probed.slices.len(), 3);
        for (turn, slice) in probed.slices.iter().zip(&slices) {
            assert!(turn.start_ns >= slice.start_ns);
            assert!(turn.end_ns >= slice.start_ns + slice.duration_ns);
            assert_eq!(turn.wall_ns.iter().sum::<u64>(), turn.end_ns - turn.start_ns);
            assert!(turn.start_ns >= slice.start_ns + slice.duration_ns || turn.work.iter().all(|&work| work > 0));
        }
    }

    #[test]
    fn what_is_done_between_rounds_is_in_no_parts_time() {
        let room_for_one = probes::Params::from([("total_bytes".to_owned(), Scalar::Int(5 << 20))]);
        let mut probe = probes::make("mmap-sweep", &room_for_one).unwrap();
        assert_eq!(probe.prepare(), Ok(()));
        let slice = Slice { start_ns: now_ns(), duration_ns: 200_000_000 };
        let turn = turn(&mut *probe, 1, slice, &Control::default());
        // Memory is given back before each round.
        assert!(turn.wall_ns.iter().sum::<u64>() < turn.end_ns - turn.start_ns);
        assert!(turn.work.iter().all(|&work| work == turn.work[0] && work > 0));
    }

    #[test]
    fn what_the_kernel_does_not_have_is_unsupported() {
        let text = |value: &str| Scalar::Text(value.to_owned());
        let (_pacer, events) = start_with("calls", &[("call", text("stat")), ("folder", text("/no/such"))]);
        let Ok(Event::Failed { id: 4, code: Code::Unsupported, text }) = events.recv_timeout(SOON) else {
            panic!("not unsupported");
        };
        assert!(text.starts_with("stat: No such file"), "{text}");
    }

    #[test]
    fn a_pinned_thread_stays_on_the_last_cpu_that_it_may_use_and_others_are_left_alone() {
        let whole = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| whole.is_set(cpu)).unwrap();
        let pinned = thread::spawn(|| {
            assert_eq!(keep_on_one_cpu(), Ok(()));
            // Threads that it starts later stay there too.
            let child = thread::spawn(|| sched_getaffinity(None).unwrap()).join().unwrap();
            (sched_getaffinity(None).unwrap(), child)
        });
        for set in <[CpuSet; 2]>::from(pinned.join().unwrap()) {
            assert!(set.count() == 1 && set.is_set(last));
        }
        assert_eq!(sched_getaffinity(None).unwrap(), whole);
    }

    #[test]
    fn a_slice_that_is_over_has_no_work() {
        let (pacer, events) = start("primes", "max_prime", 100);
        ready(&events);
        pacer.plan(vec![Slice { start_ns: 1, duration_ns: 1 }]);
        let turn = &probed(&events).slices[0];
        assert_eq!((turn.work[0], turn.end_ns), (0, turn.start_ns));
    }

    #[test]
    fn stopping_ends_a_wait_and_keeps_what_was_done() {
        let (pacer, events) = start("primes", "max_prime", 100);
        ready(&events);
        let never = now_ns() + 86_400_000_000_000;
        pacer.plan(vec![Slice { start_ns: 1, duration_ns: 1 }, Slice { start_ns: never, duration_ns: 1 }]);
        pacer.stop();
        assert!(probed(&events).slices.len() <= 1);
    }

    #[test]
    fn wrong_parameters_are_a_failure_not_a_panic() {
        let (_pacer, events) = start("primes", "max_prime", 0);
        let Ok(Event::Failed { id: 4, code: Code::BadRequest, text }) = events.recv_timeout(SOON) else {
            panic!("taken");
        };
        assert!(text.contains("max_prime"));
    }
}
