//! Replicas that fall behind.

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::{bytes, milliseconds};

/// Mean lag in seconds from which it is reported: readers of the replica see it, and a failover
/// loses or waits for it.
const LEAST_S: f64 = 2.0;
/// Mean lag of Redis in bytes: the default of repl-backlog-size, beyond which a replica that
/// reconnects copies everything.
const LEAST_BYTES: f64 = (1 << 20) as f64;

pub(super) const RULE: Rule = Rule {
    name: "replica-lag",
    subject: "lag of the replicas",
    judge,
};

/// The lag of the replica that is farthest behind.
struct Lag {
    /// Multiple of the threshold.
    share: f64,
    shown: String,
    threshold: String,
    source: String,
}

fn judge(observation: &Observation) -> Judgement {
    let lags = [
        of(observation, "_replica_lag_s", LEAST_S, |lag| {
            milliseconds(lag * 1000.0)
        }),
        of(observation, "_replica_lag_bytes", LEAST_BYTES, bytes),
    ];
    let most = lags.into_iter().flatten();
    let Some(lag) = most.max_by(|a, b| a.share.total_cmp(&b.share)) else {
        return Judgement::Unknown(Needs::Replica);
    };
    let Lag {
        share,
        shown,
        threshold,
        source,
    } = lag;
    if share < 1.0 {
        return Judgement::Clear(format!("{shown} (limit: {threshold})"));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: "a replica that falls behind".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Measured,
        share: (share / 10.0).min(1.0),
        summary: [
            "A replica applies changes later than this server makes them.".to_owned(),
            format!("The replica that is farthest behind lags by {shown} on average."),
            "Diagnose the replica: its disk, its CPU, and the number of its applying threads."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            "lag of the replica that is farthest behind",
            shown,
            threshold,
            source,
        )],
        next: vec![
            Step::Command(
                "saiga diagnose --port PORT --engine SYSTEM   # on the replica".to_owned(),
            ),
            Step::Advice(
                "replica_parallel_workers (MySQL), slave_parallel_threads (MariaDB); one thread \
                 applies the log of PostgreSQL and Redis"
                    .to_owned(),
            ),
        ],
        refuted_by: "the lag shrinks while the load stays".to_owned(),
    }))
}

/// The largest lag in metrics of this name.
fn of(
    observation: &Observation,
    after: &str,
    threshold: f64,
    shown: impl Fn(f64) -> String,
) -> Option<Lag> {
    let metrics = &observation.metrics;
    let lags = metrics.names("db_", after).filter_map(|label| {
        let name = format!("db_{label}{after}");
        let lag = metrics.mean(&name)?;
        Some(Lag {
            share: lag / threshold,
            shown: shown(lag),
            threshold: shown(threshold),
            source: name,
        })
    });
    lags.max_by(|a, b| a.share.total_cmp(&b.share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, lag: f64) -> Judgement {
        let mut observation = Observation::default();
        observation.metrics.add(name, 1.0, lag);
        judge(&observation)
    }

    #[test]
    fn seconds_and_bytes_have_thresholds_of_their_own() {
        let Judgement::Found(finding) = judged("db_mysql_replica_lag_s", 12.0) else {
            panic!("not found");
        };
        assert!(finding.summary[1].contains("by 12 s"), "{finding:?}");
        let Judgement::Found(finding) = judged("db_redis_replica_lag_bytes", 3e6) else {
            panic!("not found");
        };
        assert!(finding.summary[1].contains("2.86 MiB"), "{finding:?}");
        for (name, lag) in [
            ("db_mysql_replica_lag_s", 0.5),
            ("db_redis_replica_lag_bytes", 4096.0),
        ] {
            assert!(matches!(judged(name, lag), Judgement::Clear(_)));
        }
        assert!(matches!(judged("db_mysql_x", 0.5), Judgement::Unknown(_)));
    }
}
