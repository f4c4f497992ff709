//! Renders a document as one HTML file.
//!
//! The file contains style, script and charts. It loads nothing, and its content security policy
//! forbids the browser to load anything. The page is readable without the script, which switches
//! the colour scheme and opens folded sections for links and for printing.
//!
//! Deliberately absent: any knowledge of the measured quantities.

mod axis;
mod bars;
mod curves;
mod forest;
mod histogram;
mod lines;
mod markup;
mod picture;

use crate::model::{Align, Block, Column, Document, Notice, Row, Section, Table, Tone, Visibility};
use markup::Markup;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
const POLICY_WITHOUT_SCRIPT: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Whether a page has a script. The script is the button that switches the colour scheme, and opens
/// folded sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Included,
    LeftOut,
}

/// Renders the document as a complete HTML page.
pub fn render(document: &Document) -> String {
    render_with(document, Script::Included)
}

/// Renders the document as a complete HTML page without a script. The colour scheme is that of the
/// reader's system.
pub fn render_without_script(document: &Document) -> String {
    render_with(document, Script::LeftOut)
}

fn render_with(document: &Document, script: Script) -> String {
    let mut page = Markup::default();
    page.literal("<!DOCTYPE html>\n");
    page.element("html", &[("lang", "en")], |page| {
        page.element("head", &[], |page| head(page, document, script));
        page.element("body", &[], |page| {
            hero(page, document, script);
            page.element("main", &[], |page| {
                document
                    .sections
                    .iter()
                    .for_each(|part| section(page, part));
            });
            page.leaf("footer", &[], &document.origin);
            if script == Script::Included {
                page.element("script", &[], |page| page.literal(SCRIPT));
            }
        });
    });
    page.literal("\n");
    page.finish()
}

fn head(page: &mut Markup, document: &Document, script: Script) {
    let policy = match script {
        Script::Included => POLICY,
        Script::LeftOut => POLICY_WITHOUT_SCRIPT,
    };
    page.void("meta", &[("charset", "utf-8")]);
    page.void(
        "meta",
        &[
            ("name", "viewport"),
            ("content", "width=device-width, initial-scale=1"),
        ],
    );
    page.void(
        "meta",
        &[("name", "color-scheme"), ("content", "light dark")],
    );
    page.void(
        "meta",
        &[
            ("http-equiv", "Content-Security-Policy"),
            ("content", policy),
        ],
    );
    page.leaf("title", &[], &document.title);
    page.element("style", &[], |page| page.literal(STYLE));
}

fn hero(page: &mut Markup, document: &Document, script: Script) {
    let class = format!("hero {}", tone_class(document.verdict.tone));
    page.element("header", &[("class", &class)], |page| {
        page.element("div", &[("class", "masthead")], |page| {
            page.leaf("h1", &[], &document.title);
            let label = "Switch between light and dark";
            let attributes = [
                ("id", "scheme"),
                ("type", "button"),
                ("title", label),
                ("hidden", ""),
            ];
            if script == Script::Included {
                page.leaf("button", &attributes, "Light / dark");
            }
        });
        page.leaf("p", &[("class", "subtitle")], &document.subtitle);
        page.leaf(
            "p",
            &[("class", "lead"), ("id", "verdict")],
            &document.verdict.lead,
        );
        for sentence in &document.verdict.more {
            page.leaf("p", &[("class", "more")], sentence);
        }
        if !document.figures.is_empty() {
            page.element("dl", &[("class", "figures")], |page| {
                for figure in &document.figures {
                    page.element("div", &[("class", tone_class(figure.tone))], |page| {
                        page.leaf("dt", &[], &figure.label);
                        page.leaf("dd", &[("class", "value")], &figure.value);
                        page.leaf("dd", &[("class", "detail")], &figure.detail);
                    });
                }
            });
        }
        page.element("nav", &[("aria-label", "In this report")], |page| {
            for pointer in &document.pointers {
                let target = format!("#{}", pointer.section);
                page.leaf("a", &[("href", &target)], &pointer.text);
            }
        });
    });
}

fn section(page: &mut Markup, section: &Section) {
    page.element("section", &[("id", section.id)], |page| {
        match section.visibility {
            Visibility::Answer | Visibility::Summary | Visibility::Detail => {
                page.leaf("h2", &[], &section.title);
                section.blocks.iter().for_each(|part| block(page, part));
            }
            Visibility::Evidence => page.element("details", &[], |page| {
                page.element("summary", &[], |page| page.leaf("h2", &[], &section.title));
                section.blocks.iter().for_each(|part| block(page, part));
            }),
        }
    });
}

