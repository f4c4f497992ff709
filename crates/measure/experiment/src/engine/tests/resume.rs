//! A campaign that is stopped anywhere and resumed ends as if it had never been stopped.

use std::path::Path;

use super::*;
use crate::analysis::{Shortfall, conclude_by};
use crate::result::{self, CellParams};
use crate::stats::Method;

/// Disturbed once in each arm, and from its seventh run on the second arm fails.
fn eventful(arm: usize, nth: u32) -> Result<Measured, Failure> {
    let throughput = 1000.0 / 3.0 + f64::from(nth) + 0.1 * f64::from(u32::try_from(arm).unwrap());
    match (arm, nth) {
        (1, 6..) => Err(Failure::run("connection reset")),
        (0, 1) | (1, 3) => run_with(500.0),
        _ => run_with(0.0).map(|measured| Measured {
            metrics: BTreeMap::from([("throughput_ops_s".to_owned(), throughput)]),
            ..measured
        }),
    }
}

/// A process that works on the campaign in `dir` until the user's patience ends.
fn process(dir: &Path, patience: usize, sequential: bool) -> Outcome {
    let fake: &'static Fake = Box::leak(Box::new(Fake {
        record: Some(dir.to_owned()),
        patience,
        ..Fake::plain(eventful)
    }));
    let plan = plan(9, RunSize::Lasting(Duration::from_millis(100)));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir, &identity, Begin::Resume).unwrap();
    // Enough after four pairs that count, before the second arm begins to fail.
    let mut look = |outcome: &Outcome| match counted(outcome) {
        8.. if sequential => Look::Enough,
        _ => Look::GoOn,
    };
    let extras = Extras {
        look: Some(&mut look),
        sequential,
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap()
}

/// Everything that a result is made of, but times.
fn essence(mut outcome: Outcome) -> String {
    for run in &mut outcome.runs {
        run.started.clear();
    }
    let cell = result::Cell {
        id: "cell".into(),
        params: CellParams {
            placement: "unpinned".into(),
            hog: "none".into(),
            workload: BTreeMap::new(),
        },
    };
    let shortfall = Shortfall {
        stopped: outcome.stopped.clone(),
        given_up: outcome.given_up.clone(),
        longer: String::new(),
    };
    let arms = Fake::new(eventful).arms();
    let conclusion = conclude_by(
        Method::Fixed,
        &[],
        &arms,
        &[cell],
        &outcome.runs,
        &shortfall,
    );
    format!("{outcome:#?} {conclusion:#?}")
}

#[test]
fn stopped_at_any_run_it_ends_as_if_it_had_not_been() {
    for sequential in [false, true] {
        let whole = tempfile::tempdir().unwrap();
        let outcome = process(whole.path(), usize::MAX, sequential);
        assert_eq!(
            (&outcome.stopped, outcome.given_up.len()),
            (&None, usize::from(!sequential))
        );
        let runs = outcome.runs.len();
        let wanted = essence(outcome);
        // Calibration adds runs of its own.
        for patience in 0..runs + 4 {
            let dir = tempfile::tempdir().unwrap();
            let first = process(dir.path(), patience, sequential);
            let second = process(dir.path(), usize::MAX, sequential);
            assert_eq!(essence(second), wanted, "stopped after {patience} runs");
            assert!(first.runs.len() <= patience);
            let again = process(dir.path(), 0, sequential);
            assert_eq!(essence(again), wanted, "what is done is not run again");
        }
    }
}

#[test]
fn it_may_be_stopped_again_and_again() {
    let whole = tempfile::tempdir().unwrap();
    let wanted = essence(process(whole.path(), usize::MAX, false));
    let dir = tempfile::tempdir().unwrap();
    let mut processes = 1;
    // Three runs are one visit and half of the next, which is void each time.
    let last = loop {
        let outcome = process(dir.path(), 3, false);
        if outcome.stopped.is_none() {
            break outcome;
        }
        processes += 1;
    };
    assert_eq!(essence(last), wanted);
    assert!(processes > 5, "{processes}");
}

#[test]
fn a_run_that_cannot_be_kept_ends_the_experiment() {
    let dir = tempfile::tempdir().unwrap();
    process(dir.path(), 6, false);
    // The record of another order: its first run is of the other arm.
    let path = dir.path().join(crate::campaign::FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() > 6, "{text}");
    let fake = Fake::new(|_, _| run_with(0.0));
    let plan = plan(9, RunSize::Operations(10));
    let identity = Identity::of(
        &fake,
        &super::plan(9, RunSize::Lasting(Duration::from_millis(100))),
        None,
        &host::describe(1),
    );
    let mut campaign = Campaign::open(dir.path(), &identity, Begin::Resume).unwrap();
    let extras = Extras {
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    let error = execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap_err();
    assert!(
        error.to_string().contains("line 2: it is not pair 1 of"),
        "{error}"
    );
}
