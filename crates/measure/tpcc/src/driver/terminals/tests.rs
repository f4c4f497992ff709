//! Whole runs on threads, against a simulated server. The server fails and recovers after fixed
//! numbers of requests, not at fixed times.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::db::SqlError;
use crate::driver::sample::{Ending, Sample};
use crate::driver::{DeliveryResult, Observer, Pace, Progress, RampUp, RunEnd, Share};
use crate::latency::{Phase, TrackName};
use crate::props::Engine;
use crate::spec::deck::{Kind, Mix};
use crate::spec::inputs::Input;
use crate::spec::nurand::Constants;
use crate::transactions::Outcome;

fn setup(terminals: u32, each: u32) -> Setup {
    Setup {
        warehouses: 10,
        terminals,
        share: Share::WHOLE,
        length: Length::PerTerminal(each),
        ramp_up: RampUp::Lasting(Duration::ZERO),
        pace: Pace::Eager,
        mix: Mix::SPECIFIED,
        fixed_warehouse: true,
        delivery: DeliveryMode::Inline,
        constants: Constants {
            last_name: 1,
            customer: 2,
            item: 3,
        },
        seed: 6,
        max_retries: 1,
        drain: Duration::from_secs(60),
        give_up: Duration::from_secs(600),
    }
}

/// A server that answers at once. Its fields determine how it fails.
#[derive(Debug, Default)]
struct Server {
    /// Number of transactions performed.
    done: AtomicU64,
    /// When the transaction with this number begins, the server goes down; 0 for never.
    dies_at: u64,
    /// At `dies_at` the server stops answering instead of closing the connection.
    hangs: bool,
    /// Number of connection attempts that the server refuses after it went down.
    refuses: AtomicU64,
    down: AtomicBool,
    /// A test that holds this lock keeps the server from answering after `dies_at`.
    answer_lock: Mutex<()>,
    /// The server fails every transaction.
    broken: bool,
}

/// A connection to the server. It breaks when the server goes down.
#[derive(Debug)]
struct ServerConnection(Arc<Server>);

#[derive(Debug)]
struct ServerConnector(Arc<Server>);

impl Connector for ServerConnector {
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let Self(server) = self;
        let refuse = || {
            let refuses = &server.refuses;
            refuses
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
        };
        if server.down.load(Ordering::SeqCst) && refuse() {
            return Err(ConnectError::Unreachable {
                engine: Engine::MySql,
                address: "127.0.0.1:1".to_owned(),
                error: std::io::ErrorKind::ConnectionRefused.into(),
            });
        }
        server.down.store(false, Ordering::SeqCst);
        Ok(Box::new(ServerConnection(Arc::clone(server))))
    }
}

impl Connection for ServerConnection {
    fn perform(&mut self, _input: &Input, _now: i64) -> Result<Outcome, SqlError> {
        let Self(server) = self;
        if server.broken {
            let what = "no such table".to_owned();
            return Err(SqlError::Unexpected { what });
        }
        if server.dies_at > 0 && server.done.load(Ordering::SeqCst) >= server.dies_at {
            drop(server.answer_lock.lock());
        }
        if server.hangs {
            server.done.fetch_add(1, Ordering::SeqCst);
            return Ok(Outcome::Committed);
        }
        let number = server.done.fetch_add(1, Ordering::SeqCst) + 1;
        if number == server.dies_at {
            server.down.store(true, Ordering::SeqCst);
            let said = "server has gone away".to_owned();
            return Err(SqlError::Lost { said });
        }
        Ok(Outcome::Committed)
    }
}

/// Counts samples, and interrupts the run when a limit is reached.
#[derive(Debug, Default)]
struct CountingObserver {
    samples: usize,
    delivered: usize,
    unknown: usize,
    stop: Option<Arc<Server>>,
    /// Time after which a run that should have ended by itself is interrupted.
    most: Option<Duration>,
    is_too_long: bool,
    /// The longest time without service that was reported.
    unserved: Duration,
}

impl Observer for CountingObserver {
    fn is_interrupted(&self) -> bool {
        // Interrupts after a number of transactions.
        self.stop
            .as_ref()
            .is_some_and(|server| server.done.load(Ordering::SeqCst) > 500)
            || self.is_too_long
    }

