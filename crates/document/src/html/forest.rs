//! Forest plots: a table in which one column is a plot.
//!
//! The chart is a table with all its numbers, so that a screen reader and a copy need no second
//! one. The crate `plotters` is not used, because its SVG has fixed pixels and colours: it would
//! neither follow the colour scheme (CSS variables) nor fit the width of a phone (percentages).

use super::axis::{LogAxis, percent};
use super::markup::Markup;
use super::{scroller, tone_class};
use crate::model::{Forest, ForestGroup, ForestRow, Tone};
use crate::number;

/// Writes the table, with one row per ratio.
pub(super) fn render(page: &mut Markup, forest: &Forest) {
    let rows = || forest.groups.iter().flat_map(|group| &group.rows);
    let axis = LogAxis::around(
        rows().flat_map(|row| row.interval.into_iter().flatten().chain([row.ratio])),
    );
    let frame = Frame {
        axis,
        ends: &forest.ends,
    };
    scroller(page, &forest.caption, |page| {
        page.element("table", &[("class", "forest"), ("role", "table")], |page| {
            page.leaf("caption", &[], &forest.caption);
            forest_head(page, forest, &frame);
            for group in &forest.groups {
                forest_group(page, group, forest, &frame);
            }
            page.element(
                "tfoot",
                &[("role", "rowgroup"), ("aria-hidden", "true")],
                |page| {
                    page.element("tr", &[("class", "axis")], |page| {
                        page.leaf("td", &[("class", "label")], "");
                        page.element("td", &[("class", "plot")], |page| frame.ticks(page));
                        page.leaf("td", &[("colspan", "5"), ("class", "rest")], "");
                    });
                },
            );
        });
    });
}

/// Axis and end labels, which all rows of a forest plot share.
struct Frame<'a> {
    axis: LogAxis,
    ends: &'a [(String, Tone); 2],
}

impl Frame<'_> {
    /// Draws the better side as a tinted area, the ticks as lines, and 1 as a stronger line.
    fn background(&self, page: &mut Markup) {
        let one = self.axis.place(1.0).unwrap_or(0.0);
        let [low, _] = self.ends;
        let (from, width) = if low.1 == Tone::Better {
            (0.0, one)
        } else {
            (one, 100.0 - one)
        };
        let (from, width) = (percent(from), percent(width));
        page.leaf(
            "rect",
            &[
                ("class", "good"),
                ("x", &from),
                ("y", "0"),
                ("width", &width),
                ("height", "100%"),
            ],
            "",
        );
        for tick in self.axis.ticks() {
            let class = if (tick - 1.0).abs() < 1e-9 {
                "one"
            } else {
                "grid"
            };
            let x = percent(self.axis.place(tick).unwrap_or(0.0));
            let across = [("class", class), ("x1", &x), ("x2", &x)];
            page.leaf(
                "line",
                &[across.as_slice(), &[("y1", "0"), ("y2", "100%")]].concat(),
                "",
            );
        }
    }

    fn ticks(&self, page: &mut Markup) {
        page.element(
            "svg",
            &[("class", "ticks"), ("aria-hidden", "true")],
            |page| {
                for tick in self.axis.ticks() {
                    let place = self.axis.place(tick).unwrap_or(0.0);
                    // A centred label at an end of the axis would be clipped.
                    let anchor = match place {
                        place if place < 6.0 => "start",
                        place if place > 94.0 => "end",
                        _ => "middle",
                    };
                    let x = percent(place);
                    let attributes = [("x", x.as_str()), ("y", "13"), ("text-anchor", anchor)];
                    page.leaf("text", &attributes, &format!("{tick}×"));
                }
            },
        );
    }

    /// Draws the ratio and its interval; heights are pixels from the middle of the row.
    fn mark(&self, page: &mut Markup, row: &ForestRow) {
        let class = format!("mark {}", tone_class(row.tone));
        page.element(
            "svg",
            &[("class", &class), ("y", "50%"), ("overflow", "visible")],
            |page| {
                let places = row
                    .interval
                    .map(|ends| ends.map(|end| self.axis.place(end)));
                if let Some([Some(from), Some(to)]) = places {
                    let [x1, x2] = [from, to].map(percent);
                    page.leaf(
                        "line",
                        &[("class", "interval"), ("x1", &x1), ("x2", &x2)],
                        "",
                    );
                    for x in [&x1, &x2] {
                        let height = [("y1", "-7"), ("y2", "7")];
                        let cap = [("class", "cap"), ("x1", x.as_str()), ("x2", x)];
                        page.leaf("line", &[cap.as_slice(), &height].concat(), "");
                    }
                }
                if let Some(place) = self.axis.place(row.ratio) {
                    let class = if row.interval.is_some() {
                        "point"
                    } else {
                        "point hollow"
                    };
                    page.leaf(
                        "circle",
                        &[("class", class), ("cx", &percent(place)), ("r", "4")],
                        "",
                    );
                }
            },
        );
    }
}

