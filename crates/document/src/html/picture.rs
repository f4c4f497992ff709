//! Boxes with squares as one SVG drawing: two boxes side by side, in frames.
//!
//! A frame of one box takes half of the width, so that two of these share a row. The drawing has a
//! fixed width in its own units and scales as a whole. A text that is too long for its box is cut;
//! the whole text is its title.

use std::collections::BTreeSet;

use super::bars::SERIES_COLOURS;
use super::curves::keys;
use super::markup::Markup;
use super::scroller;
use crate::model::{Frame, Picture, PictureBox, Square};

const WIDTH: usize = 1280;
const GAP: usize = 14;
const HALF: usize = (WIDTH - GAP) / 2;
const PADDING: usize = 14;
const BOX_WIDTH: usize = HALF - 2 * PADDING;
const FRAME_TITLE: usize = 26;
/// Side of a square, and the distances to the next square and to the next group.
const SIDE: usize = 13;
const STEP: usize = 16;
const GROUP_GAP: usize = 7;
const LINE: usize = 18;
/// Height of an attached label, and its distance from the next one.
const LABEL: usize = 22;
const LABEL_STEP: usize = 30;
const INSET: usize = 20;
/// Characters that fit on a line of a box.
const MOST_LETTERS: usize = 86;

pub(super) fn render(page: &mut Markup, picture: &Picture) {
    let rows = frame_rows(&picture.frames);
    let heights: Vec<usize> = rows.iter().map(|row| row_height(row)).collect();
    let height: usize = heights.iter().map(|height| height + GAP).sum();
    let view = format!("0 0 {WIDTH} {}", height.max(1));
    page.element("figure", &[("class", "picture")], |page| {
        page.leaf("figcaption", &[], &picture.caption);
        let used = used_roles(picture);
        let names = picture.roles.iter().map(String::as_str).enumerate();
        keys(page, names.filter(|(role, _)| used.contains(role)));
        scroller(page, &picture.caption, |page| {
            let attributes = [
                ("role", "img"),
                ("aria-label", picture.caption.as_str()),
                ("viewBox", &view),
            ];
            page.element("svg", &attributes, |page| {
                let mut top = 1;
                for (row, height) in rows.iter().zip(heights) {
                    for (column, frame) in row.iter().enumerate() {
                        render_frame(page, frame, [column * (HALF + GAP), top], height);
                    }
                    top += height + GAP;
                }
            });
        });
    });
}

fn used_roles(picture: &Picture) -> BTreeSet<usize> {
    let boxes = picture.frames.iter().flat_map(|frame| &frame.boxes);
    let squares = boxes.flat_map(|one| one.groups.iter().flatten());
    squares
        .flat_map(|square| [Some(square.role), square.inner])
        .flatten()
        .collect()
}

fn is_half(frame: &Frame) -> bool {
    frame.boxes.len() <= 1
}

/// Frames by row: one wide frame, or one or two of half the width.
fn frame_rows(frames: &[Frame]) -> Vec<Vec<&Frame>> {
    let mut rows: Vec<Vec<&Frame>> = Vec::new();
    for frame in frames {
        match rows.last_mut() {
            Some(row) if row.len() == 1 && is_half(frame) && row.iter().all(|one| is_half(one)) => {
                row.push(frame);
            }
            Some(_) | None => rows.push(vec![frame]),
        }
    }
    rows
}

fn row_height(row: &[&Frame]) -> usize {
    let heights = row
        .iter()
        .filter_map(|frame| box_tops(frame).last().copied());
    heights.max().unwrap_or(0)
}

/// Tops of the rows of boxes, relative to the frame, and the bottom of the last one.
fn box_tops(frame: &Frame) -> Vec<usize> {
    let mut tops = vec![FRAME_TITLE];
    for row in frame.boxes.chunks(2) {
        let height = row
            .iter()
            .map(|one| box_height(one) + one.attached.len() * LABEL_STEP)
            .max();
        let top = tops.last().copied().unwrap_or(0);
        tops.push(top + height.unwrap_or(0) + GAP);
    }
    tops
}

fn box_height(one: &PictureBox) -> usize {
    let squares = places(&one.groups).last().map_or(0, |(_, y)| y + STEP + 4);
    PADDING + LINE * (1 + one.lines.len()) + squares + PADDING / 2
}

/// The place of each square relative to the first one, in order of groups and squares.
fn places(groups: &[Vec<Square>]) -> Vec<(usize, usize)> {
    let room = BOX_WIDTH - 2 * PADDING;
    let (mut x, mut y) = (0, 0);
    let mut places = Vec::new();
    for group in groups {
        if x > 0 && x + group.len() * STEP > room + STEP - SIDE {
            (x, y) = (0, y + STEP + 3);
        }
        for _ in group {
            if x + SIDE > room {
                (x, y) = (0, y + STEP);
            }
            places.push((x, y));
            x += STEP;
        }
        // Squares of one group need no distance to the next one.
        x += if group.len() > 1 { GROUP_GAP } else { 0 };
    }
    places
}

fn render_frame(page: &mut Markup, frame: &Frame, [left, top]: [usize; 2], height: usize) {
    let width = if is_half(frame) { HALF } else { WIDTH };
    rect(page, "frame", [left + 1, top, width - 2, height], 10);
    text(page, "title", [left + PADDING, top + 18], &frame.title);
    for (row, row_top) in frame.boxes.chunks(2).zip(box_tops(frame)) {
        for (column, one) in row.iter().enumerate() {
            let left = left + PADDING + column * (HALF + GAP);
            render_box(page, one, left, top + row_top);
        }
    }
}

