//! The threads of a run: all connect, then all wait for the start.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use fastrand::Rng;

use super::connection::{Connection, Connector};
use super::delivery::{Queue, carry_out};
use super::hands::Hands;
use super::pacing::{Schedule, Stride};
use super::places::{places, seed_of};
use super::sample::Desk;
use super::shared::{Shared, Until};
use super::terminal::Terminal;
use super::{Delivery, Length, Setup};
use crate::db::ConnectError;
use crate::spec::deck::Chooser;
use crate::spec::inputs::{Inputs, Place};

/// A thread uses a few pages of it; the rest is address space.
const STACK: usize = 256 << 10;
/// Connections that are opened at the same time: fewer than any server's backlog.
const WAVE: usize = 48;

/// Random numbers of a terminal for one purpose each, apart from other purposes.
const FOR_INPUTS: u64 = 0;
const FOR_SCHEDULE: u64 = 1 << 40;
const FOR_WAITS: u64 = 2 << 40;

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Connections failed.
    #[error("{failed} of {of} connections failed: {first}")]
    Connect {
        /// How many.
        failed: usize,
        /// Of all that were tried.
        of: usize,
        /// The first one's reason.
        first: ConnectError,
    },
    /// The system gives no more threads.
    #[error("no thread for terminal {number} of {of}: {error}; raise the limit (ulimit -u)")]
    Thread {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// What the system said.
        error: std::io::Error,
    },
    /// More terminals than places, or none for this host.
    #[error("{terminals} terminals do not go round {hosts} hosts: take fewer hosts")]
    NoShare {
        /// Of the run.
        terminals: u32,
        /// Among which they are divided.
        hosts: u32,
    },
}

/// Threads that are connected and wait for their start.
#[derive(Debug)]
pub struct Crew {
    pub(super) setup: Setup,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) desks: Vec<Arc<Desk>>,
    pub(super) terminals: Vec<JoinHandle<()>>,
    pub(super) workers: Vec<JoinHandle<()>>,
    pub(super) queue: Option<Arc<Queue>>,
    /// Copies of the terminals' schedules, to tell how many starts are late.
    pub(super) schedules: Vec<Schedule>,
    gate: Arc<Gate>,
}

impl Crew {
    /// Starts the threads and opens their connections.
    ///
    /// # Errors
    /// [`StartError`]; whatever had been opened is closed then.
    pub fn connect(setup: Setup, connector: Arc<dyn Connector>) -> Result<Self, StartError> {
        let seats = seats(&setup);
        if seats.is_empty() {
            return Err(StartError::NoShare {
                terminals: setup.terminals,
                hosts: setup.share.of,
            });
        }
        let workers = match setup.delivery {
            Delivery::Inline => 0,
            Delivery::Queued { workers } => workers.max(1),
        };
        let mut crew = Self {
            queue: (workers > 0).then(Arc::default),
            connector,
            desks: Vec::new(),
            terminals: Vec::new(),
            workers: Vec::new(),
            schedules: seats
                .iter()
                .filter_map(|seat| seat.schedule(&setup))
                .collect(),
            gate: Arc::default(),
            setup,
        };
        let of = seats.len() + workers as usize;
        let (sender, reports) = mpsc::sync_channel(of);
        let mut arrivals = Arrivals::default();
        for (at, seat) in seats.into_iter().enumerate() {
            arrivals.await_room(at, &reports);
            let thread = crew.spawn_terminal(seat, sender.clone());
            let number = at + 1;
            let thread = thread.map_err(|error| StartError::Thread { number, of, error })?;
            crew.terminals.push(thread);
        }
        for at in crew.terminals.len()..of {
            arrivals.await_room(at, &reports);
            let thread = crew.spawn_worker(at as u64, sender.clone());
            let number = at + 1;
            let thread = thread.map_err(|error| StartError::Thread { number, of, error })?;
            crew.workers.push(thread);
        }
        arrivals.await_all(of, &reports);
        match arrivals.first {
            None => Ok(crew),
            Some(first) => Err(StartError::Connect {
                failed: arrivals.failed,
                of,
                first,
            }),
        }
    }

    fn spawn_terminal(&mut self, seat: Seat, report: Report) -> std::io::Result<JoinHandle<()>> {
        let setup = self.setup.clone();
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        let (desk, queue) = (self.desk(), self.queue.clone());
        let builder = thread::Builder::new()
            .name("terminal".to_owned())
            .stack_size(STACK);
        builder.spawn(move || {
            let Some((connection, shared)) = admitted(connector, report, &gate) else {
                return;
            };
            let hands = Hands::new(
                connection,
                Arc::clone(&shared),
                Arc::clone(&desk),
                Until::Run,
                seed_of(setup.seed, FOR_WAITS + u64::from(seat.number)),
            );
            seat.terminal(&setup, hands, queue, shared, desk).work();
        })
    }

