//! The committed `result.json` of format version 1 must stay readable.

use saiga_experiment::result::{
    Better, ComparisonKind, ExperimentResult, InconsistentResult, ReadResultError, Verdict,
    WriteResultError,
};
use saiga_experiment::stats::Method;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("data/result-v1.json");

fn sample() -> ExperimentResult {
    ExperimentResult::from_json(SAMPLE).expect("the sample is readable")
}

fn sample_with(change: impl FnOnce(&mut Value)) -> Result<ExperimentResult, ReadResultError> {
    let mut value: Value = serde_json::from_str(SAMPLE).expect("the sample is JSON");
    change(&mut value);
    ExperimentResult::from_json(&value.to_string())
}

#[test]
fn the_sample_says_what_was_written_by_hand() {
    let result = sample();
    assert_eq!(result.experiment, "redis");
    assert_eq!(result.host.memory, 8_326_418_432);
    assert_eq!(result.host.extra["numa_nodes"], json!(1));
    assert_eq!(result.subject().unwrap().name, "saiga");
    let cell = result.cell("set-c50-p16-two-cores").unwrap();
    assert_eq!(cell.params.placement, "two cores");
    assert_eq!(cell.params.workload["pipeline"], json!(16));
    let rejected: Vec<_> = result
        .runs
        .iter()
        .filter_map(|run| run.rejected.as_deref())
        .collect();
    assert_eq!(rejected.len(), 3);
    assert!(
        rejected[0].contains("Connection reset by peer"),
        "{}",
        rejected[0]
    );
    let best = result
        .comparisons
        .iter()
        .find(|one| one.cell == "set-c50-best")
        .unwrap();
    assert_eq!(best.kind, ComparisonKind::BestAgainstBest);
    assert_eq!(best.a_cell.as_deref(), Some("set-c50-one-core"));
    assert_eq!(
        (best.better, best.verdict),
        (Better::Higher, Verdict::Faster)
    );
    assert_eq!(best.ratio.n_pairs, 6);
}

#[test]
fn writing_and_reading_again_changes_nothing() {
    let result = sample();
    let text = result.to_json().unwrap();
    assert!(
        ExperimentResult::from_json(&text).unwrap() == result,
        "reading back changed it"
    );
    let (before, after): (Value, Value) = (
        serde_json::from_str(SAMPLE).unwrap(),
        serde_json::from_str(&text).unwrap(),
    );
    assert_eq!(
        after, before,
        "every field of the sample is one that we know"
    );
}

/// Older files have no method.
#[test]
fn a_ratio_without_a_method_is_of_a_fixed_number_of_pairs() {
    let older = sample_with(|value| {
        for one in value["comparisons"].as_array_mut().unwrap() {
            one["ratio"]
                .as_object_mut()
                .unwrap()
                .remove("method")
                .unwrap();
        }
    });
    assert!(older.unwrap() == sample());
    let other =
        sample_with(|value| value["comparisons"][0]["ratio"]["method"] = json!("sequential"));
    assert_eq!(
        other.unwrap().comparisons[0].ratio.method,
        Method::Sequential
    );
}

#[test]
fn an_accepted_run_has_a_null_rejection() {
    let text = sample().to_json().unwrap();
    assert!(
        text.contains("\"rejected\": null"),
        "DESIGN.md lists the field for every run"
    );
}

#[test]
fn another_version_is_reported_before_other_errors() {
    let error =
        ExperimentResult::from_json(r#"{"format_version": 2, "unheard": "of"}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "result has format_version 2, and this version of saiga reads 1; \
         use the saiga that wrote it, or repeat the experiment"
    );
    let error = ExperimentResult::from_json("{}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a Saiga result: `format_version` is missing"
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let result = sample_with(|value| value["comparisons"][0]["colour"] = json!("green")).unwrap();
    assert!(result == sample());
}

#[test]
fn invalid_references_are_refused() {
    let error = sample_with(|value| value["runs"][4]["arm"] = json!("dpdk")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "result contradicts itself: runs[4] names the arm \"dpdk\", which `arms` does not list"
    );
    let error = sample_with(|value| value["comparisons"][2]["cell"] = json!("gone")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("comparisons[2] names the cell \"gone\""),
        "{error}"
    );
    let error = sample_with(|value| value["cells"][1]["id"] = value["cells"][0]["id"].clone());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("names two arms or two cells")
    );
}

#[test]
fn non_finite_numbers_are_refused_on_writing() {
    let mut result = sample();
    result.comparisons[1].ratio.median = f64::INFINITY;
    let error = result.to_json().unwrap_err();
    assert!(
        matches!(
            &error,
            WriteResultError::Inconsistent(InconsistentResult::NotFinite { place, .. })
                if place == "comparisons[1]"
        ),
        "{error}"
    );
}