fn render_box(page: &mut Markup, one: &PictureBox, left: usize, top: usize) {
    let height = box_height(one);
    rect(page, "box", [left, top, BOX_WIDTH, height], 8);
    let inside = left + PADDING;
    let mut baseline = top + PADDING + 11;
    text(page, "title", [inside, baseline], &one.title);
    for line in &one.lines {
        baseline += LINE;
        text(page, "line", [inside, baseline], line);
    }
    let squares_top = top + PADDING + LINE * (1 + one.lines.len()) + 4;
    let squares = one.groups.iter().flatten().zip(places(&one.groups));
    for (square, (x, y)) in squares {
        render_square(page, square, inside + x, squares_top + y);
    }
    let bottom = top + height;
    for (index, label) in one.attached.iter().enumerate() {
        let label_top = bottom + index * LABEL_STEP + LABEL_STEP - LABEL;
        let middle = label_top + LABEL / 2;
        line(page, [inside, bottom, inside, middle]);
        line(page, [inside, middle, inside + INSET, middle]);
        let width = BOX_WIDTH - PADDING - INSET;
        rect(
            page,
            "attached",
            [inside + INSET, label_top, width, LABEL],
            11,
        );
        text(page, "line", [inside + INSET + 10, label_top + 15], label);
    }
}

fn render_square(page: &mut Markup, square: &Square, x: usize, y: usize) {
    let class = |name: &str, role: usize| format!("{name} series-{}", role % SERIES_COLOURS);
    page.element("g", &[], |page| {
        page.leaf("title", &[], &square.label);
        rect(page, &class("square", square.role), [x, y, SIDE, SIDE], 3);
        if let Some(inner) = square.inner {
            let third = SIDE / 3;
            rect(
                page,
                &class("inner", inner),
                [x + third - 1, y + third - 1, third + 2, third + 2],
                1,
            );
        }
    });
}

fn rect(page: &mut Markup, class: &str, place: [usize; 4], radius: usize) {
    let [x, y, width, height] = place.map(|number| number.to_string());
    let attributes = [
        ("class", class),
        ("x", &x),
        ("y", &y),
        ("width", &width),
        ("height", &height),
        ("rx", &radius.to_string()),
    ];
    page.leaf("rect", &attributes, "");
}

fn line(page: &mut Markup, ends: [usize; 4]) {
    let [x1, y1, x2, y2] = ends.map(|number| number.to_string());
    let attributes = [
        ("class", "link"),
        ("x1", &x1),
        ("y1", &y1),
        ("x2", &x2),
        ("y2", &y2),
    ];
    page.leaf("line", &attributes, "");
}

fn text(page: &mut Markup, class: &str, place: [usize; 2], text: &str) {
    let [x, y] = place.map(|number| number.to_string());
    page.element("text", &[("class", class), ("x", &x), ("y", &y)], |page| {
        if text.chars().count() > MOST_LETTERS {
            let start: String = text.chars().take(MOST_LETTERS - 1).collect();
            page.text(&format!("{start}…"));
            page.leaf("title", &[], text);
        } else {
            page.text(text);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(label: &str, inner: Option<usize>) -> Square {
        Square {
            label: label.to_owned(),
            role: 0,
            inner,
        }
    }

    #[test]
    fn squares_wrap_and_groups_stay_together() {
        let group = |count| vec![square("", None); count];
        assert_eq!(places(&[group(2), group(1)]), [(0, 0), (16, 0), (39, 0)]);
        let wrapped = places(&[group(34), group(4)]);
        assert_eq!(wrapped[33], (528, 0));
        assert_eq!(wrapped[34], (0, 19));
        assert_eq!(places(&[group(40)])[36], (0, 16));
        let clusters = vec![group(4); 8];
        assert_eq!(
            places(&clusters).last(),
            Some(&(545, 0)),
            "eight clusters fit in a row"
        );
    }

    #[test]
    fn labels_are_escaped_and_long_texts_are_cut() {
        let picture = Picture {
            caption: "CPUs & nodes".to_owned(),
            roles: vec!["free".to_owned(), "busy".to_owned()],
            frames: vec![Frame {
                title: "Package <0>".to_owned(),
                boxes: vec![PictureBox {
                    title: "Node 0".to_owned(),
                    lines: vec!["x".repeat(100)],
                    groups: vec![vec![square("CPU 0", Some(1)), square("CPU 1", None)]],
                    attached: vec!["eth<script>0".to_owned()],
                }],
            }],
        };
        let mut page = Markup::default();
        render(&mut page, &picture);
        let html = page.finish();
        assert_eq!(html.matches("class=\"square series-0\"").count(), 2);
        assert_eq!(html.matches("class=\"inner series-1\"").count(), 1);
        assert!(html.contains("Package &lt;0&gt;") && html.contains("eth&lt;script&gt;0"));
        assert!(html.contains(&format!("{}…<title>{}", "x".repeat(85), "x".repeat(100))));
    }

    #[test]
    fn frames_of_one_box_share_a_row() {
        let frame = |boxes: usize| Frame {
            title: String::new(),
            boxes: vec![
                PictureBox {
                    title: String::new(),
                    lines: vec![],
                    groups: vec![],
                    attached: vec![],
                };
                boxes
            ],
        };
        let frames = [frame(1), frame(1), frame(1), frame(2), frame(1)];
        let rows: Vec<usize> = frame_rows(&frames).iter().map(Vec::len).collect();
        assert_eq!(rows, [2, 1, 1, 1]);
    }
}
