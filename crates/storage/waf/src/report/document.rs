//! The report for people: result, plot, intervals, segments, and explanations.

mod life;
mod plot;

use saiga_document::Document;
use saiga_document::model::{
    Align, Block, Cell, Column, Figure, Notice, Row, Section, Table, Tone, Verdict, Visibility,
};

use super::format::{bounds, factor, length, measured, minute, remarks};
use crate::ratio::Written;
use crate::series::{Interval, Series, Start};
use saiga_document::number::{bytes, round_bytes};

/// Number of the latest intervals with writes whose factor is shown.
const RECENT: usize = 12;

/// Creates the document. Its tables have at most the newest `rows` intervals of each drive.
#[must_use]
pub fn document(all: &[Series], rows: usize) -> Document {
    let sections = [
        section("course", "Over time", Visibility::Summary, all, |series| {
            plot::curves(series)
                .map(Block::Curves)
                .into_iter()
                .collect()
        }),
        section(
            "life",
            "Life of the drive",
            Visibility::Summary,
            all,
            life::life,
        ),
        section(
            "intervals",
            "Intervals",
            Visibility::Summary,
            all,
            |series| intervals(series, rows),
        ),
        section("segments", "Segments", Visibility::Summary, all, segments),
        Some(Section {
            id: "reading",
            title: "How to read this".to_owned(),
            visibility: Visibility::Detail,
            blocks: READING
                .iter()
                .map(|text| Block::Text((*text).to_owned()))
                .collect(),
        }),
    ];
    Document {
        title: match all {
            [one] => format!("Write amplification of {}", one.drive),
            _ => format!("Write amplification of {} drives", all.len()),
        },
        subtitle: span(all),
        verdict: verdict(all),
        figures: all
            .iter()
            .flat_map(|series| figures(series, all.len()))
            .collect(),
        pointers: Vec::new(),
        sections: sections.into_iter().flatten().collect(),
        origin:
            "Made by saiga waf report from the drive's own counters; docs/waf.md explains them."
                .to_owned(),
    }
}

const READING: [&str; 5] = [
    "The write amplification factor (WAF) is the amount written to flash divided by the amount that \
     the host wrote, between two samples. Garbage collection is caused by writes of hours or days \
     before: judge a change by hours, not by one interval.",
    "The bounds follow from the step by which the drive counts. A window with fewer than 50 steps of \
     a counter is marked coarse: do not use it for a comparison.",
    "An interval without host writes has no WAF; its flash writes are the drive's own housekeeping.",
    "A segment ends where counters are not continuous (reset, other firmware, another source). \
     Writes between two segments are unknown and in no sum.",
    "Life used is the drive's own estimate, in whole percent. Host writes at 100 % are extrapolated \
     from it; with less write amplification from now on they are more.",
];

/// Creates a section from the blocks of all drives; with several drives, each under its name.
/// `None` without blocks.
fn section(
    id: &'static str,
    title: &str,
    visibility: Visibility,
    all: &[Series],
    of: impl Fn(&Series) -> Vec<Block>,
) -> Option<Section> {
    let mut blocks = Vec::new();
    for series in all {
        let own = of(series);
        if !own.is_empty() && all.len() > 1 {
            blocks.push(Block::Text(format!("Drive {}:", series.drive)));
        }
        blocks.extend(own);
    }
    (!blocks.is_empty()).then(|| Section {
        id,
        title: title.to_owned(),
        visibility,
        blocks,
    })
}

fn span(all: &[Series]) -> String {
    // Of all samples: if the clock was set back, the first sample may have the latest time.
    let segments = all.iter().flat_map(|series| &series.segments);
    let times = segments.flat_map(|segment| {
        let later = segment
            .intervals
            .iter()
            .map(|interval| interval.end.unix_ms);
        std::iter::once(segment.first.taken.unix_ms).chain(later)
    });
    match (times.clone().min(), times.max()) {
        (Some(first), Some(last)) => format!("{} to {} UTC", minute(first), minute(last)),
        _ => String::new(),
    }
}

fn verdict(all: &[Series]) -> Verdict {
    let lead = match all {
        [] => "There is no sample.".to_owned(),
        [one] => sentence(one),
        _ => format!("{} drives, each by its own counters.", all.len()),
    };
    let more = match all {
        [] | [_] => Vec::new(),
        _ => all
            .iter()
            .map(|series| format!("{}: {}", series.drive, sentence(series)))
            .collect(),
    };
    Verdict {
        tone: Tone::Neutral,
        lead,
        more,
    }
}

fn sentence(series: &Series) -> String {
    if series.samples() < 2 {
        return "One sample so far: the factor needs two.".to_owned();
    }
    let Some(written) = series.measured() else {
        return format!(
            "No two of {} samples have continuous counters, so there is no factor.",
            series.samples()
        );
    };
    match written.waf() {
        None => format!(
            "No host writes were counted in {} samples, so there is no factor; flash writes: {}.",
            series.samples(),
            bytes(written.media)
        ),
        Some(waf) => format!(
            "WAF {:.3}: the host wrote {}, the drive wrote {} to flash.",
            waf.value,
            bytes(written.host),
            bytes(written.media)
        ),
    }
}

