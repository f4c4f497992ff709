//! Formats the newest counters and factors of each drive as Prometheus text exposition 0.0.4.
//!
//! For the node exporter's textfile collector. The counters are the drive's own, so that `rate()`
//! works and a reset of the drive is a counter reset. Deliberately absent: timestamps of samples,
//! which that collector refuses.

use std::fmt::Write as _;

use crate::ratio::Written;
use crate::series::Series;
use crate::wear::WARNINGS;

/// A metric family.
struct Family {
    name: &'static str,
    /// Whether it has the label `source`.
    is_of_source: bool,
    kind: &'static str,
    help: &'static str,
}

const HOST: Family = Family {
    name: "saiga_waf_host_written_bytes_total",
    is_of_source: true,
    kind: "counter",
    help: "Bytes written by the host, by the drive's own counter.",
};
const MEDIA: Family = Family {
    name: "saiga_waf_media_written_bytes_total",
    is_of_source: true,
    kind: "counter",
    help: "Bytes written to flash, by the drive's own counter.",
};
const RATIO: Family = Family {
    name: "saiga_waf_write_amplification_ratio",
    is_of_source: true,
    kind: "gauge",
    help: "Flash writes divided by host writes; absent for a window without host writes.",
};
const LOW: Family = Family {
    name: "saiga_waf_write_amplification_low_ratio",
    is_of_source: true,
    kind: "gauge",
    help: "Lower bound of the factor, from the steps of the counters.",
};
const HIGH: Family = Family {
    name: "saiga_waf_write_amplification_high_ratio",
    is_of_source: true,
    kind: "gauge",
    help: "Upper bound of the factor, from the steps of the counters.",
};
const STEP: Family = Family {
    name: "saiga_waf_counter_step_bytes",
    is_of_source: true,
    kind: "gauge",
    help: "Step by which a counter grows.",
};
const BREAKS: Family = Family {
    name: "saiga_waf_segment_breaks",
    is_of_source: true,
    kind: "gauge",
    help: "Number of times that the counters of the drive were not continuous.",
};
const TAKEN: Family = Family {
    name: "saiga_waf_last_sample_timestamp_seconds",
    is_of_source: false,
    kind: "gauge",
    help: "Time of the newest sample, in seconds since 1970.",
};
const USED: Family = Family {
    name: "saiga_waf_life_used_ratio",
    is_of_source: false,
    kind: "gauge",
    help: "Share of the rated life that is used, by the drive's own estimate; may exceed 1.",
};
const SPARE: Family = Family {
    name: "saiga_waf_spare_ratio",
    is_of_source: false,
    kind: "gauge",
    help: "Share of the spare blocks that are left.",
};
const THRESHOLD: Family = Family {
    name: "saiga_waf_spare_threshold_ratio",
    is_of_source: false,
    kind: "gauge",
    help: "Share of the spare blocks below which the drive warns.",
};
const WARNING: Family = Family {
    name: "saiga_waf_critical_warning",
    is_of_source: false,
    kind: "gauge",
    help: "1 if the drive gives this critical warning, 0 otherwise.",
};
const WORN: Family = Family {
    name: "saiga_waf_life_host_written_bytes_total",
    is_of_source: false,
    kind: "counter",
    help: "Bytes written by the host over the life of the drive (TBW), by its health page.",
};

