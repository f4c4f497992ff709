//! A result file may come from another machine and contain any text. No text may reach the reader
//! as markup, as an escape sequence, or as a request to a server.

mod support;

use saiga_document::model::Visibility;
use saiga_document::{html, text};
use saiga_experiment::result::ExperimentResult;
use saiga_report::document;
use serde_json::{Value, json};
use support::{Window, open_in_browser};

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

/// Closes every context in which a text can occur, then adds elements that the tests look for.
const EVIL: &str = "\"'></title></style></script><script>evil()</script>\
                    <img src=https://evil.example/x onerror=evil()>`<b>`\u{1b}[2J\u{202e}&lt;";

/// The sample with [`EVIL`] appended to every string that is not an enum value or a metric name.
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
        "the page has only its own script"
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
        let page = open_in_browser(
            &page,
            Window {
                width,
                height: 900,
                dark: false,
            },
            script,
        );
        assert_eq!(page.findings, json!([]));
        assert_eq!(page.errors, Vec::<String>::new());
    }
}

#[test]
fn no_text_controls_the_terminal() {
    let report = document(&hostile());
    let shown = text::render(
        &report,
        text::Style {
            shown: Visibility::Evidence,
            ..text::Style::plain()
        },
    );
    let control = shown
        .chars()
        .find(|one| one.is_control() && *one != '\n' || *one == '\u{202e}');
    assert_eq!(control, None);
    assert!(
        shown.contains("\u{fffd}[2J"),
        "U+FFFD replaces control characters"
    );
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
            "the page has no section {id}"
        );
    }
}
