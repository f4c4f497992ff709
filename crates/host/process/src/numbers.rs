//! Parses and prints lists of CPUs and NUMA nodes in the form of `taskset` and `numactl`:
//! `0-27,32-59`.

use std::str::FromStr;

/// Numbers above this one are rejected.
const MAX: usize = 4095;

/// Numbers in ascending order, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<usize>);

/// The text is not a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a list such as 0-27,32-59 of numbers up to {MAX}")]
pub struct NotNumbers;

impl FromStr for Numbers {
    type Err = NotNumbers;

    fn from_str(text: &str) -> Result<Self, NotNumbers> {
        list(text, MAX).map(Self).ok_or(NotNumbers)
    }
}

/// The numbers of a list in ascending order, without duplicates; `None` if the text is not a list
/// or has a number above `max`.
#[must_use]
pub fn list(text: &str, max: usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > max {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// Prints ascending numbers as ranges: `0-3,8`.
#[must_use]
pub fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(usize, usize)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_and_printed() {
        for (text, numbers, again) in [
            ("0", vec![0], "0"),
            ("0-2,5", vec![0, 1, 2, 5], "0-2,5"),
            ("5, 0-1,1-2", vec![0, 1, 2, 5], "0-2,5"),
        ] {
            let read: Numbers = text.parse().unwrap();
            assert_eq!(read.0, numbers, "{text}");
            assert_eq!(ranges(&read.0), again, "{text}");
        }
        for bad in ["", "a", "3-1", "1,", "0-99999", "-1"] {
            assert_eq!(bad.parse::<Numbers>(), Err(NotNumbers), "{bad:?}");
        }
    }
}
