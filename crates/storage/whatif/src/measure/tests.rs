//! Synthetic rows with known results.

use saiga_ftl::trace::Recorded;
use saiga_streams::Hint;

use super::conclusion::conclude;
use super::*;

const PAGE: u64 = 4096;
const S: u64 = 1_000_000_000;

/// Builds rows of some files.
struct Maker {
    watcher: LifetimeMeter,
    now_ns: u64,
}

impl Maker {
    fn new(files: &[&str]) -> Self {
        let mut watcher = LifetimeMeter::new(PAGE);
        files.iter().for_each(|name| watcher.add_file(name));
        Self { watcher, now_ns: 0 }
    }

    fn row(&mut self, op: Op, first: u64, pages: u64, file: u32) {
        self.watcher.add_row(&Row {
            t_ns: self.now_ns,
            lba: first * PAGE,
            len: pages * PAGE,
            op,
            file: Some(file),
        });
    }

    /// Writes, and advances the time by a second.
    fn write(&mut self, first: u64, pages: u64, file: u32) {
        self.row(Op::Write, first, pages, file);
        self.now_ns += S;
    }

    fn concluded(&self, file: usize) -> Conclusion {
        conclude(&self.watcher.evidence()[file], self.watcher.seconds())
    }
}

fn median_s(maker: &Maker, file: usize) -> f64 {
    let age = maker.watcher.evidence()[file].lifetimes.quantile(0.5);
    age.unwrap().seconds()
}

#[test]
fn a_ring_may_have_several_files_and_rewrite_its_last_page() {
    let mut maker = Maker::new(&["redo/#ib_redo1", "redo/#ib_redo2"]);
    for turn in 0..6_u64 {
        for i in 0..100 {
            let file = u32::try_from(turn % 2).unwrap();
            // Each commit rewrites the page in which the previous one ended.
            maker.write(u64::from(file) * 1000 + i, 2, file);
        }
    }
    for file in [0, 1] {
        let found = maker.concluded(file);
        assert_eq!(found.behaviour, Behaviour::Ring, "{found:?}");
        assert_eq!((found.hint, found.or), (Hint::Short, None));
    }
    let evidence = &maker.watcher.evidence()[0];
    // 101 pages; in each of the three rounds, 99 pages of a previous request were rewritten.
    assert_eq!((evidence.pages, evidence.at_tip), (101, 3 * 99));
    assert_eq!(evidence.rewritten, 2 * 101);
}

#[test]
fn pages_in_place_are_judged_by_their_rate() {
    for (ns_each, expected) in [
        (S / 1000, Hint::Short),
        (10 * S, Hint::Long),
        (1_000_000 * S, Hint::Extreme),
    ] {
        let mut maker = Maker::new(&["t.ibd"]);
        maker.row(Op::Present, 0, 100, 0);
        for i in 0..400_u64 {
            maker.row(Op::Write, i * 37 % 100, 1, 0);
            maker.now_ns += ns_each;
        }
        let found = maker.concluded(0);
        assert_eq!(found.behaviour, Behaviour::InPlace, "{found:?}");
        // All pages had data, so that each write was a rewrite: 4 for each page.
        assert_eq!(found.rewrites_per_page, 4.0);
        assert_eq!((found.hint, found.or), (expected, None), "{ns_each}");
        let expected_s = 100.0 * ns_each as f64 / 1e9;
        assert!((median_s(&maker, 0) / expected_s - 1.0).abs() < 0.13);
    }
}

/// A burst at the start of ten minutes is not a rate, and its pages have lived until the end.
#[test]
fn recorded_time_without_writes_counts() {
    let rows = (0..200_u64).map(|i| Row {
        t_ns: i * 28_000_000,
        lba: i * 37 % 100 * PAGE,
        len: PAGE,
        op: Op::Write,
        file: Some(0),
    });
    let mut trace = Trace {
        files: vec!["t.ibd".to_owned()],
        rows: rows.collect(),
        ..Trace::default()
    };
    let found = |trace: &Trace| {
        let watcher = LifetimeMeter::of(trace, PAGE);
        let evidence = &watcher.evidence()[0];
        let hint = conclude(evidence, watcher.seconds()).hint;
        (hint, watcher.seconds(), evidence.lifetimes.quantile(0.9))
    };
    let (hint, seen_s, age) = found(&trace);
    assert_eq!((hint, seen_s), (Hint::Short, 5.572));
    assert!(matches!(age, Some(Age::Known(s)) if s < 3.0), "{age:?}");
    trace.recorded = Some(Recorded {
        duration_ns: 600 * S,
        lost: 0,
    });
    let (hint, seen_s, age) = found(&trace);
    assert_eq!((hint, seen_s), (Hint::Long, 600.0));
    assert!(
        matches!(age, Some(Age::MoreThan(s)) if s > 500.0),
        "{age:?}"
    );
}

