//! Chooses the upper end of the factor's axis.
//!
//! A window with almost no host writes has a factor of thousands, because garbage collection
//! continues, and a window of a few steps has wide bounds. Either would flatten the rest of the
//! plot, so the axis ignores them; they are in the table of intervals.

use crate::ratio::Written;

/// A window with less than the mean host writes divided by this is almost idle.
const LEAST_PART: u128 = 100;

/// Returns the greatest upper bound of windows that are not almost idle and not coarse. If all are
/// coarse, coarse windows count.
pub(super) fn top(windows: &[Written]) -> f64 {
    let busy = windows.iter().filter(|one| one.host > 0);
    let count = busy.clone().count().max(1) as u128;
    let mean = busy.clone().map(|one| one.host).sum::<u128>() / count;
    let wafs: Vec<_> = busy
        .filter(|one| one.host >= mean / LEAST_PART)
        .filter_map(|one| one.waf())
        .collect();
    let has_fine = wafs.iter().any(|waf| !waf.is_coarse);
    let counted = wafs.iter().filter(|waf| !(has_fine && waf.is_coarse));
    counted
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
    fn almost_idle_and_coarse_windows_do_not_count() {
        let busy = exact(100 << 30, 250 << 30);
        let idle = exact(4096, 10 << 30);
        assert_eq!(top(&[busy, idle, exact(0, 1 << 30)]), 2.5);
        let (fine, coarse) = (by_gigabytes(100, 199), by_gigabytes(2, 30));
        assert_eq!(top(&[fine, coarse, fine]), 200.0 / 99.0);
        // A short peak with many host writes counts.
        let peak = exact(100 << 30, 900 << 30);
        assert_eq!(top(&[[busy; 399].as_slice(), &[peak]].concat()), 9.0);
    }

    #[test]
    fn coarse_windows_count_if_there_are_no_others() {
        assert_eq!(top(&[by_gigabytes(2, 4), by_gigabytes(3, 5)]), 5.0);
        assert_eq!(top(&[by_gigabytes(1, 4)]), 4.0);
        assert_eq!(top(&[exact(0, 7)]), 0.0);
        assert_eq!(top(&[]), 0.0);
    }
}
