//! Terminals on a clock that jumps, with connections that follow a script.

use std::sync::Arc;
use std::time::Duration;

use super::delivery::{Job, Queue, carry_out};
use super::fake::{FakeClock, Script, Scripted, Step};
use super::hands::Hands;
use super::sample::{Desk, Ending, Sample, Sheet, Way};
use super::shared::{Shared, Until};
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
        delivery: Delivery::Inline,
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

/// One terminal's world.
struct World {
    clock: Arc<FakeClock>,
    script: Arc<Script>,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
}

impl World {
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
            desk: Arc::default(),
        }
    }

    fn hands(&self, until: Until) -> Hands {
        let connection = self.shared.connector.open().unwrap();
        Hands::new(
            connection,
            Arc::clone(&self.shared),
            Arc::clone(&self.desk),
            until,
            7,
        )
    }

    /// Lets the first terminal of a setup work until its end.
    fn work(&self, setup: &Setup, queue: Option<Arc<Queue>>) -> Vec<Sample> {
        let (hands, shared) = (self.hands(Until::Run), Arc::clone(&self.shared));
        setup
            .lone_terminal(0, hands, queue, shared, Arc::clone(&self.desk))
            .work();
        self.sheet().samples
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        self.desk.empty_into(&mut sheet);
        sheet
    }

    fn seen(&self) -> Vec<Input> {
        self.script.seen.lock().unwrap().clone()
    }
}

/// One start each 100 ms; the second transaction stalls for 350 ms. Those who would have come
/// meanwhile have waited, too.
#[test]
fn an_open_loop_counts_from_the_intended_start() {
    let stall = vec![
        step(10 * MS, Ok(Outcome::Committed)),
        step(350 * MS, Ok(Outcome::Committed)),
    ];
    let world = World::new(10 * MS, 800 * MS, stall);
    let pace = Pace::Open {
        per_min: 600.0,
        arrivals: Arrivals::Fixed,
    };
    let samples = world.work(&Setup { pace, ..setup() }, None);
    let latencies: Vec<u64> = samples.iter().map(|one| one.latency_us() / MS).collect();
    assert_eq!(latencies, [10, 350, 260, 170, 80, 10, 10, 10]);
    let began: Vec<u64> = samples.iter().map(|one| one.began_us / MS).collect();
    assert_eq!(began, [0, 100, 450, 460, 470, 500, 600, 700]);
}

#[test]
fn a_closed_loop_counts_from_the_sending() {
    let world = World::new(30 * MS, 100 * MS, Vec::new());
    let samples = world.work(&setup(), None);
    let times: Vec<(u64, u64)> = samples
        .iter()
        .map(|one| (one.due_us / MS, one.ended_us / MS))
        .collect();
    assert_eq!(times, [(0, 30), (30, 60), (60, 90), (90, 120)]);
}