#[test]
fn too_few_rewrites_are_uncertain() {
    let mut maker = Maker::new(&["t.ibd"]);
    maker.row(Op::Present, 0, 2000, 0);
    (0..601).for_each(|i| maker.write(i * 701 % 2000, 1, 0));
    let found = maker.concluded(0);
    assert_eq!((found.hint, found.or), (Hint::Long, Some(Hint::Extreme)));
    let doubt = "seen 0.30 rewrites per page in 10 min 00 s: the life may be long or extreme";
    assert_eq!(found.doubt(600.0).as_deref(), Some(doubt));
}

#[test]
fn appended_and_deleted_files_are_medium_or_short() {
    for (hold_s, expected) in [(10, Hint::Short), (4000, Hint::Medium)] {
        let mut maker = Maker::new(&["binlog.000001", "binlog.000002"]);
        for (file, first) in [(0, 0), (1, 1000)] {
            (0..50).for_each(|i| maker.write(first + i, 1, file));
            maker.now_ns += hold_s * S;
            maker.row(Op::Discard, first, 50, file);
        }
        let found = maker.concluded(0);
        assert_eq!(
            (found.behaviour, found.is_deleted),
            (Behaviour::Appended, true)
        );
        assert_eq!((found.hint, found.or), (expected, None), "{hold_s}");
    }
}

/// Without discards, the death of a file is noticed when other files are written in its place.
#[test]
fn overwritten_files_were_deleted() {
    let mut maker = Maker::new(&["binlog.000001", "t.ibd"]);
    (0..50).for_each(|i| maker.write(i, 1, 0));
    (0..50).for_each(|i| maker.write(i * 7 % 50, 1, 1));
    let found = maker.concluded(0);
    assert_eq!(
        (found.behaviour, found.is_deleted),
        (Behaviour::Appended, true)
    );
    assert_eq!(maker.watcher.evidence()[0].deleted, 50);
    assert_eq!(maker.concluded(1).behaviour, Behaviour::Once);
}

#[test]
fn a_log_without_an_observed_end_is_uncertain() {
    let mut maker = Maker::new(&["server.log", "dump"]);
    (0..60).for_each(|i| maker.write(i / 3, 1, 0));
    maker.write(1000, 500, 1);
    let log = maker.concluded(0);
    assert_eq!(log.behaviour, Behaviour::Appended);
    assert_eq!((log.hint, log.or), (Hint::Medium, Some(Hint::Extreme)));
    let dump = maker.concluded(1);
    assert_eq!(dump.behaviour, Behaviour::Once);
    assert_eq!((dump.hint, dump.or), (Hint::Extreme, Some(Hint::Long)));
    let doubt = "seen no end of half of its pages in 60.00 s: the life may be long or extreme";
    assert_eq!(dump.doubt(60.0).as_deref(), Some(doubt));
}

/// A single page that is rewritten in place is not a log whose last page fills.
#[test]
fn a_control_file_is_rewritten() {
    let mut maker = Maker::new(&["global/pg_control"]);
    (0..60).for_each(|_| maker.write(5, 2, 0));
    let found = maker.concluded(0);
    assert_eq!(
        (found.behaviour, found.hint),
        (Behaviour::InPlace, Hint::Short)
    );
    assert_eq!(found.rewrites_per_page, 59.0);
}

/// One row has more pages than can be watched.
#[test]
fn memory_is_bounded_within_a_row() {
    let mut maker = Maker::new(&["dump"]);
    maker.watcher.most_pages = 10_000;
    (0..2).for_each(|_| maker.write(0, 1_000_000, 0));
    assert!(maker.watcher.pages.len() <= 10_000);
    let evidence = &maker.watcher.evidence()[0];
    let near = |found: u64| found.abs_diff(1_000_000) < 50_000;
    assert!(near(evidence.pages), "{evidence:?}");
    assert!(near(evidence.lifetimes.ended()), "{evidence:?}");
}

/// With half of the pages, counts stay the same.
#[test]
fn watched_pages_count_for_all() {
    let mut maker = Maker::new(&["t.ibd"]);
    maker.watcher.thinned = 1;
    (0..3).for_each(|_| maker.write(0, 10_000, 0));
    let evidence = &maker.watcher.evidence()[0];
    let near = |found: u64, expected: u64| found.abs_diff(expected) * 50 < expected;
    assert!(near(evidence.pages, 10_000), "{evidence:?}");
    assert!(near(evidence.lifetimes.ended(), 20_000), "{evidence:?}");
    assert_eq!(evidence.written_bytes, 30_000 * PAGE);
}
