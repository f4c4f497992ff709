//! Rules on single counters in the status of a database. See [`super::counted`].

use crate::observation::Observation;
use crate::rule::{Kind, Needs, Rule, Step};
use crate::rules::counted::{Counted, Unit, judge};

/// The largest of the metrics `db_LABEL` with one of these ends.
pub(super) fn largest(observation: &Observation, ends: &[&str]) -> Option<f64> {
    let metrics = &observation.metrics;
    let of = |end: &&str| {
        let values = metrics
            .names("db_", end)
            .filter_map(|label| metrics.mean(&format!("db_{label}{end}")));
        values.max_by(f64::total_cmp)
    };
    ends.iter().filter_map(of).max_by(f64::total_cmp)
}

pub(super) const MAX_CONNECTIONS: Rule = Rule {
    name: "max-connections",
    subject: "connections that the database refuses",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| {
                    let ends = [
                        "_Connection_errors_max_connections_s",
                        "_rejected_connections_s",
                    ];
                    largest(observation, &ends)
                },
                unit: Unit::PerSecond,
                kind: Kind::Error,
                least: 0.05,
                full: 10.0,
                reason: "each is an error of the application",
                source: "Connection_errors_max_connections (MySQL), rejected_connections (Redis)",
                needs: Needs::Status,
                quantity: "Connections that were refused because of the limit",
                bottleneck: "the database's limit of connections",
                limits: "The database refuses connections because it has too many",
                advice: "Limit the pools of the applications, or raise the limit of the database",
                next: || {
                    vec![Step::Advice(
                        "max_connections (MySQL), maxclients (Redis)".to_owned(),
                    )]
                },
                refuted_by: "the counter stays when the limit is raised",
            },
            observation,
        )
    },
};

pub(super) const HANDSHAKES: Rule = Rule {
    name: "tls-handshakes",
    subject: "TLS handshakes of new connections",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| {
                    let in_capture = observation.metrics.mean("capture_encrypted_connections_s");
                    largest(observation, &["_Ssl_accepts_s", "_Ssl_finished_accepts_s"])
                        .or(in_capture)
                },
                unit: Unit::PerSecond,
                kind: Kind::Cause,
                least: 20.0,
                full: 500.0,
                reason: "each takes a millisecond or two of CPU time and two round trips",
                source: "Ssl_accepts (MySQL, MariaDB), or connections of the capture",
                needs: Needs::Status,
                quantity: "TLS handshakes",
                bottleneck: "a TLS handshake for each connection",
                limits: "The clients open encrypted connections all the time",
                advice: "Keep the connections in a pool; encryption itself costs little",
                next: || {
                    vec![Step::Advice(
                        "a pool of the driver, or one between (ProxySQL, MaxScale)".to_owned(),
                    )]
                },
                refuted_by: "the throughput stays with connections that are kept",
            },
            observation,
        )
    },
};

pub(super) const DELAYED_FSYNC: Rule = Rule {
    name: "delayed-fsync",
    subject: "writes of Redis that wait for an fsync of its log",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| largest(observation, &["_aof_delayed_fsync_s"]),
                unit: Unit::PerSecond,
                kind: Kind::Cause,
                least: 0.05,
                full: 0.5,
                reason: "each stops all clients of the only thread, for a second or more",
                source: "aof_delayed_fsync",
                needs: Needs::Status,
                quantity: "Writes to the append-only file that waited for an fsync in progress",
                bottleneck: "fsync of the append-only file",
                limits: "Redis waits for the disk: an fsync takes longer than two seconds",
                advice: "Give the append-only file a faster disk, or one without other writers",
                next: || {
                    vec![Step::Advice(
                        "no-appendfsync-on-rewrite yes, if rewrites cause it".to_owned(),
                    )]
                },
                refuted_by: "the counter stays while clients wait",
            },
            observation,
        )
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Judgement;

    #[test]
    fn the_largest_counter_of_all_databases_decides() {
        let mut observation = Observation::default();
        assert_eq!(
            (HANDSHAKES.judge)(&observation),
            Judgement::Unknown(Needs::Status)
        );
        for (name, value) in [
            ("db_mysql_Ssl_accepts_s", 3.0),
            ("db_mysql2_Ssl_accepts_s", 60.0),
            ("db_mysql_Connection_errors_max_connections_s", 0.0),
            ("db_redis_rejected_connections_s", 4.0),
            ("db_redis_aof_delayed_fsync_s", 0.0),
        ] {
            observation.metrics.add(name, 1.0, value);
        }
        for (rule, text) in [
            (HANDSHAKES, "TLS handshakes: 60.00/s."),
            (MAX_CONNECTIONS, "because of the limit: 4.000/s."),
        ] {
            let Judgement::Found(finding) = (rule.judge)(&observation) else {
                panic!("{}", rule.name);
            };
            assert!(finding.summary[1].ends_with(text), "{finding:?}");
        }
        assert!(matches!(
            (DELAYED_FSYNC.judge)(&observation),
            Judgement::Clear(_)
        ));
    }
}
