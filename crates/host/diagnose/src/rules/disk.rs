//! A disk that is busy all the time while requests queue.

use saiga_document::number::{percent, value};

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::milliseconds;

/// Share of the time with a request in progress. A disk with parallel channels can be busy all the
/// time without being saturated; the queue tells.
const BUSY_PERCENT: f64 = 90.0;
/// Requests in progress from which a busy disk is saturated.
const QUEUE: f64 = 8.0;
/// Flushes in progress from which commits wait for the disk's cache: one waits nearly all the time.
const FLUSHES: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    name: "disk",
    subject: "disks",
    judge,
};

pub(super) const FLUSH: Rule = Rule {
    name: "flush",
    subject: "flushes of the disks' caches (fsync)",
    judge: judge_flush,
};

/// The disk for which `score` is highest.
fn most(observation: &Observation, score: impl Fn(&str) -> Option<f64>) -> Option<(String, f64)> {
    let disks = observation.metrics.names("disk_", "_util_percent");
    disks
        .filter_map(|disk| Some((disk.to_owned(), score(disk)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn judge(observation: &Observation) -> Judgement {
    let mean = |disk: &str, what: &str| observation.metrics.mean(&format!("disk_{disk}_{what}"));
    let queued = |disk: &str| mean(disk, "queue_requests");
    let Some((disk, queue)) = most(observation, queued) else {
        return Judgement::Unknown(Needs::Host);
    };
    let busy = mean(&disk, "util_percent").unwrap_or(0.0);
    let waits = [("reads", "read"), ("writes", "write")].map(|(count, kind)| {
        let wait_ms = mean(&disk, &format!("{kind}_wait_ms")).unwrap_or(0.0);
        (mean(&disk, &format!("{count}_s")).unwrap_or(0.0), wait_ms)
    });
    if busy < BUSY_PERCENT || queue < QUEUE {
        return Judgement::Clear(format!(
            "{disk} is busy {} of the time with {} requests in progress",
            percent(busy / 100.0),
            value(queue)
        ));
    }
    let [(reads, read_ms), (writes, write_ms)] = waits;
    let is_read = reads * read_ms > writes * write_ms;
    let kind = if is_read { "reads" } else { "writes" };
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("{kind} of disk {disk}"),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: busy / 100.0,
        summary: [
            format!("The disk {disk} is saturated, mostly by {kind}."),
            format!(
                "It is busy {} of the time with {} requests in progress; a read takes {}, a write \
                 {}.",
                percent(busy / 100.0),
                value(queue),
                milliseconds(read_ms),
                milliseconds(write_ms)
            ),
            if is_read {
                "Give the database more memory for its cache, or use a faster disk.".to_owned()
            } else {
                "Write less (checkpoints, binary log, double writes), or use a faster disk."
                    .to_owned()
            },
        ],
        evidence: vec![
            Evidence::new(
                "requests in progress",
                value(queue),
                format!("{QUEUE}: requests wait for others"),
                format!("disk_{disk}_queue_requests"),
            ),
            Evidence::new(
                "time with a request in progress",
                percent(busy / 100.0),
                percent(BUSY_PERCENT / 100.0),
                format!("disk_{disk}_util_percent"),
            ),
        ],
        next: vec![
            Step::Command("saiga streams record --out FILE --pid PID --for 1m".to_owned()),
            Step::Command("saiga tune plan   # settings of the disks".to_owned()),
        ],
        refuted_by: "throughput stays on a faster disk".to_owned(),
    }))
}

fn judge_flush(observation: &Observation) -> Judgement {
    let mean = |disk: &str, what: &str| observation.metrics.mean(&format!("disk_{disk}_{what}"));
    let in_progress = |disk: &str| {
        let wait_ms = mean(disk, "flush_wait_ms")?;
        Some(mean(disk, "flushes_s")? * wait_ms / 1000.0)
    };
    let Some((disk, flushes)) = most(observation, in_progress) else {
        if observation
            .metrics
            .names("disk_", "_util_percent")
            .next()
            .is_none()
        {
            return Judgement::Unknown(Needs::Host);
        }
        return Judgement::Clear("no disk was flushed".to_owned());
    };
    let wait_ms = mean(&disk, "flush_wait_ms").unwrap_or(0.0);
    let rate = mean(&disk, "flushes_s").unwrap_or(0.0);
    if flushes < FLUSHES {
        return Judgement::Clear(format!(
            "a flush of {disk} takes {}, {} each second",
            milliseconds(wait_ms),
            value(rate)
        ));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("flushes of disk {disk} (fsync of the log)"),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: flushes.min(1.0),
        summary: [
            "Commits wait for the disk to write its cache.".to_owned(),
            format!(
                "A flush of {disk} takes {}, and a flush is in progress {} of the time.",
                milliseconds(wait_ms),
                percent(flushes.min(1.0))
            ),
            "Put the log on a disk with a protected cache, or let more sessions commit together."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            "flushes in progress",
            value(flushes),
            format!("{FLUSHES}: commits then follow each other"),
            format!("disk_{disk}_flushes_s, disk_{disk}_flush_wait_ms"),
        )],
        next: vec![Step::Command(
            "saiga tune database SYSTEM   # group commit".to_owned(),
        )],
        refuted_by: "throughput stays with a log on a memory file system (on a test server)"
            .to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: &[(&str, f64)]) -> Observation {
        let mut observation = Observation::default();
        for (name, value) in values {
            observation
                .metrics
                .add(&format!("disk_{name}"), 1.0, *value);
        }
        observation
    }

    #[test]
    fn a_busy_disk_with_a_queue_is_the_bottleneck() {
        let observation = observed(&[
            ("sda_util_percent", 99.0),
            ("sda_queue_requests", 31.0),
            ("sda_reads_s", 900.0),
            ("sda_read_wait_ms", 34.0),
            ("sda_writes_s", 10.0),
            ("sda_write_wait_ms", 3.0),
            ("sdb_util_percent", 3.0),
            ("sdb_queue_requests", 0.1),
        ]);
        let Judgement::Found(finding) = judge(&observation) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "reads of disk sda");
        assert!(finding.summary[2].contains("memory for its cache"));
    }

    #[test]
    fn a_busy_disk_without_a_queue_is_not() {
        let observation = observed(&[
            ("nvme0n1_util_percent", 100.0),
            ("nvme0n1_queue_requests", 2.0),
        ]);
        assert!(matches!(judge(&observation), Judgement::Clear(_)));
        assert!(matches!(judge(&observed(&[])), Judgement::Unknown(_)));
    }

    #[test]
    fn flushes_that_follow_each_other_limit_commits() {
        let slow = observed(&[
            ("vda_util_percent", 60.0),
            ("vda_flushes_s", 45.0),
            ("vda_flush_wait_ms", 20.0),
        ]);
        let Judgement::Found(finding) = judge_flush(&slow) else {
            panic!("not found");
        };
        assert!((finding.share - 0.9).abs() < 1e-9);
        let fast = observed(&[
            ("vda_util_percent", 60.0),
            ("vda_flushes_s", 450.0),
            ("vda_flush_wait_ms", 0.02),
        ]);
        assert!(matches!(judge_flush(&fast), Judgement::Clear(_)));
    }
}
