//! Whole runs on threads, against a server that is a number: it goes down and comes back by what it
//! was asked, not by the clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::db::SqlError;
use crate::driver::sample::{Ending, Sample};
use crate::driver::{Delivered, End, Now, Pace, RampUp, Share, Watch};
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
        delivery: Delivery::Inline,
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

/// A server that does everything at once, but for a time of trouble.
#[derive(Debug, Default)]
struct Server {
    /// Transactions that it did.
    done: AtomicU64,
    /// It goes down for good with this one; 0 for never.
    dies_at: u64,
    /// It loses no connection when it does, and answers nobody.
    only_hangs: bool,
    /// Attempts to connect that it refuses from then on.
    refuses: AtomicU64,
    down: AtomicBool,
    /// Who holds it keeps it from answering once it has gone down.
    tongue: Mutex<()>,
    /// It refuses everything that it is asked.
    broken: bool,
}

/// A connection to it, which does not outlive its going down.
#[derive(Debug)]
struct Link(Arc<Server>);

#[derive(Debug)]
struct Door(Arc<Server>);

impl Connector for Door {
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
        Ok(Box::new(Link(Arc::clone(server))))
    }
}

impl Connection for Link {
    fn perform(&mut self, _input: &Input, _now: i64) -> Result<Outcome, SqlError> {
        let Self(server) = self;
        if server.broken {
            let what = "no such table".to_owned();
            return Err(SqlError::Unexpected { what });
        }
        if server.dies_at > 0 && server.done.load(Ordering::SeqCst) >= server.dies_at {
            drop(server.tongue.lock());
        }
        if server.only_hangs {
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

/// Counts what it is shown.
#[derive(Debug, Default)]
struct Counting {
    samples: usize,
    delivered: usize,
    unknown: usize,
    stop: Option<Arc<Server>>,
    /// The user's patience with a run that should have ended by itself.
    most: Option<Duration>,
    is_too_long: bool,
    /// The longest time without service that it is told.
    unserved: Duration,
}

impl Watch for Counting {
    fn is_interrupted(&self) -> bool {
        // The user's patience ends after a number of transactions.
        self.stop
            .as_ref()
            .is_some_and(|server| server.done.load(Ordering::SeqCst) > 500)
            || self.is_too_long
    }

    fn take(&mut self, samples: &[Sample], delivered: &[Delivered]) {
        self.samples += samples.len();
        self.delivered += delivered.len();
        self.unknown += samples
            .iter()
            .filter(|one| one.ending == Ending::Unknown)
            .count();
    }

    fn tell(&mut self, now: &Now) {
        let unserved = now.unserved.map(|(unserved, _)| unserved);
        self.unserved = self.unserved.max(unserved.unwrap_or_default());
        self.is_too_long = self.most.is_some_and(|most| now.elapsed >= most);
    }
}

fn run(setup: Setup, server: &Arc<Server>, watch: &mut Counting) -> super::super::Measured {
    let crew = Crew::connect(setup, Arc::new(Door(Arc::clone(server)))).unwrap();
    crew.run(Instant::now(), 0, false, watch)
}

#[test]
fn every_terminal_does_its_number_and_everything_is_counted_once() {
    let server = Arc::new(Server::default());
    let mut watch = Counting::default();
    let measured = run(setup(40, 230), &server, &mut watch);
    assert_eq!(measured.end, End::Done);
    let counts = Kind::ALL.map(|kind| {
        measured.tracks[Phase::Measured.index()][TrackName::Of(kind).index()].committed
    });
    // Ten whole decks each.
    assert_eq!(counts, [4000, 4000, 400, 400, 400]);
    assert_eq!(
        (watch.samples, server.done.load(Ordering::SeqCst)),
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
        (measured.unanswered, measured.lost, measured.troubles.len()),
        (0, 0, 0)
    );
}

#[test]
fn a_server_that_dies_and_comes_back_costs_one_transaction_of_unknown_outcome() {
    // Before any terminal can have begun its last one: after that a connection is not opened again.
    let server = Arc::new(Server {
        dies_at: 299,
        refuses: AtomicU64::new(3),
        ..Server::default()
    });
    let mut watch = Counting::default();
    let measured = run(setup(5, 300), &server, &mut watch);
    assert_eq!(
        (measured.end, measured.lost, watch.unknown),
        (End::Done, 1, 1)
    );
    let done: u64 = measured.tracks[Phase::Measured.index()]
        .iter()
        .map(|track| track.committed)
        .sum();
    assert_eq!((watch.samples, done), (1500, 1499));
    let errors: u64 = measured.troubles.iter().map(|(_, count)| count).sum();
    assert_eq!(errors, 4, "{:?}", measured.troubles);
}

#[test]
fn a_terminal_that_loses_its_last_transaction_does_not_connect_again() {
    let server = Arc::new(Server {
        dies_at: 300,
        refuses: AtomicU64::new(3),
        ..Server::default()
    });
    let mut watch = Counting::default();
    let measured = run(setup(1, 300), &server, &mut watch);
    assert_eq!(
        (measured.end, measured.lost, watch.unknown),
        (End::Done, 1, 1)
    );
    assert_eq!(watch.samples, 300);
    let said = "the connection is lost: server has gone away".to_owned();
    assert_eq!(measured.troubles, [(said, 1)]);
}

/// A fail-over behind a proxy that lets everybody in: without a number of seconds to last, nothing
/// else ends the run.
#[test]
fn a_server_that_lets_everybody_in_again_and_answers_nobody_is_given_up() {
    let server = Arc::new(Server {
        dies_at: 30,
        ..Server::default()
    });
    let held = server.tongue.lock().unwrap();
    let patience = Setup {
        drain: Duration::ZERO,
        give_up: Duration::from_secs(1),
        ..setup(1, 100)
    };
    let mut watch = Counting {
        most: Some(Duration::from_secs(20)),
        ..Counting::default()
    };
    let measured = run(patience, &server, &mut watch);
    drop(held);
    let ended = (measured.end, measured.lost, measured.unanswered);
    assert_eq!(ended, (End::GaveUp, 1, 1));
}

/// No connection is lost: the server stands still, or waits for a disk.
#[test]
fn a_server_that_answers_nobody_any_more_is_given_up_and_the_rest_is_kept() {
    let server = Arc::new(Server {
        dies_at: 30,
        only_hangs: true,
        ..Server::default()
    });
    let held = server.tongue.lock().unwrap();
    let patience = Setup {
        drain: Duration::ZERO,
        give_up: Duration::from_secs(1),
        ..setup(3, 100)
    };
    let mut watch = Counting {
        most: Some(Duration::from_secs(20)),
        ..Counting::default()
    };
    let measured = run(patience, &server, &mut watch);
    drop(held);
    let ended = (measured.end, measured.lost, measured.unanswered);
    assert_eq!(ended, (End::GaveUp, 0, 3));
    // Each of them may have been asked before the thirtieth was done.
    assert!((30..33).contains(&watch.samples), "{}", watch.samples);
    let [gap] = measured.gaps[..] else {
        panic!("{:?}", measured.gaps)
    };
    assert_eq!((gap.to_us, gap.lost), (measured.interval_us.1, 0));
    assert_eq!(gap.from_us, measured.last_us);
    assert!(watch.unserved >= Duration::from_secs(1), "{watch:?}");
}

#[test]
fn queued_deliveries_are_all_carried_out_before_the_end() {
    let server = Arc::new(Server::default());
    let mut watch = Counting::default();
    let delivery = Delivery::Queued { workers: 3 };
    let measured = run(
        Setup {
            delivery,
            ..setup(10, 230)
        },
        &server,
        &mut watch,
    );
    let tracks = &measured.tracks[Phase::Measured.index()];
    assert_eq!(tracks[TrackName::Of(Kind::Delivery).index()].queued, 100);
    assert_eq!(tracks[TrackName::Deferred.index()].committed, 100);
    assert_eq!((watch.delivered, measured.undelivered), (100, 0));
}

#[test]
fn an_interrupted_run_ends_with_what_it_has() {
    let server = Arc::new(Server::default());
    let mut watch = Counting {
        stop: Some(Arc::clone(&server)),
        ..Counting::default()
    };
    let length = Length::Lasting(Duration::from_secs(3600));
    let measured = run(
        Setup {
            length,
            ..setup(3, 0)
        },
        &server,
        &mut watch,
    );
    assert_eq!((measured.end, measured.unanswered), (End::Interrupted, 0));
    let done = server.done.load(Ordering::SeqCst);
    assert!(
        done > 500 && watch.samples as u64 == done,
        "{done} {}",
        watch.samples
    );
    let (from_us, to_us) = measured.interval_us;
    assert!(from_us == 0 && to_us < 3_600_000_000);
}

#[test]
fn a_server_that_refuses_everything_ends_the_run_with_its_words() {
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
        &mut Counting::default(),
    );
    assert_eq!(measured.end, End::Hopeless);
    assert_eq!(measured.troubles[0].0, "no such table");
}

#[test]
fn failed_connections_are_reported_once_with_their_number() {
    let server = Arc::new(Server {
        refuses: AtomicU64::new(7),
        ..Server::default()
    });
    server.down.store(true, Ordering::SeqCst);
    let error = Crew::connect(setup(100, 1), Arc::new(Door(Arc::clone(&server)))).unwrap_err();
    let StartError::Connect { failed, of, .. } = &error else {
        panic!("{error}")
    };
    // The first one that is let in finds the server up again.
    assert!((1..=7).contains(failed) && *of == 100, "{failed} of {of}");
    assert!(
        error
            .to_string()
            .contains("of 100 connections failed: cannot reach mysql at 127.0.0.1:1")
    );
}
