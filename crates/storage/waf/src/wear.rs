//! The wear of a drive by its own estimate, and an extrapolation of the rest of its life.
//!
//! Read from SMART / health information, log 02h; for one of several endurance groups, from its log
//! 09h, which has the same first fields. Spec: NVM Express Base 2.0, figures 207 and 211: critical
//! warning (byte 0), available spare (3), its threshold (4), percentage used (5).

use crate::drive::Drive;
use crate::identity::{Group, Identity};
use crate::page::Page;
use crate::series::Series;
use crate::source::{Unusable, counter, endurance, smart, whole_page};

/// The wear of a drive, as it reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wear {
    /// Used percentage of the rated life; may exceed 100, and 255 means more than 254.
    pub used_percent: u8,
    /// Percentage of the spare blocks that are left.
    pub spare_percent: u8,
    /// The drive warns if less than this percentage of the spare blocks is left.
    pub threshold_percent: u8,
    /// Critical warnings: a bit for each of [`WARNINGS`].
    pub warnings: u8,
    /// Bytes written by the host over the life of the drive ("TBW"); 0 may mean not reported.
    pub host: u128,
}

/// Bits of the critical warning, the lowest first: name for programs, and description.
pub const WARNINGS: [(&str, &str); 6] = [
    ("spare", "fewer spare blocks than its threshold"),
    ("temperature", "temperature outside its limits"),
    ("reliability", "reliability degraded by media errors"),
    ("read_only", "media can only be read"),
    ("backup", "backup of its volatile memory failed"),
    ("pmr", "persistent memory region can only be read"),
];

impl Wear {
    /// Returns the [`WARNINGS`] that the drive gives.
    pub fn warnings(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let bits = self.warnings;
        let all = WARNINGS.into_iter().enumerate();
        all.filter(move |(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, warning)| warning)
    }
}

/// Reads the wear of a drive.
///
/// # Errors
/// The page cannot be read or has invalid percentages.
pub fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Wear, Unusable> {
    let (page, at, unit) = match &identity.group {
        Group::One(group) if identity.groups.len() > 1 => {
            (Page::Endurance(*group), 64, endurance::UNIT)
        }
        Group::One(_) | Group::None | Group::Several(_) => (Page::Smart, 48, smart::UNIT),
    };
    let bytes = whole_page(drive, page, at + 16)?;
    let [
        warnings,
        _,
        _,
        spare_percent,
        threshold_percent,
        used_percent,
        ..,
    ] = bytes[..]
    else {
        return Err(Unusable::Blank { page });
    };
    if spare_percent > 100 || threshold_percent > 100 {
        return Err(Unusable::Spare { page });
    }
    Ok(Wear {
        used_percent,
        spare_percent,
        threshold_percent,
        warnings,
        host: counter(&bytes, page, at, unit)?,
    })
}

/// With less used life, one percent changes the estimate by more than a fifth.
const LEAST_PERCENT: u8 = 5;
const DAY_SECONDS: f64 = 86_400.0;

/// An extrapolation of the rest of the drive's life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Bytes written by the host when 100 % of the life will be used.
    pub host_at_end: u128,
    /// `None` if the samples span less than a day, or the host wrote nothing.
    pub pace: Option<Pace>,
}

/// The time left at the rate of host writes between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    pub left_days: f64,
    pub span_days: f64,
}

/// Extrapolates from the newest sample and the oldest comparable one. `None` while too little of
/// the life is used, and once all of it is used.
#[must_use]
pub fn outlook(series: &Series) -> Option<Outlook> {
    let last = series.last()?;
    let wear = last.wear?;
    if !(LEAST_PERCENT..100).contains(&wear.used_percent) || wear.host == 0 {
        return None;
    }
    let host_at_end = wear.host.checked_mul(100)? / u128::from(wear.used_percent);
    let samples = series.segments.iter();
    let samples = samples.filter_map(|segment| segment.first_worn.as_ref());
    let since = samples
        .filter_map(|sample| Some((sample.wear?.host, sample.taken.seconds_until(&last.taken)?)))
        .find(|(host, seconds)| *host < wear.host && *seconds >= DAY_SECONDS);
    let left = (host_at_end - wear.host) as f64;
    let pace = since.map(|(host, seconds)| {
        let span_days = seconds / DAY_SECONDS;
        Pace {
            left_days: left / (wear.host - host) as f64 * span_days,
            span_days,
        }
    });
    Some(Outlook { host_at_end, pace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::sample::{DriveId, Sample};
    use crate::series::series;
    use crate::source::{Counters, Source, Steps};

    /// Creates a sample of a day with used life and host writes.
    fn day(day: i64, used_percent: u8, host: u128) -> Sample {
        Sample {
            taken: Moment {
                unix_ms: day * 86_400_000,
                boot: "a".to_owned(),
                since_boot_ms: day * 86_400_000,
            },
            path: "/dev/nvme0".to_owned(),
            drive: DriveId {
                model: "M".to_owned(),
                serial: "S".to_owned(),
                group: None,
            },
            firmware: "1".to_owned(),
            source: Source::Endurance,
            steps: Steps { host: 1, media: 1 },
            counters: Counters { host, media: host },
            wear: Some(Wear {
                used_percent,
                spare_percent: 100,
                threshold_percent: 10,
                warnings: 0,
                host,
            }),
        }
    }

    fn of(samples: &[Sample]) -> Option<Outlook> {
        outlook(&series(samples)[0])
    }

    #[test]
    fn the_outlook_follows_from_used_life_and_rate() {
        let seen = of(&[day(0, 19, 900), day(4, 20, 960), day(10, 20, 1000)]).unwrap();
        assert_eq!(seen.host_at_end, 5000);
        let pace = seen.pace.unwrap();
        assert_eq!(pace.span_days, 10.0);
        // 10 bytes a day, and 4000 left.
        assert!((pace.left_days - 400.0).abs() < 1e-9, "{pace:?}");
    }

    #[test]
    fn too_few_data_have_no_outlook() {
        assert_eq!(of(&[day(0, 3, 900), day(10, 4, 1000)]), None);
        assert_eq!(of(&[day(0, 99, 900), day(10, 100, 1000)]), None);
        assert_eq!(of(&[day(0, 20, 0), day(10, 20, 0)]), None, "not reported");
        let mut silent = day(10, 20, 1000);
        silent.wear = None;
        assert_eq!(of(&[day(0, 20, 900), silent]), None);
        for without_a_rate in [
            vec![day(10, 20, 1000)],
            vec![day(0, 20, 1000), day(10, 20, 1000)],
        ] {
            assert_eq!(of(&without_a_rate).unwrap().pace, None);
        }
    }

    /// As in a file whose first samples are of an earlier release.
    #[test]
    fn the_rate_begins_with_the_first_sample_with_wear() {
        let mut silent = day(0, 0, 900);
        silent.wear = None;
        let seen = of(&[silent, day(4, 20, 960), day(10, 20, 1000)]).unwrap();
        assert_eq!(seen.pace.unwrap().span_days, 6.0);
    }

    /// Samples from before a fall of the counter are not used for the rate.
    #[test]
    fn samples_before_a_fallen_counter_are_not_used() {
        let seen = of(&[day(0, 50, 9000), day(5, 10, 400), day(10, 10, 500)]).unwrap();
        let pace = seen.pace.unwrap();
        assert_eq!((seen.host_at_end, pace.span_days), (5000, 5.0));
    }
}
