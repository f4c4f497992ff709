//! A campaign that is stopped and resumed anywhere has the same result as without the stop.

use std::path::Path;

use super::*;
use crate::analysis::{Shortfall, conclude_by};
use crate::result::{self, CellParams};
use crate::stats::Method;

/// Each arm is disturbed once, and the second arm fails from its seventh run on.
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

/// Runs a process that works on the campaign in `dir` and is stopped after some runs.
fn process(dir: &Path, runs_until_stop: usize, sequential: bool) -> Outcome {
    let fake: &'static Fake = Box::leak(Box::new(Fake {
        record: Some(dir.to_owned()),
        runs_until_stop,
        ..Fake::plain(eventful)
    }));
    let plan = plan(9, RunSize::Lasting(Duration::from_millis(100)));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir, &identity, Begin::Resume).unwrap();
    // Stop after four accepted pairs, before the second arm begins to fail.
    let mut decide = |outcome: &Outcome| match counted(outcome) {
        8.. if sequential => Decision::Stop,
        _ => Decision::Continue,
    };
    let extras = Extras {
        decide: Some(&mut decide),
        sequential,
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap()
}

/// The parts of a result without times, as text.
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
fn a_campaign_stopped_at_any_run_has_the_same_result() {
    for sequential in [false, true] {
        let whole = tempfile::tempdir().unwrap();
        let outcome = process(whole.path(), usize::MAX, sequential);
        assert_eq!(
            (&outcome.stopped, outcome.given_up.len()),
            (&None, usize::from(!sequential))
        );
        let runs = outcome.runs.len();
        let wanted = essence(outcome);
        // Calibrations add runs.
        for runs_until_stop in 0..runs + 4 {
            let dir = tempfile::tempdir().unwrap();
            let first = process(dir.path(), runs_until_stop, sequential);
            let second = process(dir.path(), usize::MAX, sequential);
            assert_eq!(
                essence(second),
                wanted,
                "stopped after {runs_until_stop} runs"
            );
            assert!(first.runs.len() <= runs_until_stop);
            let again = process(dir.path(), 0, sequential);
            assert_eq!(essence(again), wanted, "a complete plan is not run again");
        }
    }
}

#[test]
fn a_campaign_may_be_stopped_repeatedly() {
    let whole = tempfile::tempdir().unwrap();
    let wanted = essence(process(whole.path(), usize::MAX, false));
    let dir = tempfile::tempdir().unwrap();
    let mut processes = 1;
    // Three runs are a visit and half of the next visit, which is void each time.
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
fn a_run_that_cannot_be_recorded_ends_the_experiment() {
    let dir = tempfile::tempdir().unwrap();
    process(dir.path(), 6, false);
    // The record of another order: the first run is of the other arm.
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
        error
            .to_string()
            .contains("line 2: the plan expects pair 1 of"),
        "{error}"
    );
}
