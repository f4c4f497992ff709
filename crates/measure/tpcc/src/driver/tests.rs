//! Terminals on a clock that jumps, with connections that follow a script.

use std::sync::Arc;
use std::time::Duration;

use super::delivery::{DeliveryQueue, QueuedDelivery, perform_deliveries};
use super::executor::Executor;
use super::fake::{FakeClock, Script, Scripted, Step};
use super::sample::{Batch, ConnectionChange, Ending, Sample, SampleBuffer};
use super::shared::{Deadline, Shared};
use super::*;
use crate::db::SqlError;
use crate::spec::deck::Kind;
use crate::spec::inputs::{self, Input};
use crate::transactions::Outcome;

const MS: u64 = 1000;

fn setup() -> Setup {
    Setup {
        warehouses: 3,
        terminals: 1,
        share: Share::WHOLE,
        length: Length::Lasting(Duration::from_secs(1)),
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
        seed: 42,
        max_retries: 2,
        drain: Duration::from_secs(1),
        give_up: Duration::from_secs(60),
    }
}

fn conflict() -> SqlError {
    let said = "Deadlock found".to_owned();
    SqlError::Conflict { said }
}

fn lost() -> SqlError {
    let said = "gone".to_owned();
    SqlError::Lost { said }
}

fn step(takes_us: u64, answer: Result<Outcome, SqlError>) -> Step {
    Step { takes_us, answer }
}

/// A terminal's clock, connections, shared state and sample buffer.
struct Fixture {
    clock: Arc<FakeClock>,
    script: Arc<Script>,
    shared: Arc<Shared>,
    buffer: Arc<SampleBuffer>,
}

impl Fixture {
    fn new(usual_us: u64, until_us: u64, steps: Vec<Step>) -> Self {
        let clock = Arc::new(FakeClock::default());
        let script = Script::new(&clock, usual_us, steps);
        let connector = Arc::new(Scripted(Arc::clone(&script)));
        let to: Arc<dyn clock::Clock> = Arc::clone(&clock) as Arc<_>;
        let shared = Arc::new(Shared::new(to, connector, 1_000_000, 2));
        shared.end_at(until_us, until_us + clock::SECOND_US);
        Self {
            clock,
            script,
            shared,
            buffer: Arc::default(),
        }
    }

    fn executor(&self, deadline: Deadline) -> Executor {
        let connection = self.shared.connector.open().unwrap();
        Executor::new(
            connection,
            Arc::clone(&self.shared),
            Arc::clone(&self.buffer),
            deadline,
            7,
        )
    }

    /// Runs terminal 0 of a setup to its end. Returns its samples.
    fn work(&self, setup: &Setup, queue: Option<Arc<DeliveryQueue>>) -> Vec<Sample> {
        let (executor, shared) = (self.executor(Deadline::Run), Arc::clone(&self.shared));
        setup
            .lone_terminal(0, executor, queue, shared, Arc::clone(&self.buffer))
            .work();
        self.batch().samples
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        self.buffer.empty_into(&mut batch);
        batch
    }

    fn inputs(&self) -> Vec<Input> {
        self.script.inputs.lock().unwrap().clone()
    }
}

/// One start per 100 ms; the second transaction stalls for 350 ms. The transactions that were due
/// during the stall show it in their latency.
#[test]
fn an_open_loop_counts_from_the_intended_start() {
    let stall = vec![
        step(10 * MS, Ok(Outcome::Committed)),
        step(350 * MS, Ok(Outcome::Committed)),
    ];
    let fixture = Fixture::new(10 * MS, 800 * MS, stall);
    let pace = Pace::Open {
        per_min: 600.0,
        arrivals: Arrivals::Fixed,
    };
    let samples = fixture.work(&Setup { pace, ..setup() }, None);
    let latencies: Vec<u64> = samples.iter().map(|one| one.latency_us() / MS).collect();
    assert_eq!(latencies, [10, 350, 260, 170, 80, 10, 10, 10]);
    let began: Vec<u64> = samples.iter().map(|one| one.began_us / MS).collect();
    assert_eq!(began, [0, 100, 450, 460, 470, 500, 600, 700]);
}

#[test]
fn a_closed_loop_counts_from_the_sending() {
    let fixture = Fixture::new(30 * MS, 100 * MS, Vec::new());
    let samples = fixture.work(&setup(), None);
    let times: Vec<(u64, u64)> = samples
        .iter()
        .map(|one| (one.due_us / MS, one.ended_us / MS))
        .collect();
    assert_eq!(times, [(0, 30), (30, 60), (60, 90), (90, 120)]);
}

