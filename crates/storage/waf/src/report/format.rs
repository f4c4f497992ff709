//! Formats factors, bounds, times and samples as text.

use std::time::Duration;

use crate::moment::rfc3339;
use crate::ratio::{Waf, Written};
use crate::sample::Sample;
use crate::series::{Interval, Start};
use saiga_document::number::bytes;

/// Formats a factor with three decimals, more than the accuracy of most counters; `idle` without
/// one.
pub(super) fn factor(waf: Option<Waf>) -> String {
    waf.map_or_else(|| "idle".to_owned(), |waf| format!("{:.3}", waf.value))
}

/// Formats the factor of a window; a dash if nothing was measured.
pub(super) fn measured(written: Option<Written>) -> String {
    written.map_or_else(|| "–".to_owned(), |written| factor(written.waf()))
}

/// Formats bounds: `1.240 to 1.252`, `within 0.001`, `exact`, or nothing for an idle window.
pub(super) fn bounds(waf: Option<Waf>) -> String {
    let Some(Waf { low, high, .. }) = waf else {
        return String::new();
    };
    match high {
        None => format!("{low:.3} or more"),
        Some(high) if low == high => "exact".to_owned(),
        Some(high) if high - low < 0.001 => "within 0.001".to_owned(),
        Some(high) => format!("{low:.3} to {high:.3}"),
    }
}

/// Formats a length of time, from a minute on in whole seconds.
pub(super) fn length(seconds: Option<f64>) -> String {
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        None => "clock set back".to_owned(),
        Some(length) if length.as_secs() < 60 => format!("{:.1} s", length.as_secs_f64()),
        Some(length) => {
            humantime::format_duration(Duration::from_secs(length.as_secs())).to_string()
        }
    }
}

/// Formats a time to the minute: `2026-11-22 07:00`.
pub(super) fn minute(unix_ms: i64) -> String {
    let text = rfc3339(unix_ms);
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// Returns remarks on an interval: idle, coarse, restarted.
pub(super) fn remarks(written: Written, has_reboot: bool) -> Vec<&'static str> {
    let waf = written.waf();
    let mut remarks = Vec::new();
    match waf {
        None if written.media > 0 => {
            remarks.push("no host writes counted: flash writes are the drive's own")
        }
        None => remarks.push("no writes counted"),
        Some(waf) if waf.is_coarse => remarks.push("coarse: fewer than 50 steps of a counter"),
        Some(_) => {}
    }
    if has_reboot {
        remarks.push("host restarted");
    }
    remarks
}

/// Formats a new sample in one line.
#[must_use]
pub fn line(sample: &Sample, since: Option<&Result<Interval, Start>>) -> String {
    let head = format!(
        "{} {} {}",
        sample.taken.rfc3339(),
        sample.path,
        sample.drive
    );
    match since {
        None => format!("{head}: first sample, source {}", sample.source.title()),
        Some(Err(start)) => format!("{head}: new segment, {start}"),
        Some(Ok(interval)) => {
            let written = interval.written;
            let waf = written.waf();
            let mut words = vec![format!(
                "host {}, flash {} in {}",
                bytes(written.host),
                bytes(written.media),
                length(interval.seconds())
            )];
            words.extend(waf.map(|it| match bounds(waf).as_str() {
                "exact" => format!("WAF {:.3}", it.value),
                bounds => format!("WAF {:.3} ({bounds})", it.value),
            }));
            words.extend(
                remarks(written, interval.has_reboot())
                    .into_iter()
                    .map(str::to_owned),
            );
            format!("{head}: {}", words.join("; "))
        }
    }
}
