//! The difference that the pairs of a comparison can show, printed as early as it is known.
//!
//! It follows from an assumed spread, from recorded runs, or from the first pairs. A spread is the
//! standard deviation of the log ratios of the pairs of one cell.

use saiga_experiment::analysis::{Width, percent};
use saiga_experiment::stats::{MIN_SPREAD_PAIRS, Method, pairs_for, resolution, spread};

use super::stopping::Stopping;

/// Upper limit when the number of necessary pairs is computed.
const MOST_PAIRS: usize = 1000;

/// The planned number of pairs, or the precision at which to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    pairs: usize,
    until: Option<f64>,
}

/// The smallest and the largest spread of all cells.
#[derive(Debug, PartialEq)]
pub(super) struct Spreads {
    low: f64,
    high: f64,
    /// The cell with the largest spread, if there are several cells.
    widest: Option<String>,
    source: String,
}

impl Spreads {
    /// The spread that the user assumes.
    pub(super) fn assumed(stopping: &Stopping) -> Option<Self> {
        let sd = stopping.assume_sd?;
        Some(Self {
            low: sd,
            high: sd,
            widest: None,
            source: "an assumed spread".to_owned(),
        })
    }

    /// The observed spreads; `None` until each cell has enough pairs.
    pub(super) fn of(widths: &[Width]) -> Option<Self> {
        let fewest = widths.iter().map(|width| width.ratios.len()).min()?;
        if fewest < MIN_SPREAD_PAIRS {
            return None;
        }
        let mut spreads: Vec<(f64, &str)> = Vec::new();
        for width in widths {
            spreads.push((spread(&width.ratios)?, &width.cell));
        }
        spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ((low, _), (high, widest)) = (*spreads.first()?, *spreads.last()?);
        Some(Self {
            low,
            high,
            widest: (spreads.len() > 1).then(|| widest.to_owned()),
            source: format!("{fewest} pairs with a spread"),
        })
    }

    fn describe(&self) -> String {
        let range = range(&[self.low, self.high].map(percent));
        let widest = self.widest.as_ref();
        let widest = widest.map_or_else(String::new, |cell| format!(", the largest in {cell}"));
        format!("{} of {range} % between pairs{widest}", self.source)
    }
}

impl Outlook {
    /// `pairs` is the fixed number, or the maximum with `--until`.
    pub(super) fn new(stopping: &Stopping, pairs: u32) -> Self {
        Self {
            pairs: usize::try_from(pairs).unwrap_or(usize::MAX),
            until: stopping.until,
        }
    }

    /// One sentence: which difference the pairs can show, or how many pairs are necessary.
    pub(super) fn sentence(&self, spreads: &Spreads) -> String {
        let said = match self.until {
            Some(wanted) => self.needed(wanted, spreads),
            None => self.resolved(spreads),
        };
        format!("{said} (from {})", spreads.describe())
    }

    fn resolved(&self, spreads: &Spreads) -> String {
        let Self { pairs, .. } = *self;
        let of = |spread| resolution(Method::Fixed, pairs, spread);
        match (of(spreads.low), of(spreads.high)) {
            (Some(low), Some(high)) => {
                format!(
                    "{pairs} pairs can show a difference of about {} %",
                    range(&[low, high].map(percent))
                )
            }
            _ => {
                let noun = if pairs == 1 { "pair is" } else { "pairs are" };
                format!("{pairs} {noun} too few for an interval; six are needed")
            }
        }
    }

    fn needed(&self, wanted: f64, spreads: &Spreads) -> String {
        let of = |spread| pairs_for(Method::Sequential, wanted, spread, MOST_PAIRS);
        let within = format!("a precision of {} %", percent(wanted));
        let said = match (of(spreads.low), of(spreads.high)) {
            (Some(low), Some(high)) if high <= self.pairs => {
                let (low, high) = (low.to_string(), high.to_string());
                return format!("{within} needs about {} pairs", range(&[low, high]));
            }
            (_, Some(high)) => format!("about {high} pairs"),
            (_, None) => format!("more than {MOST_PAIRS} pairs"),
        };
        let most = self.pairs;
        format!("{within} needs {said}, more than the {most} of --max-pairs")
    }
}

/// `2`, or `0.9 to 2.6`.
fn range([low, high]: &[String; 2]) -> String {
    if low == high {
        low.clone()
    } else {
        format!("{low} to {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spreads(low: f64, high: f64) -> Spreads {
        Spreads {
            low,
            high,
            widest: (low < high).then(|| "set-c1".to_owned()),
            source: "3 pairs with a spread".to_owned(),
        }
    }

    fn sentence(pairs: usize, until: Option<f64>, spreads: &Spreads) -> String {
        Outlook { pairs, until }.sentence(spreads)
    }

    /// 1.06 deviations for six pairs: see `stats::power`.
    #[test]
    fn a_fixed_number_of_pairs_gives_a_difference() {
        assert_eq!(
            sentence(6, None, &spreads(0.014, 0.014)),
            "6 pairs can show a difference of about 1.5 % (from 3 pairs with a spread of 1.4 % \
             between pairs)"
        );
        assert_eq!(
            sentence(6, None, &spreads(0.01, 0.1)),
            "6 pairs can show a difference of about 1.1 to 11 % (from 3 pairs with a spread of 1 \
             to 10 % between pairs, the largest in set-c1)"
        );
        assert!(sentence(5, None, &spreads(0.01, 0.01)).starts_with("5 pairs are too few"));
    }

    #[test]
    fn a_wanted_precision_gives_a_number_of_pairs() {
        let said = sentence(100, Some(0.02), &spreads(0.01, 0.02));
        assert!(
            said.starts_with("a precision of 2 % needs about 8 to "),
            "{said}"
        );
        let said = sentence(20, Some(0.02), &spreads(0.05, 0.05));
        assert!(
            said.ends_with("between pairs)") && said.contains("more than the 20 of --max-pairs"),
            "{said}"
        );
        let said = sentence(20, Some(0.001), &spreads(0.5, 0.5));
        assert!(
            said.starts_with("a precision of 0.1 % needs more than 1000 pairs"),
            "{said}"
        );
    }

    #[test]
    fn spreads_need_three_pairs_in_every_cell() {
        let width = |cell: &str, ratios: &[f64]| Width {
            cell: cell.to_owned(),
            ratios: ratios.to_vec(),
            half_width: None,
        };
        assert_eq!(Spreads::of(&[]), None);
        assert_eq!(Spreads::of(&[width("a", &[1.0, 1.1])]), None);
        let e = std::f64::consts::E;
        let found = Spreads::of(&[width("a", &[1.0, e, e * e]), width("b", &[1.0; 4])]).unwrap();
        assert_eq!(
            found.describe(),
            "3 pairs with a spread of 0 to 100 % between pairs, the largest in a"
        );
    }
}
