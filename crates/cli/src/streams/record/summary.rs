//! The result of a recording as text.

use std::time::Duration;

use saiga_ftl::replay::FEW_WRITES_PER_PAGE;
use saiga_record::{Options, Totals};

use saiga_document::number;
use saiga_document::table::Table;

/// Maximum number of file kinds in the table.
const KINDS: usize = 10;

pub(in crate::streams) fn line(tally: &Totals) -> String {
    let lost = if tally.lost > 0 {
        format!(", {} EVENTS LOST", tally.lost)
    } else {
        String::new()
    };
    format!(
        "{}: {} written, {} discarded, {} of no file{lost}",
        number::time(Duration::from_nanos(tally.duration_ns)),
        number::bytes(tally.total.written),
        number::bytes(tally.total.discarded),
        share(tally.no_file.written, tally.total.written),
    )
}

/// The summary and tables at the end.
pub(super) fn text(options: &Options, directories: &[String], tally: &Totals) -> String {
    let out = options.out.display();
    let mut text = format!("{out}: {} rows, {}\n", tally.rows, line(tally));
    if let Some(sampling) = options.sampling {
        text.push_str(&format!(
            "the rows are a sample: 1/{} of the pages, in granules of {}; the figures below are \
             for all pages\n",
            sampling.one_in(),
            number::bytes(sampling.granule_bytes()),
        ));
    }
    text.push_str(&format!(
        "{} existed before\n",
        number::bytes(tally.present)
    ));
    if let Some(writes) = tally.writes_per_page() {
        text.push_str(&format!("{writes:.2} writes per written page\n"));
    }
    let mut table = Table::new(["written", "share", "files"]);
    let mut row = |bytes: u64, name: &str| {
        table.row([
            number::bytes(bytes),
            share(bytes, tally.total.written),
            name.to_owned(),
        ]);
    };
    let kinds = tally.kinds(directories);
    for (name, bytes) in kinds.iter().take(KINDS) {
        row(*bytes, name);
    }
    let others: u64 = kinds.iter().skip(KINDS).map(|(_, bytes)| bytes).sum();
    if others > 0 {
        row(others, &format!("{} other kinds", kinds.len() - KINDS));
    }
    row(
        tally.no_file.written,
        "(no file: metadata, journal, files deleted too soon)",
    );
    text.push_str(&table.to_string());
    if directories.len() > 1 {
        let mut table = Table::new(["written", "share", "directory"]);
        for (name, bytes) in directories.iter().zip(tally.by_directory(directories)) {
            table.row([
                number::bytes(bytes),
                share(bytes, tally.total.written),
                name.clone(),
            ]);
        }
        text.push_str(&format!("\n{table}"));
    }
    text
}

/// Problems that make a trace less useful.
pub(in crate::streams) fn warnings(tally: &Totals) -> Vec<String> {
    let mut warnings = Vec::new();
    if tally.lost > 0 {
        warnings.push(format!(
            "{} EVENTS WERE LOST: the trace has gaps, and a simulation of it is wrong; record \
             again with a larger --buffer",
            tally.lost
        ));
    }
    match tally.writes_per_page() {
        None => warnings
            .push("warning: nothing was written, so the trace cannot be simulated".to_owned()),
        Some(writes) if writes < FEW_WRITES_PER_PAGE => warnings.push(format!(
            "warning: {writes:.2} writes per page are few: a simulation repeats the trace and then \
             predicts too low a write amplification; record until the number is \
             {FEW_WRITES_PER_PAGE} or more"
        )),
        Some(_) => {}
    }
    warnings
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0.0 %".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_and_few_writes_are_reported() {
        let mut tally = Totals::default();
        assert_eq!(warnings(&tally).len(), 1);
        assert!(warnings(&tally)[0].contains("nothing was written"));
        tally.lost = 7;
        assert!(warnings(&tally)[0].contains("7 EVENTS WERE LOST"));
        assert!(line(&tally).contains("7 EVENTS LOST"));
    }

    #[test]
    fn the_share_of_zero_is_zero() {
        assert_eq!(share(1, 0), "0.0 %");
        assert_eq!(share(1, 3), "33.3 %");
    }
}
