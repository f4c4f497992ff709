//! Conditions, and the runs that are compared with each other.

use saiga_ftl::replay::Footprint;
use saiga_ftl::steady::Length;
use saiga_ftl::trace::{Op, Row, Trace};

use super::*;
use crate::directories::Directories;
use crate::sets::{self, Set};
use crate::without::LeftOut;

const PAGE: u64 = 4096;

/// A trace of two instances of one server on one drive. The first writes a ring of 500 pages as
/// often as its table; the table of the second is half as large and written half as often.
fn trace() -> Trace {
    let names = ["/a/#ib_1_0.dblwr", "/a/s/t.ibd", "/b/s/t.ibd"];
    let mut trace = Trace {
        files: names.map(str::to_owned).into(),
        directories: vec!["/a".to_owned(), "/b".to_owned()],
        ..Trace::default()
    };
    let mut row = |op, first, pages, file| {
        trace.rows.push(Row {
            t_ns: 0,
            lba: first * PAGE,
            len: pages * PAGE,
            op,
            file: Some(file),
        });
    };
    row(Op::Present, 1000, 16_000, 1);
    row(Op::Present, 20_000, 8000, 2);
    let mut random = fastrand::Rng::with_seed(3);
    for i in 0..60_000_u64 {
        row(Op::Write, i % 500, 1, 0);
        row(Op::Write, 1000 + random.u64(..16_000), 1, 1);
        if i % 2 == 0 {
            row(Op::Write, 20_000 + random.u64(..8000), 1, 2);
        }
    }
    trace
}

fn short() -> Options {
    Options {
        length: Length {
            warm_up: 2,
            measured: 2,
        },
        ..Options::default()
    }
}

struct Goes(Vec<(usize, usize)>);

impl Watch for Goes {
    fn begins(&mut self, number: usize, count: usize, _set: &str, _placement: Placement) {
        self.0.push((number, count));
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn ranges(unit_pages: &[u32]) -> Ranges<'_> {
    Ranges {
        utilisations: &[0.9],
        over_provisionings: &[0.07, 0.28],
        policies: &[Policy::Greedy],
        unit_pages,
        trim: true,
    }
}

#[test]
fn conditions_are_every_combination_once() {
    let all = ranges(&[64, 128, 64]).conditions(true);
    let of = |condition: &Condition| {
        let Condition {
            over_provisioning,
            trim,
            unit_pages,
            ..
        } = *condition;
        (over_provisioning, trim, unit_pages)
    };
    let expected = [0.07, 0.28].into_iter().flat_map(|op| {
        [true, false]
            .into_iter()
            .flat_map(move |trim| [Some(64), Some(128)].map(|pages| (op, trim, pages)))
    });
    assert_eq!(
        all.iter().map(of).collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
    let alike = all.chunk_by(Condition::is_like).map(<[_]>::len);
    assert_eq!(alike.collect::<Vec<_>>(), [2; 4]);
    let plain = ranges(&[]).conditions(false);
    let plain: Vec<_> = plain.iter().map(of).collect();
    assert_eq!(plain, [(0.07, true, None), (0.28, true, None)]);
    let untold = Ranges {
        trim: false,
        ..ranges(&[])
    };
    assert!(untold.conditions(true).iter().all(|one| !one.trim));
}

/// Without doublewrite, the host writes two fifths less on the same drive. Changes are relative to
/// the whole trace.
#[test]
fn runs_without_files_are_compared_with_the_whole_trace() {
    let trace = trace();
    let whole = Footprint::of(&trace, PAGE).unwrap();
    let (mysql, _) = Set::load("mysql").unwrap();
    let words = ["doublewrite".to_owned()];
    let out = LeftOut::of(&words, &trace, &[&mysql]).unwrap();
    assert_eq!(out.written_bytes, 60_000 * PAGE);
    let rest = whole.without(&trace, PAGE, &|file| out.has(file)).unwrap();
    let base = short();
    let variant = |footprint, without: Option<&str>| Variant {
        without: without.map(Rc::from),
        replays: Replays::new(footprint, &base),
    };
    let mut variants = [variant(&whole, None), variant(&rest, Some(&out.name))];
    let conditions = &ranges(&[]).conditions(false)[..1];
    let joined = [mysql.join(&trace, By::Stream).unwrap()];
    let none = sets::none(&trace);
    let watch = &mut Goes(Vec::new());
    let runs = compare(&mut variants, &none, &joined, conditions, watch).unwrap();
    let labels: Vec<String> = runs.iter().map(Run::label).collect();
    let expected = [
        "none",
        "mysql",
        "mysql",
        "(oracle)",
        "none, without doublewrite",
        "mysql, without doublewrite",
        "mysql, without doublewrite",
    ];
    assert_eq!(labels, expected);
    // By streams, one stream of tables remains: each isolation is simulated, because it is another
    // device.
    assert_eq!(watch.0.last(), Some(&(7, 7)));

    let [all, rest] = [&runs[0], &runs[4]];
    assert_eq!(all.case.logical_pages, rest.case.logical_pages);
    let waf = |run: &Run| run.case.outcome.waf();
    let expected = waf(rest) * 90_000.0 / (waf(all) * 150_000.0);
    let found = ratio(&runs, rest).unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let moved = (waf(rest) - 1.0) * 90_000.0 / ((waf(all) - 1.0) * 150_000.0);
    let spared = spared(&runs, rest).unwrap();
    assert!((spared - (1.0 - moved)).abs() < 1e-9, "{spared} {moved}");
    assert_eq!(base_of(&runs, rest), all);

    // Cached results are not simulated again, except for the oracle.
    let watch = &mut Goes(Vec::new());
    assert_eq!(
        compare(&mut variants, &none, &joined, conditions, watch).unwrap(),
        runs
    );
    assert_eq!(watch.0, [(1, 1)]);
}

fn base_of<'a>(runs: &'a [Run], run: &Run) -> &'a Run {
    super::base(runs, run).unwrap()
}

