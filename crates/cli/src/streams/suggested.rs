//! The search for rules in a trace, for `simulate` and `suggest`: progress, table and JSON.

use std::ops::ControlFlow;

use saiga_ftl::trace::{Sampling, Trace};
use saiga_whatif::measure::Age;
use saiga_whatif::suggest::{self, Class, Step, SuggestError, Suggestion};
use saiga_whatif::{Replays, format};
use serde_json::{Value, json};

use crate::exit;
use saiga_document::number;
use saiga_document::table::Table;

/// Maximum rows of the table; the classes with fewer writes are summed up.
const ROWS: usize = 30;
/// Simulations between two progress messages, for a sample and for the whole trace.
const WORD_EVERY: u32 = 50;
const COMPARED_EVERY: usize = 10;

/// The warning for a trace with lost events; `None` if no loss is recorded in it.
pub(super) fn holes(trace: &Trace) -> Option<String> {
    let lost = trace.lost();
    (lost > 0).then(|| {
        format!(
            "{lost} EVENTS WERE LOST during the recording: the trace has gaps, and results from \
             it are wrong; record again with a larger --buffer"
        )
    })
}

/// One sentence on the sampling of a trace.
pub(super) fn sample_words(sampling: Sampling) -> String {
    format!(
        "a sample: 1/{} of the pages, in granules of {}; byte counts are estimates for all pages",
        sampling.one_in(),
        number::bytes(sampling.granule_bytes())
    )
}

pub(super) fn sampling_json(sampling: Sampling) -> Value {
    json!({ "one_in": sampling.one_in(), "granule_bytes": sampling.granule_bytes() })
}

/// Searches for rules and prints progress to stderr. `is_given_up` ends the search.
pub(super) fn suggest(
    trace: &Trace,
    replays: &mut Replays<'_>,
    options: &suggest::Options,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Suggestion, SuggestError> {
    let mut said = None;
    let report = &mut |step: Step| {
        let line = match step {
            Step::Searching { made, most } if made.is_multiple_of(WORD_EVERY) => Some(format!(
                "searching for streams: {made} of at most {most} simulations"
            )),
            Step::Comparing { number, count } if (number - 1).is_multiple_of(COMPARED_EVERY) => {
                Some(format!(
                    "comparing with the built-in sets: simulation {number} of at most {count}"
                ))
            }
            Step::Searching { .. } | Step::Comparing { .. } => None,
        };
        if let Some(line) = line.filter(|_| said != Some(step)) {
            said = Some(step);
            exit::say(&line);
        }
        if is_given_up() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    suggest::suggest(trace, replays, options, report)
}

/// The classes as a table.
pub(super) fn table(classes: &[Class], seen_s: f64) -> String {
    let mut table = Table::new([
        "file",
        "written",
        "bytes",
        "half dead after",
        "hint",
        "stream",
        "",
    ]);
    for class in classes.iter().take(ROWS) {
        table.row([
            class.name.clone(),
            class.conclusion.description().to_owned(),
            number::bytes(class.evidence.written_bytes),
            class
                .evidence
                .lifetimes
                .quantile(0.5)
                .map_or("-".to_owned(), format::age),
            class.hint.to_string(),
            class.stream.clone(),
            class.conclusion.doubt(seen_s).unwrap_or_default(),
        ]);
    }
    let mut text = table.to_string();
    if let Some(left) = classes.len().checked_sub(ROWS).filter(|left| *left > 0) {
        text.push_str(&format!("{left} more classes with fewer writes\n"));
    }
    text
}

pub(super) fn as_json(suggestion: &Suggestion) -> Value {
    let classes = suggestion.classes.iter().map(|class| {
        let Class {
            name,
            files,
            evidence,
            conclusion,
            hint,
            stream,
        } = class;
        let quantile = |share| {
            let age = evidence.lifetimes.quantile(share);
            match age {
                None => Value::Null,
                Some(Age::Known(seconds)) => json!({ "s": seconds, "is_lower_bound": false }),
                Some(Age::MoreThan(seconds)) => json!({ "s": seconds, "is_lower_bound": true }),
            }
        };
        json!({
            "name": name,
            "files": files,
            "stream": stream,
            "hint": hint.name(),
            "behaviour": conclusion.description(),
            "written_bytes": evidence.written_bytes,
            "pages": evidence.pages,
            "rewrites_per_page": conclusion.rewrites_per_page,
            "rewrites_per_hour": conclusion.rewrites_per_h,
            "lifetime": {
                "class": conclusion.hint.name(),
                "or_class": conclusion.or.map(|class| class.name()),
                "quarter": quantile(0.25),
                "median": quantile(0.5),
                "three_quarters": quantile(0.75),
                "writes": evidence.lifetimes.count(),
                "ends_seen": evidence.lifetimes.ended(),
            },
            "doubt": conclusion.doubt(suggestion.seen_s),
        })
    });
    let searched = suggestion.searched.as_ref().map(|searched| {
        json!({
            "simulations": searched.simulations,
            "sample_pages": searched.pages,
            "waf_one_stream": searched.none,
            "waf_at_start": searched.start,
            "waf_found": searched.found,
        })
    });
    let whole = suggestion.whole.as_ref().map(|whole| {
        json!({
            "waf_one_stream": whole.none,
            "waf_by_stream": whole.by_stream,
            "waf_by_hint": whole.by_hint,
            "compared": whole.compared,
            "rules_of": whole.kept.as_ref().map(|kept| &kept.set),
            "found_was_worse": whole.kept.as_ref().map(|kept| kept.worse),
        })
    });
    json!({
        "seconds": suggestion.seen_s,
        "lost_events": suggestion.lost,
        "sampled": suggestion.sampled.map(sampling_json),
        "classes": classes.collect::<Vec<_>>(),
        "search": searched,
        "whole_trace": whole,
        "files_outside": suggestion.skipped,
        "rules": suggestion.rules.to_toml(),
    })
}
