//! Tests of suggestions for synthetic traces, and of properties of all suggestions.

use std::path::Path;

use proptest::prelude::*;
use saiga_ftl::Policy;
use saiga_ftl::replay::{Placement, Rules as _, silent};
use saiga_ftl::trace::{Op, Row};
use saiga_streams::Hint;
use saiga_streams::rules::{FilePaths, file};

use super::*;
use crate::measure::Behaviour;
use crate::sets::{By, Set};

const PAGE: u64 = 4096;
const DEFAULT: Condition = Condition {
    utilisation: 0.9,
    over_provisioning: 0.07,
    policy: Policy::Greedy,
    trim: true,
    unit_pages: None,
};

/// Makes a trace with one row per millisecond.
#[derive(Default)]
struct Maker {
    trace: Trace,
    now_ns: u64,
}

impl Maker {
    fn file(&mut self, name: &str) -> u32 {
        self.trace.files.push(name.to_owned());
        u32::try_from(self.trace.files.len() - 1).unwrap()
    }

    /// Adds a row for `pages` pages from page `first` on.
    fn row(&mut self, op: Op, first: u64, pages: u64, file: u32) {
        self.trace.rows.push(Row {
            t_ns: self.now_ns,
            lba: first * PAGE,
            len: pages * PAGE,
            op,
            file: Some(file),
        });
        self.now_ns += 1_000_000;
    }

    fn suggest(&self, simulations: u32) -> Suggestion {
        let device = replay::Options::default();
        self.suggest_for(&device, &[DEFAULT], simulations).unwrap()
    }

    fn suggest_for(
        &self,
        device: &replay::Options,
        conditions: &[Condition],
        simulations: u32,
    ) -> Result<Suggestion, SuggestError> {
        let go_on = &mut |_| ControlFlow::Continue(());
        self.suggest_until(device, conditions, simulations, go_on)
    }

    fn suggest_until(
        &self,
        device: &replay::Options,
        conditions: &[Condition],
        simulations: u32,
        report: Report<'_>,
    ) -> Result<Suggestion, SuggestError> {
        let footprint = Footprint::of(&self.trace, PAGE).unwrap();
        let options = Options {
            conditions: conditions.to_vec(),
            page_bytes: PAGE,
            simulations,
        };
        let replays = &mut Replays::new(&footprint, device);
        suggest(&self.trace, replays, &options, report)
    }
}

/// A redo log that is a ring, a table with random writes, and logs that are appended and deleted.
fn mix() -> Maker {
    let mut maker = Maker::default();
    let redo = maker.file("ib_logfile0");
    let table = maker.file("db/t.ibd");
    let logs: Vec<u32> = (0..4)
        .map(|i| maker.file(&format!("binlog.00000{i}")))
        .collect();
    maker.row(Op::Present, 100_000, 48_000, table);
    let mut random = fastrand::Rng::with_seed(7);
    for i in 0..200_000_u64 {
        maker.row(Op::Write, i % 8000, 1, redo);
        maker.row(Op::Write, 100_000 + random.u64(0..48_000), 1, table);
        let number = i / 2000 % 4;
        let first = 50_000 + number * 2000;
        let log = logs[usize::try_from(number).unwrap()];
        if i % 2000 == 0 {
            maker.row(Op::Discard, first, 2000, log);
        }
        maker.row(Op::Write, first + i % 2000, 1, log);
    }
    maker
}

