//! The lines of result_WA.txt, as calculate_wa.sh would have written them.
//!
//! Flash writes and host writes of each interval in whole MiB, and their quotient with five places, truncated as `bc`
//! does. Left out are what the script writes `0 0` and nothing for after its "Divide by zero": intervals without host
//! writes, and first samples.

use crate::ratio::bc_scale_5;
use crate::series::Series;

const MIB: u128 = 1 << 20;

/// One line per interval with host writes, drive after drive.
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
