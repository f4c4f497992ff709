//! Failures after a load: the run is kept with its figures.

use std::path::Path;

use super::*;

/// Runs a process that works on the campaign in `dir`; `after` is the result of the steps after
/// loads.
fn process(dir: &Path, after: fn(arm: usize) -> Result<(), Failure>) -> Outcome {
    let fake: &'static Fake = Box::leak(Box::new(Fake {
        after,
        ..Fake::plain(|_, _| run_with(0.0))
    }));
    let plan = plan(2, RunSize::Operations(10));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir, &identity, Begin::Resume).unwrap();
    let extras = Extras {
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap()
}

fn hook_fails(_: usize) -> Result<(), Failure> {
    Err(Failure::impossible(std::io::Error::other(
        "the disk is full",
    )))
}

/// Pair, figures and reason of each run.
fn summary(outcome: &Outcome) -> Vec<(u32, Option<f64>, Option<&str>)> {
    let one = |run: &'_ Run| run.metrics.get("throughput_ops_s").copied();
    let runs = outcome.runs.iter();
    runs.map(|run| (run.pair, one(run), run.rejected.as_deref()))
        .collect()
}

const FULL: (u32, Option<f64>, Option<&str>) = (0, Some(1000.0), Some("the disk is full"));
const GOOD: [(u32, Option<f64>, Option<&str>); 4] = [
    (1, Some(1000.0), None),
    (1, Some(1000.0), None),
    (0, Some(1000.0), None),
    (0, Some(1000.0), None),
];

#[test]
fn a_run_whose_end_fails_is_kept_and_its_pair_is_repeated_after_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let first = process(dir.path(), hook_fails);
    assert_eq!(first.stopped.as_deref(), Some("the disk is full"));
    assert_eq!(summary(&first), [FULL]);
    let second = process(dir.path(), |_| Ok(()));
    assert_eq!(second.stopped, None);
    assert_eq!(summary(&second), [&[FULL][..], &GOOD].concat());
    assert_eq!(second.runs[0].started, first.runs[0].started);
    let again = process(dir.path(), hook_fails);
    assert_eq!(summary(&again), summary(&second), "no run is repeated");
}

/// The failure is in the second run of a pair, then in the first run of its repeat.
#[test]
fn both_runs_of_a_pair_stay_when_the_second_ends_the_experiment() {
    let dir = tempfile::tempdir().unwrap();
    // The second arm runs second in the first visit, or first.
    let first = process(
        dir.path(),
        |arm| if arm == 1 { hook_fails(arm) } else { Ok(()) },
    );
    let second = process(dir.path(), |_| Ok(()));
    assert_eq!(summary(&second)[first.runs.len()..], GOOD);
    let reasons: Vec<Option<&str>> = summary(&second).iter().map(|run| run.2).collect();
    let repeated = "repeated because the run of b was rejected";
    match first.runs.len() {
        1 => assert_eq!(reasons[0], Some("the disk is full")),
        _ => assert_eq!(reasons[..2], [Some(repeated), Some("the disk is full")]),
    }
}

#[test]
fn an_interrupt_is_not_a_failure_of_the_arm() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let stopped = process(dir.path(), |_| Err(Failure::Interrupted));
        assert_eq!(stopped.stopped.as_deref(), Some("interrupted"));
        assert_eq!(summary(&stopped)[0], (0, Some(1000.0), Some("interrupted")));
    }
    let last = process(dir.path(), |_| Ok(()));
    assert_eq!((last.stopped, last.given_up), (None, vec![]));
}

/// Two visits and one repeat, each of them ended by its first run.
#[test]
fn a_campaign_ends_even_if_every_run_fails_after_its_load() {
    let dir = tempfile::tempdir().unwrap();
    for runs in 1..=3 {
        let stopped = process(dir.path(), hook_fails);
        assert_eq!(stopped.stopped.as_deref(), Some("the disk is full"));
        assert_eq!(stopped.runs.len(), runs);
    }
    let last = process(dir.path(), hook_fails);
    assert_eq!((last.stopped, last.runs.len()), (None, 3));
}