#[test]
fn keying_is_no_part_of_the_latency_and_thinking_follows() {
    let world = World::new(MS, 100_000 * MS, Vec::new());
    let pace = Pace::Human {
        keying: 1.0,
        thinking: 0.0,
    };
    let samples = world.work(&Setup { pace, ..setup() }, None);
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
fn a_conflict_is_tried_again_with_the_same_input_within_the_latency() {
    let steps = vec![
        step(5 * MS, Err(conflict())),
        step(5 * MS, Err(conflict())),
        step(10 * MS, Ok(Outcome::Committed)),
    ];
    let world = World::new(10 * MS, 20 * MS, steps);
    let samples = world.work(&setup(), None);
    assert_eq!(
        (samples.len(), samples[0].ending, samples[0].retries),
        (1, Ending::Committed, 2)
    );
    // Waits of half to all of 0.5 ms and 1 ms.
    let waited = samples[0].latency_us() - 20 * MS;
    assert!((750..=1500).contains(&waited), "{waited}");
    let seen = world.seen();
    assert!(seen.len() == 3 && seen[0] == seen[1] && seen[1] == seen[2]);
    assert!(world.shared.troubles().by_text.is_empty());
}

#[test]
fn too_many_conflicts_are_a_failure_and_never_done() {
    let steps = vec![step(MS, Err(conflict())); 3];
    let world = World::new(10 * MS, 4 * MS, steps);
    let samples = world.work(&setup(), None);
    assert_eq!((samples[0].ending, samples[0].retries), (Ending::Failed, 2));
    assert!(!samples[0].is_done());
    assert_eq!(world.shared.troubles().by_text["Deadlock found"], 1);
}

#[test]
fn after_a_refusal_the_terminal_rests_and_goes_on_with_another_input() {
    let refused = SqlError::Unexpected {
        what: "no such row".to_owned(),
    };
    let world = World::new(10 * MS, 40 * MS, vec![step(MS, Err(refused))]);
    let samples = world.work(&setup(), None);
    assert_eq!(samples[0].ending, Ending::Failed);
    let rested = samples[1].began_us - samples[0].ended_us;
    assert!((2500..=5000).contains(&rested), "{rested}");
    assert_ne!(world.seen()[0], world.seen()[1]);
}

#[test]
fn a_lost_connection_leaves_one_unknown_outcome_and_is_opened_again() {
    let world = World::new(10 * MS, 2000 * MS, vec![step(MS, Err(lost()))]);
    let hands = world.hands(Until::Run);
    world.script.close_for(3);
    let shared = Arc::clone(&world.shared);
    setup()
        .lone_terminal(0, hands, None, shared, Arc::clone(&world.desk))
        .work();
    let Sheet { samples, turns, .. } = world.sheet();
    let [lost, opened, begun, ended] = turns[..] else {
        panic!("{turns:?}")
    };
    assert_eq!((samples[0].ending, lost.at_us), (Ending::Unknown, MS));
    assert_eq!((lost.way, opened.way), (Way::Lost, Way::Opened));
    // It is on trial for its first transaction.
    assert_eq!((begun.way, ended.way), (Way::Begun, Way::Ended));
    let first = (samples[1].began_us, samples[1].ended_us);
    assert_eq!((begun.at_us, ended.at_us), first);
    assert!(opened.at_us <= samples[1].began_us && opened.at_us > 350 * MS);
    assert!(samples[1..].iter().all(Sample::is_done) && samples.len() > 50);
    // Three waits of half to all of 100, 200 and 400 ms, and a rest: none of it is in a latency.
    let gap = samples[1].began_us - samples[0].ended_us;
    assert!((350 * MS..=710 * MS).contains(&gap), "{gap}");
    assert!(samples[1..].iter().all(|one| one.latency_us() == 10 * MS));
    assert_eq!(world.shared.connected(), 1);
    assert_eq!(world.shared.troubles().by_text.values().sum::<u64>(), 4);
}

/// Waits of conflicts are drawn apart from inputs.
#[test]
fn inputs_follow_from_the_seed_whatever_happens() {
    let smooth = World::new(MS, 50 * MS, Vec::new());
    smooth.work(&setup(), None);
    let rough = World::new(MS, 50 * MS, vec![step(MS, Err(conflict()))]);
    rough.work(&setup(), None);
    let (smooth, mut rough) = (smooth.seen(), rough.seen());
    let first = rough.remove(0);
    assert_eq!(rough[0], first);
    let count = rough.len();
    assert!(count > 20);
    assert_eq!(smooth[..count], rough);
    let other = World::new(MS, 50 * MS, Vec::new());
    other.work(
        &Setup {
            seed: 43,
            ..setup()
        },
        None,
    );
    assert_ne!(other.seen(), smooth);
}

#[test]
fn a_number_of_transactions_is_kept() {
    let world = World::new(MS, u64::MAX - clock::SECOND_US, Vec::new());
    let length = Length::PerTerminal(17);
    assert_eq!(world.work(&Setup { length, ..setup() }, None).len(), 17);
}

/// Nobody opens it again: it must not count as one that is down.
#[test]
fn a_connection_that_is_lost_in_the_last_transaction_is_not_wanted_any_more() {
    let world = World::new(MS, u64::MAX - clock::SECOND_US, vec![step(MS, Err(lost()))]);
    let (hands, shared) = (world.hands(Until::Run), Arc::clone(&world.shared));
    let length = Length::PerTerminal(1);
    Setup { length, ..setup() }
        .lone_terminal(0, hands, None, shared, Arc::clone(&world.desk))
        .work();
    let Sheet { samples, turns, .. } = world.sheet();
    assert_eq!((samples.len(), samples[0].ending), (1, Ending::Unknown));
    let ways: Vec<Way> = turns.iter().map(|turn| turn.way).collect();
    assert_eq!(ways, [Way::Lost, Way::Left]);
}

/// A server that drops everybody at the first statement: the loss is told before the trial is over.
#[test]
fn a_connection_that_is_lost_on_trial_is_down_again() {
    let world = World::new(
        MS,
        u64::MAX - clock::SECOND_US,
        vec![step(MS, Err(lost())); 2],
    );
    let (hands, shared) = (world.hands(Until::Run), Arc::clone(&world.shared));
    let length = Length::PerTerminal(3);
    Setup { length, ..setup() }
        .lone_terminal(0, hands, None, shared, Arc::clone(&world.desk))
        .work();
    let ways: Vec<Way> = world.sheet().turns.iter().map(|turn| turn.way).collect();
    let (first, again) = (
        [Way::Lost, Way::Opened, Way::Begun],
        [Way::Lost, Way::Ended],
    );
    let last = [Way::Opened, Way::Begun, Way::Ended];
    assert_eq!(ways, [&first[..], &again, &last].concat());
}

#[test]
fn a_roaming_terminal_uses_all_warehouses_in_its_own_district() {
    let world = World::new(MS, 300 * MS, Vec::new());
    world.work(
        &Setup {
            fixed_warehouse: false,
            ..setup()
        },
        None,
    );
    let homes: std::collections::BTreeSet<u32> = world
        .seen()
        .iter()
        .map(|input| match input {
            Input::NewOrder(order) => order.place.w_id,
            Input::Payment(payment) => payment.place.w_id,
            Input::OrderStatus(status) => status.place.w_id,
            Input::Delivery(delivery) => delivery.w_id,
            Input::StockLevel(level) => level.place.w_id,
        })
        .collect();
    assert_eq!(homes.into_iter().collect::<Vec<u32>>(), [1, 2, 3]);
}

#[test]
fn a_queued_delivery_is_timed_from_its_queueing() {
    let world = World::new(2 * MS, 100 * MS, Vec::new());
    let queue = Arc::new(Queue::default());
    let samples = world.work(&setup(), Some(Arc::clone(&queue)));
    let queued: Vec<&Sample> = samples
        .iter()
        .filter(|one| one.ending == Ending::Queued)
        .collect();
    assert!(queued.len() >= 2 && queued.iter().all(|one| one.latency_us() == 0));
    assert_eq!(queue.len(), queued.len() as u64);
    queue.close();
    let mut hands = world.hands(Until::Drain);
    carry_out(&queue, &mut hands, &world.shared, &world.desk);
    let Sheet {
        samples, delivered, ..
    } = world.sheet();
    assert_eq!(
        (samples.len(), delivered.len()),
        (queued.len(), queued.len())
    );
    assert_eq!(samples[0].due_us, queued[0].due_us);
    assert!(samples[0].latency_us() > 50 * MS && samples.iter().all(|one| one.deferred));
    assert_eq!(delivered[0].completed_us, samples[0].ended_us);
}

#[test]
fn two_deliveries_of_a_warehouse_are_never_under_way_together() {
    let job = |terminal, w_id| Job {
        terminal,
        input: inputs::Delivery {
            w_id,
            carrier_id: 1,
        },
        due_us: 0,
        queued_us: 0,
    };
    let queue = Queue::default();
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

/// Workers that are too slow must neither fill the memory nor be waited for.
#[test]
fn a_queue_that_is_full_refuses() {
    let job = |terminal| Job {
        terminal,
        input: inputs::Delivery {
            w_id: 1 + terminal % 2,
            carrier_id: 1,
        },
        due_us: 0,
        queued_us: 0,
    };
    let queue = Arc::new(Queue::default());
    assert!((0..100_000).all(|terminal| queue.put(job(terminal))));
    let world = World::new(2 * MS, 100 * MS, Vec::new());
    let samples = world.work(&setup(), Some(Arc::clone(&queue)));
    let mut deliveries = samples.iter().filter(|one| one.kind == Kind::Delivery);
    assert!(deliveries.clone().count() > 0);
    assert!(deliveries.all(|one| one.ending == Ending::Failed));
    assert_eq!(queue.len(), 100_000);
    // The order of all is kept, whichever warehouse is free.
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
fn what_cannot_be_carried_out_by_the_end_of_the_drain_stays_in_the_queue() {
    let world = World::new(600 * MS, 0, vec![step(MS, Err(lost()))]);
    let queue = Queue::default();
    for (terminal, w_id) in [(0, 1), (1, 2)] {
        let input = inputs::Delivery {
            w_id,
            carrier_id: 1,
        };
        assert!(queue.put(Job {
            terminal,
            input,
            due_us: 0,
            queued_us: 0,
        }));
    }
    queue.close();
    let mut hands = world.hands(Until::Drain);
    world.script.close_for(u32::MAX);
    carry_out(&queue, &mut hands, &world.shared, &world.desk);
    assert!(world.shared.is_over(Until::Drain));
    drop(hands);
    let Sheet { samples, turns, .. } = world.sheet();
    assert_eq!((queue.abandon(), samples.len()), (1, 1));
    let ways: Vec<Way> = turns.iter().map(|turn| turn.way).collect();
    assert_eq!(ways, [Way::Lost, Way::Left]);
    let _ = &world.clock;
}