fn found<'a>(suggestion: &'a Suggestion, name: &str) -> &'a Class {
    let mut classes = suggestion.classes.iter();
    classes
        .find(|class| class.name == name)
        .unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn kinds_are_distinguished_and_rings_cost_nothing() {
    let maker = mix();
    let suggestion = maker.suggest(60);
    let behaviour = |name| found(&suggestion, name).conclusion.behaviour;
    assert_eq!(behaviour("ib_logfileN"), Behaviour::Ring);
    assert_eq!(behaviour("db/t.ibd"), Behaviour::InPlace);
    assert_eq!(behaviour("binlog.N"), Behaviour::Appended);
    assert_eq!(found(&suggestion, "binlog.N").files.len(), 4);
    let searched = suggestion.searched.as_ref().unwrap();
    assert!(searched.found < 0.97 * searched.none, "{searched:?}");
    assert!(searched.found <= searched.start, "{searched:?}");

    let table = &found(&suggestion, "db/t.ibd").stream;
    for other in ["ib_logfileN", "binlog.N"] {
        assert_ne!(&found(&suggestion, other).stream, table, "{other}");
    }
    // On the whole trace, garbage collection moves few pages of the redo log and the binlogs.
    let footprint = Footprint::of(&maker.trace, PAGE).unwrap();
    let set = Set::of_labels("suggested", suggestion.rules.clone(), false);
    let joined = set.join(&maker.trace, By::Stream).unwrap();
    let case = replay::replay(
        &footprint,
        &joined,
        Placement::PersistentlyIsolated,
        &replay::Options::default(),
        &mut silent,
    );
    let case = case.unwrap();
    let measured = &case.outcome.measured;
    for (number, class) in case.classes.iter().enumerate() {
        let share = measured.moved[number] as f64 / measured.host[number].max(1) as f64;
        assert_eq!(
            share < 0.05,
            class.name != "db/t.ibd",
            "{}: {share}",
            class.name
        );
    }
    assert_eq!(
        maker.suggest(60),
        suggestion,
        "the same trace, the same rules"
    );
}

/// All pages live for minutes at most, so absolute limits would give all classes the same hint.
#[test]
fn hints_are_given_by_rank() {
    let suggestion = mix().suggest(60);
    let of = |name| found(&suggestion, name);
    let (redo, table, log) = (of("ib_logfileN"), of("db/t.ibd"), of("binlog.N"));
    for class in [redo, table, log] {
        assert_eq!(class.conclusion.hint, Hint::Short, "{}", class.name);
    }
    assert_ne!(redo.hint, table.hint);
    assert_ne!(log.hint, table.hint);
    let life = |class: &Class| class.evidence.lifetimes.quantile(0.5).unwrap().seconds();
    for other in [redo, log] {
        assert_eq!(
            other.hint < table.hint,
            life(other) < life(table),
            "{}",
            other.name
        );
    }
    let whole = suggestion.whole.unwrap();
    assert!(whole.by_hint < 0.97 * whole.none, "{whole:?}");
}

/// If the device has more handles than a set may have streams, the suggestion can be simulated.
#[test]
fn there_are_no_more_streams_than_a_set_may_have() {
    let mut maker = Maker::default();
    let mut pause_ns = 1_000_000;
    for i in 0..80_u64 {
        pause_ns += pause_ns / 3;
        let name: String = (0..7)
            .map(|bit| if i >> bit & 1 == 0 { 'a' } else { 'b' })
            .collect();
        let file = maker.file(&name);
        for _ in 0..3 {
            maker.row(Op::Write, i * 10, 1, file);
            maker.now_ns += pause_ns;
        }
    }
    let device = replay::Options {
        handles: 128,
        ..replay::Options::default()
    };
    let suggestion = maker.suggest_for(&device, &[DEFAULT], 0).unwrap();
    let set = Set::of_labels("suggested", suggestion.rules, true);
    set.join(&maker.trace, By::Stream).unwrap();
}

#[test]
fn rules_have_reasons_and_can_be_read_back() {
    let suggestion = mix().suggest(20);
    let text = suggestion.rules.to_toml();
    let again = file::parse(Path::new("suggested.toml"), &text).unwrap();
    assert_eq!(again, suggestion.rules);
    let paths: Vec<String> = again
        .rules
        .iter()
        .map(|rule| rule.pattern.to_string())
        .collect();
    for path in ["ib_logfile[0-9]*", "binlog.[0-9]*", "db/t.ibd"] {
        assert!(paths.iter().any(|known| known == path), "{paths:?}");
    }
    let why = |path: &str| {
        let mut rules = again.rules.iter();
        rules
            .find(|rule| rule.pattern.to_string() == path)
            .unwrap()
            .why
            .clone()
    };
    assert!(
        why("binlog.[0-9]*").starts_with("appended, deleted whole: 781 MiB written in "),
        "{text}"
    );
    assert!(
        why("ib_logfile[0-9]*").contains("1 file; pages live 24 s"),
        "{text}"
    );
    assert!(
        again.about.unwrap().contains("write amplification was "),
        "{text}"
    );
}

