//! Layout of the sample's report in a real browser: first screen, widths, colours, links.

mod support;

use saiga_document::html;
use saiga_experiment::result::ExperimentResult;
use saiga_report::document;
use serde_json::{Value, json};
use support::{Page, Window, open_in_browser};

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

/// Measures positions, sizes and counts of the page's elements.
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

fn open_sample(window: Window) -> Page {
    open_in_browser(&html::render(&document(&sample())), window, MEASURE)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn the_verdict_is_on_the_first_screen_and_every_comparison_has_its_interval() {
    let Page { findings, errors } = open_sample(DESKTOP);
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(findings["text"], json!(sample().headline[0]));
    assert!(number(&findings["verdict"]["top"]) > 0.0, "{findings}");
    assert!(number(&findings["verdict"]["bottom"]) < 900.0, "{findings}");
    assert!(
        number(&findings["firstMark"]["bottom"]) < 900.0,
        "the first screen does not show the first ratio"
    );
    // 20 cells: 5 metrics of saiga against kernel, and throughput of two other pairs of arms.
    assert_eq!(findings["comparisons"], json!(20 * (5 + 2)));
    assert_eq!(findings["intervals"], findings["comparisons"]);
    assert_eq!(findings["points"], findings["comparisons"]);
    assert_eq!(findings["caps"], json!(2 * 20 * (5 + 2)));
    assert_eq!(findings["untitled"], json!(0));
    // 15 cells with runs, 3 arms, 3 metrics; 6 accepted runs in each.
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
        let Page { findings, errors } = open_sample(window);
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(
            findings["width"],
            json!(window.width),
            "the window has the requested size"
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
    let in_light = open_in_browser(&page, DESKTOP, press);
    assert_eq!(in_light.findings, json!([light, dark, light]));
    let in_dark = open_in_browser(
        &page,
        Window {
            dark: true,
            ..DESKTOP
        },
        press,
    );
    assert_eq!(in_dark.findings, json!([dark, light, dark]));
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
    let page = open_in_browser(&html::render(&document(&sample())), DESKTOP, script);
    assert_eq!(page.findings, json!([false, true]));
}

/// Proves that the tests above can fail: a page with these errors is reported.
#[test]
fn errors_external_resources_and_overflow_are_reported() {
    let page = html::render(&document(&sample()));
    let spoilt = page.replacen(
        "<main>",
        "<main><img src=\"https://example.invalid/x.png\" alt=\"\"><div style=\"width:3000px\">x</div>\
         <script>nowhere();</script>",
        1,
    );
    let Page { findings, errors } = open_in_browser(&spoilt, DESKTOP, MEASURE);
    let all = errors.join("\n");
    assert!(all.contains("nowhere is not defined"), "{all}");
    assert!(
        all.contains("blocked https://example.invalid/x.png"),
        "{all}"
    );
    assert!(number(&findings["scroll"]) > 3000.0, "{findings}");
}
