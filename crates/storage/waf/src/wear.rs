//! How far a drive is worn, by its own estimate, and what that says of the rest of its life.
//!
//! From SMART / health information, log 02h; of one of several endurance groups from its log 09h. Both begin alike.
//! Spec: NVM Express Base 2.0, figures 207 and 211: critical warning (byte 0), available spare (3), its threshold (4),
//! percentage used (5).

use crate::drive::Drive;
use crate::identity::{Group, Identity};
use crate::page::Page;
use crate::series::Series;
use crate::source::{Unusable, counter, endurance, smart, whole_page};

/// What a drive says of its own wear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wear {
    /// Percent of the rated life that are used; more than 100 is possible, 255 stands for all above 254.
    pub used_percent: u8,
    /// Percent of the spare blocks that are left.
    pub spare_percent: u8,
    /// Where the drive begins to warn of too few spare blocks.
    pub threshold_percent: u8,
    /// Critical warnings: a bit for each of [`WARNINGS`].
    pub warnings: u8,
    /// Bytes that the host wrote since the drive was made ("TBW"); 0 may mean that it is not reported.
    pub host: u128,
}

/// Bits of the critical warning, the lowest first: a word for programs, and what it means.
pub const WARNINGS: [(&str, &str); 6] = [
    ("spare", "fewer spare blocks than its threshold"),
    ("temperature", "temperature outside its limits"),
    ("reliability", "reliability degraded by media errors"),
    ("read_only", "media can only be read"),
    ("backup", "backup of its volatile memory failed"),
    ("pmr", "persistent memory region can only be read"),
];

impl Wear {
    /// Which of [`WARNINGS`] the drive gives.
    pub fn warnings(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let bits = self.warnings;
        let all = WARNINGS.into_iter().enumerate();
        all.filter(move |(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, warning)| warning)
    }
}

/// Asks the drive for it.
///
/// # Errors
/// [`Unusable`] when the page cannot be read or holds no percentages.
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

/// Below this, one percent more or less changes the estimate by more than a fifth.
const LEAST_PERCENT: u8 = 5;
const DAY_SECONDS: f64 = 86_400.0;

/// What the rest of a life will be if it goes on as before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Bytes that the host will have written when all of the life is used.
    pub host_at_end: u128,
    /// When that will be; `None` when the samples span less than a day, or nothing was written.
    pub pace: Option<Pace>,
}

/// Time that is left at the rate of host writes between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Days that are left.
    pub left_days: f64,
    /// Days between the samples.
    pub of_days: f64,
}

/// From the newest sample and the oldest one with which it can be compared; `None` while too little
/// of the life is used, and when all of it is.
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
        let of_days = seconds / DAY_SECONDS;
        Pace {
            left_days: left / (wear.host - host) as f64 * of_days,
            of_days,
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

    /// A sample of a day on which the drive has used a part of its life and written so much.
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
    fn the_rest_follows_from_what_was_used_and_the_rate() {
        let seen = of(&[day(0, 19, 900), day(4, 20, 960), day(10, 20, 1000)]).unwrap();
        assert_eq!(seen.host_at_end, 5000);
        let pace = seen.pace.unwrap();
        assert_eq!(pace.of_days, 10.0);
        // Ten a day, and 4000 are left.
        assert!((pace.left_days - 400.0).abs() < 1e-9, "{pace:?}");
    }

    #[test]
    fn too_little_says_nothing() {
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

    /// As in a file that an earlier release began.
    #[test]
    fn the_rate_begins_with_the_first_sample_that_tells() {
        let mut silent = day(0, 0, 900);
        silent.wear = None;
        let seen = of(&[silent, day(4, 20, 960), day(10, 20, 1000)]).unwrap();
        assert_eq!(seen.pace.unwrap().of_days, 6.0);
    }

    /// The counter fell: samples from before it did say nothing of the rate.
    #[test]
    fn a_counter_that_fell_is_not_divided_by() {
        let seen = of(&[day(0, 50, 9000), day(5, 10, 400), day(10, 10, 500)]).unwrap();
        let pace = seen.pace.unwrap();
        assert_eq!((seen.host_at_end, pace.of_days), (5000, 5.0));
    }
}
