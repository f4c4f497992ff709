//! Tests of the units of figures that hooks print.

use std::path::Path;

use super::*;

fn unit(unit: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("moved".to_owned(), unit.to_owned())])
}

const OTHER: &str = "a hook printed moved in kB; an earlier run printed it in B";

/// Runs a process that works on the campaign in `dir`; its hooks print `moved`.
fn process(
    dir: &Path,
    after: fn(usize) -> Result<(), Failure>,
    units: fn(usize) -> BTreeMap<String, String>,
) -> Outcome {
    let fake: &'static Fake = Box::leak(Box::new(Fake {
        around: BTreeMap::from([("moved".to_owned(), 7.0)]),
        units,
        after,
        ..Fake::plain(|_, _| run_with(0.0))
    }));
    let plan = plan(1, RunSize::Operations(10));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir, &identity, Begin::Resume).unwrap();
    let extras = Extras {
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap()
}

#[test]
fn units_are_recorded_and_must_not_change() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = process(dir.path(), |_| Ok(()), |_| unit("B"));
    for run in &outcome.runs {
        assert_eq!((run.metrics["moved"], &run.rejected), (7.0, &None));
        assert_eq!(run.detail.as_ref().unwrap().units, unit("B"));
    }

    let dir = tempfile::tempdir().unwrap();
    let turn = |runs| unit(if runs == 1 { "B" } else { "kB" });
    let outcome = process(dir.path(), |_| Ok(()), turn);
    let reasons = outcome
        .runs
        .iter()
        .filter_map(|run| run.rejected.as_deref());
    assert!(
        reasons.filter(|reason| *reason == OTHER).count() > 1,
        "{:?}",
        outcome.runs
    );
}

#[test]
fn a_resumed_campaign_knows_the_units_of_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let full = |_| Err(Failure::impossible(std::io::Error::other("full")));
    let first = process(dir.path(), full, |_| unit("B"));
    assert_eq!(first.runs[0].detail.as_ref().unwrap().units, unit("B"));
    let second = process(dir.path(), |_| Ok(()), |_| unit("kB"));
    let reasons = second.runs.iter().filter_map(|run| run.rejected.as_deref());
    let reasons: Vec<&str> = reasons.collect();
    assert_eq!(reasons[..2], ["full", OTHER]);
}
