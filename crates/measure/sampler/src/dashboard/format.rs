//! Text of the panel: lines that fit the width, numbers, durations and sparklines.

use std::time::Duration;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const GAP: &str = "   ";

/// Joins as many parts as fit, from the first one on. A part is never cut.
pub(super) fn fit(parts: &[String], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { GAP };
        if length(&line) + length(gap) + length(part) > columns {
            break;
        }
        line.push_str(gap);
        line.push_str(part);
    }
    line
}

/// Width in columns. All characters of the panel are one column wide.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// A number with one decimal below 100, and without decimals from 100 on.
pub(super) fn number(value: f64) -> String {
    let decimals = if value == 0.0 || value.abs() >= 100.0 {
        0
    } else {
        1
    };
    format!("{value:.decimals$}")
}

/// A duration: `45 s`, `3:05`, `11:59:00`.
pub(super) fn duration(left: Duration) -> String {
    let seconds = left.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, minutes) => format!("{minutes}:{rest:02}"),
        (hours, minutes) => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// A sparkline of the latest values that fit, on a scale from zero to their maximum, and the
/// maximum.
pub(super) fn sparkline(
    values: impl DoubleEndedIterator<Item = f64> + Clone,
    columns: usize,
) -> String {
    let newest = |room: usize| values.clone().rev().take(room);
    let max_of = |room: usize| newest(room).fold(0.0, f64::max);
    let label = |room: usize| format!(" max {}", number(max_of(room)));
    // With fewer values the maximum is at most as long.
    let room = columns.saturating_sub(length(&label(columns)));
    if room == 0 {
        return String::new();
    }
    let max = max_of(room);
    let mut curve: Vec<char> = newest(room).map(|value| level(value, max)).collect();
    curve.reverse();
    curve.extend(label(room).chars());
    curve.into_iter().collect()
}

/// A block character for `value` on a scale from zero to `max`.
pub(super) fn level(value: f64, max: f64) -> char {
    if max <= 0.0 {
        return LEVELS[0];
    }
    let top = LEVELS.len() - 1;
    let height = (value / max * top as f64).round().clamp(0.0, top as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the levels"
    )]
    let index = height as usize;
    LEVELS[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_never_cut() {
        let parts = ["12 tpmC".to_owned(), "measured".into(), "errors 0".into()];
        for (columns, line) in [
            (80, "12 tpmC   measured   errors 0"),
            (28, "12 tpmC   measured"),
            (18, "12 tpmC   measured"),
            (17, "12 tpmC"),
            (3, ""),
        ] {
            assert_eq!(fit(&parts, columns), line, "{columns}");
        }
    }

    #[test]
    fn durations_have_seconds_minutes_and_hours() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (185, "3:05"),
            (43_140, "11:59:00"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_sparkline_ends_with_the_latest_value() {
        let values = [9.0, 0.0, 4.0, 8.0];
        assert_eq!(sparkline(values.into_iter(), 20), "█▁▄▇ max 9.0");
        assert_eq!(sparkline(values.into_iter(), 10), "▅█ max 8.0");
        assert_eq!(sparkline([0.0].into_iter(), 20), "▁ max 0");
        assert_eq!(sparkline(values.into_iter(), 4), "");
    }
}