#[test]
fn latency_excludes_keying_and_thinking() {
    let fixture = Fixture::new(MS, 100_000 * MS, Vec::new());
    let pace = Pace::Human {
        keying: 1.0,
        thinking: 0.0,
    };
    let samples = fixture.work(&Setup { pace, ..setup() }, None);
    assert!(samples.iter().all(|one| one.latency_us() == MS));
    let keying = |one: &Sample| u64::try_from(one.kind.keying_time().as_micros()).unwrap();
    let mut expected = 0;
    for sample in &samples {
        expected += keying(sample);
        assert_eq!(sample.began_us, expected);
        expected += MS;
    }
}

#[test]
fn a_conflict_is_retried_with_the_same_input_and_counts_in_the_latency() {
    let steps = vec![
        step(5 * MS, Err(conflict())),
        step(5 * MS, Err(conflict())),
        step(10 * MS, Ok(Outcome::Committed)),
    ];
    let fixture = Fixture::new(10 * MS, 20 * MS, steps);
    let samples = fixture.work(&setup(), None);
    assert_eq!(
        (samples.len(), samples[0].ending, samples[0].retries),
        (1, Ending::Committed, 2)
    );
    // Two waits, each from half to all of its limit: 0.5 ms, then 1 ms.
    let waited = samples[0].latency_us() - 20 * MS;
    assert!((750..=1500).contains(&waited), "{waited}");
    let inputs = fixture.inputs();
    assert!(inputs.len() == 3 && inputs[0] == inputs[1] && inputs[1] == inputs[2]);
    assert!(fixture.shared.errors().by_text.is_empty());
}

#[test]
fn too_many_conflicts_are_a_failure_and_never_done() {
    let steps = vec![step(MS, Err(conflict())); 3];
    let fixture = Fixture::new(10 * MS, 4 * MS, steps);
    let samples = fixture.work(&setup(), None);
    assert_eq!((samples[0].ending, samples[0].retries), (Ending::Failed, 2));
    assert!(!samples[0].is_done());
    assert_eq!(fixture.shared.errors().by_text["Deadlock found"], 1);
}

#[test]
fn after_a_refusal_the_terminal_waits_and_continues_with_another_input() {
    let refused = SqlError::Unexpected {
        what: "no such row".to_owned(),
    };
    let fixture = Fixture::new(10 * MS, 40 * MS, vec![step(MS, Err(refused))]);
    let samples = fixture.work(&setup(), None);
    assert_eq!(samples[0].ending, Ending::Failed);
    let rested = samples[1].began_us - samples[0].ended_us;
    assert!((2500..=5000).contains(&rested), "{rested}");
    assert_ne!(fixture.inputs()[0], fixture.inputs()[1]);
}

#[test]
fn a_lost_connection_leaves_one_unknown_outcome_and_is_reopened() {
    let fixture = Fixture::new(10 * MS, 2000 * MS, vec![step(MS, Err(lost()))]);
    let executor = fixture.executor(Deadline::Run);
    fixture.script.close_for(3);
    let shared = Arc::clone(&fixture.shared);
    setup()
        .lone_terminal(0, executor, None, shared, Arc::clone(&fixture.buffer))
        .work();
    let Batch {
        samples, events, ..
    } = fixture.batch();
    let [lost, opened, begun, ended] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((samples[0].ending, lost.at_us), (Ending::Unknown, MS));
    assert_eq!(
        (lost.change, opened.change),
        (ConnectionChange::Lost, ConnectionChange::Reopened)
    );
    // The connection counts as down until its first transaction has ended.
    assert_eq!(
        (begun.change, ended.change),
        (ConnectionChange::FirstBegun, ConnectionChange::FirstEnded)
    );
    let first = (samples[1].began_us, samples[1].ended_us);
    assert_eq!((begun.at_us, ended.at_us), first);
    assert!(opened.at_us <= samples[1].began_us && opened.at_us > 350 * MS);
    assert!(samples[1..].iter().all(Sample::is_done) && samples.len() > 50);
    // Three waits, each from half to all of its limit (100, 200 and 400 ms), and the wait after a
    // failure. None of them is part of a latency.
    let gap = samples[1].began_us - samples[0].ended_us;
    assert!((350 * MS..=710 * MS).contains(&gap), "{gap}");
    assert!(samples[1..].iter().all(|one| one.latency_us() == 10 * MS));
    assert_eq!(fixture.shared.connected(), 1);
    assert_eq!(fixture.shared.errors().by_text.values().sum::<u64>(), 4);
}

