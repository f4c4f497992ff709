//! Every format on one made-up history: a busy, an idle and a coarse interval, and a reset.

mod exposition;
mod strange;

use saiga_document::{html, text};

use super::*;
use crate::moment::Moment;
use crate::sample::{DriveId, Sample};
use crate::series::{Series, series};
use crate::source::{Counters, Source, Steps};
use crate::wear::Wear;

const GIB: u128 = 1 << 30;

/// Creates a sample of the drive `serial` at an hour of 2026-11-22; counters in units of 4 KiB.
fn sample(hour: i64, serial: &str, host: u128, media: u128) -> Sample {
    Sample {
        taken: Moment {
            unix_ms: 1_795_305_600_000 + hour * 3_600_000,
            boot: if hour < 4 { "a" } else { "b" }.to_owned(),
            since_boot_ms: hour * 3_600_000,
        },
        path: "/dev/nvme0".to_owned(),
        drive: DriveId {
            model: "HWE52P4, \"V5\"".to_owned(),
            serial: serial.to_owned(),
            group: None,
        },
        firmware: "1".to_owned(),
        source: Source::Huawei,
        steps: Steps {
            host: 4096,
            media: 8192,
        },
        counters: Counters { host, media },
        wear: None,
    }
}

fn history() -> Vec<Series> {
    series(&[
        sample(0, "S1", 100 * GIB, 200 * GIB),
        sample(1, "S1", 110 * GIB, 215 * GIB + 4096),
        sample(2, "S1", 110 * GIB, 216 * GIB),
        sample(3, "S1", 110 * GIB + 40 * 4096, 216 * GIB + 60 * 4096),
        sample(4, "S1", 5 * GIB, 7 * GIB),
        sample(5, "S1", 8 * GIB, 13 * GIB),
    ])
}

/// The output of calculate_wa.sh: 15 GiB and 4 KiB for 10 GiB; nothing for the idle hour; 240 KiB
/// for 160; nothing across the reset; 6 GiB for 3.
#[test]
fn compat_has_the_three_columns_of_the_script() {
    assert_eq!(
        compat(&history()),
        "15360 10240 1.50000\n0 0 1.50000\n6144 3072 2.00000\n"
    );
    assert_eq!(compat(&series(&[sample(0, "S1", 1, 1)])), "");
}

#[test]
fn json_is_complete_and_has_null_for_a_missing_factor() {
    let text = json(&history()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["format_version"], 1);
    let drive = &value["drives"][0];
    assert_eq!(drive["serial"], "S1");
    assert_eq!(drive["samples"], 6);
    assert_eq!(drive["total"]["host_bytes"], 13_958_807_552_u64);
    assert_eq!(drive["total"]["host_error_bytes"], 2 * 4096);
    let first = &drive["segments"][0];
    assert_eq!(first["begins_because"], "first sample");
    assert_eq!(first["source"], "huawei");
    assert_eq!(first["intervals"][0]["start"], "2026-11-22T00:00:00Z");
    assert_eq!(first["intervals"][0]["seconds"], 3600.0);
    assert_eq!(first["intervals"][0]["coarse"], false);
    assert!(first["intervals"][1]["waf"].is_null());
    assert_eq!(first["intervals"][2]["coarse"], true);
    let second = &drive["segments"][1];
    assert_eq!(
        second["begins_because"],
        "the host counter fell by 105 GiB to 5.00 GiB"
    );
    assert_eq!(second["intervals"][0]["waf"], 2.0);
}

/// Values above 64 bits are integers, too.
#[test]
fn large_numbers_are_exact() {
    let leap = 1_u128 << 70;
    let mut all = [sample(0, "S1", 0, 0), sample(1, "S1", leap, leap)];
    // Half a million years later, so that the rate is possible.
    all[1].taken.since_boot_ms = i64::MAX;
    assert!(
        json(&series(&all))
            .unwrap()
            .contains("\"host_bytes\": 1180591620717411303424")
    );
}

