//! Rules on the counters of a database: lock waits and reads that miss its cache.
//!
//! The metrics are those of docs/host-metrics.md for a status that is read during the observation:
//! `db_LABEL_VARIABLE`, and `_s` behind it for the rate of a counter.

use saiga_document::number::{percent, value};

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::rules::status;
use crate::text::{milliseconds, per_second};

/// Sessions that wait for a row lock at a time from which locks are reported.
const WAITING: f64 = 0.5;
/// Share of the reads that miss the cache from which the cache is reported; a database that fits
/// misses none.
const MISSES: f64 = 0.02;
/// Sessions in `pg_stat_activity` whose `wait_event_type` is `Lock`.
const POSTGRES_WAITS: &str = "_activity.lock_wait_sessions";
/// Reads from disk per second below which misses do not matter.
const LEAST_READS: f64 = 50.0;

pub(super) const LOCKS: Rule = Rule {
    name: "row-locks",
    subject: "sessions that wait for row locks",
    judge: locks,
};

pub(super) const CACHE: Rule = Rule {
    name: "buffer-pool",
    subject: "reads that miss the database's cache",
    judge: cache,
};

/// Counters of hits and misses, and the setting to raise.
const CACHES: [(&str, &str, &str, &str); 2] = [
    (
        "_Innodb_buffer_pool_read_requests_s",
        "_Innodb_buffer_pool_reads_s",
        "innodb_buffer_pool_size",
        "requests include misses",
    ),
    (
        "_database.blks_hit_s",
        "_database.blks_read_s",
        "shared_buffers",
        "hits exclude misses",
    ),
];

/// Sessions of a database that wait for locks.
pub(super) struct LockWaits {
    /// Mean number that waits at a time.
    pub(super) waiting: f64,
    /// Mean number of sessions that execute a statement, if it is known.
    running: Option<f64>,
    /// Waits that begin per second, if they are counted.
    rate: Option<f64>,
    /// The metric of `waiting`.
    source: String,
    is_postgres: bool,
}

/// The database with most lock waits.
pub(super) fn lock_waits(observation: &Observation) -> Option<LockWaits> {
    let mysql = observation.metrics.names("db_", "_Innodb_row_lock_time_s");
    let mysql = mysql.filter_map(|label| of_mysql(observation, label));
    let postgres = observation.metrics.names("db_", POSTGRES_WAITS);
    let postgres = postgres.filter_map(|label| of_postgres(observation, label));
    mysql
        .chain(postgres)
        .max_by(|a, b| a.waiting.total_cmp(&b.waiting))
}

/// InnoDB adds the time of a wait when it ends, so a wait that goes on shows only in the number of
/// current waits.
fn of_mysql(observation: &Observation, label: &str) -> Option<LockWaits> {
    let mean = |variable: &str| observation.metrics.mean(&format!("db_{label}{variable}"));
    // Milliseconds of waiting per second, divided by 1000, are the sessions that wait at a time.
    let ended = mean("_Innodb_row_lock_time_s")? / 1000.0;
    let current = mean("_Innodb_row_lock_current_waits").unwrap_or(0.0);
    let source = if current > ended {
        "current_waits"
    } else {
        "time_s"
    };
    Some(LockWaits {
        waiting: ended.max(current),
        running: mean("_Threads_running"),
        rate: mean("_Innodb_row_lock_waits_s"),
        source: format!("db_{label}_Innodb_row_lock_{source}"),
        is_postgres: false,
    })
}

fn of_postgres(observation: &Observation, label: &str) -> Option<LockWaits> {
    let mean = |variable: &str| observation.metrics.mean(&format!("db_{label}{variable}"));
    Some(LockWaits {
        waiting: mean(POSTGRES_WAITS)?,
        running: mean("_activity.active_sessions"),
        rate: None,
        source: format!("db_{label}{POSTGRES_WAITS}"),
        is_postgres: true,
    })
}

/// Mean number of sessions of a database that execute a statement, without the one that reads the
/// counters.
pub(super) fn running(observation: &Observation) -> Option<f64> {
    let mysql = status::largest(observation, &["_Threads_running"]).map(|running| running - 1.0);
    mysql.or_else(|| status::largest(observation, &["_activity.active_sessions"]))
}

fn locks(observation: &Observation) -> Judgement {
    let Some(waits) = lock_waits(observation) else {
        return Judgement::Unknown(Needs::Status);
    };
    let LockWaits {
        waiting,
        running,
        rate,
        source,
        is_postgres,
    } = waits;
    if waiting < WAITING {
        return Judgement::Clear(format!(
            "{} sessions wait for a lock at a time",
            value(waiting)
        ));
    }
    let each = rate
        .filter(|rate| *rate > 0.0)
        .map_or(String::new(), |rate| {
            let each_ms = waiting * 1000.0 / rate;
            format!(
                "; {} waits begin, each of {}",
                per_second(rate),
                milliseconds(each_ms)
            )
        });
    let command = if is_postgres {
        "SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    } else {
        "SELECT * FROM sys.innodb_lock_waits   -- MySQL 8; information_schema.innodb_lock_waits in \
         MariaDB"
    };
    Judgement::Found(Box::new(Finding {
        bottleneck: "row locks".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Measured,
        share: running.map_or(0.9, |running| (waiting / running.max(waiting)).min(1.0)),
        summary: [
            "Transactions wait for rows that other transactions have locked.".to_owned(),
            format!(
                "On average {} sessions wait at a time{each}.",
                value(waiting)
            ),
            "Find the rows that many transactions change, and commit sooner after changing them."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            "sessions that wait for a lock",
            value(waiting),
            format!("{WAITING}"),
            source,
        )],
        next: vec![Step::Command(command.to_owned())],
        refuted_by: "throughput stays when the clients use different rows".to_owned(),
    }))
}