    fn spawn_worker(&mut self, number: u64, report: Report) -> std::io::Result<JoinHandle<()>> {
        let seed = seed_of(self.setup.seed, FOR_WAITS + (1 << 39) + number);
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        let (desk, queue) = (self.desk(), self.queue.clone().unwrap_or_default());
        let builder = thread::Builder::new()
            .name("delivery".to_owned())
            .stack_size(STACK);
        builder.spawn(move || {
            if let Some((connection, shared)) = admitted(connector, report, &gate) {
                let (to, at) = (Arc::clone(&shared), Arc::clone(&desk));
                let mut hands = Hands::new(connection, to, at, Until::Drain, seed);
                carry_out(&queue, &mut hands, &shared, &desk);
            }
        })
    }

    fn desk(&mut self) -> Arc<Desk> {
        let desk = Arc::new(Desk::default());
        self.desks.push(Arc::clone(&desk));
        desk
    }

    /// Lets everybody begin.
    pub(super) fn open_gate(&self, shared: &Arc<Shared>) {
        self.gate.open(State::Open(Arc::clone(shared)));
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = &JoinHandle<()>> {
        self.terminals.iter().chain(&self.workers)
    }
}

impl Drop for Crew {
    /// Who still waits for the start goes home.
    fn drop(&mut self) {
        self.gate.open(State::Closed);
    }
}

type Report = SyncSender<Result<(), ConnectError>>;

/// Connects, reports it, and waits for the start.
fn admitted(
    connector: Arc<dyn Connector>,
    report: Report,
    gate: &Gate,
) -> Option<(Box<dyn Connection>, Arc<Shared>)> {
    let connection = match connector.open() {
        Ok(connection) => connection,
        Err(error) => {
            // Nobody listens any more when the start was called off.
            let _ = report.send(Err(error));
            return None;
        }
    };
    let _ = report.send(Ok(()));
    drop((connector, report));
    gate.wait().map(|shared| (connection, shared))
}

/// Who has reported.
#[derive(Debug, Default)]
struct Arrivals {
    here: usize,
    failed: usize,
    first: Option<ConnectError>,
}

impl Arrivals {
    /// Waits until fewer than [`WAVE`] of `started` threads are on their way.
    fn await_room(&mut self, started: usize, reports: &Receiver<Result<(), ConnectError>>) {
        self.await_all((started + 1).saturating_sub(WAVE), reports);
    }

    fn await_all(&mut self, count: usize, reports: &Receiver<Result<(), ConnectError>>) {
        while self.here < count {
            let Ok(report) = reports.recv() else { return };
            self.here += 1;
            if let Err(error) = report {
                self.failed += 1;
                self.first.get_or_insert(error);
            }
        }
    }
}

/// Where threads wait for the start.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Waiting,
    Open(Arc<Shared>),
    Closed,
}

impl Gate {
    /// Only the first one counts.
    fn open(&self, to: State) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Waiting) {
            *state = to;
        }
        drop(state);
        self.news.notify_all();
    }

    fn wait(&self) -> Option<Arc<Shared>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Open(shared) => return Some(Arc::clone(shared)),
                State::Closed => return None,
                State::Waiting => {}
            }
            state = self
                .news
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A terminal that has no connection yet.
#[derive(Debug, Clone, Copy)]
struct Seat {
    number: u32,
    place: Place,
}

/// Those of this host.
fn seats(setup: &Setup) -> Vec<Seat> {
    let all = places(setup.seed, setup.warehouses, setup.terminals);
    let numbered = (0..).zip(all).map(|(number, place)| Seat { number, place });
    numbered
        .filter(|seat| setup.share.has(seat.number))
        .collect()
}

impl Seat {
    fn stride(self, setup: &Setup) -> Stride {
        let seed = seed_of(setup.seed, FOR_SCHEDULE + u64::from(self.number));
        setup.pace.of_terminal(self.number, setup.terminals, seed)
    }

    fn schedule(self, setup: &Setup) -> Option<Schedule> {
        match self.stride(setup) {
            Stride::Open(schedule) => Some(schedule),
            Stride::Eager | Stride::Limited { .. } | Stride::Human { .. } => None,
        }
    }

    fn terminal(
        self,
        setup: &Setup,
        hands: Hands,
        queue: Option<Arc<Queue>>,
        shared: Arc<Shared>,
        desk: Arc<Desk>,
    ) -> Terminal {
        let seed = seed_of(setup.seed, FOR_INPUTS + u64::from(self.number));
        Terminal {
            number: self.number,
            place: self.place,
            roams: (!setup.fixed_warehouse).then_some(setup.warehouses),
            left: match setup.length {
                Length::PerTerminal(count) => Some(count),
                Length::Lasting(_) => None,
            },
            inputs: Inputs::new(Rng::with_seed(seed), setup.constants, setup.warehouses),
            chooser: Chooser::new(setup.mix),
            stride: self.stride(setup),
            hands,
            queue,
            shared,
            desk,
        }
    }
}

#[cfg(test)]
impl Setup {
    /// The terminal with a number, for tests that need no threads.
    pub(super) fn lone_terminal(
        &self,
        number: u32,
        hands: Hands,
        queue: Option<Arc<Queue>>,
        shared: Arc<Shared>,
        desk: Arc<Desk>,
    ) -> Terminal {
        let place = places(self.seed, self.warehouses, self.terminals)[number as usize];
        Seat { number, place }.terminal(self, hands, queue, shared, desk)
    }
}

#[cfg(test)]
mod tests;
