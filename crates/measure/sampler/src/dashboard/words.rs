//! Small pieces of text: lines that fit, numbers, durations, a curve in one line.

use std::time::Duration;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const GAP: &str = "   ";

/// As many of the parts as a line has room for, the first ones first; never half a number.
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

/// Characters; all of ours are one column wide.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// With as many digits as a glance can take in.
pub(super) fn number(value: f64) -> String {
    let decimals = if value == 0.0 || value.abs() >= 100.0 {
        0
    } else {
        1
    };
    format!("{value:.decimals$}")
}

/// `45 s`, `3:05`, `11:59:00`.
pub(super) fn duration(left: Duration) -> String {
    let seconds = left.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, minutes) => format!("{minutes}:{rest:02}"),
        (hours, minutes) => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// The newest values that fit, from zero to the greatest of them, which stands behind.
pub(super) fn sparkline(
    values: impl DoubleEndedIterator<Item = f64> + Clone,
    columns: usize,
) -> String {
    let newest = |room: usize| values.clone().rev().take(room);
    let max_of = |room: usize| newest(room).fold(0.0, f64::max);
    let label = |room: usize| format!(" max {}", number(max_of(room)));
    // Fewer values have no longer label.
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

/// A block as high as `value` is between zero and `max`.
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
    let place = height as usize;
    LEVELS[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_left_out_whole() {
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
    fn durations_are_read_at_a_glance() {
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
    fn a_curve_ends_with_the_newest_value() {
        let values = [9.0, 0.0, 4.0, 8.0];
        assert_eq!(sparkline(values.into_iter(), 20), "█▁▄▇ max 9.0");
        assert_eq!(sparkline(values.into_iter(), 10), "▅█ max 8.0");
        assert_eq!(sparkline([0.0].into_iter(), 20), "▁ max 0");
        assert_eq!(sparkline(values.into_iter(), 4), "");
    }
}