fn block(page: &mut Markup, block: &Block) {
    match block {
        Block::Text(text) => page.element("p", &[], |page| page.prose(text)),
        Block::List(items) => page.element("ul", &[], |page| {
            items
                .iter()
                .for_each(|item| page.element("li", &[], |page| page.prose(item)));
        }),
        Block::Code(code) => page.element("pre", &[("tabindex", "0")], |page| {
            page.leaf("code", &[], code)
        }),
        Block::Facts(facts) => page.element("dl", &[("class", "facts")], |page| {
            for (name, value) in facts {
                page.leaf("dt", &[], name);
                page.leaf("dd", &[], value);
            }
        }),
        Block::Notices(notices) => notices.iter().for_each(|one| notice(page, one)),
        Block::Table(table) => self::table(page, table),
        Block::Forest(forest) => forest::render(page, forest),
        Block::Bars(bars) => bars::render(page, bars),
        Block::Curves(curves) => curves::render(page, curves),
        Block::Histogram(histogram) => histogram::render(page, histogram),
        Block::Lines(lines) => lines::render(page, lines),
        Block::Picture(picture) => picture::render(page, picture),
    }
}

fn notice(page: &mut Markup, notice: &Notice) {
    let Notice {
        text,
        cause,
        action,
        about,
    } = notice;
    page.element("div", &[("class", "notice"), ("role", "note")], |page| {
        page.element("p", &[("class", "what")], |page| page.prose(text));
        let about = (!about.is_empty()).then(|| about.join("; "));
        for (name, value) in [
            ("Likely cause", cause),
            ("What to do", action),
            ("Concerns", &about),
        ] {
            if let Some(value) = value {
                page.element("p", &[], |page| {
                    page.leaf("b", &[], &format!("{name}: "));
                    page.prose(value);
                });
            }
        }
    });
}

fn table(page: &mut Markup, table: &Table) {
    let class = |column: Option<&Column>| match column.map(|column| column.align) {
        Some(Align::Right) => "number",
        Some(Align::Left) | None => "",
    };
    scroller(page, &table.caption, |page| {
        page.element("table", &[("class", "plain")], |page| {
            page.leaf("caption", &[], &table.caption);
            page.element("thead", &[], |page| {
                page.element("tr", &[], |page| {
                    for column in &table.columns {
                        let attributes = [("scope", "col"), ("class", class(Some(column)))];
                        page.leaf("th", &attributes, &column.title);
                    }
                });
            });
            page.element("tbody", &[], |page| {
                for row in &table.rows {
                    page.element("tr", &[], |page| match row {
                        Row::Group(title) => {
                            let span = table.columns.len().to_string();
                            let attributes = [("colspan", span.as_str()), ("scope", "colgroup")];
                            page.element("th", &attributes, |page| page.leaf("span", &[], title));
                        }
                        Row::Cells(cells) => {
                            for (index, cell) in cells.iter().enumerate() {
                                let class = class(table.columns.get(index));
                                let shade = cell.shade.map_or(String::new(), shade_class);
                                let class = format!("{class}{shade}");
                                page.element("td", &[("class", &class)], |page| {
                                    page.text(&cell.text);
                                    if let Some(note) = &cell.note {
                                        page.leaf("small", &[], note);
                                    }
                                });
                            }
                        }
                    });
                }
            });
        });
    });
}

/// Further classes of a cell in a heat map: ten shades, because a page has no styles of its own.
fn shade_class(shade: f64) -> String {
    format!(" shade shade-{:.0}", (shade.clamp(0.0, 1.0) * 9.0).floor())
}

/// Writes a box that scrolls content wider than the page, by mouse and by keyboard.
fn scroller(page: &mut Markup, name: &str, inside: impl FnOnce(&mut Markup)) {
    let region = [
        ("class", "scroll"),
        ("role", "region"),
        ("aria-label", name),
    ];
    page.element(
        "div",
        &[region.as_slice(), &[("tabindex", "0")]].concat(),
        inside,
    );
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Better => "better",
        Tone::Worse => "worse",
        Tone::Neutral => "neutral",
        Tone::Caution => "caution",
    }
}
