//! Tests of the HTML report.

use saiga_document::html;

use super::*;

fn rendered(record: &Record) -> String {
    html::render(&page::page(record))
}

#[test]
fn the_report_has_the_figures_of_the_record() {
    let record = whole();
    let html = rendered(&record);
    for part in [
        // tpmC, the total of all types, and the row of New-Order.
        ">480.00<",
        "1140.00 transactions of all types per minute",
        "<td class=\"\">NEW_ORDER</td><td class=\"number\">240</td>",
        ">p90 limit<",
        // Settings, the props file, and a metric by its name in result.json.
        "2 of 5 loaded",
        "<dt>db</dt><dd>mysql</dd>",
        "<dt>tpm_total</dt><dd>1140</dd>",
        // Charts, each with its name.
        "New-Orders, per second",
        "this run: server gone",
        "How many transactions took how long",
        // Errors and warnings.
        "<td class=\"number\">3</td><td class=\"\">deadlock</td>",
        "href=\"#warnings\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    for (name, value) in &record.run.metrics {
        let fact = format!("<dt>{name}</dt><dd>{value}</dd>");
        assert!(html.contains(&fact), "{fact} in {html}");
    }
    for check in &record.validity {
        assert!(html.contains(&check.found), "{check:?}");
    }
    assert!(html.matches("<polyline").count() > 10, "{html}");
}

/// The printed summary contains no charts, settings or metrics.
#[test]
fn charts_and_settings_are_not_printed() {
    use saiga_document::text::{self, Style};
    let text = text::render(&page::page(&whole()), Style::plain());
    for part in ["The props file", "The run over time", "Response times"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn texts_of_a_record_are_escaped() {
    const EVIL: &str = "\"'></style></script><script>evil()</script><img src=x onerror=evil()>";
    let mut record = whole();
    let conditions = &mut record.conditions;
    for text in [
        &mut conditions.server,
        &mut conditions.isolation,
        &mut conditions.db,
        &mut conditions.session_start,
        &mut conditions.pace,
        &mut conditions.ramp_up,
        &mut conditions.drain,
    ] {
        text.push_str(EVIL);
    }
    conditions.props.push((EVIL.to_owned(), EVIL.to_owned()));
    record.errors.push((EVIL.to_owned(), 1));
    let missing = record::Consistency::missing("after", EVIL.to_owned());
    record.consistency.push(missing);
    record.conclude();
    record.run.metrics.insert(EVIL.to_owned(), 1.0);
    let html = rendered(&record);
    assert!(
        html.contains("&lt;script&gt;evil()&lt;/script&gt;"),
        "{html}"
    );
    assert!(
        !html.contains("<script>evil") && !html.contains("<img"),
        "{html}"
    );
    assert_eq!(html.matches("<script>").count(), 1, "the page's own");
}

#[test]
fn the_report_of_a_sum_lists_its_workers_and_the_missing_ones() {
    let html = rendered(&merge(vec![part(1, 3), part(3, 3)]).unwrap());
    for part in [
        "id=\"verdict\">Partial: worker 2 of 3 is missing",
        "tpmC (no think time), partial",
        "<td class=\"\">2</td><td class=\"\">MISSING</td>",
        "<dt>tpmc_partial</dt><dd>420</dd>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}
