//! Hand-made rows whose answer is known.

use saiga_ftl::trace::Recorded;
use saiga_streams::Hint;

use super::conclusion::conclude;
use super::*;

const PAGE: u64 = 4096;
const S: u64 = 1_000_000_000;

/// Rows of some files, in the making.
struct Maker {
    watcher: Watcher,
    now_ns: u64,
}

impl Maker {
    fn new(files: &[&str]) -> Self {
        let mut watcher = Watcher::new(PAGE);
        files.iter().for_each(|name| watcher.file(name));
        Self { watcher, now_ns: 0 }
    }

    fn row(&mut self, op: Op, first: u64, pages: u64, file: u32) {
        self.watcher.row(&Row {
            t_ns: self.now_ns,
            lba: first * PAGE,
            len: pages * PAGE,
            op,
            file: Some(file),
        });
    }

    /// Writes, and lets a second pass.
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
fn a_ring_is_a_ring_also_when_its_files_take_turns_and_its_last_page_is_rewritten() {
    let mut maker = Maker::new(&["redo/#ib_redo1", "redo/#ib_redo2"]);
    for turn in 0..6_u64 {
        for i in 0..100 {
            let file = u32::try_from(turn % 2).unwrap();
            // Each commit rewrites the page that the one before ended in.
            maker.write(u64::from(file) * 1000 + i, 2, file);
        }
    }
    for file in [0, 1] {
        let found = maker.concluded(file);
        assert_eq!(found.behaviour, Behaviour::Ring, "{found:?}");
        assert_eq!((found.hint, found.or), (Hint::Short, None));
    }
    let evidence = &maker.watcher.evidence()[0];
    // 101 pages; in each of its three turns 99 pages of a request before were written again.
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
        // All pages were there, so that each write was a rewrite: 4 for each page.
        assert_eq!(found.rewrites_per_page, 4.0);
        assert_eq!((found.hint, found.or), (expected, None), "{ns_each}");
        let expected_s = 100.0 * ns_each as f64 / 1e9;
        assert!((median_s(&maker, 0) / expected_s - 1.0).abs() < 0.13);
    }
}

/// A burst at the beginning of ten minutes is not a rate, and what it wrote has lived until the end.
#[test]
fn what_was_recorded_counts_also_when_nothing_was_written() {
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
        let watcher = Watcher::of(trace, PAGE);
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
fn too_few_rewrites_are_said() {
    let mut maker = Maker::new(&["t.ibd"]);
    maker.row(Op::Present, 0, 2000, 0);
    (0..601).for_each(|i| maker.write(i * 701 % 2000, 1, 0));
    let found = maker.concluded(0);
    assert_eq!((found.hint, found.or), (Hint::Long, Some(Hint::Extreme)));
    let doubt =
        "seen 0.30 rewrites per page in 10 min 00 s: a long or extreme life, not told apart";
    assert_eq!(found.doubt(600.0).as_deref(), Some(doubt));
}

#[test]
fn what_is_appended_and_deleted_is_medium_or_short() {
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

/// Without discards, the death of a file is seen when others are written in its place.
#[test]
fn what_others_take_the_place_of_was_deleted() {
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
fn a_log_of_which_no_end_was_seen_is_not_told() {
    let mut maker = Maker::new(&["server.log", "dump"]);
    (0..60).for_each(|i| maker.write(i / 3, 1, 0));
    maker.write(1000, 500, 1);
    let log = maker.concluded(0);
    assert_eq!(log.behaviour, Behaviour::Appended);
    assert_eq!((log.hint, log.or), (Hint::Medium, Some(Hint::Extreme)));
    let dump = maker.concluded(1);
    assert_eq!(dump.behaviour, Behaviour::Once);
    assert_eq!((dump.hint, dump.or), (Hint::Extreme, Some(Hint::Long)));
    let doubt =
        "seen no end of half of its pages in 60.00 s: a long or extreme life, not told apart";
    assert_eq!(dump.doubt(60.0).as_deref(), Some(doubt));
}

/// One page, rewritten where it is, is not a log whose last page fills.
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

/// One row of more pages than may be watched.
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

/// With one page in two, counts stay what they are.
#[test]
fn thinned_pages_count_for_all() {
    let mut maker = Maker::new(&["t.ibd"]);
    maker.watcher.thinned = 1;
    (0..3).for_each(|_| maker.write(0, 10_000, 0));
    let evidence = &maker.watcher.evidence()[0];
    let near = |found: u64, expected: u64| found.abs_diff(expected) * 50 < expected;
    assert!(near(evidence.pages, 10_000), "{evidence:?}");
    assert!(near(evidence.lifetimes.ended(), 20_000), "{evidence:?}");
    assert_eq!(evidence.written_bytes, 30_000 * PAGE);
}