    fn on_samples(&mut self, samples: &[Sample], delivered: &[DeliveryResult]) {
        self.samples += samples.len();
        self.delivered += delivered.len();
        self.unknown += samples
            .iter()
            .filter(|one| one.ending == Ending::Unknown)
            .count();
    }

    fn on_second(&mut self, progress: &Progress) {
        let unserved = progress.unserved.map(|(unserved, _)| unserved);
        self.unserved = self.unserved.max(unserved.unwrap_or_default());
        self.is_too_long = self.most.is_some_and(|most| progress.elapsed >= most);
    }
}

fn run(
    setup: Setup,
    server: &Arc<Server>,
    observer: &mut CountingObserver,
) -> super::super::Measurement {
    let terminals =
        Terminals::connect(setup, Arc::new(ServerConnector(Arc::clone(server)))).unwrap();
    terminals.run(Instant::now(), 0, false, observer)
}

#[test]
fn every_terminal_does_its_number_and_everything_is_counted_once() {
    let server = Arc::new(Server::default());
    let mut observer = CountingObserver::default();
    let measured = run(setup(40, 230), &server, &mut observer);
    assert_eq!(measured.end, RunEnd::Completed);
    let counts = Kind::ALL.map(|kind| {
        measured.tracks[Phase::Measured.index()][TrackName::Of(kind).index()].committed
    });
    // Ten whole decks for each terminal.
    assert_eq!(counts, [4000, 4000, 400, 400, 400]);
    assert_eq!(
        (observer.samples, server.done.load(Ordering::SeqCst)),
        (9200, 9200)
    );
    let of_series: u32 = measured
        .series
        .seconds
        .iter()
        .map(|second| second.total())
        .sum();
    assert_eq!(of_series, 9200);
    assert_eq!(
        (measured.unanswered, measured.lost, measured.errors.len()),
        (0, 0, 0)
    );
}

#[test]
fn a_server_that_dies_and_comes_back_costs_one_transaction_of_unknown_outcome() {
    // The server fails so early that no terminal has begun its last transaction. After the last
    // transaction, a terminal does not connect again.
    let server = Arc::new(Server {
        dies_at: 299,
        refuses: AtomicU64::new(3),
        ..Server::default()
    });
    let mut observer = CountingObserver::default();
    let measured = run(setup(5, 300), &server, &mut observer);
    assert_eq!(
        (measured.end, measured.lost, observer.unknown),
        (RunEnd::Completed, 1, 1)
    );
    let done: u64 = measured.tracks[Phase::Measured.index()]
        .iter()
        .map(|track| track.committed)
        .sum();
    assert_eq!((observer.samples, done), (1500, 1499));
    let errors: u64 = measured.errors.iter().map(|(_, count)| count).sum();
    assert_eq!(errors, 4, "{:?}", measured.errors);
}

#[test]
fn a_terminal_that_loses_its_last_transaction_does_not_connect_again() {
    let server = Arc::new(Server {
        dies_at: 300,
        refuses: AtomicU64::new(3),
        ..Server::default()
    });
    let mut observer = CountingObserver::default();
    let measured = run(setup(1, 300), &server, &mut observer);
    assert_eq!(
        (measured.end, measured.lost, observer.unknown),
        (RunEnd::Completed, 1, 1)
    );
    assert_eq!(observer.samples, 300);
    let said = "the connection is lost: server has gone away".to_owned();
    assert_eq!(measured.errors, [(said, 1)]);
}

/// A fail-over behind a proxy that accepts connections. The run has no length in seconds, so only
/// the give-up limit ends it.
#[test]
fn a_server_that_accepts_connections_and_does_not_answer_is_given_up() {
    let server = Arc::new(Server {
        dies_at: 30,
        ..Server::default()
    });
    let held = server.answer_lock.lock().unwrap();
    let impatient = Setup {
        drain: Duration::ZERO,
        give_up: Duration::from_secs(1),
        ..setup(1, 100)
    };
    let mut observer = CountingObserver {
        most: Some(Duration::from_secs(20)),
        ..CountingObserver::default()
    };
    let measured = run(impatient, &server, &mut observer);
    drop(held);
    let ended = (measured.end, measured.lost, measured.unanswered);
    assert_eq!(ended, (RunEnd::GaveUp, 1, 1));
}

