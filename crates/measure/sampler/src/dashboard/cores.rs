//! CPU time by core: a bar for each where there is room, else a block for each.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::snapshot::Snapshot;

use super::words::level;

/// Kinds in a bar: their pattern, their name, and the metrics of which they are the sum.
const KINDS: [(char, &str, &[&str]); 5] = [
    ('█', "user", &["user", "nice"]),
    ('▓', "system", &["system"]),
    ('▒', "interrupts", &["irq", "softirq"]),
    ('×', "steal", &["steal"]),
    ('░', "iowait", &["iowait"]),
];
/// Kinds that make a core busy: all but iowait, the last one.
const BUSY: usize = KINDS.len() - 1;

/// The least and greatest width of a cell with a bar: `  0 [##########]  99 %`.
const CELL_MIN: usize = 30;
const CELL_MAX: usize = 80;
/// What stands around a bar.
const AROUND: usize = 13;
const GAP: usize = 2;

/// What the patterns mean.
pub(super) static KEY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let key = KINDS
        .iter()
        .map(|(pattern, name, _)| format!("{pattern} {name}"));
    key.collect()
});

/// One core, or all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Core {
    label: String,
    /// Percent of each kind; `None` when the core is offline or new.
    kinds: Option<[f64; KINDS.len()]>,
}

impl Core {
    /// All together, then each one.
    pub(super) fn all(host: &Snapshot) -> Vec<Self> {
        // By name at once: there are thousands of metrics on hundreds of cores.
        let values: HashMap<&str, Option<f64>> = host.metrics().collect();
        let of = |name: &str| values.get(name).copied().flatten();
        let numbers = values.keys().filter_map(|name| {
            let core = name.strip_prefix("cpu")?.strip_suffix("_user_percent")?;
            core.parse().ok()
        });
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        let one = |number: usize| Self {
            label: number.to_string(),
            kinds: kinds(|kind| of(&format!("cpu{number}_{kind}_percent"))),
        };
        let all = Self {
            label: "all".into(),
            kinds: kinds(|kind| match kind {
                "steal" => of("steal_percent"),
                kind => of(&format!("cpu_{kind}_percent")),
            }),
        };
        [all]
            .into_iter()
            .chain(numbers.into_iter().map(one))
            .collect()
    }

    fn busy(&self) -> Option<f64> {
        Some(self.kinds?[..BUSY].iter().sum())
    }

    fn bar(&self, width: usize) -> String {
        let mut bar = String::new();
        let mut drawn = 0;
        let mut sum = 0.0;
        for ((pattern, _, _), share) in KINDS.iter().zip(self.kinds.iter().flatten()) {
            sum += share;
            // By the sum, so that roundings do not add up.
            let end = columns_of(sum, width);
            bar.extend(std::iter::repeat_n(*pattern, end - drawn));
            drawn = end;
        }
        bar.extend(std::iter::repeat_n(' ', width - drawn));
        bar
    }

    fn cell(&self, width: usize) -> String {
        let bar = self.bar(width - AROUND);
        let label = &self.label;
        match self.busy() {
            Some(busy) => format!("{label:>3} [{bar}] {busy:>3.0} %"),
            None => format!("{label:>3} [{bar}]   - %"),
        }
    }
}

/// The share of `width` that `percent` is.
fn columns_of(percent: f64, width: usize) -> usize {
    let columns = (percent / 100.0 * width as f64)
        .round()
        .clamp(0.0, width as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the width"
    )]
    let columns = columns as usize;
    columns
}

fn kinds(share: impl Fn(&str) -> Option<f64>) -> Option<[f64; KINDS.len()]> {
    let mut kinds = [0.0; KINDS.len()];
    for (kind, (_, _, metrics)) in kinds.iter_mut().zip(&KINDS) {
        for metric in *metrics {
            *kind += share(metric)?;
        }
    }
    Some(kinds)
}

/// The lines of all cores in a panel of `rows` lines of which `taken` are for others.
pub(super) fn lines(cores: &[Core], columns: usize, rows: usize, taken: usize) -> Vec<String> {
    let Some((all, each)) = cores.split_first() else {
        return Vec::new();
    };
    if columns < CELL_MIN {
        let busy = all.busy().map_or("-".into(), |busy| format!("{busy:.0}"));
        return vec![format!("cpu {busy} %").chars().take(columns).collect()];
    }
    let mut lines = vec![all.cell(columns.min(CELL_MAX))];
    let per_line = (columns + GAP) / (CELL_MIN + GAP);
    let room = rows.saturating_sub(taken + lines.len()).max(1);
    if each.len().div_ceil(per_line) <= room {
        let per_line = each
            .len()
            .div_ceil(room)
            .max(1)
            .max(bars_beside(each.len(), columns));
        let width = ((columns + GAP) / per_line - GAP).min(CELL_MAX);
        for cells in each.chunks(per_line) {
            let cells: Vec<String> = cells.iter().map(|core| core.cell(width)).collect();
            lines.push(cells.join("  "));
        }
    } else {
        lines.extend(blocks(each, columns));
    }
    lines
}

/// Two beside each other where that leaves readable bars; a wide terminal needs no more.
fn bars_beside(cores: usize, columns: usize) -> usize {
    if cores > 1 && columns >= 2 * (CELL_MIN + GAP) {
        2
    } else {
        1
    }
}

/// A block as high as the core is busy; rows of 16, 32 or 64, so that numbers are found.
fn blocks(cores: &[Core], columns: usize) -> Vec<String> {
    const LABEL: usize = 5;
    let room = columns - LABEL;
    let row = [64, 32, 16]
        .into_iter()
        .find(|row| *row <= room)
        .unwrap_or(room);
    let lines = cores.chunks(row).map(|cores| {
        let blocks = cores.iter().map(|core| match core.busy() {
            Some(busy) => level(busy, 100.0),
            None => '?',
        });
        let first = cores.first().map_or("", |core| &core.label);
        format!("{first:>4} {}", blocks.collect::<String>())
    });
    lines.collect()
}
