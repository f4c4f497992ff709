//! Replays on simulated devices: exact results, a database's mix, and the effect of options.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod mix;
use bench::assert_near;
use mix::{Maker, mysql};

use saiga_ftl::replay::{
    Case, Footprint, Options, Placement, ReplayError, Rules, device, oracle, replay, silent,
};
use saiga_ftl::steady::Length;
use saiga_ftl::trace::{Op, Row, Sampling, Trace};
use saiga_ftl::{ConfigError, Counting};

fn documented(file: Option<&str>) -> usize {
    match file {
        Some(name) if name.starts_with("ib_logfile") => 2,
        Some(name) if name.contains("mysql-bin") => 5,
        _ => 0,
    }
}

fn with_doublewrite(file: Option<&str>) -> usize {
    match file {
        Some(name) if name.ends_with(".dblwr") => 6,
        other => documented(other),
    }
}

fn run(footprint: &Footprint, rules: &dyn Rules, placement: Placement, options: &Options) -> Case {
    replay(footprint, rules, placement, options, &mut silent).unwrap()
}

fn options(over_provisioning: f64, utilisation: f64) -> Options {
    Options {
        utilisation,
        over_provisioning,
        unit_pages: Some(64),
        counting: Counting::ClosedUnits,
        ..Options::default()
    }
}

/// The table of a prototype in C: one stream, the documented rules, and rules with a stream for the
/// doublewrite files, initially and persistently isolated.
#[test]
fn a_mix_like_that_of_mysql_has_the_gains_of_the_prototype() {
    for (over_provisioning, used, expected) in [
        (0.07, 70, [1.81, 1.64, 1.61, 1.52, 1.39]),
        (0.28, 90, [2.03, 1.83, 1.78, 1.56, 1.45]),
    ] {
        let footprint = mysql(used, [40, 40, 12, 8]).footprint();
        let options = options(over_provisioning, used as f64 / 100.0);
        let [ii, pi] = [
            Placement::InitiallyIsolated,
            Placement::PersistentlyIsolated,
        ];
        let cases: [(&dyn Rules, Placement); 5] = [
            (&documented, Placement::OneStream),
            (&documented, ii),
            (&documented, pi),
            (&with_doublewrite, ii),
            (&with_doublewrite, pi),
        ];
        let found = cases
            .map(|(rules, placement)| run(&footprint, rules, placement, &options).outcome.waf());
        for (found, expected) in found.into_iter().zip(expected) {
            // The prototype's units have 256 pages, and its writes never repeat themselves.
            let tolerance = if expected == 1.52 { 0.09 } else { 0.06 };
            assert_near(found, expected, tolerance, (over_provisioning, used));
        }
        let [one, documented_ii, documented_pi, dblwr_ii, dblwr_pi] = found;
        assert!(
            one > documented_ii && documented_ii > documented_pi,
            "{found:?}"
        );
        assert!(documented_pi > dblwr_ii && dblwr_ii > dblwr_pi, "{found:?}");
    }
}

/// The oracle knows when each page dies, which no rules know.
#[test]
fn the_oracle_is_better_than_rules() {
    for used in [70, 90] {
        let footprint = mysql(used, [40, 40, 12, 8]).footprint();
        let options = options(0.07, used as f64 / 100.0);
        let (_, best) = oracle(&footprint, &options, &mut silent).unwrap();
        let rules = run(
            &footprint,
            &with_doublewrite,
            Placement::PersistentlyIsolated,
            &options,
        );
        let (oracle, rules) = (best.outcome.waf(), rules.outcome.waf());
        assert!(1.0 <= oracle && oracle < rules, "{used}: {oracle} {rules}");
        let written: u64 = best.classes.iter().map(|class| class.written_pages).sum();
        assert_eq!(written, footprint.totals().written_pages);
    }
}

#[test]
fn a_ring_has_a_factor_of_one_under_any_placement() {
    let mut maker = Maker::default();
    let file = maker.file("ib_logfile0");
    (0..5000).for_each(|page| maker.row(Op::Write, 7 * page, 1, file));
    let footprint = maker.footprint();
    assert_eq!(footprint.pages(), 5000);
    for placement in [Placement::OneStream, Placement::PersistentlyIsolated] {
        let case = run(&footprint, &documented, placement, &options(0.07, 1.0));
        assert_eq!(case.outcome.waf(), 1.0, "{placement:?}");
        // 8 sizes of warm-up and 4 of measurement, in whole repetitions.
        assert_eq!(case.outcome.repetitions, [8, 4]);
        assert_eq!(case.outcome.warm_up_pages, 40_000);
    }
}