/// The names of the tables do not show which table is hot, so the hot table gets its own rule.
#[test]
fn a_hot_table_of_a_kind_gets_its_own_rule() {
    let mut maker = Maker::default();
    let tables: Vec<u32> = (0..4)
        .map(|i| maker.file(&format!("base/5/1638{i}")))
        .collect();
    let mut random = fastrand::Rng::with_seed(3);
    for table in 0..4_u32 {
        maker.row(
            Op::Present,
            u64::from(table) * 10_000,
            4000,
            tables[table as usize],
        );
    }
    for _ in 0..60_000 {
        let table = if random.u32(0..10) < 8 {
            2
        } else {
            random.u32(0..4)
        };
        let pages = if table == 2 { 400 } else { 4000 };
        let page = u64::from(table) * 10_000 + random.u64(0..pages);
        maker.row(Op::Write, page, 1, tables[table as usize]);
    }
    let suggestion = maker.suggest(40);
    assert_eq!(found(&suggestion, "base/5/16382").files, ["base/5/16382"]);
    assert_eq!(found(&suggestion, "base/N/N").files.len(), 3);
    let paths: Vec<String> = suggestion
        .rules
        .rules
        .iter()
        .map(|rule| rule.pattern.to_string())
        .collect();
    assert_eq!(paths, ["base/5/16382", "base/[0-9]*/[0-9]*"]);
}

#[test]
fn kinds_of_one_class_become_one_rule() {
    let mut maker = Maker::default();
    let tables: Vec<u32> = ["a/x.ibd", "a/y.ibd", "b/z.ibd"]
        .map(|name| maker.file(name))
        .into();
    let log = maker.file("a/z.log");
    for i in 0..3000_u64 {
        let table = i % 3;
        maker.row(
            Op::Write,
            table * 1000 + i * 37 % 50,
            1,
            tables[usize::try_from(table).unwrap()],
        );
        maker.row(Op::Write, 5000 + i, 1, log);
    }
    let suggestion = maker.suggest(2);
    let paths: Vec<String> = suggestion
        .rules
        .rules
        .iter()
        .map(|rule| rule.pattern.to_string())
        .collect();
    assert!(paths.contains(&"**/*.ibd".to_owned()), "{paths:?}");
    assert!(paths.contains(&"a/z.log".to_owned()), "{paths:?}");
    assert!(suggestion.searched.is_some() || paths.len() == 2);
}

#[test]
fn files_that_no_rule_can_name_are_listed() {
    let mut maker = Maker::default();
    maker.trace.directories = vec!["/db".to_owned()];
    let inside = maker.file("/db/t.ibd");
    let outside = maker.file("/var/log/syslog");
    (0..50).for_each(|i| maker.row(Op::Write, i % 10, 1, inside));
    maker.row(Op::Write, 100, 1, outside);
    let suggestion = maker.suggest(8);
    assert_eq!(suggestion.classes.len(), 2);
    assert_eq!(suggestion.searched, None, "too small for a device");

    let mut nameless = Maker::default();
    nameless.trace.rows.push(Row {
        t_ns: 0,
        lba: 0,
        len: PAGE,
        op: Op::Write,
        file: None,
    });
    let device = replay::Options::default();
    let error = nameless.suggest_for(&device, &[DEFAULT], 1).unwrap_err();
    assert!(matches!(error, SuggestError::NoFiles), "{error}");
}

#[test]
fn no_more_is_simulated_than_allowed() {
    let maker = mix();
    for allowed in 0..3 {
        let suggestion = maker.suggest(allowed);
        assert_eq!(suggestion.searched, None, "{allowed}");
        assert_eq!(suggestion.classes.len(), 3);
    }
    for allowed in [3, 4, 7] {
        let searched = maker.suggest(allowed).searched.unwrap();
        // One simulation with a single stream, then two for each grouping.
        let expected = 1 + (allowed - 1) / 2 * 2;
        assert_eq!(searched.simulations, expected, "{searched:?}");
        assert!(searched.found.is_finite(), "{searched:?}");
    }
}