fn forest_head(page: &mut Markup, forest: &Forest, frame: &Frame) {
    let [a, b] = &forest.sides;
    page.element("thead", &[("role", "rowgroup")], |page| {
        page.element("tr", &[("role", "row")], |page| {
            let heading = |page: &mut Markup, class: &str, text: &str| {
                let attributes = [("class", class), ("scope", "col"), ("role", "columnheader")];
                page.leaf("th", &attributes, text);
            };
            heading(page, "label", "Workload");
            page.element(
                "th",
                &[
                    ("class", "plot"),
                    ("scope", "col"),
                    ("role", "columnheader"),
                ],
                |page| {
                    page.element("span", &[("class", "ends")], |page| {
                        for ((label, tone), arrow) in frame.ends.iter().zip(["←", "→"]) {
                            let text = match arrow {
                                "←" => format!("{arrow} {label}"),
                                _ => format!("{label} {arrow}"),
                            };
                            page.leaf("span", &[("class", tone_class(*tone))], &text);
                        }
                    });
                    frame.ticks(page);
                },
            );
            heading(page, "ratio", "Ratio");
            heading(page, "interval-text", "95 % interval");
            heading(page, "values", &format!("{a} → {b}, {}", forest.unit));
            heading(page, "pairs", "Pairs");
            heading(page, "verdict", "Verdict");
        });
    });
}

fn forest_group(page: &mut Markup, group: &ForestGroup, forest: &Forest, frame: &Frame) {
    page.element("tbody", &[("role", "rowgroup")], |page| {
        page.element("tr", &[("class", "group"), ("role", "row")], |page| {
            let attributes = [
                ("colspan", "7"),
                ("scope", "rowgroup"),
                ("role", "rowheader"),
            ];
            page.element("th", &attributes, |page| {
                page.leaf("span", &[], &group.title);
                page.text(" ");
                page.leaf("small", &[], &group.note);
            });
        });
        for row in &group.rows {
            forest_row(page, row, forest, frame);
        }
    });
}

fn forest_row(page: &mut Markup, row: &ForestRow, forest: &Forest, frame: &Frame) {
    let ratio = number::ratio(row.ratio);
    let interval = row
        .interval
        .map_or_else(|| "no interval".to_owned(), number::interval);
    let cell = |page: &mut Markup, class: &str, text: &str| {
        page.leaf("td", &[("class", class), ("role", "cell")], text);
    };
    page.element("tr", &[("class", "comparison"), ("role", "row")], |page| {
        page.element(
            "th",
            &[("class", "label"), ("scope", "row"), ("role", "rowheader")],
            |page| {
                page.text(&row.label);
                if let Some(note) = &row.note {
                    page.leaf("small", &[], note);
                }
            },
        );
        page.element("td", &[("class", "plot"), ("role", "cell")], |page| {
            let title = format!(
                "{}: {ratio} times, 95 % interval {interval}, {} pairs, {}",
                row.label, row.pairs, row.verdict
            );
            page.element(
                "svg",
                &[("class", "row"), ("role", "img"), ("aria-label", &title)],
                |page| {
                    page.leaf("title", &[], &title);
                    frame.background(page);
                    frame.mark(page, row);
                },
            );
        });
        cell(page, "ratio", &format!("{ratio}×"));
        cell(page, "interval-text", &interval);
        page.element("td", &[("class", "values"), ("role", "cell")], |page| {
            let [a, b] = &row.values;
            page.text(&format!("{a} → {b}"));
            page.leaf("span", &[("class", "unit")], &format!(" {}", forest.unit));
        });
        page.element("td", &[("class", "pairs"), ("role", "cell")], |page| {
            page.text(&row.pairs.to_string());
            page.leaf("span", &[("class", "unit")], " pairs");
        });
        let class = format!("verdict {}", tone_class(row.tone));
        page.element("td", &[("class", &class), ("role", "cell")], |page| {
            page.leaf(
                "span",
                &[("class", "sign"), ("aria-hidden", "true")],
                sign(row.tone),
            );
            page.text(&row.verdict);
        });
    });
}

fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Better => "▲",
        Tone::Worse => "▼",
        Tone::Neutral => "●",
        Tone::Caution => "◆",
    }
}
