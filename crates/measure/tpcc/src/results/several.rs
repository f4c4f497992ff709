//! Several databases under the load of one process.

use super::Record;
use crate::driver::Measurement;
use crate::latency::Track;

/// Divides the CPU time of this process, which serves all databases, in proportion to their
/// transactions.
pub fn share_cpu(all: &mut [&mut Measurement]) {
    let done = |one: &&mut Measurement| one.tracks.iter().flatten().map(Track::done).sum();
    let done: Vec<u64> = all.iter().map(done).collect();
    for (one, share) in all.iter_mut().zip(shares(&done)) {
        one.cpu_s.0 *= share;
    }
}

/// The share of each in the sum; equal shares if the sum is zero.
fn shares(done: &[u64]) -> Vec<f64> {
    let (sum, count) = (done.iter().sum::<u64>(), done.len());
    let part = |done: &u64| match sum {
        0 => 1.0 / count as f64,
        _ => *done as f64 / sum as f64,
    };
    done.iter().map(part).collect()
}

/// The sums over several databases; `None` for one.
#[must_use]
pub fn sum(records: &[Record]) -> Option<String> {
    let [first, _, ..] = records else {
        return None;
    };
    let tpmc: f64 = records.iter().map(Record::tpmc).sum();
    let total: f64 = records.iter().map(Record::tpm_total).sum();
    Some(format!(
        "{} databases together: {} {tpmc:.2}, {total:.2} transactions of all types per minute",
        records.len(),
        first.tpmc_name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_divided_in_proportion_to_transactions() {
        assert_eq!(shares(&[7]), [1.0]);
        assert_eq!(shares(&[300, 100]), [0.75, 0.25]);
        assert_eq!(shares(&[0, 0]), [0.5, 0.5]);
    }
}