/// A cache with its misses.
struct Misses {
    share: f64,
    reads: f64,
    setting: &'static str,
    source: String,
}

fn cache(observation: &Observation) -> Judgement {
    let found = CACHES
        .iter()
        .flat_map(|(requests, reads, setting, meaning)| {
            observation
                .metrics
                .names("db_", reads)
                .filter_map(move |label| {
                    let mean =
                        |variable: &str| observation.metrics.mean(&format!("db_{label}{variable}"));
                    let (asked, missed) = (mean(requests)?, mean(reads)?);
                    let all = if *meaning == "requests include misses" {
                        asked
                    } else {
                        asked + missed
                    };
                    Some(Misses {
                        share: if all > 0.0 { missed / all } else { 0.0 },
                        reads: missed,
                        setting,
                        source: format!("db_{label}{reads}"),
                    })
                })
        });
    let Some(most) = found.max_by(|a, b| a.reads.total_cmp(&b.reads)) else {
        return Judgement::Unknown(Needs::Status);
    };
    let Misses {
        share,
        reads,
        setting,
        source,
    } = most;
    if share < MISSES || reads < LEAST_READS {
        return Judgement::Clear(format!(
            "{} of the reads miss the database's cache, {}",
            percent(share),
            per_second(reads)
        ));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: "the database's cache: it is too small".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        // A tenth of misses makes the disk set the pace.
        share: (share / 0.1).min(1.0),
        summary: [
            "The working set does not fit into the database's cache.".to_owned(),
            format!(
                "{} of the reads miss it: {} pages are read from the disk or the page cache.",
                percent(share),
                per_second(reads)
            ),
            format!("Raise {setting}, if the host has memory for it."),
        ],
        evidence: vec![Evidence::new(
            "reads that miss the cache",
            percent(share),
            format!("{}, and {}", percent(MISSES), per_second(LEAST_READS)),
            source,
        )],
        next: vec![Step::Command("saiga tune database SYSTEM".to_owned())],
        refuted_by: "throughput stays with a larger cache".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: &[(&str, f64)]) -> Observation {
        let mut observation = Observation::default();
        for (name, value) in values {
            observation.metrics.add(name, 1.0, *value);
        }
        observation
    }

    #[test]
    fn sessions_that_wait_for_a_hot_row_are_found() {
        let hot = observed(&[
            ("db_mysql_Innodb_row_lock_time_s", 14_200.0),
            ("db_mysql_Innodb_row_lock_waits_s", 710.0),
            ("db_mysql_Threads_running", 16.0),
        ]);
        let Judgement::Found(finding) = locks(&hot) else {
            panic!("not found");
        };
        assert!((finding.share - 14.2 / 16.0).abs() < 1e-9);
        assert!(finding.summary[1].contains("each of 20 ms"), "{finding:?}");
        // A transaction that keeps its lock: no wait ends.
        let held = observed(&[
            ("db_mysql_Innodb_row_lock_time_s", 0.0),
            ("db_mysql_Innodb_row_lock_current_waits", 8.0),
        ]);
        assert!(matches!(locks(&held), Judgement::Found(_)));
        let postgres = observed(&[
            ("db_postgres_activity.lock_wait_sessions", 6.0),
            ("db_postgres_activity.active_sessions", 8.0),
        ]);
        let Judgement::Found(finding) = locks(&postgres) else {
            panic!("not found");
        };
        assert!((finding.share - 0.75).abs() < 1e-9, "{finding:?}");
        let calm = observed(&[("db_mysql_Innodb_row_lock_time_s", 3.0)]);
        assert!(matches!(locks(&calm), Judgement::Clear(_)));
        assert!(matches!(locks(&observed(&[])), Judgement::Unknown(_)));
    }

    #[test]
    fn misses_are_counted_as_each_system_defines_them() {
        let mysql = observed(&[
            ("db_a_Innodb_buffer_pool_read_requests_s", 10_000.0),
            ("db_a_Innodb_buffer_pool_reads_s", 1000.0),
        ]);
        let Judgement::Found(finding) = cache(&mysql) else {
            panic!("not found");
        };
        assert!(finding.summary[1].starts_with("10.0 %"), "{finding:?}");
        let postgres = observed(&[
            ("db_b_database.blks_hit_s", 9000.0),
            ("db_b_database.blks_read_s", 1000.0),
        ]);
        let Judgement::Found(finding) = cache(&postgres) else {
            panic!("not found");
        };
        assert!(finding.summary[1].starts_with("10.0 %"), "{finding:?}");
        assert!(finding.summary[2].contains("shared_buffers"));
    }

    #[test]
    fn few_misses_do_not_matter() {
        let warm = observed(&[
            ("db_a_Innodb_buffer_pool_read_requests_s", 100_000.0),
            ("db_a_Innodb_buffer_pool_reads_s", 60.0),
        ]);
        assert!(matches!(cache(&warm), Judgement::Clear(_)));
    }
}
