//! Volumes of the server that are full, or will be soon.

use saiga_document::number::{bytes, percent, seconds};

use crate::observation::Observation;
use crate::observation::process::Volume;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text;

/// Share of the space that is left, below which a volume counts as full.
const FULL: f64 = 0.005;
/// Longest time until a volume is full from which it is reported: enough for a person to do
/// something.
const SOON_S: f64 = 3600.0;
/// A rate is taken to hold for this many times as long as it was seen: other programs may have
/// written for a moment.
const HOLDS: f64 = 60.0;

pub(super) const RULE: Rule = Rule {
    name: "disk-space",
    subject: "space on the volumes to which the server writes",
    judge,
};

/// Seconds until a volume is full; infinite while it does not fill up.
fn left_s(volume: &Volume) -> f64 {
    if volume.filled_bytes_s > 0.0 {
        volume.free_bytes as f64 / volume.filled_bytes_s
    } else {
        f64::INFINITY
    }
}

/// The time until a volume is full from which it is reported.
fn soon_s(volume: &Volume) -> f64 {
    SOON_S.min(HOLDS * volume.seen_s)
}

fn free(volume: &Volume) -> f64 {
    volume.free_bytes as f64 / volume.total_bytes.max(1) as f64
}

fn judge(observation: &Observation) -> Judgement {
    let Some(process) = &observation.process else {
        return Judgement::Unknown(Needs::Server);
    };
    let urgent = |volume: &&Volume| {
        let is_full = free(volume) < FULL;
        (!is_full, left_s(volume))
    };
    let first = process.volumes.iter().min_by(|a, b| {
        urgent(a)
            .partial_cmp(&urgent(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some(volume) = first else {
        return Judgement::Clear("the server has no file open for writing".to_owned());
    };
    let is_full = free(volume) < FULL;
    if !is_full && left_s(volume) > soon_s(volume) {
        return Judgement::Clear(format!(
            "{} of {} are free",
            percent(free(volume)),
            volume.directory.display()
        ));
    }
    Judgement::Found(Box::new(finding(volume, is_full)))
}

fn finding(volume: &Volume, is_full: bool) -> Finding {
    let place = volume.directory.display();
    let first = if is_full {
        format!("The volume of {place} is full, and writes fail or wait.")
    } else {
        format!(
            "The volume of {place} is full in {}.",
            seconds(left_s(volume))
        )
    };
    let rate = text::bytes(volume.filled_bytes_s);
    Finding {
        bottleneck: format!("the space on the volume of {place}"),
        kind: if is_full { Kind::Error } else { Kind::Cause },
        certainty: if is_full {
            Certainty::Measured
        } else {
            Certainty::Likely
        },
        share: if is_full {
            1.0
        } else {
            1.0 - left_s(volume) / soon_s(volume)
        },
        summary: [
            first,
            format!(
                "{} of {} are free, and {rate}/s are used up.",
                bytes(volume.free_bytes),
                bytes(volume.total_bytes)
            ),
            "Remove old logs, or give the volume more space.".to_owned(),
        ],
        evidence: vec![Evidence::new(
            format!("free space for {place}"),
            bytes(volume.free_bytes),
            format!(
                "{} of the volume, or what is used up in {}",
                percent(FULL),
                seconds(soon_s(volume))
            ),
            "statvfs(3) of the files that the server has open for writing",
        )],
        next: vec![Step::Advice(
            "expiry of logs: binlog_expire_logs_seconds, max_slot_wal_keep_size, \
             auto-aof-rewrite-percentage"
                .to_owned(),
        )],
        refuted_by: "the free space does not shrink over an hour".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::process::Process;

    fn observed(free_bytes: u64, filled_bytes_s: f64) -> Observation {
        let volume = Volume {
            directory: "/srv/log".into(),
            total_bytes: 1 << 30,
            free_bytes,
            filled_bytes_s,
            seen_s: 60.0,
        };
        Observation {
            process: Some(Process {
                volumes: vec![volume],
                ..Process::default()
            }),
            ..Observation::default()
        }
    }

    #[test]
    fn a_volume_that_is_full_in_twenty_minutes_is_found() {
        let Judgement::Found(finding) = judge(&observed(600 << 20, f64::from(1 << 19))) else {
            panic!("not found");
        };
        assert_eq!(finding.kind, Kind::Cause);
        assert!(
            finding.summary[0].contains("/srv/log is full in 20 min"),
            "{finding:?}"
        );
        let Judgement::Found(full) = judge(&observed(1 << 20, 0.0)) else {
            panic!("not found");
        };
        assert_eq!(full.kind, Kind::Error);
    }

    #[test]
    fn a_short_observation_does_not_foretell_an_hour() {
        let mut observation = observed(600 << 20, f64::from(1 << 19));
        observation.process.as_mut().unwrap().volumes[0].seen_s = 6.0;
        assert!(matches!(judge(&observation), Judgement::Clear(_)));
    }

    #[test]
    fn space_for_a_day_is_enough() {
        for (free, rate) in [(600 << 20, 1000.0), (100 << 20, 0.0), (100 << 20, -5.0)] {
            assert!(matches!(judge(&observed(free, rate)), Judgement::Clear(_)));
        }
        assert!(matches!(
            judge(&Observation::default()),
            Judgement::Unknown(_)
        ));
    }
}
