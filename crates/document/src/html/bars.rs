//! Horizontal bars with the raw values as dots, in panels.
//!
//! Every panel is an HTML table, as in `forest`. Deliberately absent: broken axes, and bars that
//! do not start at zero.

use super::axis::{ZeroAxis, percent};
use super::markup::Markup;
use crate::model::{Bar, BarGroup, BarPanel, Bars};

/// Number of series colours in the style sheet; further series reuse them from the first one.
pub(super) const SERIES_COLOURS: usize = 5;

pub(super) fn render(page: &mut Markup, bars: &Bars) {
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
    page.element("div", &[("class", "panel")], |page| {
        page.element("table", &[], |page| {
            page.leaf("caption", &[], &panel.title);
            page.element("colgroup", &[], |page| {
                ["name", "plot", "number"]
                    .iter()
                    .for_each(|class| page.void("col", &[("class", class)]));
            });
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
        })
    });
}

fn bar_row(page: &mut Markup, bar: &Bar, group: &BarGroup, bars: &Bars, axis: &ZeroAxis) {
    let series = bars.series.get(bar.series).map_or("", String::as_str);
    let title = format!(
        "{series}, {}: {} {}, {} {}",
        group.label,
        bar.text,
        bars.unit,
        bar.dots.len(),
        bars.labels.dots
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
                    // Every other dot is lower, so that runs with equal values remain visible.
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
