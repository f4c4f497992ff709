//! A result is written by whoever measured: nothing in it may reach the reader as markup, as
//! an escape sequence or as a request.

mod support;

use saiga_document::{html, text};
use saiga_experiment::result::ExperimentResult;
use saiga_report::document;
use serde_json::{Value, json};
use support::{Window, look};

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

/// Ends every context that a text could stand in, and leaves a trace when it does.
const EVIL: &str = "\"'></title></style></script><script>evil()</script>\
                    <img src=https://evil.example/x onerror=evil()>`<b>`\u{1b}[2J\u{202e}&lt;";

/// The sample with every string replaced, except those that must be a known word.
fn hostile() -> ExperimentResult {
    let mut value: Value = serde_json::from_str(SAMPLE).expect("the sample is JSON");
    spoil(&mut value, "");
    ExperimentResult::from_json(&value.to_string()).expect("hostile, but consistent")
}

fn spoil(value: &mut Value, key: &str) {
    let known = ["better", "verdict", "kind", "method", "metric"];
    match value {
        Value::String(text) if !known.contains(&key) => text.push_str(EVIL),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, key)),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .for_each(|(name, field)| spoil(field, name));
            if ["env", "versions", "params", "host"].contains(&key) {
                fields.insert(EVIL.to_owned(), json!(EVIL));
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn no_text_becomes_markup() {
    let page = html::render(&document(&hostile()));
    assert!(
        page.contains("&lt;script&gt;evil()&lt;/script&gt;"),
        "the text itself is shown"
    );
    assert!(!page.contains("<script>evil"));
    assert!(!page.contains("<img"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert_eq!(
        page.matches("<script>").count(),
        1,
        "our own script and no other"
    );
}

#[test]
fn a_browser_finds_no_foreign_element_in_a_hostile_report() {
    let script = "
        const foreign = [...document.querySelectorAll('img, b, [onerror], [onload], base, link, iframe')];
        return foreign.map(e => e.outerHTML).filter(html => !/^<b>[A-Z][a-z ]+: <.b>$/.test(html));
    ";
    let page = html::render(&document(&hostile()));
    for width in [1280, 390] {
        let seen = look(
            &page,
            Window {
                width,
                height: 900,
                dark: false,
            },
            script,
        );
        assert_eq!(seen.findings, json!([]));
        assert_eq!(seen.complaints, Vec::<String>::new());
    }
}

#[test]
fn no_text_steers_the_terminal() {
    let report = document(&hostile());
    let shown = text::render(
        &report,
        text::Style {
            evidence: true,
            ..text::Style::plain()
        },
    );
    let steering = shown
        .chars()
        .find(|one| one.is_control() && *one != '\n' || *one == '\u{202e}');
    assert_eq!(steering, None);
    assert!(shown.contains("\u{fffd}[2J"), "made visible instead");
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let result = ExperimentResult::from_json(SAMPLE).expect("the sample is readable");
    let page = html::render(&document(&result));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("//cdn"));
    assert!(!page.contains("src=") && !page.contains("url(") && !page.contains("@import"));
    let targets: Vec<_> = page.split("href=\"").skip(1).collect();
    assert!(!targets.is_empty());
    assert!(
        targets.iter().all(|target| target.starts_with('#')),
        "links stay on the page"
    );
    for target in targets {
        let id = target[1..].split('"').next().unwrap();
        assert!(
            page.contains(&format!("<section id=\"{id}\">")),
            "{id} leads somewhere"
        );
    }
}
