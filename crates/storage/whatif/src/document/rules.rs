//! The section with the files that the sets match, and the suggested rules.

use saiga_document::model::{Cell, Row};
use saiga_document::number;

use super::{Align, Block, Content, Joined, Section, Table, Visibility, columns};

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    if content.sets.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Table(table(content.sets))];
    if let Some(suggestion) = content.suggestion {
        if let Some(searched) = &suggestion.searched {
            blocks.push(Block::Text(format!(
                "The suggested streams were found in {} simulations on a sample of {} pages: write \
                 amplification {:.3} with one stream, {:.3} at the start, {:.3} at the end.",
                searched.simulations, searched.pages, searched.none, searched.start, searched.found
            )));
        }
        if let Some(whole) = &suggestion.whole {
            blocks.push(Block::Text(whole.summary()));
        }
        blocks.push(Block::Text(
            "The suggested rules, in the format of the labeller:".to_owned(),
        ));
        blocks.push(Block::Code(suggestion.rules.to_toml()));
    }
    Some(Section {
        id: "rules",
        title: "The rules".to_owned(),
        visibility: Visibility::Evidence,
        blocks,
    })
}

fn table(sets: &[Joined]) -> Table {
    let mut rows = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        // The same rules with another property as stream.
        if sets[..number].iter().any(|one| one.name == set.name) {
            continue;
        }
        let (matched, all) = (set.matched_bytes(), set.written_bytes);
        rows.push(Row::Group(format!(
            "{}: matches {} of {} written bytes, {}",
            set.name,
            number::bytes(matched),
            number::bytes(all),
            number::percent(matched as f64 / all.max(1) as f64)
        )));
        for rule in set.matches.iter().filter(|rule| rule.files > 0) {
            let cells = [
                rule.pattern.clone(),
                set.stream_name(rule.stream),
                rule.files.to_string(),
                number::bytes(rule.written_bytes),
            ];
            rows.push(Row::Cells(cells.map(Cell::new).into()));
        }
    }
    Table {
        caption: "Matches of each rule; rules without a match are left out".to_owned(),
        columns: columns(&[
            ("rule", Align::Left),
            ("stream", Align::Left),
            ("files", Align::Right),
            ("bytes written", Align::Right),
        ]),
        rows,
    }
}
