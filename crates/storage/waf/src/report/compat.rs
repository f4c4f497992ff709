//! Formats intervals as the lines of result_WA.txt, like calculate_wa.sh.
//!
//! Each line has flash writes and host writes of an interval in whole MiB, and their quotient with
//! five decimals, truncated like `bc`. First samples and intervals without host writes are left
//! out: the script writes `0 0` without a quotient for them, after "Divide by zero".

use crate::ratio::bc_scale_5;
use crate::series::Series;

const MIB: u128 = 1 << 20;

/// Returns one line for each interval with host writes, drive after drive.
#[must_use]
pub fn compat(all: &[Series]) -> String {
    let intervals = all.iter().flat_map(Series::intervals);
    let lines = intervals.filter_map(|interval| {
        let written = interval.written;
        let quotient = bc_scale_5(written.media, written.host)?;
        Some(format!(
            "{} {} {quotient}\n",
            written.media / MIB,
            written.host / MIB
        ))
    });
    lines.collect()
}
