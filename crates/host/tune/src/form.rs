//! The forms in which the kernel shows a value, and which texts mean the same value.

use std::collections::BTreeSet;

use saiga_process::numbers;
use saiga_topology::read::{bracketed, numbers_of_mask};
use serde::{Deserialize, Serialize};

/// How a text is read, compared and written back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Words or numbers; the white space between them has no meaning.
    Words,
    /// A number that reads 0 while a coupled file is in use. The kernel refuses a 0, so the old
    /// state is restored by the coupled file (`vm.dirty_bytes`).
    NonZero,
    /// A list in which the selected word is in brackets.
    Bracketed,
    /// A value followed by its description: `16 max 64`, `off [fixed]`.
    First,
    /// As [`First`](Self::First); a driver may choose a near number.
    Near,
    /// CPU numbers and ranges.
    CpuList,
    /// Hexadecimal groups of 32 bits with commas.
    Mask,
    /// A feature of the scheduler: `NAME` or `NO_NAME` in a list.
    Feature(String),
    /// The kernel rounds up to a power of two.
    PowerOfTwo,
    /// The kernel rounds down to a multiple.
    MultipleOf(u64),
    /// Huge pages: the kernel may allocate fewer than asked.
    Pages,
    /// The whole text of a file.
    Exact,
}

impl Form {
    /// The value in `raw`, so that equal values give equal texts.
    #[must_use]
    pub fn value(&self, raw: &str) -> String {
        let words = || raw.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Exact => raw.to_owned(),
            Self::Bracketed => bracketed(raw).map_or_else(words, str::to_owned),
            Self::First | Self::Near => raw.split_whitespace().next().unwrap_or("").to_owned(),
            Self::CpuList => cpus(raw).map_or_else(words, |cpus| cpu_list(&cpus)),
            Self::Mask => mask(raw),
            Self::Feature(name) => feature(raw, name).unwrap_or_default(),
            Self::Words | Self::NonZero | Self::PowerOfTwo | Self::MultipleOf(_) | Self::Pages => {
                words()
            }
        }
    }

    /// The value as a person reads it: the CPUs of a mask as a list.
    #[must_use]
    pub fn shown(&self, raw: &str) -> String {
        let value = self.value(raw);
        if *self != Self::Mask {
            return value;
        }
        match numbers_of_mask(&value) {
            None => value,
            Some(cpus) if cpus.is_empty() => "no CPUs".to_owned(),
            Some(cpus) => format!("CPUs {}", cpu_list(&cpus.into_iter().collect())),
        }
    }

    /// The text that makes `raw` the value again; `None` if it cannot be written.
    #[must_use]
    pub fn writable(&self, raw: &str) -> Option<String> {
        let value = self.value(raw);
        let is_unset = *self == Self::NonZero && value == "0";
        let is_unknown = matches!(self, Self::Feature(_)) && value.is_empty();
        (!is_unset && !is_unknown).then_some(value)
    }

    #[must_use]
    pub fn same(&self, one: &str, other: &str) -> bool {
        one == other || self.value(one) == self.value(other)
    }

    /// Whether `found` is what the kernel makes of `asked`, so that a write would change nothing.
    #[must_use]
    pub fn holds(&self, asked: &str, found: &str) -> bool {
        if self.same(asked, found) {
            return true;
        }
        let number = |text: &str| self.value(text).parse::<u64>().ok();
        let (Some(asked), Some(found)) = (number(asked), number(found)) else {
            return false;
        };
        match self {
            Self::PowerOfTwo => asked > 0 && asked.checked_next_power_of_two() == Some(found),
            Self::MultipleOf(unit) => *unit > 0 && found == asked - asked % unit,
            // Two percent: hinic counts time in units of 9 µs, and drivers round rings up.
            Self::Near => {
                found.abs_diff(asked).saturating_mul(50) <= asked
                    || asked.checked_next_power_of_two() == Some(found)
            }
            Self::Words
            | Self::NonZero
            | Self::Bracketed
            | Self::First
            | Self::CpuList
            | Self::Mask
            | Self::Feature(_)
            | Self::Pages
            | Self::Exact => false,
        }
    }

    /// Whether the kernel may show `got` after `asked` was written. Small values of a device may be
    /// off by one of its units.
    #[must_use]
    pub fn accepts(&self, asked: &str, got: &str) -> bool {
        let number = |text: &str| self.value(text).parse::<u64>().ok();
        let is_near = || match (number(asked), number(got)) {
            (Some(asked), Some(got)) => got.abs_diff(asked) < 9,
            _ => false,
        };
        self.holds(asked, got) || (*self == Self::Near && is_near())
    }

    /// Whether `found` may be what a write of `asked` over `was` left. With huge pages, this is
    /// any number between the two.
    #[must_use]
    pub fn may_come_from(&self, asked: &str, was: &str, found: &str) -> bool {
        if self.accepts(asked, found) {
            return true;
        }
        let number = |text: &str| self.value(text).parse::<u64>().ok();
        match (self, number(asked), number(was), number(found)) {
            (Self::Pages, Some(asked), Some(was), Some(found)) => {
                (asked.min(was)..=asked.max(was)).contains(&found)
            }
            _ => false,
        }
    }
}

fn feature(raw: &str, name: &str) -> Option<String> {
    let no = format!("NO_{name}");
    let mut words = raw.split_whitespace();
    words
        .find(|word| *word == name || *word == no)
        .map(str::to_owned)
}

