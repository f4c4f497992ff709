//! The threads of a run. All threads connect, then wait for a common start.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use fastrand::Rng;

use super::assignment::{assign_districts, seed_of};
use super::connection::{Connection, Connector};
use super::delivery::{DeliveryQueue, perform_deliveries};
use super::executor::Executor;
use super::pacing::{Schedule, TerminalPace};
use super::sample::SampleBuffer;
use super::shared::{Deadline, Shared};
use super::terminal::Terminal;
use super::{DeliveryMode, Length, Setup};
use crate::db::ConnectError;
use crate::spec::deck::Chooser;
use crate::spec::inputs::{DistrictKey, Inputs};

/// Stack of a thread. Only the pages that it touches use memory.
const STACK: usize = 256 << 10;
/// Limit on connections that are being opened at the same time. It is below the listen backlog of
/// any server.
const WAVE: usize = 48;

/// Offsets of seeds. They make the random number generators of a terminal independent of each
/// other.
const SEED_OF_INPUTS: u64 = 0;
const SEED_OF_SCHEDULE: u64 = 1 << 40;
const SEED_OF_WAITS: u64 = 2 << 40;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{failed} of {of} connections failed: {first}")]
    Connect {
        failed: usize,
        of: usize,
        first: ConnectError,
    },
    /// The system refused to create a thread.
    #[error("cannot create thread {number} of {of}: {error}; raise the limit (ulimit -u)")]
    Thread {
        /// Number of the thread, from 1.
        number: usize,
        of: usize,
        error: std::io::Error,
    },
    /// Too few terminals for the number of load hosts.
    #[error(
        "{terminals} terminals are too few for {hosts} load hosts, each of which runs at least \
         one; use fewer hosts"
    )]
    NoShare { terminals: u32, hosts: u32 },
}

/// Terminals and delivery workers that are connected and wait for the start.
#[derive(Debug)]
pub struct Terminals {
    pub(super) setup: Setup,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) buffers: Vec<Arc<SampleBuffer>>,
    pub(super) terminal_threads: Vec<JoinHandle<()>>,
    pub(super) worker_threads: Vec<JoinHandle<()>>,
    pub(super) queue: Option<Arc<DeliveryQueue>>,
    /// Copies of the terminals' schedules, to count the intended starts that are due.
    pub(super) schedules: Vec<Schedule>,
    gate: Arc<Gate>,
}

impl Terminals {
    /// Starts the threads and opens their connections. On an error, closes the connections that
    /// were opened.
    pub fn connect(setup: Setup, connector: Arc<dyn Connector>) -> Result<Self, StartError> {
        let assignments = assignments(&setup);
        if assignments.is_empty() {
            return Err(StartError::NoShare {
                terminals: setup.terminals,
                hosts: setup.share.of,
            });
        }
        let workers = match setup.delivery {
            DeliveryMode::Inline => 0,
            DeliveryMode::Queued { workers } => workers.max(1),
        };
        let mut terminals = Self {
            queue: (workers > 0).then(Arc::default),
            connector,
            buffers: Vec::new(),
            terminal_threads: Vec::new(),
            worker_threads: Vec::new(),
            schedules: assignments
                .iter()
                .filter_map(|assignment| assignment.schedule(&setup))
                .collect(),
            gate: Arc::default(),
            setup,
        };
        let of = assignments.len() + workers as usize;
        let (sender, reports) = mpsc::sync_channel(of);
        let mut reported = ConnectReports::default();
        for (at, assignment) in assignments.into_iter().enumerate() {
            reported.wait_for_room(at, &reports);
            let thread = terminals.spawn_terminal(assignment, sender.clone());
            let number = at + 1;
            let thread = thread.map_err(|error| StartError::Thread { number, of, error })?;
            terminals.terminal_threads.push(thread);
        }
        for at in terminals.terminal_threads.len()..of {
            reported.wait_for_room(at, &reports);
            let thread = terminals.spawn_worker(at as u64, sender.clone());
            let number = at + 1;
            let thread = thread.map_err(|error| StartError::Thread { number, of, error })?;
            terminals.worker_threads.push(thread);
        }
        reported.wait_for(of, &reports);
        match reported.first {
            None => Ok(terminals),
            Some(first) => Err(StartError::Connect {
                failed: reported.failed,
                of,
                first,
            }),
        }
    }

    fn spawn_terminal(
        &mut self,
        assignment: Assignment,
        report: ReportSender,
    ) -> std::io::Result<JoinHandle<()>> {
        let setup = self.setup.clone();
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        let (buffer, queue) = (self.buffer(), self.queue.clone());
        let builder = thread::Builder::new()
            .name("terminal".to_owned())
            .stack_size(STACK);
        builder.spawn(move || {
            let Some((connection, shared)) = connect_and_wait(connector, report, &gate) else {
                return;
            };
            let executor = Executor::new(
                connection,
                Arc::clone(&shared),
                Arc::clone(&buffer),
                Deadline::Run,
                seed_of(setup.seed, SEED_OF_WAITS + u64::from(assignment.number)),
            );
            assignment
                .terminal(&setup, executor, queue, shared, buffer)
                .work();
        })
    }

    fn spawn_worker(
        &mut self,
        number: u64,
        report: ReportSender,
    ) -> std::io::Result<JoinHandle<()>> {
        let seed = seed_of(self.setup.seed, SEED_OF_WAITS + (1 << 39) + number);
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        let (buffer, queue) = (self.buffer(), self.queue.clone().unwrap_or_default());
        let builder = thread::Builder::new()
            .name("delivery".to_owned())
            .stack_size(STACK);
        builder.spawn(move || {
            if let Some((connection, shared)) = connect_and_wait(connector, report, &gate) {
                let (to, at) = (Arc::clone(&shared), Arc::clone(&buffer));
                let mut executor = Executor::new(connection, to, at, Deadline::Drain, seed);
                perform_deliveries(&queue, &mut executor, &shared, &buffer);
            }
        })
    }