/// Formats the newest state of all series.
#[must_use]
pub fn prometheus(all: &[Series]) -> String {
    let mut page = Page(String::new());
    page.family(&HOST, all, |series, row| {
        row(
            &[],
            series.last().map(|last| last.counters.host.to_string()),
        );
    });
    page.family(&MEDIA, all, |series, row| {
        row(
            &[],
            series.last().map(|last| last.counters.media.to_string()),
        );
    });
    page.family(&RATIO, all, |series, row| {
        for (window, written) in windows(series) {
            row(
                &[("window", window)],
                written.waf().map(|waf| waf.value.to_string()),
            );
        }
    });
    page.family(&LOW, all, |series, row| {
        for (window, written) in windows(series) {
            row(
                &[("window", window)],
                written.waf().map(|waf| waf.low.to_string()),
            );
        }
    });
    page.family(&HIGH, all, |series, row| {
        for (window, written) in windows(series) {
            let high = written.waf().map(|waf| waf.high.unwrap_or(f64::INFINITY));
            let high = high.map(|high| {
                if high.is_finite() {
                    high.to_string()
                } else {
                    "+Inf".to_owned()
                }
            });
            row(&[("window", window)], high);
        }
    });
    page.family(&STEP, all, |series, row| {
        let steps = series.last().map(|last| last.steps);
        row(
            &[("counter", "host")],
            steps.map(|steps| steps.host.to_string()),
        );
        row(
            &[("counter", "media")],
            steps.map(|steps| steps.media.to_string()),
        );
    });
    page.family(&BREAKS, all, |series, row| {
        row(
            &[],
            Some((series.segments.len().saturating_sub(1)).to_string()),
        );
    });
    page.family(&TAKEN, all, |series, row| {
        let taken = series.last().map(|last| last.taken.unix_ms);
        row(
            &[],
            taken.map(|ms| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))),
        );
    });
    wear(&mut page, all);
    page.0
}

fn wear(page: &mut Page, all: &[Series]) {
    let newest = |series: &Series| series.last().and_then(|last| last.wear);
    let percent = |percent: u8| (f64::from(percent) / 100.0).to_string();
    page.family(&USED, all, |series, row| {
        row(&[], newest(series).map(|wear| percent(wear.used_percent)));
    });
    page.family(&SPARE, all, |series, row| {
        row(&[], newest(series).map(|wear| percent(wear.spare_percent)));
    });
    page.family(&THRESHOLD, all, |series, row| {
        let threshold = newest(series).map(|wear| wear.threshold_percent);
        row(&[], threshold.map(percent));
    });
    page.family(&WARNING, all, |series, row| {
        for (bit, (name, _)) in WARNINGS.iter().enumerate() {
            let given = newest(series).map(|wear| wear.warnings >> bit & 1);
            row(&[("warning", name)], given.map(|given| given.to_string()));
        }
    });
    page.family(&WORN, all, |series, row| {
        let host = newest(series)
            .map(|wear| wear.host)
            .filter(|host| *host > 0);
        row(&[], host.map(|host| host.to_string()));
    });
}

/// Returns the windows whose factors are exported.
fn windows(series: &Series) -> [(&'static str, Written); 3] {
    let segment = series.segments.last();
    let last = segment.and_then(|segment| segment.intervals.last());
    [
        (
            "interval",
            last.map_or(Written::default(), |last| last.written),
        ),
        (
            "segment",
            segment.map_or(Written::default(), |segment| segment.written()),
        ),
        ("all", series.written()),
    ]
}

struct Page(String);

/// Adds a row with further labels, if there is a value.
type Row<'a> = dyn FnMut(&[(&str, &str)], Option<String>) + 'a;

impl Page {
    fn family(&mut self, family: &Family, all: &[Series], rows: impl Fn(&Series, &mut Row<'_>)) {
        let Family {
            name,
            is_of_source,
            kind,
            help,
        } = family;
        let mut lines = String::new();
        for series in all {
            let mut row = |more: &[(&str, &str)], value: Option<String>| {
                if let Some(value) = value {
                    // Writing to a string never fails.
                    let _ = writeln!(
                        lines,
                        "{name}{{{}}} {value}",
                        labels(series, *is_of_source, more)
                    );
                }
            };
            rows(series, &mut row);
        }
        if !lines.is_empty() {
            self.0.push_str(&format!(
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}"
            ));
        }
    }
}

fn labels(series: &Series, is_of_source: bool, more: &[(&str, &str)]) -> String {
    let source = series.last().filter(|_| is_of_source);
    let group = series.drive.group.map(|group| group.to_string());
    let own = [
        ("model", Some(series.drive.model.as_str())),
        ("serial", Some(series.drive.serial.as_str())),
        ("endurance_group", group.as_deref()),
        ("source", source.map(|last| last.source.name())),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let all = own.chain(more.iter().copied());
    let all = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    all.collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
