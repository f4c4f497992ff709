//! How high the axis of the factor goes: as high as what says something of the drive.
//!
//! A window with next to no host writes has a factor of thousands, for collection goes on, and one of a few steps has
//! bounds that are far apart. Either would press all else to the ground. They are in the table of intervals.

use crate::ratio::Written;

/// Windows with less than this part of the mean's host writes are next to idle.
const LEAST_PART: u128 = 100;

/// The greatest bound of windows that are neither coarse nor next to idle; where all are coarse, of those.
pub(super) fn top(windows: &[Written]) -> f64 {
    let busy = windows.iter().filter(|one| one.host > 0);
    let count = busy.clone().count().max(1) as u128;
    let mean = busy.clone().map(|one| one.host).sum::<u128>() / count;
    let wafs: Vec<_> = busy
        .filter(|one| one.host >= mean / LEAST_PART)
        .filter_map(|one| one.waf())
        .collect();
    let has_fine = wafs.iter().any(|waf| !waf.is_coarse);
    let telling = wafs.iter().filter(|waf| !(has_fine && waf.is_coarse));
    telling
        .map(|waf| waf.high.unwrap_or(waf.value))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(host: u128, media: u128) -> Written {
        Written {
            host,
            media,
            ..Written::default()
        }
    }

    fn by_gigabytes(host: u128, media: u128) -> Written {
        let step = 1_000_000_000;
        Written {
            host: host * step,
            media: media * step,
            host_error: step,
            media_error: step,
        }
    }

    #[test]
    fn what_is_next_to_idle_or_coarse_does_not_count() {
        let busy = exact(100 << 30, 250 << 30);
        let idle = exact(4096, 10 << 30);
        assert_eq!(top(&[busy, idle, exact(0, 1 << 30)]), 2.5);
        let (fine, coarse) = (by_gigabytes(100, 199), by_gigabytes(2, 30));
        assert_eq!(top(&[fine, coarse, fine]), 200.0 / 99.0);
        // A peak of a busy hour stays, however short it was.
        let peak = exact(100 << 30, 900 << 30);
        assert_eq!(top(&[[busy; 399].as_slice(), &[peak]].concat()), 9.0);
    }

    #[test]
    fn there_is_an_axis_where_all_is_coarse_or_idle() {
        assert_eq!(top(&[by_gigabytes(2, 4), by_gigabytes(3, 5)]), 5.0);
        assert_eq!(top(&[by_gigabytes(1, 4)]), 4.0);
        assert_eq!(top(&[exact(0, 7)]), 0.0);
        assert_eq!(top(&[]), 0.0);
    }
}