fn figures(series: &Series, drives: usize) -> Vec<Figure> {
    let label = |words: &str| match drives {
        1 => words.to_owned(),
        _ => format!("{words}, {}", series.drive.serial),
    };
    let segment = series.segments.last();
    let last = segment.and_then(|segment| segment.intervals.last());
    let busy = series
        .intervals()
        .rev()
        .filter(|one| one.written.host > 0)
        .take(RECENT);
    let recent: Vec<Written> = busy.map(|one| one.written).collect();
    let mut figures = Vec::new();
    if let Some(last) = last {
        figures.push(figure(
            label("WAF, last interval"),
            Some(last.written),
            length(last.seconds()),
        ));
    }
    if recent.len() > 1 {
        let sum = recent
            .iter()
            .fold(Written::default(), |sum, one| sum.and(*one));
        let detail = format!("{} intervals", recent.len());
        figures.push(figure(
            label("WAF, latest intervals with writes"),
            Some(sum),
            detail,
        ));
    }
    if let Some(segment) = segment.filter(|_| series.segments.len() > 1) {
        let detail = format!("since {} UTC", minute(segment.first.taken.unix_ms));
        figures.push(figure(
            label("WAF, this segment"),
            segment.measured(),
            detail,
        ));
    }
    if series.samples() > 1 {
        let detail = format!("{} samples", series.samples());
        figures.push(figure(
            label("WAF, since the first sample"),
            series.measured(),
            detail,
        ));
    }
    figures
}

fn figure(label: String, written: Option<Written>, detail: String) -> Figure {
    let waf = written.and_then(Written::waf);
    let bounds = bounds(waf);
    Figure {
        label,
        value: measured(written),
        detail: if bounds.is_empty() {
            detail
        } else {
            format!("{bounds}; {detail}")
        },
        tone: match waf {
            Some(waf) if waf.is_coarse => Tone::Caution,
            Some(_) | None => Tone::Neutral,
        },
    }
}

fn columns(all: &[(&str, Align)]) -> Vec<Column> {
    let column = |(title, align): &(&str, Align)| Column {
        title: (*title).to_owned(),
        align: *align,
    };
    all.iter().map(column).collect()
}

fn intervals(series: &Series, rows: usize) -> Vec<Block> {
    let total = series.intervals().count();
    if total == 0 {
        return Vec::new();
    }
    let mut cells = Vec::new();
    let mut left = total.saturating_sub(rows);
    let hidden = left;
    for (index, segment) in series.segments.iter().enumerate() {
        let shown: Vec<&Interval> = segment.intervals.iter().skip(left).collect();
        left = left.saturating_sub(segment.intervals.len());
        if shown.is_empty() {
            continue;
        }
        if series.segments.len() > 1 {
            let title = format!("segment {}: {}", index + 1, segment.start);
            cells.push(Row::Group(title));
        }
        cells.extend(shown.into_iter().map(interval));
    }
    let mut blocks = vec![Block::Table(Table {
        caption: "Intervals, the oldest first, times in UTC".to_owned(),
        columns: columns(&[
            ("from", Align::Left),
            ("length", Align::Right),
            ("host", Align::Right),
            ("flash", Align::Right),
            ("WAF", Align::Right),
            ("bounds", Align::Left),
            ("remarks", Align::Left),
        ]),
        rows: cells,
    })];
    if hidden > 0 {
        blocks.push(Block::Text(format!(
            "{hidden} earlier intervals are not listed; --rows {total} lists them, --csv and --json \
             have all."
        )));
    }
    blocks
}

fn interval(interval: &Interval) -> Row {
    let waf = interval.written.waf();
    Row::Cells(
        [
            minute(interval.start.unix_ms),
            length(interval.seconds()),
            bytes(interval.written.host),
            bytes(interval.written.media),
            factor(waf),
            bounds(waf),
            remarks(interval.written, interval.has_reboot()).join("; "),
        ]
        .map(Cell::new)
        .into(),
    )
}

fn segments(series: &Series) -> Vec<Block> {
    let rows = series.segments.iter().enumerate().map(|(index, segment)| {
        let (written, first) = (segment.measured(), &segment.first);
        let amount = |count: fn(Written) -> u128| {
            written.map_or_else(|| "–".to_owned(), |written| bytes(count(written)))
        };
        Row::Cells(
            [
                (index + 1).to_string(),
                minute(first.taken.unix_ms),
                segment.start.to_string(),
                first.source.title().to_owned(),
                format!(
                    "{} / {}",
                    round_bytes(first.steps.host),
                    round_bytes(first.steps.media)
                ),
                amount(|written| written.host),
                amount(|written| written.media),
                measured(written),
            ]
            .map(Cell::new)
            .into(),
        )
    });
    let mut blocks = vec![Block::Table(Table {
        caption: "Segments: samples with continuous counters".to_owned(),
        columns: columns(&[
            ("", Align::Right),
            ("from", Align::Left),
            ("begins with", Align::Left),
            ("source", Align::Left),
            ("steps, host / flash", Align::Right),
            ("host", Align::Right),
            ("flash", Align::Right),
            ("WAF", Align::Right),
        ]),
        rows: rows.collect(),
    })];
    let sources = series
        .segments
        .windows(2)
        .any(|two| matches!(&two[1].start, Start::Source { .. }));
    if sources {
        blocks.push(Block::Notices(vec![Notice {
            text: "The sum over all segments mixes sources, which count differently.".to_owned(),
            cause: None,
            action: Some(
                "Compare within a segment; saiga waf watch --source uses one source only."
                    .to_owned(),
            ),
            about: vec![series.drive.to_string()],
        }]));
    }
    blocks
}
