//! Sets of CPUs, written as the kernel writes them: `0-27,32-59`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use saiga_process::numbers::{NotNumbers, Numbers, ranges};
use serde::{Deserialize, Serialize};

/// A set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.0.union(&other.0).copied().collect()
    }

    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.0.difference(&other.0).copied().collect()
    }

    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.iter().map(|cpu| cpu as usize).collect();
        f.write_str(&ranges(&numbers))
    }
}

impl FromStr for CpuSet {
    type Err = NotNumbers;

    fn from_str(text: &str) -> Result<Self, NotNumbers> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let numbers: Numbers = text.trim().parse()?;
        let cpus = numbers.0.into_iter().map(u32::try_from);
        cpus.collect::<Result<_, _>>().map_err(|_| NotNumbers)
    }
}

impl TryFrom<String> for CpuSet {
    type Error = NotNumbers;

    fn try_from(text: String) -> Result<Self, NotNumbers> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_ranges_and_read_back() {
        let text = "0-27,32,34-35";
        let set: CpuSet = text.parse().unwrap();
        assert_eq!((set.len(), set.to_string().as_str()), (31, text));
        assert_eq!(serde_json::to_string(&set).unwrap(), "\"0-27,32,34-35\"");
        let again: CpuSet = serde_json::from_str("\"0-27,32,34-35\"").unwrap();
        assert_eq!(again, set);
        assert!("".parse::<CpuSet>().unwrap().is_empty());
        assert!("0-x".parse::<CpuSet>().is_err() && "4294967296".parse::<CpuSet>().is_err());
    }
}