#[test]
fn csv_has_a_row_per_interval_and_quotes_what_needs_it() {
    let text = csv(&history()).unwrap();
    let mut table = ::csv::Reader::from_reader(text.as_bytes());
    let heading = table.headers().unwrap().clone();
    let rows: Vec<::csv::StringRecord> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4);
    let cell = |row: usize, name: &str| {
        let column = heading.iter().position(|own| own == name).unwrap();
        rows[row].get(column).unwrap().to_owned()
    };
    assert_eq!(cell(0, "model"), "HWE52P4, \"V5\"");
    assert_eq!(cell(0, "host_bytes"), "10737418240");
    assert_eq!(cell(1, "waf"), "");
    assert_eq!(cell(2, "coarse"), "true");
    assert_eq!(cell(3, "segment"), "2");
    assert_eq!(cell(3, "end"), "2026-11-22T05:00:00Z");
    assert_eq!(cell(3, "waf"), "2");
}

#[test]
fn prometheus_is_valid_and_follows_the_conventions() {
    let text = prometheus(&history());
    let families = exposition::parse(&text).unwrap();
    let value = |name: &str, label: Option<(&str, &str)>| {
        let family = families.iter().find(|family| family.name == name).unwrap();
        let mut rows = family.rows.iter().filter(|row| {
            label
                .is_none_or(|(key, value)| row.labels.contains(&(key.to_owned(), value.to_owned())))
        });
        rows.next().unwrap().value
    };
    assert_eq!(
        value("saiga_waf_host_written_bytes_total", None),
        8_589_934_592.0
    );
    assert_eq!(
        value("saiga_waf_media_written_bytes_total", None),
        13_958_643_712.0
    );
    let ratio = |window| {
        value(
            "saiga_waf_write_amplification_ratio",
            Some(("window", window)),
        )
    };
    assert_eq!(ratio("interval"), 2.0);
    assert_eq!(ratio("segment"), 2.0);
    assert!((ratio("all") - 22.0 / 13.0).abs() < 1e-4);
    assert_eq!(value("saiga_waf_segment_breaks", None), 1.0);
    assert_eq!(
        value("saiga_waf_last_sample_timestamp_seconds", None),
        1_795_323_600.0
    );
    let labels = &families[0].rows[0].labels;
    assert!(
        labels.contains(&("model".to_owned(), "HWE52P4, \"V5\"".to_owned())),
        "{labels:?}"
    );
    // A single sample has counters but no factor.
    let lone = prometheus(&series(&[sample(0, "S1", 1, 1)]));
    let families = exposition::parse(&lone).unwrap();
    assert!(
        families
            .iter()
            .all(|family| !family.name.ends_with("_ratio")),
        "{lone}"
    );
    assert_eq!(prometheus(&[]), "");
}