#[test]
fn a_trace_with_one_time_stamp_has_no_lifetimes() {
    let mut maker = Maker::default();
    let file = maker.file("a");
    for page in 0..10 {
        maker.row(Op::Write, page, 1, file);
        maker.now_ns = 0;
    }
    let device = replay::Options::default();
    let error = maker.suggest_for(&device, &[DEFAULT], 8).unwrap_err();
    assert!(matches!(error, SuggestError::NoTime), "{error}");
}

#[test]
fn a_search_can_be_ended() {
    let maker = mix();
    let mut made = 0;
    let stop = &mut |step| match step {
        Step::Searching {
            made: now,
            most: 50,
        } => {
            made = now;
            if now == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
        Step::Searching { .. } | Step::Comparing { .. } => panic!("{step:?}"),
    };
    let device = replay::Options::default();
    let error = maker.suggest_until(&device, &[DEFAULT], 50, stop);
    let error = error.unwrap_err();
    assert!(matches!(error, SuggestError::Interrupted), "{error}");
    assert_eq!(made, 3);
}

/// Adds the rows of a file: a ring, random writes, a file that is deleted, a file that is not
/// written, or a file that is written once.
fn behave(maker: &mut Maker, how: u8, number: u64, file: u32, random: &mut fastrand::Rng) {
    let first = number * 10_000;
    match how {
        0 => (0..300).for_each(|i| maker.row(Op::Write, first + i % 60, 1, file)),
        1 => (0..300).for_each(|_| maker.row(Op::Write, first + random.u64(0..60), 1, file)),
        2 => {
            (0..60).for_each(|i| maker.row(Op::Write, first + i, 1, file));
            maker.row(Op::Discard, first, 60, file);
        }
        3 => maker.row(Op::Present, first, 60, file),
        _ => maker.row(Op::Write, first, 60, file),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any names and behaviours, the rules give each file the hint and stream of its class.
    #[test]
    fn every_file_gets_the_class_that_the_measurement_gave_it(
        files in prop::collection::btree_map("[ab]?[0-2]{0,2}(/[ab*][0-9]{0,2}){0,2}(\\.[xy][0-1]?)?", 0..5_u8, 1..20),
        pause_s in prop::sample::select(vec![0_u64, 60, 5000]),
        seed in any::<u64>(),
    ) {
        let mut maker = Maker::default();
        let mut random = fastrand::Rng::with_seed(seed);
        for (number, (name, how)) in (0..).zip(&files) {
            if name.is_empty() {
                continue;
            }
            let file = maker.file(name);
            behave(&mut maker, *how, number, file, &mut random);
            maker.now_ns += pause_s * 1_000_000_000;
        }
        prop_assume!(maker.trace.rows.iter().any(|row| row.op == Op::Write));
        let device = replay::Options::default();
        let Ok(suggestion) = maker.suggest_for(&device, &[DEFAULT], 8) else {
            return Ok(());
        };
        let rules = file::parse(Path::new("again.toml"), &suggestion.rules.to_toml()).unwrap();
        for class in &suggestion.classes {
            for name in &class.files {
                let place = FilePaths { relative: Path::new(name), absolute: Path::new(name) };
                let (_, rule) = rules.find(&place).unwrap();
                prop_assert_eq!(rule.hint, class.hint, "{}", name);
                prop_assert_eq!(rule.stream.as_deref(), Some(class.stream.as_str()), "{}", name);
            }
        }
        let hints = suggestion.classes.iter().map(|class| class.hint);
        prop_assert!(hints.clone().all(|hint| hint >= Hint::Short));
        let set = Set::of_labels("suggested", rules, false);
        let joined = set.join(&maker.trace, By::Stream).unwrap();
        let streams: std::collections::BTreeSet<usize> =
            maker.trace.files.iter().map(|file| joined.stream_of(Some(file))).collect();
        prop_assert!(streams.len() <= 9);
    }
}
