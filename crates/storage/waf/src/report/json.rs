//! Formats reports and probes as JSON, `format_version` 1. Bytes are integers of up to 128 bits.

use serde::Serialize;

use crate::identity::Identity;
use crate::ratio::Written;
use crate::series::{Interval, Segment, Series};
use crate::source::{Counters, Source, Unusable};
use crate::wear::outlook;

#[derive(Serialize)]
struct Report<'a> {
    format_version: u32,
    drives: Vec<Drive<'a>>,
}

#[derive(Serialize)]
struct Drive<'a> {
    model: &'a str,
    serial: &'a str,
    endurance_group: Option<u16>,
    path: Option<&'a str>,
    firmware: Option<&'a str>,
    samples: usize,
    /// From the newest sample; `null` if the drive does not report its wear.
    life: Option<Life>,
    total: Window,
    segments: Vec<SegmentRow<'a>>,
}

#[derive(Serialize)]
struct Life {
    used_percent: u8,
    spare_percent: u8,
    spare_threshold_percent: u8,
    critical_warnings: Vec<&'static str>,
    /// `null` if the drive does not report it.
    host_bytes: Option<u128>,
    /// `null` while too little of the life is used for an estimate.
    host_bytes_at_end: Option<u128>,
    days_left: Option<f64>,
}

#[derive(Serialize)]
struct SegmentRow<'a> {
    begins_because: String,
    source: &'static str,
    firmware: &'a str,
    host_step_bytes: u128,
    media_step_bytes: u128,
    start: String,
    end: String,
    total: Window,
    intervals: Vec<IntervalRow>,
}

#[derive(Serialize)]
struct IntervalRow {
    start: String,
    end: String,
    seconds: Option<f64>,
    reboot: bool,
    #[serde(flatten)]
    window: Window,
}

#[derive(Serialize)]
struct Window {
    host_bytes: u128,
    media_bytes: u128,
    host_error_bytes: u128,
    media_error_bytes: u128,
    /// `null` without host writes.
    waf: Option<f64>,
    waf_low: Option<f64>,
    waf_high: Option<f64>,
    coarse: bool,
}

impl From<Written> for Window {
    fn from(written: Written) -> Self {
        let waf = written.waf();
        Self {
            host_bytes: written.host,
            media_bytes: written.media,
            host_error_bytes: written.host_error,
            media_error_bytes: written.media_error,
            waf: waf.map(|waf| waf.value),
            waf_low: waf.map(|waf| waf.low),
            waf_high: waf.and_then(|waf| waf.high),
            coarse: waf.is_some_and(|waf| waf.is_coarse),
        }
    }
}

/// Formats all series with all intervals.
///
/// # Errors
/// Never in practice: every value can be encoded.
pub fn json(all: &[Series]) -> serde_json::Result<String> {
    let drives = all.iter().map(|series| {
        let last = series.last();
        Drive {
            model: &series.drive.model,
            serial: &series.drive.serial,
            endurance_group: series.drive.group,
            path: last.map(|sample| sample.path.as_str()),
            firmware: last.map(|sample| sample.firmware.as_str()),
            samples: series.samples(),
            life: life(series),
            total: series.written().into(),
            segments: series.segments.iter().map(segment_row).collect(),
        }
    });
    let report = Report {
        format_version: 1,
        drives: drives.collect(),
    };
    serde_json::to_string_pretty(&report)
}

fn life(series: &Series) -> Option<Life> {
    let wear = series.last()?.wear?;
    let outlook = outlook(series);
    Some(Life {
        used_percent: wear.used_percent,
        spare_percent: wear.spare_percent,
        spare_threshold_percent: wear.threshold_percent,
        critical_warnings: wear.warnings().map(|(name, _)| name).collect(),
        host_bytes: (wear.host > 0).then_some(wear.host),
        host_bytes_at_end: outlook.map(|outlook| outlook.host_at_end),
        days_left: outlook
            .and_then(|outlook| outlook.pace)
            .map(|pace| pace.left_days),
    })
}

fn segment_row(segment: &Segment) -> SegmentRow<'_> {
    SegmentRow {
        begins_because: segment.start.to_string(),
        source: segment.first.source.name(),
        firmware: &segment.first.firmware,
        host_step_bytes: segment.first.steps.host,
        media_step_bytes: segment.first.steps.media,
        start: segment.first.taken.rfc3339(),
        end: segment.last.taken.rfc3339(),
        total: segment.written().into(),
        intervals: segment.intervals.iter().map(interval_row).collect(),
    }
}

fn interval_row(interval: &Interval) -> IntervalRow {
    IntervalRow {
        start: interval.start.rfc3339(),
        end: interval.end.rfc3339(),
        seconds: interval.seconds(),
        reboot: interval.has_reboot(),
        window: interval.written.into(),
    }
}

#[derive(Serialize)]
struct Probed<'a> {
    model: &'a str,
    serial: &'a str,
    firmware: &'a str,
    vendor: String,
    endurance_groups: Vec<u16>,
    fdp: bool,
    streams: Option<u16>,
    sources: Vec<ProbedSource>,
}

#[derive(Serialize)]
struct ProbedSource {
    source: &'static str,
    usable: bool,
    host_bytes: Option<u128>,
    media_bytes: Option<u128>,
    host_step_bytes: u128,
    media_step_bytes: u128,
    reason: Option<String>,
}

/// Formats the identity of a drive and the result of each source.
///
/// # Errors
/// Never in practice: every value can be encoded.
pub fn probed(
    identity: &Identity,
    sources: &[(Source, Result<Counters, Unusable>)],
) -> serde_json::Result<String> {
    let sources = sources.iter().map(|(source, read)| {
        let counters = read.as_ref().ok();
        ProbedSource {
            source: source.name(),
            usable: counters.is_some(),
            host_bytes: counters.map(|counters| counters.host),
            media_bytes: counters.map(|counters| counters.media),
            host_step_bytes: source.steps().host,
            media_step_bytes: source.steps().media,
            reason: read.as_ref().err().map(ToString::to_string),
        }
    });
    serde_json::to_string_pretty(&Probed {
        model: &identity.model,
        serial: &identity.serial,
        firmware: &identity.firmware,
        vendor: format!("{:04x}", identity.vendor),
        endurance_groups: identity.group.all(),
        fdp: identity.fdp,
        streams: identity.streams,
        sources: sources.collect(),
    })
}