/// The waits before retries have their own random number generator.
#[test]
fn inputs_follow_from_the_seed_even_after_conflicts() {
    let smooth = Fixture::new(MS, 50 * MS, Vec::new());
    smooth.work(&setup(), None);
    let rough = Fixture::new(MS, 50 * MS, vec![step(MS, Err(conflict()))]);
    rough.work(&setup(), None);
    let (smooth, mut rough) = (smooth.inputs(), rough.inputs());
    let first = rough.remove(0);
    assert_eq!(rough[0], first);
    let count = rough.len();
    assert!(count > 20);
    assert_eq!(smooth[..count], rough);
    let other = Fixture::new(MS, 50 * MS, Vec::new());
    other.work(
        &Setup {
            seed: 43,
            ..setup()
        },
        None,
    );
    assert_ne!(other.inputs(), smooth);
}

#[test]
fn a_terminal_stops_after_its_number_of_transactions() {
    let fixture = Fixture::new(MS, u64::MAX - clock::SECOND_US, Vec::new());
    let length = Length::PerTerminal(17);
    assert_eq!(fixture.work(&Setup { length, ..setup() }, None).len(), 17);
}

/// The connection is not opened again and must not count as down.
#[test]
fn a_connection_lost_in_the_last_transaction_is_abandoned() {
    let fixture = Fixture::new(MS, u64::MAX - clock::SECOND_US, vec![step(MS, Err(lost()))]);
    let (executor, shared) = (fixture.executor(Deadline::Run), Arc::clone(&fixture.shared));
    let length = Length::PerTerminal(1);
    Setup { length, ..setup() }
        .lone_terminal(0, executor, None, shared, Arc::clone(&fixture.buffer))
        .work();
    let Batch {
        samples, events, ..
    } = fixture.batch();
    assert_eq!((samples.len(), samples[0].ending), (1, Ending::Unknown));
    let changes: Vec<ConnectionChange> = events.iter().map(|event| event.change).collect();
    assert_eq!(
        changes,
        [ConnectionChange::Lost, ConnectionChange::Abandoned]
    );
}

/// A server that closes every connection at its first statement: the loss is reported before the
/// end of the first transaction.
#[test]
fn a_connection_lost_in_its_first_transaction_is_down_again() {
    let fixture = Fixture::new(
        MS,
        u64::MAX - clock::SECOND_US,
        vec![step(MS, Err(lost())); 2],
    );
    let (executor, shared) = (fixture.executor(Deadline::Run), Arc::clone(&fixture.shared));
    let length = Length::PerTerminal(3);
    Setup { length, ..setup() }
        .lone_terminal(0, executor, None, shared, Arc::clone(&fixture.buffer))
        .work();
    let changes: Vec<ConnectionChange> = fixture
        .batch()
        .events
        .iter()
        .map(|event| event.change)
        .collect();
    let (first, again) = (
        [
            ConnectionChange::Lost,
            ConnectionChange::Reopened,
            ConnectionChange::FirstBegun,
        ],
        [ConnectionChange::Lost, ConnectionChange::FirstEnded],
    );
    let last = [
        ConnectionChange::Reopened,
        ConnectionChange::FirstBegun,
        ConnectionChange::FirstEnded,
    ];
    assert_eq!(changes, [&first[..], &again, &last].concat());
}

#[test]
fn a_roaming_terminal_uses_all_warehouses_and_keeps_its_district() {
    let fixture = Fixture::new(MS, 300 * MS, Vec::new());
    fixture.work(
        &Setup {
            fixed_warehouse: false,
            ..setup()
        },
        None,
    );
    let homes: std::collections::BTreeSet<u32> = fixture
        .inputs()
        .iter()
        .map(|input| match input {
            Input::NewOrder(order) => order.district.w_id,
            Input::Payment(payment) => payment.district.w_id,
            Input::OrderStatus(status) => status.district.w_id,
            Input::Delivery(delivery) => delivery.w_id,
            Input::StockLevel(level) => level.district.w_id,
        })
        .collect();
    assert_eq!(homes.into_iter().collect::<Vec<u32>>(), [1, 2, 3]);
}