#[test]
fn repetitions_reach_the_device_size_for_any_trace() {
    let mut maker = Maker::default();
    let file = maker.file("t");
    maker.row(Op::Present, 0, 6000, file);
    (0..700).for_each(|page| maker.row(Op::Write, page * 8, 1, file));
    let length = Length {
        warm_up: 8,
        measured: 1,
    };
    let options = Options {
        length,
        ..options(0.1, 0.5)
    };
    let case = run(
        &maker.footprint(),
        &documented,
        Placement::OneStream,
        &options,
    );
    // 12,000 logical pages: 96,000 writes are 137.1 repetitions, and 12,000 are 17.1.
    assert_eq!(case.outcome.repetitions, [138, 18]);
    assert_eq!(case.outcome.measured.host_pages(), 18 * 700);
}

/// Traces must be long, because each repetition rewrites pages in the same order.
#[test]
fn a_short_trace_looks_like_a_ring() {
    const PAGES: u64 = 100_000;
    for (writes_per_page, least, most) in [(0.25, 0.0, 0.7), (4.0, 0.97, 1.03)] {
        let mut maker = Maker::default();
        let file = maker.file("t");
        maker.row(Op::Present, 0, PAGES, file);
        let mut random = fastrand::Rng::with_seed(5);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small"
        )]
        let writes = (PAGES as f64 * writes_per_page) as u64;
        for _ in 0..writes {
            maker.row(Op::Write, random.u64(0..PAGES), 1, file);
        }
        let options = options(0.15, 1.0);
        let case = run(
            &maker.footprint(),
            &documented,
            Placement::OneStream,
            &options,
        );
        // Greedy with 64 pages, from the prototype's table.
        let share = case.outcome.waf() / 3.8;
        assert!((least..most).contains(&share), "{writes_per_page}: {share}");
    }
}

/// With a discard, a deleted file is spare space; without one, it is data.
#[test]
fn discards_reduce_write_amplification() {
    let footprint = mysql(90, [70, 0, 10, 20]).footprint();
    let waf = |trim| {
        let options = Options {
            trim,
            ..options(0.07, 0.9)
        };
        let case = run(&footprint, &documented, Placement::OneStream, &options);
        let trimmed: u64 = case.outcome.measured.trimmed.iter().sum();
        assert_eq!(trimmed > 0, trim);
        case.outcome.waf()
    };
    let (with, without) = (waf(true), waf(false));
    assert!(with < without, "{with} {without}");
}

/// Deleted logs use more pages over time than the device has.
#[test]
fn utilisation_is_relative_to_live_pages() {
    let mut maker = Maker::default();
    let table = maker.file("t");
    let logs: Vec<u32> = (0..8).map(|i| maker.file(&format!("log.{i}"))).collect();
    maker.row(Op::Present, 0, 8000, table);
    let mut random = fastrand::Rng::with_seed(5);
    for (turn, log) in (0..8_u64).zip(logs) {
        let first = |turn: u64| 10_000 + turn % 8 * 1000;
        for page in 0..1000 {
            maker.row(Op::Write, first(turn) + page, 1, log);
            maker.row(Op::Write, random.u64(0..8000), 1, table);
        }
        maker.row(Op::Discard, first(turn), 1000, log);
    }
    let footprint = maker.footprint();
    let live = footprint.live();
    assert_eq!((footprint.pages(), live.most), (16_000, 9000));
    assert_near(live.mean, 8500.0, 0.001, "half a log in the mean");
    let base = options(0.28, 0.9);
    let found = |trim| {
        let options = Options {
            trim,
            ..base.clone()
        };
        let case = run(&footprint, &documented, Placement::OneStream, &options);
        assert!(case.logical_pages < footprint.pages());
        case.outcome.waf()
    };
    let (with, without) = (found(true), found(false));
    assert!(1.0 < with && with < without, "{with} {without}");
    let full = Options {
        utilisation: 0.95,
        ..base.clone()
    };
    let error = device(&footprint, &full).unwrap_err().to_string();
    assert!(
        error.contains("up to 9000 pages hold data") && error.ends_with("use 0.944 or less"),
        "{error}"
    );
}