#[test]
fn the_page_names_unknown_values() {
    let all = history();
    let text = text::render(&document(&all, 24), text::Style::plain());
    for expected in [
        "Write amplification of HWE52P4, \"V5\" S1",
        "2026-11-22 00:00 to 2026-11-22 05:00 UTC",
        "no host writes counted: flash writes are the drive's own",
        "coarse: fewer than 50 steps of a counter",
        "the host counter fell by 105 GiB to 5.00 GiB",
        "Huawei ES3000 (log C0h)",
        "2.000",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let page = html::render(&document(&all, 24));
    assert!(
        page.contains("<svg") && page.contains("<polyline"),
        "the plot is missing"
    );
    assert!(page.contains("new segment: the host counter fell"));
    let short = text::render(&document(&all, 1), text::Style::plain());
    assert!(
        short.contains("3 earlier intervals are not listed; --rows 4 lists them"),
        "{short}"
    );
    assert!(!short.contains("coarse: under"), "{short}");
}

/// A series of ten days of a drive with a fifth of its life used.
fn worn() -> Vec<Series> {
    let wear = |host| {
        Some(Wear {
            used_percent: 20,
            spare_percent: 97,
            threshold_percent: 10,
            warnings: 0b100,
            host,
        })
    };
    let mut samples = [
        sample(0, "S1", GIB, GIB),
        sample(240, "S1", 2 * GIB, 2 * GIB),
    ];
    samples[0].wear = wear(900_000_000_000_000);
    samples[1].wear = wear(1_000_000_000_000_000);
    series(&samples)
}

#[test]
fn every_format_with_the_newest_state_has_the_drives_life() {
    let text = text::render(&document(&worn(), 24), text::Style::plain());
    for expected in [
        "20 %",
        "97 %; the drive warns below 10 %",
        "1000.0 TB",
        "about 5000.0 TB",
        "in about 400 days, at the rate of the 10 days of these samples",
        "critical warning: reliability degraded by media errors",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let value: serde_json::Value = serde_json::from_str(&json(&worn()).unwrap()).unwrap();
    let life = &value["drives"][0]["life"];
    assert_eq!(life["used_percent"], 20);
    assert_eq!(life["critical_warnings"][0], "reliability");
    assert_eq!(life["host_bytes_at_end"], 5_000_000_000_000_000_u64);
    assert_eq!(life["days_left"], 400.0);
    let families = exposition::parse(&prometheus(&worn())).unwrap();
    let rows = |name: &str| {
        let family = families.iter().find(|family| family.name == name).unwrap();
        family.rows.iter().map(|row| row.value).collect::<Vec<_>>()
    };
    assert_eq!(rows("saiga_waf_life_used_ratio"), [0.2]);
    // The life continues across a change of the source.
    let has_source = |name: &str| {
        let family = families.iter().find(|family| family.name == name).unwrap();
        family.rows[0]
            .labels
            .iter()
            .any(|(label, _)| label == "source")
    };
    assert!(!has_source("saiga_waf_life_used_ratio"));
    assert!(has_source("saiga_waf_host_written_bytes_total"));
    assert_eq!(rows("saiga_waf_spare_ratio"), [0.97]);
    assert_eq!(
        rows("saiga_waf_critical_warning"),
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(rows("saiga_waf_life_host_written_bytes_total"), [1e15]);
}

/// A rule on a metric that does not exist never fires.
#[test]
fn alerts_use_exported_metrics_only() {
    let families = exposition::parse(&prometheus(&worn())).unwrap();
    let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let asked: Vec<&str> = ALERTS
        .split(|letter| !is_part(letter))
        .filter(|word| word.starts_with("saiga_waf_"))
        .collect();
    assert!(asked.len() > 9, "{asked:?}");
    for name in asked {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

#[test]
fn one_sample_and_two_drives_have_a_page_too() {
    let one = text::render(
        &document(&series(&[sample(0, "S1", 1, 1)]), 24),
        text::Style::plain(),
    );
    assert!(one.contains("One sample so far"), "{one}");
    let two = series(&[
        sample(0, "S1", 0, 0),
        sample(0, "S2", 0, 0),
        sample(1, "S1", GIB, GIB),
        sample(1, "S2", GIB, 3 * GIB),
    ]);
    let two = text::render(&document(&two, 24), text::Style::plain());
    for expected in [
        "of 2 drives",
        "S1: WAF 1.000",
        "S2: WAF 3.000",
        "WAF, last interval, S2",
    ] {
        assert!(two.contains(expected), "{expected} is missing in\n{two}");
    }
}

/// The plot of a year by minutes is not larger than that of a week by hours.
#[test]
fn the_plot_does_not_grow_with_time() {
    let minute = |n: i64| {
        let mut one = sample(
            0,
            "S1",
            u128::try_from(n).unwrap() * GIB / 8,
            u128::try_from(n).unwrap() * GIB / 4,
        );
        one.taken.unix_ms += n * 60_000;
        one.taken.since_boot_ms += n * 60_000;
        one
    };
    let size = |count: i64| {
        let samples: Vec<Sample> = (0..count).map(minute).collect();
        html::render(&document(&series(&samples), 24)).len()
    };
    let (week, year) = (size(800), size(50_000));
    assert!(year < week + week / 10, "{week} bytes, then {year}");
}

#[test]
fn lines_of_the_watch_describe_the_sample() {
    let samples = [
        sample(0, "S1", 0, 0),
        sample(1, "S1", GIB, 2 * GIB),
        sample(2, "S1", GIB, 2 * GIB),
        sample(4, "S1", 0, 0),
    ];
    let said = |index: usize| {
        let since = crate::series::between(&samples[index - 1], &samples[index]);
        line(&samples[index], Some(&since))
    };
    assert!(line(&samples[0], None).ends_with("first sample, source Huawei ES3000 (log C0h)"));
    assert_eq!(
        said(1),
        "2026-11-22T01:00:00Z /dev/nvme0 HWE52P4, \"V5\" S1: host 1.00 GiB, flash 2.00 GiB in 1h; \
         WAF 2.000 (within 0.001)"
    );
    assert!(
        said(2).ends_with("host 0 B, flash 0 B in 1h; no writes counted"),
        "{}",
        said(2)
    );
    assert!(
        said(3).contains("new segment, the host counter fell"),
        "{}",
        said(3)
    );
}