#[test]
fn the_latency_of_a_queued_delivery_counts_from_queueing() {
    let fixture = Fixture::new(2 * MS, 100 * MS, Vec::new());
    let queue = Arc::new(DeliveryQueue::default());
    let samples = fixture.work(&setup(), Some(Arc::clone(&queue)));
    let queued: Vec<&Sample> = samples
        .iter()
        .filter(|one| one.ending == Ending::Queued)
        .collect();
    assert!(queued.len() >= 2 && queued.iter().all(|one| one.latency_us() == 0));
    assert_eq!(queue.len(), queued.len() as u64);
    queue.close();
    let mut executor = fixture.executor(Deadline::Drain);
    perform_deliveries(&queue, &mut executor, &fixture.shared, &fixture.buffer);
    let Batch {
        samples, delivered, ..
    } = fixture.batch();
    assert_eq!(
        (samples.len(), delivered.len()),
        (queued.len(), queued.len())
    );
    assert_eq!(samples[0].due_us, queued[0].due_us);
    assert!(samples[0].latency_us() > 50 * MS && samples.iter().all(|one| one.deferred));
    assert_eq!(delivered[0].completed_us, samples[0].ended_us);
}

#[test]
fn two_deliveries_of_a_warehouse_never_run_at_the_same_time() {
    let job = |terminal, w_id| QueuedDelivery {
        terminal,
        input: inputs::Delivery {
            w_id,
            carrier_id: 1,
        },
        due_us: 0,
        queued_us: 0,
    };
    let queue = DeliveryQueue::default();
    for one in [job(0, 5), job(1, 5), job(2, 6)] {
        assert!(queue.put(one));
    }
    let first = queue.take().unwrap();
    let second = queue.take().unwrap();
    assert_eq!((first.terminal, second.terminal), (0, 2));
    queue.finish(&first);
    let third = queue.take().unwrap();
    assert_eq!(third.terminal, 1);
    assert!(queue.put(job(3, 9)));
    assert_eq!(queue.abandon(), 1);
    assert_eq!(queue.take(), None);
}

/// Slow delivery workers must neither exhaust the memory nor block the terminals.
#[test]
fn a_full_queue_refuses_deliveries() {
    let job = |terminal| QueuedDelivery {
        terminal,
        input: inputs::Delivery {
            w_id: 1 + terminal % 2,
            carrier_id: 1,
        },
        due_us: 0,
        queued_us: 0,
    };
    let queue = Arc::new(DeliveryQueue::default());
    assert!((0..100_000).all(|terminal| queue.put(job(terminal))));
    let fixture = Fixture::new(2 * MS, 100 * MS, Vec::new());
    let samples = fixture.work(&setup(), Some(Arc::clone(&queue)));
    let mut deliveries = samples.iter().filter(|one| one.kind == Kind::Delivery);
    assert!(deliveries.clone().count() > 0);
    assert!(deliveries.all(|one| one.ending == Ending::Failed));
    assert_eq!(queue.len(), 100_000);
    // First in, first out, over all warehouses.
    let (first, second) = (queue.take().unwrap(), queue.take().unwrap());
    queue.finish(&second);
    let third = queue.take().unwrap();
    queue.finish(&first);
    queue.finish(&third);
    let fourth = queue.take().unwrap();
    let order = [first, second, third, fourth].map(|job| job.terminal);
    assert_eq!(order, [0, 1, 3, 2]);
}

#[test]
fn deliveries_not_performed_by_the_end_of_the_drain_stay_in_the_queue() {
    let fixture = Fixture::new(600 * MS, 0, vec![step(MS, Err(lost()))]);
    let queue = DeliveryQueue::default();
    for (terminal, w_id) in [(0, 1), (1, 2)] {
        let input = inputs::Delivery {
            w_id,
            carrier_id: 1,
        };
        assert!(queue.put(QueuedDelivery {
            terminal,
            input,
            due_us: 0,
            queued_us: 0,
        }));
    }
    queue.close();
    let mut executor = fixture.executor(Deadline::Drain);
    fixture.script.close_for(u32::MAX);
    perform_deliveries(&queue, &mut executor, &fixture.shared, &fixture.buffer);
    assert!(fixture.shared.is_over(Deadline::Drain));
    drop(executor);
    let Batch {
        samples, events, ..
    } = fixture.batch();
    assert_eq!((queue.abandon(), samples.len()), (1, 1));
    let changes: Vec<ConnectionChange> = events.iter().map(|event| event.change).collect();
    assert_eq!(
        changes,
        [ConnectionChange::Lost, ConnectionChange::Abandoned]
    );
    let _ = &fixture.clock;
}
