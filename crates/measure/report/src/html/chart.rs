//! Charts: tables whose rows carry a small inline SVG.
//!
//! A chart is its own table, so nothing has to be repeated for a screen reader or a copy.
//! `plotters` was not used: its SVG has fixed pixels and colours, so it would neither follow
//! the colour scheme (CSS variables) nor stay readable at the width of a phone (percentages).
//!
//! Deliberately absent: scales with a broken axis, and bars that do not start at zero.

use super::axis::{LogAxis, ZeroAxis};
use super::markup::Markup;
use super::tone_class;
use crate::model::{Bar, BarGroup, BarPanel, Bars, Forest, ForestGroup, ForestRow, Tone};
use crate::number;

/// Series beyond this many share colours; their names tell them apart.
const SERIES_COLOURS: usize = 5;

/// Ratios on a logarithmic axis, one row each.
pub(super) fn forest(page: &mut Markup, forest: &Forest) {
    let rows = || forest.groups.iter().flat_map(|group| &group.rows);
    let axis = LogAxis::around(
        rows().flat_map(|row| row.interval.into_iter().flatten().chain([row.ratio])),
    );
    let frame = Frame {
        axis,
        ends: &forest.ends,
    };
    page.element("div", &[("class", "scroll"), ("tabindex", "0")], |page| {
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

/// What all rows of a forest share.
struct Frame<'a> {
    axis: LogAxis,
    ends: &'a [(String, Tone); 2],
}

impl Frame<'_> {
    /// The better side as a tint, the ticks as lines, 1 as a stronger line.
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
            let is_one = (tick - 1.0).abs() < 1e-9;
            self.upright(
                page,
                tick,
                if is_one { "one" } else { "grid" },
                ["0", "100%"],
            );
        }
    }

    fn upright(&self, page: &mut Markup, number: f64, class: &str, [from, to]: [&str; 2]) {
        if let Some(place) = self.axis.place(number) {
            let x = percent(place);
            let ends = [
                ("class", class),
                ("x1", &x),
                ("x2", &x),
                ("y1", from),
                ("y2", to),
            ];
            page.leaf("line", &ends, "");
        }
    }

    fn ticks(&self, page: &mut Markup) {
        page.element(
            "svg",
            &[("class", "ticks"), ("aria-hidden", "true")],
            |page| {
                for tick in self.axis.ticks() {
                    let x = percent(self.axis.place(tick).unwrap_or(0.0));
                    let text = format!("{tick}×");
                    page.leaf(
                        "text",
                        &[("x", &x), ("y", "13"), ("text-anchor", "middle")],
                        &text,
                    );
                }
            },
        );
    }

    fn mark(&self, page: &mut Markup, row: &ForestRow) {
        let class = format!("mark {}", tone_class(row.tone));
        page.element("g", &[("class", &class)], |page| {
            if let Some([low, high]) = row.interval {
                if let Some((from, to)) = self.axis.place(low).zip(self.axis.place(high)) {
                    let (from, to) = (percent(from), percent(to));
                    let span = [("class", "interval"), ("x1", &from), ("x2", &to)];
                    let level = [("y1", "50%"), ("y2", "50%")];
                    page.leaf("line", &[span.as_slice(), &level].concat(), "");
                    self.upright(page, low, "cap", ["36%", "64%"]);
                    self.upright(page, high, "cap", ["36%", "64%"]);
                }
            }
            if let Some(place) = self.axis.place(row.ratio) {
                let class = if row.interval.is_some() {
                    "point"
                } else {
                    "point hollow"
                };
                let x = percent(place);
                page.leaf(
                    "circle",
                    &[("class", class), ("cx", &x), ("cy", "50%"), ("r", "4.5")],
                    "",
                );
            }
        });
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
                        for ((words, tone), arrow) in frame.ends.iter().zip(["←", "→"]) {
                            let text = match arrow {
                                "←" => format!("{arrow} {words}"),
                                _ => format!("{words} {arrow}"),
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
        cell(page, "pairs", &row.pairs.to_string());
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

/// Panels of bars with the raw runs as dots.
pub(super) fn bars(page: &mut Markup, bars: &Bars) {
    page.element("figure", &[("class", "bars")], |page| {
        page.element("figcaption", &[], |page| {
            page.text(&bars.caption);
            page.leaf("span", &[("class", "unit")], &format!(" in {}", bars.unit));
        });
        page.element("div", &[("class", "panels")], |page| {
            bars.panels
                .iter()
                .for_each(|panel| bar_panel(page, panel, bars));
        });
    });
}

fn bar_panel(page: &mut Markup, panel: &BarPanel, bars: &Bars) {
    let all = panel.groups.iter().flat_map(|group| &group.bars);
    let axis = ZeroAxis::up_to(all.flat_map(|bar| bar.dots.iter().copied().chain([bar.value])));
    page.element("table", &[("class", "panel")], |page| {
        page.leaf("caption", &[], &panel.title);
        for group in &panel.groups {
            page.element("tbody", &[], |page| {
                page.element("tr", &[("class", "group")], |page| {
                    page.leaf(
                        "th",
                        &[("colspan", "3"), ("scope", "rowgroup")],
                        &group.label,
                    );
                });
                group
                    .bars
                    .iter()
                    .for_each(|bar| bar_row(page, bar, group, bars, &axis));
            });
        }
    });
}

fn bar_row(page: &mut Markup, bar: &Bar, group: &BarGroup, bars: &Bars, axis: &ZeroAxis) {
    let series = bars.series.get(bar.series).map_or("", String::as_str);
    let title = format!(
        "{series}, {}: {} {}, {} runs",
        group.label,
        bar.text,
        bars.unit,
        bar.dots.len()
    );
    page.element("tr", &[], |page| {
        page.leaf("th", &[("scope", "row")], series);
        page.element("td", &[("class", "plot")], |page| {
            page.element("svg", &[("role", "img"), ("aria-label", &title)], |page| {
                page.leaf("title", &[], &title);
                let class = format!("bar series-{}", bar.series % SERIES_COLOURS);
                let width = percent(axis.place(bar.value));
                let size = [
                    ("x", "0"),
                    ("y", "15%"),
                    ("width", &width),
                    ("height", "70%"),
                ];
                page.leaf(
                    "rect",
                    &[[("class", class.as_str()), ("rx", "2")].as_slice(), &size].concat(),
                    "",
                );
                for (index, dot) in bar.dots.iter().enumerate() {
                    // Every other dot stands lower, so that equal runs can be told apart.
                    let y = if index % 2 == 0 { "38%" } else { "62%" };
                    let x = percent(axis.place(*dot));
                    page.leaf(
                        "circle",
                        &[("class", "dot"), ("cx", &x), ("cy", y), ("r", "2.2")],
                        "",
                    );
                }
            });
        });
        page.leaf("td", &[("class", "number")], &bar.text);
    });
}

fn percent(share: f64) -> String {
    format!("{share:.2}%")
}