#[test]
fn each_directory_has_its_share() {
    let trace = trace();
    let footprint = Footprint::of(&trace, PAGE).unwrap();
    let base = short();
    let mut replays = Replays::new(&footprint, &base);
    let condition = ranges(&[]).conditions(false)[0];
    let none = sets::none(&trace);
    let case = replays.case(&none, Placement::OneStream, condition, &mut replay::silent);
    let case = case.unwrap();
    let directories = Directories::of(&trace).unwrap();
    let parts = directories.parts(&case);
    let names: Vec<_> = parts
        .iter()
        .map(|part| (part.name.as_str(), part.written_bytes))
        .collect();
    let expected = [
        ("/a", 120_000 * PAGE),
        ("/b", 30_000 * PAGE),
        ("(no directory)", 0),
    ];
    assert_eq!(names, expected);
    assert_eq!(directories.written().collect::<Vec<_>>(), expected);
    let measured = &case.outcome.measured;
    let sum = |of: &dyn Fn(&crate::directories::Part) -> u64| parts.iter().map(of).sum::<u64>();
    assert_eq!(sum(&|part| part.host_pages), measured.host_pages());
    assert_eq!(sum(&|part| part.moved_pages), measured.moved_pages());
    let shares = parts.iter().map(|part| part.of_caused.unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    // Pages of the ring die at once, so the first instance causes most of the work, and most moved
    // pages are its own.
    let [a, b, rest] = &parts[..] else { panic!() };
    assert!((0.79..0.81).contains(&a.of_written), "{a:?}");
    assert!(
        a.of_caused.unwrap() > 0.75 && b.of_caused.unwrap() > 0.1,
        "{parts:?}"
    );
    assert!(
        a.moved_pages > b.moved_pages && b.moved_pages > 0,
        "{parts:?}"
    );
    assert!(b.waf().unwrap() > a.waf().unwrap(), "{parts:?}");
    assert_eq!((rest.host_pages, rest.waf()), (0, None));

    let one = Trace {
        directories: vec!["/a".to_owned()],
        ..trace
    };
    assert_eq!(Directories::of(&one), None);
}
