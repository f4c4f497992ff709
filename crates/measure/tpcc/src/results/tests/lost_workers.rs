//! Merged records in which workers are missing.

use std::fs;

use saiga_document::text::{self, Style};

use super::*;
use crate::results::partial::Partial;

/// The merged record of workers 1 and 3 of 3. Worker 2 had one of the four terminals.
fn without_the_second() -> Record {
    merge(vec![part(3, 3), part(1, 3)]).unwrap()
}

#[test]
fn a_missing_worker_leaves_the_sum_of_the_others() {
    let sum = without_the_second();
    let partial = sum.partial.as_ref().unwrap();
    assert_eq!((&partial.missing[..], partial.workers), (&[2][..], 3));
    assert_eq!((partial.terminals, partial.of_terminals), (3, 4));
    // Twenty transactions contain eight New-Orders, one of them of the missing terminal.
    assert_eq!(sum.tpmc(), 420.0);
    // Both present hosts report the gap; the third host is unknown.
    assert_eq!(sum.gaps.len(), 1);
    assert_eq!(sum.gaps[0].lost, 4);
}

#[test]
fn a_partial_sum_is_marked_in_all_outputs() {
    let sum = without_the_second();
    let json: serde_json::Value = serde_json::from_str(&files::json(&sum)).unwrap();
    assert_eq!(json["partial"]["missing"], serde_json::json!([2]));
    let metrics = &sum.run.metrics;
    assert_eq!(metrics.get("tpmc_partial"), Some(&420.0));
    assert_eq!(metrics.get("tpmc_no_think_time"), None);
    let text = text::render(&page::page(&sum), Style::plain());
    for expected in [
        "Partial: worker 2 of 3 is missing; the figures are those of 3 of 4 terminals",
        "It is not a result of TPC-C.",
        "tpmC (no think time), partial",
        "2 of 3 workers, 3 of 4 terminals",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let lines = closing::lines(&sum);
    assert!(
        lines.contains("Partial tpmC (NewOrders) = 420.0\n"),
        "{lines}"
    );
    assert!(!lines.contains("Measured"), "{lines}");
    let summary = files::tx_summary(&sum);
    assert!(summary.contains("\ntpmC_partial,420.00,"), "{summary}");
    let whole = files::json(&merge(vec![part(2, 2), part(1, 2)]).unwrap());
    assert!(!whole.contains("partial"), "{whole}");
}

/// A partial sum is invalid even if all other checks hold and the pace is the specified one.
#[test]
fn a_partial_sum_is_never_valid() {
    let mut sum = without_the_second();
    let conditions = &mut sum.conditions;
    (conditions.pace, conditions.keying_thinking) = ("human".to_owned(), (1.0, 1.0));
    sum.conclude();
    let rejected = sum.run.rejected.clone().unwrap();
    assert!(
        rejected.starts_with("partial: worker 2 of 3 is missing; "),
        "{rejected}"
    );
    assert_eq!(sum.run.metrics.get("tpmc"), None);
    let check = &sum.validity[0];
    assert_eq!(
        (check.name.as_str(), check.verdict),
        ("all workers are in the sum", Verdict::Fails)
    );
    sum.validity.clear();
    assert!(!sum.all_checks_hold());
    sum.partial = None;
    assert!(sum.all_checks_hold());
}

/// If a merged record were merged again, it would look like the complete run of one host.
#[test]
fn a_sum_is_not_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("worker-1.json");
    let said = |text: &str| {
        fs::write(&file, text).unwrap();
        merge::read(&[dir.path().to_owned()])
            .unwrap_err()
            .to_string()
    };
    let refused = said(&files::json(&without_the_second()));
    let expected =
        "the file is a partial sum (worker 2 of 3 is missing); merge the files of the workers";
    assert!(refused.ends_with(expected), "{refused}");
    let whole = merge::merge(vec![part(1, 2), part(2, 2)]).unwrap();
    let refused = said(&files::json(&whole));
    assert!(refused.ends_with("the file is a merged record; merge the files of the workers"));
    let mut strange = part(1, 2).1;
    for share in [(3, 2), (0, 2), (1, u32::MAX)] {
        strange.conditions.share = share;
        let refused = said(&files::json(&strange));
        let expected = format!(
            "worker-1.json: worker {} of {} does not exist",
            share.0, share.1
        );
        assert!(refused.ends_with(&expected), "{refused}");
    }
}

#[test]
fn home_warehouses_are_those_of_the_present_terminals() {
    let of = |warehouses, terminals, fixed_warehouse| {
        let conditions = Conditions {
            warehouses,
            terminals,
            fixed_warehouse,
            ..conditions(Share { index: 1, of: 3 })
        };
        let partial = Partial::of(&conditions, vec![2, 3]);
        assert_eq!(partial.missing_workers(), "workers 2, 3 of 3 are missing");
        (partial.terminals, partial.warehouses, partial.of_warehouses)
    };
    // Six terminals in a thousand warehouses have six home warehouses.
    assert_eq!(of(1000, 6, true), (2, 2, 6));
    assert_eq!(of(1000, 6, false), (2, 1000, 1000));
    assert_eq!(of(1, 10, true), (4, 1, 1));
}