/// The numbers of a list such as `0-3,8`; `None` if it is not a list.
#[must_use]
pub fn cpus(list: &str) -> Option<BTreeSet<u32>> {
    if list.trim().is_empty() {
        return Some(BTreeSet::new());
    }
    // Ports are listed like CPUs, and there are more of them.
    let numbers = numbers::list(list, usize::from(u16::MAX))?;
    numbers
        .into_iter()
        .map(|number| number.try_into().ok())
        .collect()
}

/// The kernel's text of a set of CPUs.
#[must_use]
pub fn cpu_list(cpus: &BTreeSet<u32>) -> String {
    let numbers: Vec<usize> = cpus.iter().map(|cpu| *cpu as usize).collect();
    numbers::ranges(&numbers)
}

/// The kernel's text of a mask of CPUs: groups of 32 bits, the highest first.
#[must_use]
pub fn cpu_mask(cpus: &BTreeSet<u32>) -> String {
    let groups = cpus.last().map_or(1, |last| last / 32 + 1);
    let group = |number: u32| {
        let bits = cpus.iter().filter(|cpu| **cpu / 32 == number);
        bits.fold(0_u32, |mask, cpu| mask | 1 << (cpu % 32))
    };
    let texts: Vec<String> = (0..groups)
        .rev()
        .map(|number| format!("{:08x}", group(number)))
        .collect();
    mask(&texts.join(","))
}

/// A mask without leading zeros.
fn mask(raw: &str) -> String {
    let text = raw.trim().to_ascii_lowercase();
    let text = text.trim_start_matches(['0', ',']);
    if text.is_empty() {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_are_compared_by_value() {
        let steal = Form::Feature("STEAL".to_owned());
        for (form, raw, value) in [
            (Form::Words, "32768\t60999\n", "32768 60999"),
            (Form::Bracketed, "always [madvise] never\n", "madvise"),
            (Form::Bracketed, "none\n", "none"),
            (Form::First, "16 max 64", "16"),
            (Form::First, "off [fixed]", "off"),
            (Form::CpuList, "3,0-2,4\n", "0-4"),
            (Form::CpuList, "0,2\n", "0,2"),
            (Form::CpuList, "\n", ""),
            (Form::Mask, "00000000,0000000F\n", "f"),
            (Form::Mask, "0\n", "0"),
            (steal.clone(), "WAKEUP NO_STEAL UTIL\n", "NO_STEAL"),
            (steal.clone(), "STEALING UTIL\n", ""),
            (Form::Exact, "a  b\n", "a  b\n"),
        ] {
            assert_eq!(form.value(raw), value, "{raw}");
        }
        for (mask, shown) in [
            ("0\n", "no CPUs"),
            ("00000001,80000003\n", "CPUs 0-1,31-32"),
        ] {
            assert_eq!(Form::Mask.shown(mask), shown);
        }
        assert_eq!(Form::Words.shown("10 20\n"), "10 20");
        assert_eq!(Form::NonZero.writable("0\n"), None);
        assert_eq!(Form::NonZero.writable("7\n").as_deref(), Some("7"));
        assert_eq!(steal.writable("UTIL"), None);
    }

    #[test]
    fn a_rounded_value_is_accepted_only_where_the_kernel_rounds() {
        for (form, asked, got, expected) in [
            (Form::Words, "1000", "1024", false),
            (Form::PowerOfTwo, "1000", "1024", true),
            (Form::PowerOfTwo, "1000", "2048", false),
            (Form::MultipleOf(4), "1001", "1000", true),
            (Form::MultipleOf(4), "1001", "1004", false),
            (Form::Near, "511", "512 max 1024", true),
            (Form::Near, "300", "512 max 1024", true),
            (Form::Near, "300", "256", false),
            (Form::Near, "512", "504", true),
            (Form::Near, "10", "9", true),
            (Form::Pages, "8192", "5000", false),
            (Form::CpuList, "0-3", "0,1,2,3", true),
            (Form::Words, "one", "two", false),
        ] {
            assert_eq!(form.accepts(asked, got), expected, "{form:?} {asked} {got}");
        }
        // A device that rounds does not justify leaving another value as it is.
        assert!(Form::Near.holds("512", "504") && !Form::Near.holds("10", "9"));
        assert!(Form::Pages.may_come_from("8192", "0", "5000"));
        assert!(!Form::Pages.may_come_from("8192", "0", "9000"));
        assert!(!Form::Words.may_come_from("8192", "0", "5000"));
    }

    #[test]
    fn cpu_lists_and_masks_are_those_of_the_kernel() {
        let set = |list: &[u32]| list.iter().copied().collect::<BTreeSet<u32>>();
        for (cpus_of, list, mask) in [
            (set(&[0]), "0", "1"),
            (set(&[28, 29, 30, 31, 60]), "28-31,60", "10000000,f0000000"),
            (set(&[64]), "64", "1,00000000,00000000"),
        ] {
            assert_eq!(cpu_list(&cpus_of), list);
            assert_eq!(cpu_mask(&cpus_of), mask);
            assert_eq!(cpus(list), Some(cpus_of));
        }
        for bad in ["3-1", "x", "1-", "0-99999999"] {
            assert_eq!(cpus(bad), None, "{bad}");
        }
    }
}
