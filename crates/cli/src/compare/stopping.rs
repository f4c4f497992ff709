//! Options that decide when a comparison ends, and whether it resumes; every workload has them.

use std::path::Path;

use anyhow::bail;
use saiga_experiment::analysis::Until;
use saiga_experiment::campaign::{self, Begin};
use saiga_experiment::plan::Cell;

/// Options for the number of pairs, and `--resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Stopping {
    /// Add pairs until the confidence interval of each cell is within this of its ratio, such as
    /// 2%. The interval is valid although it is computed after each round, and needs at least eight
    /// pairs
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "pairs")]
    pub(crate) until: Option<f64>,
    /// Let only cells whose name contains TEXT decide; can be repeated
    #[arg(long, value_name = "TEXT", requires = "until")]
    pub(crate) until_cell: Vec<String>,
    /// Stop after this many pairs, however wide the intervals are
    #[arg(long, value_name = "N", default_value_t = 100, requires = "until", value_parser = clap::value_parser!(u32).range(8..=1000))]
    pub(crate) max_pairs: u32,
    /// Standard deviation of the pairs' log ratios, such as 1.4%: print beforehand which difference
    /// the pairs can show (default: printed after the first pairs)
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) assume_sd: Option<f64>,
    /// Continue an interrupted run of this command from its records in --out
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
}

impl Stopping {
    /// The precision at which to stop; `None` if the number of pairs is fixed.
    pub(crate) fn until(&self) -> Option<Until> {
        let half_width = self.until?;
        Some(Until {
            half_width,
            cells: self.until_cell.clone(),
        })
    }

    /// Maximum number of pairs: `max_pairs` if the precision decides, otherwise `fixed`.
    pub(crate) fn pairs(&self, fixed: u32) -> u32 {
        match self.until {
            Some(_) => self.max_pairs,
            None => fixed,
        }
    }

    pub(crate) fn begin(&self) -> Begin {
        if self.resume {
            Begin::Resume
        } else {
            Begin::Fresh
        }
    }

    /// The given seed. Without it, the seed of the campaign to resume, or a random one.
    ///
    /// # Errors
    /// The campaign cannot be read.
    pub(crate) fn seed(&self, given: Option<u64>, out: Option<&Path>) -> anyhow::Result<u64> {
        let recorded = match out {
            Some(out) if self.resume => campaign::recorded(out)?,
            Some(_) | None => None,
        };
        let recorded = recorded.and_then(|recorded| recorded.identity.seed());
        Ok(given
            .or(recorded)
            .unwrap_or_else(|| fastrand::u64(0..1_000_000)))
    }

    /// Checks that each --until-cell names a cell.
    ///
    /// # Errors
    /// Fails with the first text that is in no cell's name.
    pub(crate) fn check<L>(&self, cells: &[Cell<L>]) -> anyhow::Result<()> {
        for text in &self.until_cell {
            if !cells.iter().any(|cell| cell.id.contains(text.as_str())) {
                bail!(
                    "--until-cell {text}: no cell's name contains this; --dry-run lists the cells"
                );
            }
        }
        Ok(())
    }
}

/// Parses a percentage as a share: `2%` is 0.02.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim_end);
    match number.map(str::parse::<f64>) {
        Some(Ok(percent)) if (0.01..=100.0).contains(&percent) => Ok(percent / 100.0),
        Some(_) | None => Err("give a percentage from 0.01% to 100%, such as 2%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_need_their_sign() {
        assert_eq!(percent("2%"), Ok(0.02));
        assert_eq!(percent("0.5 %"), Ok(0.005));
        for bad in ["2", "0.02", "%", "-1%", "0%", "nan%", "101%", "2%%"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
