//! Parses declared metrics, and the figures that hooks print.

use super::reader::Table;
use super::tree::Entries;
use crate::result::{Better, Metric};
use crate::workload::Figures;

/// The metric of `[metrics] waf`: bytes that the drives wrote to flash per byte that the host
/// wrote.
pub const WAF: &str = "waf";

/// Parses `name`, `unit` and `better` of a metric.
pub(super) fn read(table: &Table<'_>) -> Option<Metric> {
    let name = table.required_text("name").unwrap_or_default();
    if !is_name(&name) {
        table.problem(
            "name",
            "must consist of lower-case letters, digits and _, with the unit last: latency_p99_us",
        );
    }
    table.require("better");
    let better = table.choice(
        "better",
        &[("higher", Better::Higher), ("lower", Better::Lower)],
    );
    Some(Metric {
        name,
        unit: table.required_text("unit")?,
        better: better?,
        decides: false,
    })
}

/// Parses a `[[metric]]` of the file: a figure that a hook prints and that is compared.
pub(super) fn of_hooks(root: &Table<'_>, line: usize, entries: &Entries) -> Option<Metric> {
    let table = root.inner("metric".to_owned(), line, entries);
    let metric = read(&table);
    table.finish();
    metric
}

/// The write amplification that `[metrics] waf` measures.
pub(super) fn write_amplification() -> Metric {
    Metric {
        name: WAF.to_owned(),
        unit: "flash/host".to_owned(),
        better: Better::Lower,
        decides: false,
    }
}

/// Parses the output of a hook with `metrics = true`: lines `name value unit`.
///
/// # Errors
/// Returns a message if a line has another form, a name occurs twice, or the unit of one of
/// `declared` differs.
pub fn printed(text: &str, declared: &[Metric]) -> Result<Figures, String> {
    let mut figures = Figures::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value, unit) = figure(line).ok_or_else(|| {
            format!(
                "printed {line:?}, which is not `name value unit`, such as `moved_bytes 4096 B`"
            )
        })?;
        let known = declared.iter().find(|metric| metric.name == name);
        if let Some(metric) = known.filter(|metric| metric.unit != unit) {
            let wanted = &metric.unit;
            return Err(format!(
                "printed {name} in {unit}; the unit in its [[metric]] is {wanted}"
            ));
        }
        if figures.values.insert(name.to_owned(), value).is_some() {
            return Err(format!("printed {name} twice"));
        }
        if known.is_none() {
            figures.units.insert(name.to_owned(), unit.to_owned());
        }
    }
    Ok(figures)
}

fn figure(line: &str) -> Option<(&str, f64, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, value, unit] = words.as_slice() else {
        return None;
    };
    let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
    is_name(name).then_some((name, value, unit))
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn lines_of_a_name_a_number_and_a_unit_are_parsed() {
        let declared = [write_amplification()];
        let read = printed("moved_bytes 4096 B\n\n  waf 1.5 flash/host\n", &declared).unwrap();
        let wanted = [("moved_bytes".to_owned(), 4096.0), ("waf".to_owned(), 1.5)];
        assert_eq!(read.values, BTreeMap::from(wanted));
        // The unit of `waf` is that of its metric.
        let unit = ("moved_bytes".to_owned(), "B".to_owned());
        assert_eq!(read.units, BTreeMap::from([unit]));
        for (text, wanted) in [
            ("waf 1.5", "is not `name value unit`"),
            ("waf much flash/host", "is not `name value unit`"),
            ("waf inf flash/host", "is not `name value unit`"),
            ("Waf 1.5 flash/host", "is not `name value unit`"),
            (
                "waf 1.5 %",
                "printed waf in %; the unit in its [[metric]] is flash/host",
            ),
            ("a 1 B\na 2 B", "printed a twice"),
        ] {
            let error = printed(text, &declared).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