/// The sample of `record --sample`: the same mix in an eighth of its pages, with a device and units
/// of an eighth.
#[test]
fn the_waf_of_a_sample_is_that_of_the_whole() {
    let maker = mysql(70, [40, 40, 12, 8]);
    let whole = maker.footprint();
    let sampling = Sampling::new(8).unwrap();
    let rows = maker.trace.rows.iter().filter_map(|row| {
        let kept = sampling.range(&(row.lba..row.lba + row.len));
        let (lba, len) = (kept.start, kept.end - kept.start);
        (len > 0).then_some(Row { lba, len, ..row })
    });
    let sample = Trace {
        rows: rows.collect(),
        sampled: Some(sampling),
        ..maker.trace.clone()
    };
    assert!((sample.rows.len() as u64) * 7 < whole.totals().writes);
    let sample = Footprint::of(&sample, mix::PAGE).unwrap();
    let near = |found: u64, expected: u64, percent: u64| {
        assert!(
            found.abs_diff(expected) * 100 < percent * expected,
            "{found} {expected}"
        );
    };
    near(sample.pages().into(), u64::from(whole.pages()) / 8, 1);
    near(
        sample.totals().written_bytes,
        whole.totals().written_bytes,
        4,
    );
    for (rules, placement) in [
        (&documented as &dyn Rules, Placement::OneStream),
        (&documented, Placement::PersistentlyIsolated),
        (&with_doublewrite, Placement::InitiallyIsolated),
    ] {
        let waf = |footprint, unit_pages| {
            let options = Options {
                unit_pages: Some(unit_pages),
                ..options(0.07, 0.7)
            };
            run(footprint, rules, placement, &options).outcome.waf()
        };
        let (whole, sample) = (waf(&whole, 256), waf(&sample, 32));
        assert!(
            (sample / whole - 1.0).abs() < 0.04,
            "{placement:?}: {sample} {whole}"
        );
    }
}

#[test]
fn classes_show_the_causes_of_moved_pages() {
    let footprint = mysql(90, [40, 40, 12, 8]).footprint();
    let case = run(
        &footprint,
        &documented,
        Placement::OneStream,
        &options(0.07, 0.9),
    );
    let number = |name: &str| {
        case.classes
            .iter()
            .position(|class| class.name == name)
            .unwrap()
    };
    let measured = &case.outcome.measured;
    let (data, dblwr) = (number("db/t.ibd"), number("#ib_16384_0.dblwr"));
    // The doublewrite ring dies at once; data remain beside it.
    assert!(measured.moved[data] > 20 * measured.moved[dblwr]);
    let share = measured.charged[dblwr][data] / measured.moved_pages() as f64;
    assert!(share > 0.1, "{share}");
    assert_eq!(case.streams, [0]);

    let case = run(
        &footprint,
        &with_doublewrite,
        Placement::PersistentlyIsolated,
        &options(0.07, 0.9),
    );
    let number = |name: &str| {
        case.classes
            .iter()
            .position(|class| class.name == name)
            .unwrap()
    };
    let (data, dblwr) = (number("db/t.ibd"), number("#ib_16384_0.dblwr"));
    assert_eq!(case.streams, [0, 2, 5, 6]);
    assert_ne!(data, dblwr);
    // Data are only moved because of data.
    for (died, row) in case.outcome.measured.charged.iter().enumerate() {
        assert_eq!(row[data] > 0.0, died == data, "{died}");
    }
}

#[test]
fn streams_without_a_handle_share_the_first() {
    let footprint = mysql(70, [40, 40, 12, 8]).footprint();
    let few = Options {
        handles: 2,
        ..options(0.07, 0.7)
    };
    let case = run(
        &footprint,
        &with_doublewrite,
        Placement::InitiallyIsolated,
        &few,
    );
    assert_eq!(
        (&case.streams[..], &case.without_handle[..]),
        (&[0, 2, 5, 6][..], &[5, 6][..])
    );
    let enough = run(
        &footprint,
        &with_doublewrite,
        Placement::InitiallyIsolated,
        &options(0.07, 0.7),
    );
    assert!(case.outcome.waf() > enough.outcome.waf());
}

#[test]
fn invalid_options_are_named() {
    let mut maker = Maker::default();
    let file = maker.file("t");
    maker.row(Op::Write, 0, 100, file);
    let footprint = maker.footprint();
    let base = Options::default();
    for (options, text) in [
        (
            Options {
                utilisation: 0.0,
                ..base.clone()
            },
            "utilisation 0:",
        ),
        (
            Options {
                utilisation: f64::NAN,
                ..base.clone()
            },
            "utilisation NaN:",
        ),
        (
            Options {
                handles: 0,
                ..base.clone()
            },
            "0 handles: use 1 to 128",
        ),
        (
            Options {
                utilisation: 1e-9,
                ..base.clone()
            },
            "more than 2^32 logical pages",
        ),
    ] {
        let error = device(&footprint, &options).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    // A footprint of 100 pages leaves no spare unit in addition to the open ones.
    let found = replay(
        &footprint,
        &documented,
        Placement::OneStream,
        &base,
        &mut silent,
    );
    let is_small = matches!(
        found,
        Err(ReplayError::Config(ConfigError::TooSmall { .. }))
    );
    assert!(is_small, "{found:?}");
    let stop = &mut |_| std::ops::ControlFlow::Break(());
    let maker = mysql(70, [40, 40, 12, 8]);
    let found = replay(
        &maker.footprint(),
        &documented,
        Placement::OneStream,
        &base,
        stop,
    );
    assert_eq!(found, Err(ReplayError::Interrupted));
}
