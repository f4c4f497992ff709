//! CPU time by core: a bar per core, or a single block per core if the bars do not fit.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::snapshot::Snapshot;

use super::format::level;

/// Kinds of CPU time in a bar: pattern, name, and the metrics whose sum it shows.
const KINDS: [(char, &str, &[&str]); 5] = [
    ('█', "user", &["user", "nice"]),
    ('▓', "system", &["system"]),
    ('▒', "interrupts", &["irq", "softirq"]),
    ('×', "steal", &["steal"]),
    ('░', "iowait", &["iowait"]),
];
/// Number of kinds that count as busy: all except iowait, which is the last one.
const BUSY: usize = KINDS.len() - 1;

/// Minimum and maximum width of a cell with a bar: `  0 [##########]  99 %`.
const CELL_MIN: usize = 30;
const CELL_MAX: usize = 80;
/// Width of a cell without its bar.
const AROUND: usize = 13;
const GAP: usize = 2;

/// The legend of the patterns.
pub(super) static LEGEND: LazyLock<Vec<String>> = LazyLock::new(|| {
    let legend = KINDS
        .iter()
        .map(|(pattern, name, _)| format!("{pattern} {name}"));
    legend.collect()
});

/// One core, or the mean of all cores.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Core {
    label: String,
    /// Percentage of each kind; `None` for an offline or new core.
    kinds: Option<[f64; KINDS.len()]>,
}

impl Core {
    /// The mean of all cores, then each core.
    pub(super) fn all(host: &Snapshot) -> Vec<Self> {
        // A map, because hundreds of cores have thousands of metrics.
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
            // Rounds the running sum, so that rounding errors do not add up.
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

/// The number of columns that stand for `percent` of `width`.
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

/// The lines of all cores in a panel of `rows` lines, of which other parts occupy `taken`.
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
            .max(bars_per_line(each.len(), columns));
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

/// Bars in one line: two if they remain readable. More are not needed on a wide terminal.
fn bars_per_line(cores: usize, columns: usize) -> usize {
    if cores > 1 && columns >= 2 * (CELL_MIN + GAP) {
        2
    } else {
        1
    }
}

/// One block per core, as high as the core is busy, in rows of 64, 32 or 16 cores with the number
/// of the first core.
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
