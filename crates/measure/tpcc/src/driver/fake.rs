//! Test doubles: a clock that jumps, and connections that follow a script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::clock::Clock;
use super::connection::{Connection, Connector};
use crate::db::{ConnectError, SqlError};
use crate::props::Engine;
use crate::spec::inputs::Input;
use crate::transactions::Outcome;

/// A clock on which time passes only when a thread waits or a scripted transaction takes time.
#[derive(Debug, Default)]
pub(super) struct FakeClock {
    now_us: AtomicU64,
}

impl FakeClock {
    pub(super) fn pass(&self, us: u64) {
        self.now_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    fn pause_until(&self, at_us: u64) {
        self.now_us.fetch_max(at_us, Ordering::SeqCst);
    }
}

/// The answer to one attempt at a transaction, and the time it takes.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) takes_us: u64,
    pub(super) answer: Result<Outcome, SqlError>,
}

/// A sequence of answers. After the last answer, every transaction commits after `usual_us`.
#[derive(Debug)]
pub(super) struct Script {
    clock: Arc<FakeClock>,
    steps: Mutex<VecDeque<Step>>,
    /// Number of connection attempts to refuse.
    closed: Mutex<u32>,
    usual_us: u64,
    /// The inputs of all attempts.
    pub(super) inputs: Mutex<Vec<Input>>,
}

impl Script {
    pub(super) fn new(clock: &Arc<FakeClock>, usual_us: u64, steps: Vec<Step>) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(clock),
            steps: Mutex::new(steps.into()),
            closed: Mutex::new(0),
            usual_us,
            inputs: Mutex::default(),
        })
    }

    pub(super) fn close_for(&self, tries: u32) {
        *self.closed.lock().unwrap() = tries;
    }
}

/// A connector whose connections share one script.
#[derive(Debug, Clone)]
pub(super) struct Scripted(pub(super) Arc<Script>);

impl Connector for Scripted {
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let mut closed = self.0.closed.lock().unwrap();
        if *closed == 0 {
            return Ok(Box::new(self.clone()));
        }
        *closed -= 1;
        Err(ConnectError::Unreachable {
            engine: Engine::MySql,
            address: "127.0.0.1:1".to_owned(),
            error: std::io::ErrorKind::ConnectionRefused.into(),
        })
    }
}

impl Connection for Scripted {
    fn perform(&mut self, input: &Input, _now: i64) -> Result<Outcome, SqlError> {
        let Self(script) = self;
        script.inputs.lock().unwrap().push(input.clone());
        let step = script.steps.lock().unwrap().pop_front();
        let usual = Step {
            takes_us: script.usual_us,
            answer: Ok(Outcome::Committed),
        };
        let step = step.unwrap_or(usual);
        script.clock.pass(step.takes_us);
        step.answer
    }
}
