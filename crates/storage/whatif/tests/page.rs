//! The report in a real browser.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../ftl/tests/mix/mod.rs"]
mod mix;
#[path = "../../../measure/report/tests/support/mod.rs"]
mod support;

use std::ops::ControlFlow;
use std::rc::Rc;

use saiga_document::model::Visibility;
use saiga_document::{html, text};
use saiga_ftl::replay::{Options, Placement};
use saiga_ftl::steady::Length;
use saiga_ftl::{Counting, Policy};
use saiga_whatif::compare::{Variant, Watch, compare};
use saiga_whatif::document::{Content, document};
use saiga_whatif::suggest::{self, suggest};
use saiga_whatif::without::LeftOut;
use saiga_whatif::{By, Condition, Replays, Set, sets};
use serde_json::json;
use support::{Page, Window, open_in_browser};

/// Elements of the page, and those wider than the window.
const MEASURE: &str = r"
document.querySelectorAll('details').forEach(fold => { fold.open = true; });
const count = (selector) => document.querySelectorAll(selector).length;
const wide = [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest('.scroll, pre'))
    .map(e => e.tagName + '.' + e.getAttribute('class'));
const empty = [...document.querySelectorAll('polyline')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width < 1 || !Number.isFinite(box.height);
}).length;
return {
    scroll: document.documentElement.scrollWidth, wide, empty,
    verdict: document.querySelector('#verdict').textContent,
    sections: [...document.querySelectorAll('section')].map(s => s.id),
    bars: count('#comparison .bar'), dots: count('#comparison .dot'),
    matrices: count('#victims table'), cdf: count('#lifetimes polyline'), warmUp: count('#warm-up polyline'),
    groups: [...document.querySelectorAll('#comparison .panels caption')].map(c => c.textContent),
    untitled: [...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('title')).length,
    odd: /NaN|undefined|Infinity/.test(document.querySelector('main').textContent),
};
";

struct Silent;

impl Watch for Silent {
    fn begins(&mut self, _: usize, _: usize, _: &str, _: Placement) {}

    fn goes_on(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Creates the report on the model of MySQL's writes: astream's and the suggested rules, at 70 and
/// 90 % live, also without doublewrite.
fn report() -> saiga_document::Document {
    let maker = mix::mysql(70, [40, 40, 12, 8]);
    let footprint = maker.footprint();
    let device = Options {
        counting: Counting::ClosedUnits,
        length: Length {
            warm_up: 2,
            measured: 4,
        },
        ..Options::default()
    };
    let conditions = [0.7, 0.9].map(|utilisation| Condition {
        utilisation,
        over_provisioning: 0.07,
        policy: Policy::Greedy,
        trim: true,
        unit_pages: None,
    });
    let options = suggest::Options {
        conditions: conditions.into(),
        page_bytes: mix::PAGE,
        simulations: 20,
    };
    let go_on = &mut |_| ControlFlow::Continue(());
    let mut replays = Replays::new(&footprint, &device);
    let suggestion = suggest(&maker.trace, &mut replays, &options, go_on).unwrap();
    let (documented, _) = Set::load("astream").unwrap();
    let (mysql, _) = Set::load("mysql").unwrap();
    let suggested = Set::of_labels("suggested <&>", suggestion.rules.clone(), true);
    let joined: Vec<_> = [documented, suggested]
        .iter()
        .map(|set| set.join(&maker.trace, By::Stream).unwrap())
        .collect();
    let words = ["doublewrite".to_owned()];
    let left_out = LeftOut::of(&words, &maker.trace, &[&mysql]).unwrap();
    let rest = footprint.without(&maker.trace, mix::PAGE, &|file| left_out.has(file));
    let rest = rest.unwrap();
    let variant = |without: Option<&str>, replays| Variant {
        without: without.map(Rc::from),
        replays,
    };
    let mut variants = [
        variant(None, replays),
        variant(Some(&left_out.name), Replays::new(&rest, &device)),
    ];
    let none = sets::none(&maker.trace);
    let runs = compare(&mut variants, &none, &joined, &conditions, &mut Silent).unwrap();
    document(&Content {
        name: "mix.csv",
        trace: "a model of what MySQL writes",
        facts: &[("device".to_owned(), "131072 pages".to_owned())],
        notes: &["the trace is a model".to_owned()],
        runs: &runs,
        sets: &joined,
        classes: &suggestion.classes,
        seen_s: suggestion.seen_s,
        suggestion: Some(&suggestion),
        directories: None,
        left_out: Some(&left_out),
        device: &device,
    })
}

#[test]
fn the_page_shows_every_run_and_fits_every_window() {
    let report = report();
    let page = html::render(&report);
    for (width, height) in [(1280, 900), (390, 844)] {
        let window = Window {
            width,
            height,
            dark: false,
        };
        let Page { findings, errors } = open_in_browser(&page, window, MEASURE);
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(findings["wide"], json!([]), "{width}");
        assert_eq!(findings["scroll"], json!(width));
        let sections = [
            "comparison",
            "victims",
            "lifetimes",
            "warm-up",
            "rules",
            "assumptions",
        ];
        assert_eq!(findings["sections"], json!(sections));
        assert_eq!(
            findings["groups"],
            json!([
                "70 % live, 7 % spare, greedy",
                "90 % live, 7 % spare, greedy"
            ])
        );
        // One stream and two sets in two placements, with and without doublewrite, plus the oracle,
        // under two conditions.
        assert_eq!(findings["bars"], json!(22));
        assert!(findings["dots"].as_u64() >= Some(12), "{findings}");
        // The first condition has five runs of rules, of which each placement shows three, and the
        // oracle in one placement.
        assert_eq!(
            (&findings["matrices"], &findings["warmUp"]),
            (&json!(5), &json!(7))
        );
        // Doublewrite, redo, logs and data.
        assert_eq!(findings["cdf"], json!(4));
        assert_eq!(
            (&findings["untitled"], &findings["empty"]),
            (&json!(0), &json!(0))
        );
        assert_eq!(findings["odd"], json!(false));
        let verdict = findings["verdict"].as_str().unwrap();
        assert!(
            verdict.starts_with("The rules \"suggested <&>\" change write amplification from "),
            "{verdict}"
        );
    }
}

#[test]
fn the_report_can_be_printed_as_text() {
    let text = text::render(
        &report(),
        text::Style {
            shown: Visibility::Evidence,
            ..text::Style::plain()
        },
    );
    for expected in [
        "placement",
        "intervals",
        "half dead after",
        "astream, persistently isolated: ",
        "Without doublewrite (",
        "astream, without doublewrite",
        "WAF of one stream, without doublewrite",
        "mysql-bin.N moved",
        "in the first interval",
        "path = \"#ib_[0-9]*_[0-9]*.dblwr\"",
        "Differences of less than a few percent are not significant",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
