//! The section with moved pages by cause: the dead pages in the same unit.

use saiga_document::model::{Cell, Row};
use saiga_document::number;
use saiga_ftl::replay::{Class, Placement};
use saiga_ftl::trace::kind_of;

use super::{
    Align, Block, Column, Content, Run, Section, Table, Visibility, condition_words, placement_name,
};

/// Most kinds of files in a matrix; the others are summed up.
const MOST: usize = 8;
const OTHERS: &str = "all others";

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let condition = content.runs.first()?.condition;
    let mut blocks = vec![Block::Text(format!(
        "Garbage collection moves a page because others in its unit have died. Each row is a kind of \
         dead pages, each column a kind of pages moved because of them, in percent of all moved pages \
         ({}).",
        condition_words(condition)
    ))];
    let by = content.sets.first().map(|set| set.by);
    let is_shown = |run: &&Run| {
        let is_first = run.placement == Placement::OneStream || Some(run.by) == by;
        run.condition == condition && is_first && run.without.is_none() && !run.is_oracle
    };
    for run in content.runs.iter().filter(is_shown) {
        let moved = run.case.outcome.measured.moved_pages();
        blocks.push(Block::Text(format!(
            "{}: {moved} pages were moved.",
            title(run)
        )));
        blocks.extend(matrix(run).map(Block::Table));
    }
    Some(Section {
        id: "victims",
        title: "Causes of moved pages".to_owned(),
        visibility: Visibility::Summary,
        blocks,
    })
}

fn title(run: &Run) -> String {
    format!("{}, {}", run.label(), placement_name(run.placement))
}

/// Returns the table of moved pages by cause; `None` if no page was moved.
fn matrix(run: &Run) -> Option<Table> {
    let measured = &run.case.outcome.measured;
    let moved = measured.moved_pages();
    if moved == 0 {
        return None;
    }
    let (kinds, charged) = by_kind(&run.case.classes, &measured.charged);
    let shown = most_involved(&charged);
    let index = |kind: usize| {
        let at = shown.iter().position(|one| *one == kind);
        at.unwrap_or(shown.len())
    };
    let mut names: Vec<String> = shown.iter().map(|kind| kinds[*kind].clone()).collect();
    let has_others = shown.len() == MOST && charged.len() > MOST;
    if has_others {
        names.push(OTHERS.to_owned());
    }
    let mut sums = vec![vec![0.0; shown.len() + 1]; shown.len() + 1];
    for (died, row) in charged.iter().enumerate() {
        for (kind, pages) in row.iter().enumerate() {
            sums[index(died)][index(kind)] += pages;
        }
    }
    let cell = |pages: &f64| {
        let share = pages / moved as f64;
        Cell::new(if share < 0.0005 {
            "·".to_owned()
        } else {
            number::percent(share)
        })
    };
    let rows = names.iter().zip(&sums).map(|(name, row)| {
        let cells = row.iter().take(names.len()).map(cell);
        Row::Cells([Cell::new(name.clone())].into_iter().chain(cells).collect())
    });
    let heading = |(title, align)| Column { title, align };
    let columns = names
        .iter()
        .map(|name| (format!("{name} moved"), Align::Right));
    let first = [("dead pages of".to_owned(), Align::Left)];
    Some(Table {
        caption: format!("Moved pages by cause: {}", title(run)),
        columns: first.into_iter().chain(columns).map(heading).collect(),
        rows: rows.collect(),
    })
}

/// Returns the kinds of names, and the pages moved of each kind because of each kind.
fn by_kind(classes: &[Class], charged: &[Vec<f64>]) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut kinds: Vec<String> = Vec::new();
    let mut number_of = Vec::new();
    for class in classes {
        let kind = kind_of(&class.name);
        let known = kinds.iter().position(|known| *known == kind);
        number_of.push(known.unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        }));
    }
    let mut sums = vec![vec![0.0; kinds.len()]; kinds.len()];
    for (died, row) in number_of.iter().zip(charged) {
        for (moved, pages) in number_of.iter().zip(row) {
            sums[*died][*moved] += pages;
        }
    }
    (kinds, sums)
}

/// Returns the kinds with the most pages that caused moves or were moved.
fn most_involved(charged: &[Vec<f64>]) -> Vec<usize> {
    let involved = |kind: usize| {
        let died: f64 = charged[kind].iter().sum();
        let moved: f64 = charged.iter().map(|row| row[kind]).sum();
        died + moved
    };
    let mut order: Vec<usize> = (0..charged.len())
        .filter(|kind| involved(*kind) > 0.0)
        .collect();
    order.sort_by(|a, b| involved(*b).total_cmp(&involved(*a)));
    order.truncate(MOST);
    order
}
