//! The results of a trace simulation as JSON.

use saiga_whatif::compare::{ceiling, placement_name, ratio, spared};
use saiga_whatif::document::policy_name;
use saiga_whatif::{By, Joined, Run};
use serde_json::{Value, json};

use super::super::suggested;
use super::format;
use super::outcome;
use super::trace::{TraceResults, devices};

/// The whole result; `device` is that of the first condition.
pub(super) fn json(found: &TraceResults<'_>, by: &[By]) -> anyhow::Result<Value> {
    let devices = devices(found)?;
    let runs = found.runs.iter().map(|run| case(run, found));
    Ok(json!({
        "trace": trace(found),
        "device": devices.first(),
        "devices": devices,
        "by": by.iter().map(|by| by.name()).collect::<Vec<_>>(),
        "sets": found.sets.iter().map(set).collect::<Vec<_>>(),
        "suggestion": found.suggestion.map(suggested::as_json),
        "cases": runs.collect::<Vec<_>>(),
        "notes": format::notes(found)?,
    }))
}

fn trace(found: &TraceResults<'_>) -> Value {
    let footprint = found.footprint;
    let totals = footprint.totals();
    json!({
        "path": found.path.display().to_string(),
        "files": found.trace.files.len(),
        "directories": found.trace.directories,
        "sampled": found.trace.sampled.map(suggested::sampling_json),
        "without": found.left_out.map(|left_out| json!({
            "name": left_out.name,
            "files": left_out.files,
            "written_bytes": left_out.written_bytes,
        })),
        "duration_s": totals.duration_ns as f64 / 1e9,
        "lost_events": found.trace.recorded.map(|recorded| recorded.lost),
        "writes": totals.writes,
        "written_bytes": totals.written_bytes,
        "partial_writes": totals.partial_writes,
        "discards": totals.discards,
        "discarded_bytes": totals.discarded_bytes,
        "page_bytes": found.page_bytes,
        "footprint_pages": footprint.pages(),
        "live_pages": { "mean": footprint.live().mean, "most": footprint.live().most },
        "present_pages": totals.present_pages,
        "written_pages": totals.written_pages,
        "distinct_written_pages": totals.distinct_written_pages,
        "writes_per_page": footprint.writes_per_page(),
    })
}

fn set(set: &Joined) -> Value {
    let rules = set.matches.iter().map(|rule| {
        json!({
            "pattern": rule.pattern,
            "stream": rule.stream,
            "stream_name": set.stream_name(rule.stream),
            "files": rule.files,
            "written_bytes": rule.written_bytes,
        })
    });
    json!({
        "name": set.name,
        "by": set.by.name(),
        "matched_bytes": set.matched_bytes(),
        "written_bytes": set.written_bytes,
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn case(run: &Run, found: &TraceResults<'_>) -> Value {
    let (case, runs) = (&run.case, found.runs);
    let directories = found.directories.map(|all| all.parts(case));
    let directories = directories.unwrap_or_default().into_iter().map(|part| {
        json!({
            "directory": part.name,
            "written_bytes": part.written_bytes,
            "host_pages": part.host_pages,
            "moved_pages": part.moved_pages,
            "waf": part.waf(),
            "caused_moved_pages": part.caused_pages,
            "share_of_moved": part.of_caused,
        })
    });
    json!({
        "rules": run.set,
        "by": run.by.name(),
        "placement": placement_name(run.placement),
        "without": run.without.as_deref(),
        "utilisation": run.condition.utilisation,
        "over_provisioning": run.condition.over_provisioning,
        "unit_pages": run.condition.unit_pages,
        "policy": policy_name(run.condition.policy),
        "trim": run.condition.trim,
        "streams": case.streams,
        "streams_without_handle": case.without_handle,
        "flash_writes_ratio": ratio(runs, run),
        "ceiling": ceiling(runs, run),
        "not_moved": spared(runs, run),
        "is_oracle": run.is_oracle,
        "by_directory": directories.collect::<Vec<_>>(),
        "result": outcome::as_json(&case.outcome, &case.classes),
    })
}
