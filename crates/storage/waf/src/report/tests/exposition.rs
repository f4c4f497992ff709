//! A strict parser of Prometheus' text format 0.0.4, after its specification and naming
//! conventions.
//!
//! Refuses input that a scraper tolerates: divided families, rows without HELP and TYPE, duplicate
//! series, counters without `_total`, units that are not base units, a last line without line feed.

use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
}

type Labels = Vec<(String, String)>;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) labels: Labels,
    pub(super) value: f64,
}

pub(super) fn parse(text: &str) -> Result<Vec<Family>, String> {
    if !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut families: Vec<Family> = Vec::new();
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let help = line
            .strip_prefix("# HELP ")
            .ok_or(format!("no HELP: {line}"))?;
        let (name, words) = help.split_once(' ').ok_or("HELP without words")?;
        if !words.ends_with('.') || words.contains('\\') {
            return Err(format!("no sentence: {words}"));
        }
        let kind = lines.next().unwrap_or_default();
        let kind = kind
            .strip_prefix(&format!("# TYPE {name} "))
            .ok_or(format!("no TYPE after {line}"))?;
        convention(name, kind)?;
        if !names.insert(name.to_owned()) {
            return Err(format!("{name} comes in pieces"));
        }
        let mut rows = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line
                .strip_prefix(name)
                .ok_or(format!("{line} is not of {name}"))?;
            let (labels, value) = labels(rest)?;
            let mut key = labels.clone();
            key.sort();
            if !seen.insert((name.to_owned(), key)) {
                return Err(format!("twice: {line}"));
            }
            let value = value.strip_prefix(' ').ok_or(format!("no value: {line}"))?;
            let value = match value {
                "+Inf" => f64::INFINITY,
                value if value.bytes().all(|byte| b"0123456789.".contains(&byte)) => {
                    value.parse().map_err(|_| format!("no number: {line}"))?
                }
                _ => return Err(format!("no number: {line}")),
            };
            rows.push(Row { labels, value });
        }
        if rows.is_empty() {
            return Err(format!("{name} has no rows"));
        }
        families.push(Family {
            name: name.to_owned(),
            rows,
        });
    }
    Ok(families)
}

/// Checks a name: prefix of the application, base unit last, `_total` for counters only.
fn convention(name: &str, kind: &str) -> Result<(), String> {
    let is_name = name.starts_with("saiga_")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let is_counted = match kind {
        "counter" => name.ends_with("_bytes_total"),
        "gauge" => ["_ratio", "_bytes", "_seconds", "_breaks", "_warning"]
            .iter()
            .any(|unit| name.ends_with(unit)),
        _ => false,
    };
    (is_name && is_counted)
        .then_some(())
        .ok_or(format!("{name} is not a name of a {kind}"))
}

/// Parses labels like `{a="b",c="d"}`; returns the rest of the text, too.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let mut rest = text.strip_prefix('{').ok_or(format!("no labels: {text}"))?;
    let mut all = Labels::new();
    loop {
        let (name, after) = rest.split_once("=\"").ok_or(format!("no label: {rest}"))?;
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !is_name || name.starts_with("__") || all.iter().any(|(own, _)| own == name) {
            return Err(format!("bad label {name}"));
        }
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().ok_or(format!("no end: {after}"))? {
                (at, '"') => break at,
                (_, '\\') => match letters.next() {
                    Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                    Some((_, 'n')) => value.push('\n'),
                    other => return Err(format!("bad escape {other:?}")),
                },
                (_, letter) => value.push(letter),
            }
        };
        all.push((name.to_owned(), value));
        rest = &after[end + 1..];
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((all, after));
        }
        rest = rest.strip_prefix(',').ok_or(format!("no comma: {rest}"))?;
    }
}

#[test]
fn invalid_text_is_refused() {
    let good = "# HELP saiga_a_bytes Words.\n# TYPE saiga_a_bytes gauge\nsaiga_a_bytes{a=\"1\\\"\\\\\"} 2.5\n";
    let families = parse(good).unwrap();
    assert_eq!(
        families[0].rows[0].labels,
        [("a".to_owned(), "1\"\\".to_owned())]
    );
    for (bad, why) in [
        (good.trim_end().to_owned(), "no line feed"),
        (
            good.replace("gauge", "counter"),
            "a counter that is not called total",
        ),
        (good.replace("# TYPE", "# KIND"), "no type"),
        (good.replace("2.5", "2,5"), "no number"),
        (good.replace("2.5", "-1e3x"), "no number"),
        (good.replace("\\\"", "\\q"), "an escape that is none"),
        (format!("{good}{good}"), "a family in pieces"),
        (good.replace("a_bytes", "a_kilobytes_x"), "no base unit"),
    ] {
        assert!(parse(&bad).is_err(), "{why}");
    }
}