/// The server is stopped, or waits for a disk: no connection is lost.
#[test]
fn a_server_that_stops_answering_is_given_up_and_the_samples_are_kept() {
    let server = Arc::new(Server {
        dies_at: 30,
        hangs: true,
        ..Server::default()
    });
    let held = server.answer_lock.lock().unwrap();
    let impatient = Setup {
        drain: Duration::ZERO,
        give_up: Duration::from_secs(1),
        ..setup(3, 100)
    };
    let mut observer = CountingObserver {
        most: Some(Duration::from_secs(20)),
        ..CountingObserver::default()
    };
    let measured = run(impatient, &server, &mut observer);
    drop(held);
    let ended = (measured.end, measured.lost, measured.unanswered);
    assert_eq!(ended, (RunEnd::GaveUp, 0, 3));
    // Each of the three terminals may have sent a transaction before the thirtieth was completed.
    assert!((30..33).contains(&observer.samples), "{}", observer.samples);
    let [gap] = measured.gaps[..] else {
        panic!("{:?}", measured.gaps)
    };
    assert_eq!((gap.to_us, gap.lost), (measured.interval_us.1, 0));
    assert_eq!(gap.from_us, measured.last_us);
    assert!(observer.unserved >= Duration::from_secs(1), "{observer:?}");
}

#[test]
fn queued_deliveries_are_all_carried_out_before_the_end() {
    let server = Arc::new(Server::default());
    let mut observer = CountingObserver::default();
    let delivery = DeliveryMode::Queued { workers: 3 };
    let measured = run(
        Setup {
            delivery,
            ..setup(10, 230)
        },
        &server,
        &mut observer,
    );
    let tracks = &measured.tracks[Phase::Measured.index()];
    assert_eq!(tracks[TrackName::Of(Kind::Delivery).index()].queued, 100);
    assert_eq!(tracks[TrackName::Deferred.index()].committed, 100);
    assert_eq!((observer.delivered, measured.undelivered), (100, 0));
}

#[test]
fn an_interrupted_run_ends_with_what_it_has() {
    let server = Arc::new(Server::default());
    let mut observer = CountingObserver {
        stop: Some(Arc::clone(&server)),
        ..CountingObserver::default()
    };
    let length = Length::Lasting(Duration::from_secs(3600));
    let measured = run(
        Setup {
            length,
            ..setup(3, 0)
        },
        &server,
        &mut observer,
    );
    assert_eq!(
        (measured.end, measured.unanswered),
        (RunEnd::Interrupted, 0)
    );
    let done = server.done.load(Ordering::SeqCst);
    assert!(
        done > 500 && observer.samples as u64 == done,
        "{done} {}",
        observer.samples
    );
    let (from_us, to_us) = measured.interval_us;
    assert!(from_us == 0 && to_us < 3_600_000_000);
}

#[test]
fn a_server_that_refuses_everything_ends_the_run_with_its_error() {
    let server = Arc::new(Server {
        broken: true,
        ..Server::default()
    });
    let length = Length::Lasting(Duration::from_secs(3600));
    let measured = run(
        Setup {
            length,
            ..setup(2, 0)
        },
        &server,
        &mut CountingObserver::default(),
    );
    assert_eq!(measured.end, RunEnd::NothingSucceeded);
    assert_eq!(measured.errors[0].0, "no such table");
}

#[test]
fn failed_connections_are_reported_once_with_their_number() {
    let server = Arc::new(Server {
        refuses: AtomicU64::new(7),
        ..Server::default()
    });
    server.down.store(true, Ordering::SeqCst);
    let error = Terminals::connect(
        setup(100, 1),
        Arc::new(ServerConnector(Arc::clone(&server))),
    )
    .unwrap_err();
    let StartError::Connect { failed, of, .. } = &error else {
        panic!("{error}")
    };
    // The first connection that is accepted marks the server as up again.
    assert!((1..=7).contains(failed) && *of == 100, "{failed} of {of}");
    assert!(
        error
            .to_string()
            .contains("of 100 connections failed: cannot reach mysql at 127.0.0.1:1")
    );
}