    fn buffer(&mut self) -> Arc<SampleBuffer> {
        let buffer = Arc::new(SampleBuffer::default());
        self.buffers.push(Arc::clone(&buffer));
        buffer
    }

    pub(super) fn open_gate(&self, shared: &Arc<Shared>) {
        self.gate.open(GateState::Open(Arc::clone(shared)));
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = &JoinHandle<()>> {
        self.terminal_threads.iter().chain(&self.worker_threads)
    }
}

impl Drop for Terminals {
    /// Ends the threads if the run was not started.
    fn drop(&mut self) {
        self.gate.open(GateState::Closed);
    }
}

type ReportSender = SyncSender<Result<(), ConnectError>>;

/// Connects, reports the outcome, and waits for the start. Returns `None` if the connection failed
/// or the run does not start.
fn connect_and_wait(
    connector: Arc<dyn Connector>,
    report: ReportSender,
    gate: &Gate,
) -> Option<(Box<dyn Connection>, Arc<Shared>)> {
    let connection = match connector.open() {
        Ok(connection) => connection,
        Err(error) => {
            // The receiver no longer exists if another error has cancelled the start.
            let _ = report.send(Err(error));
            return None;
        }
    };
    let _ = report.send(Ok(()));
    drop((connector, report));
    gate.wait().map(|shared| (connection, shared))
}

/// Counts the reports of threads that have connected or have failed to connect.
#[derive(Debug, Default)]
struct ConnectReports {
    count: usize,
    failed: usize,
    first: Option<ConnectError>,
}

impl ConnectReports {
    /// Waits until fewer than [`WAVE`] of the `started` threads are connecting.
    fn wait_for_room(&mut self, started: usize, reports: &Receiver<Result<(), ConnectError>>) {
        self.wait_for((started + 1).saturating_sub(WAVE), reports);
    }

    fn wait_for(&mut self, count: usize, reports: &Receiver<Result<(), ConnectError>>) {
        while self.count < count {
            let Ok(report) = reports.recv() else { return };
            self.count += 1;
            if let Err(error) = report {
                self.failed += 1;
                self.first.get_or_insert(error);
            }
        }
    }
}

/// A barrier at which threads wait for the start.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum GateState {
    #[default]
    Waiting,
    Open(Arc<Shared>),
    Closed,
}

impl Gate {
    /// Opens or closes the gate. Only the first call has an effect.
    fn open(&self, to: GateState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, GateState::Waiting) {
            *state = to;
        }
        drop(state);
        self.changed.notify_all();
    }

    fn wait(&self) -> Option<Arc<Shared>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                GateState::Open(shared) => return Some(Arc::clone(shared)),
                GateState::Closed => return None,
                GateState::Waiting => {}
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The number and the home district of a terminal that has not connected yet.
#[derive(Debug, Clone, Copy)]
struct Assignment {
    number: u32,
    district: DistrictKey,
}

/// The terminals that this host runs.
fn assignments(setup: &Setup) -> Vec<Assignment> {
    let all = assign_districts(setup.seed, setup.warehouses, setup.terminals);
    let numbered = (0..)
        .zip(all)
        .map(|(number, district)| Assignment { number, district });
    numbered
        .filter(|assignment| setup.share.has(assignment.number))
        .collect()
}

impl Assignment {
    fn pace(self, setup: &Setup) -> TerminalPace {
        let seed = seed_of(setup.seed, SEED_OF_SCHEDULE + u64::from(self.number));
        setup.pace.of_terminal(self.number, setup.terminals, seed)
    }

    fn schedule(self, setup: &Setup) -> Option<Schedule> {
        match self.pace(setup) {
            TerminalPace::Open(schedule) => Some(schedule),
            TerminalPace::Eager | TerminalPace::Limited { .. } | TerminalPace::Human { .. } => None,
        }
    }

    fn terminal(
        self,
        setup: &Setup,
        executor: Executor,
        queue: Option<Arc<DeliveryQueue>>,
        shared: Arc<Shared>,
        buffer: Arc<SampleBuffer>,
    ) -> Terminal {
        let seed = seed_of(setup.seed, SEED_OF_INPUTS + u64::from(self.number));
        Terminal {
            number: self.number,
            district: self.district,
            roams: (!setup.fixed_warehouse).then_some(setup.warehouses),
            left: match setup.length {
                Length::PerTerminal(count) => Some(count),
                Length::Lasting(_) => None,
            },
            inputs: Inputs::new(Rng::with_seed(seed), setup.constants, setup.warehouses),
            chooser: Chooser::new(setup.mix),
            pace: self.pace(setup),
            executor,
            queue,
            shared,
            buffer,
        }
    }
}

#[cfg(test)]
impl Setup {
    /// The terminal with a given number, for tests without threads.
    pub(super) fn lone_terminal(
        &self,
        number: u32,
        executor: Executor,
        queue: Option<Arc<DeliveryQueue>>,
        shared: Arc<Shared>,
        buffer: Arc<SampleBuffer>,
    ) -> Terminal {
        let district =
            assign_districts(self.seed, self.warehouses, self.terminals)[number as usize];
        Assignment { number, district }.terminal(self, executor, queue, shared, buffer)
    }
}

#[cfg(test)]
mod tests;
