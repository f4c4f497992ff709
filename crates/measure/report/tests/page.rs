//! The report of the sample, opened in a real browser.

mod support;

use saiga_document::html;
use saiga_experiment::result::ExperimentResult;
use saiga_report::document;
use serde_json::{Value, json};
use support::{Seen, Window, look};

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

const DESKTOP: Window = Window {
    width: 1280,
    height: 900,
    dark: false,
};
const PHONE: Window = Window {
    width: 390,
    height: 844,
    dark: false,
};

/// Where things are and how many there are.
const MEASURE: &str = r##"
document.querySelectorAll('details').forEach(fold => { fold.open = true; });
const box = (selector) => {
    const at = document.querySelector(selector).getBoundingClientRect();
    return {top: at.top, bottom: at.bottom, left: at.left, right: at.right};
};
const count = (selector) => document.querySelectorAll(selector).length;
const wide = [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest('.scroll, pre'))
    .map(e => e.tagName + '.' + e.getAttribute('class'));
return {
    width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    wide,
    scrollingCharts: [...document.querySelectorAll('.scroll:has(.forest)')]
        .filter(box => box.scrollWidth > box.clientWidth).length,
    verdict: box('#verdict'), text: document.querySelector('#verdict').textContent,
    firstMark: box('#ratios .mark .interval'),
    comparisons: count('tr.comparison'), intervals: count('.mark .interval'),
    caps: count('.mark .cap'), points: count('.mark .point'),
    untitled: [...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('title')).length,
    dots: count('.dot'), bars: count('.bar'),
    rejected: [...document.querySelectorAll('#rejected tbody tr')].map(r => r.lastChild.textContent),
    tops: [...document.querySelectorAll('section')].map(s => s.id),
    background: getComputedStyle(document.body).backgroundColor,
    button: getComputedStyle(document.getElementById('scheme')).display,
};
"##;

fn sample() -> ExperimentResult {
    ExperimentResult::from_json(SAMPLE).expect("the sample is readable")
}

fn look_at_sample(window: Window) -> Seen {
    look(&html::render(&document(&sample())), window, MEASURE)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn the_verdict_is_on_the_first_screen_and_every_comparison_has_its_interval() {
    let Seen {
        findings,
        complaints,
    } = look_at_sample(DESKTOP);
    assert_eq!(complaints, Vec::<String>::new());
    assert_eq!(findings["text"], json!(sample().headline[0]));
    assert!(number(&findings["verdict"]["top"]) > 0.0, "{findings}");
    assert!(number(&findings["verdict"]["bottom"]) < 900.0, "{findings}");
    assert!(
        number(&findings["firstMark"]["bottom"]) < 900.0,
        "no evidence on the first screen"
    );
    // 20 cells: 5 metrics of saiga against kernel, and throughput of two other pairs of arms.
    assert_eq!(findings["comparisons"], json!(20 * (5 + 2)));
    assert_eq!(findings["intervals"], findings["comparisons"]);
    assert_eq!(findings["points"], findings["comparisons"]);
    assert_eq!(findings["caps"], json!(2 * 20 * (5 + 2)));
    assert_eq!(findings["untitled"], json!(0));
    // 15 cells with runs, 3 arms, 3 metrics; 6 runs that count in each.
    assert_eq!(
        (&findings["bars"], &findings["dots"]),
        (&json!(135), &json!(810))
    );
    assert_eq!(
        findings["rejected"],
        json!([
            "redis-benchmark ended with status 1: Error: Connection reset by peer",
            "other processes used 0.41 s of CPU, more than 5 % of the run",
            "other processes used 0.41 s of CPU, more than 5 % of the run",
        ])
    );
}

#[test]
fn nothing_is_wider_than_a_desktop_or_a_phone() {
    for window in [DESKTOP, PHONE] {
        let Seen {
            findings,
            complaints,
        } = look_at_sample(window);
        assert_eq!(complaints, Vec::<String>::new());
        assert_eq!(
            findings["width"],
            json!(window.width),
            "the window has the size asked for"
        );
        assert_eq!(findings["scroll"], json!(window.width), "{window:?}");
        assert_eq!(findings["wide"], json!([]), "{window:?}");
        assert_eq!(findings["scrollingCharts"], json!(0), "{window:?}");
        assert!(number(&findings["verdict"]["bottom"]) < 900.0, "{window:?}");
    }
}

#[test]
fn the_colour_scheme_follows_the_system_and_the_button() {
    let press = "
        const paper = () => getComputedStyle(document.querySelector('.hero')).backgroundColor;
        const button = document.getElementById('scheme');
        const seen = [paper()];
        button.click(); seen.push(paper());
        button.click(); seen.push(paper());
        return seen;
    ";
    let (light, dark) = ("rgb(255, 255, 255)", "rgb(22, 30, 38)");
    let page = html::render(&document(&sample()));
    let seen = look(&page, DESKTOP, press);
    assert_eq!(seen.findings, json!([light, dark, light]));
    let seen = look(
        &page,
        Window {
            dark: true,
            ..DESKTOP
        },
        press,
    );
    assert_eq!(seen.findings, json!([dark, light, dark]));
}

#[test]
fn a_link_to_a_folded_section_opens_it() {
    let script = "
        const fold = document.querySelector('#cells > details');
        const before = fold.open;
        location.hash = '#cells';
        dispatchEvent(new HashChangeEvent('hashchange'));
        return [before, fold.open];
    ";
    let seen = look(&html::render(&document(&sample())), DESKTOP, script);
    assert_eq!(seen.findings, json!([false, true]));
}

/// The measurements above are only worth something if they notice what they look for.
#[test]
fn the_probe_notices_errors_outside_resources_and_overflow() {
    let page = html::render(&document(&sample()));
    let spoilt = page.replacen(
        "<main>",
        "<main><img src=\"https://example.invalid/x.png\" alt=\"\"><div style=\"width:3000px\">x</div>\
         <script>nowhere();</script>",
        1,
    );
    let Seen {
        findings,
        complaints,
    } = look(&spoilt, DESKTOP, MEASURE);
    let all = complaints.join("\n");
    assert!(all.contains("nowhere is not defined"), "{all}");
    assert!(
        all.contains("blocked https://example.invalid/x.png"),
        "{all}"
    );
    assert!(number(&findings["scroll"]) > 3000.0, "{findings}");
}
