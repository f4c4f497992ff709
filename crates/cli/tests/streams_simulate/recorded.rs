//! Recordings: rates count in the recorded time, and lost events are reported.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Installation, Said, said, text};
use crate::{must, trace};

/// A trace with writes in 20 ms of a recording of ten minutes.
fn recorded(saiga: &Installation, lost: u32) -> std::path::PathBuf {
    let file = saiga.path(&format!("{lost}.csv"));
    let text = format!("{}# recorded 600000000000, lost {lost}\n", trace());
    fs::write(&file, text).unwrap();
    file
}

fn suggest(saiga: &Installation, file: &Path, more: &[&str]) -> Said {
    let words = [
        "streams",
        "suggest",
        "--simulations",
        "0",
        "--trace",
        text(file),
    ];
    said(&mut saiga.saiga(&[&words, more].concat()))
}

#[test]
fn rates_count_in_the_recorded_time() {
    let saiga = Installation::bare();
    let file = recorded(&saiga, 0);
    let out = suggest(&saiga, &file, &[]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(
        out.stdout.contains("from a trace of 10 min 00 s, "),
        "{out:?}"
    );
    assert!(
        !out.stdout.contains("lost") && !out.stderr.contains("lost"),
        "{out:?}"
    );
    let found = suggest(&saiga, &file, &["--json"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(
        (&found["seconds"], &found["lost_events"]),
        (&600.0.into(), &0.into())
    );
    let mut classes = found["classes"].as_array().unwrap().iter();
    let slow = classes
        .find(|class| class["name"] == "db/slow.ibd")
        .unwrap();
    // Each page was written twice; within 20 ms that would be 180,000 times an hour.
    assert_eq!(
        (&slow["lifetime"]["class"], &slow["rewrites_per_hour"]),
        (&"long".into(), &6.0.into())
    );
    let simulated = must(&saiga, &["--trace", text(&file), "--rules", "none"]);
    assert!(
        simulated.stdout.contains(".csv, 10 min 00 s in 3 files"),
        "{simulated:?}"
    );
}

#[test]
fn lost_events_are_reported_wherever_the_trace_is_used() {
    let saiga = Installation::bare();
    let (file, page) = (recorded(&saiga, 7), saiga.path("page.html"));
    let out = suggest(&saiga, &file, &[]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(
        out.stderr
            .contains("warning: 7 EVENTS WERE LOST during the recording"),
        "{out:?}"
    );
    assert!(
        out.stdout
            .contains("The trace has holes: 7 events were lost."),
        "{out:?}"
    );
    let words = [
        "--trace",
        text(&file),
        "--rules",
        "none",
        "--report",
        text(&page),
    ];
    let out = must(&saiga, &words);
    assert!(
        out.stderr
            .contains("warning: 7 EVENTS WERE LOST during the recording"),
        "{out:?}"
    );
    assert!(out.stdout.contains("\nnote: 7 EVENTS WERE LOST"), "{out:?}");
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("7 EVENTS WERE LOST")
    );
    let found = crate::json(&saiga, &words);
    assert_eq!(found["trace"]["lost_events"], 7);
    let plain = saiga.path("plain.csv");
    fs::write(&plain, trace()).unwrap();
    let found = crate::json(&saiga, &["--trace", text(&plain), "--rules", "none"]);
    assert_eq!(found["trace"]["lost_events"], Value::Null, "nobody knows");
}
