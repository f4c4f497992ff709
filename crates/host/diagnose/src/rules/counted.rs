//! Rules that compare one counter of the kernel with a threshold.
//!
//! Each is a row: the metric, the threshold with its reason, and the sentences. A rule that needs
//! more than one number has its own file.

use saiga_document::number::{percent, value};

use crate::observation::Observation;
use crate::observation::process::Throttling;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Knob, Needs, Rule, Step};

/// The meaning of a number in [`Counted`].
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// Percent of time.
    Percent,
    /// Events per second.
    PerSecond,
    /// A share between 0 and 1.
    Share,
}

/// A counter with its threshold.
pub(super) struct Counted {
    /// The number; `None` if it is unknown.
    pub(super) number: fn(&Observation) -> Option<f64>,
    pub(super) unit: Unit,
    pub(super) kind: Kind,
    /// The number from which something is found.
    pub(super) least: f64,
    /// The number that counts as a share of one: ranks the finding.
    pub(super) full: f64,
    pub(super) reason: &'static str,
    pub(super) source: &'static str,
    pub(super) needs: Needs,
    pub(super) quantity: &'static str,
    pub(super) bottleneck: &'static str,
    pub(super) limits: &'static str,
    pub(super) advice: &'static str,
    pub(super) next: fn() -> Vec<Step>,
    pub(super) refuted_by: &'static str,
}

pub(super) fn judge(counted: &Counted, observation: &Observation) -> Judgement {
    let Some(number) = (counted.number)(observation) else {
        return Judgement::Unknown(counted.needs);
    };
    let shown = |number: f64| match counted.unit {
        Unit::Percent => percent(number / 100.0),
        Unit::PerSecond => format!("{}/s", value(number)),
        Unit::Share => percent(number),
    };
    let Counted {
        quantity,
        bottleneck,
        limits,
        advice,
        reason,
        source,
        refuted_by,
        ..
    } = counted;
    if number < counted.least {
        let least = shown(counted.least);
        return Judgement::Clear(format!("{} (limit: {least})", shown(number)));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: (*bottleneck).to_owned(),
        kind: counted.kind,
        certainty: Certainty::Measured,
        share: (number / counted.full).min(1.0),
        summary: [
            format!("{limits}."),
            format!("{quantity}: {}.", shown(number)),
            format!("{advice}."),
        ],
        evidence: vec![Evidence::new(
            *quantity,
            shown(number),
            format!("{}: {reason}", shown(counted.least)),
            *source,
        )],
        next: (counted.next)(),
        refuted_by: (*refuted_by).to_owned(),
    }))
}

pub(super) const STEAL: Rule = Rule {
    name: "steal",
    subject: "CPU time that the hypervisor gives to other guests",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| observation.metrics.mean("steal_percent"),
                unit: Unit::Percent,
                kind: Kind::Cause,
                least: 10.0,
                full: 50.0,
                reason: "guests of a shared host lose a few percent at any time",
                source: "steal_percent",
                needs: Needs::Host,
                quantity: "Time in which this guest was ready and the hypervisor ran another",
                bottleneck: "the hypervisor's CPUs",
                limits: "Other guests take CPU time from this one",
                advice: "Move the guest, or reserve CPUs for it; nothing inside the guest helps",
                next: Vec::new,
                refuted_by: "throughput stays on a host of its own",
            },
            observation,
        )
    },
};

pub(super) const THROTTLING: Rule = Rule {
    name: "cpu-quota",
    subject: "CPU quota of the server's cgroup",
    judge: |observation| {
        judge(
            &Counted {
                // Without a quota, no period is throttled.
                number: |observation| {
                    let throttling = observation.process.as_ref()?.throttling;
                    let periods =
                        |one: Throttling| one.throttled as f64 / one.periods.max(1) as f64;
                    Some(throttling.map_or(0.0, periods))
                },
                unit: Unit::Share,
                kind: Kind::Cause,
                least: 0.05,
                full: 1.0,
                reason: "a throttled server stands still for up to a period (100 ms)",
                source: "nr_throttled and nr_periods of the cgroup's cpu.stat",
                needs: Needs::Server,
                quantity: "Periods in which the server had used its quota",
                bottleneck: "the CPU quota of the server's cgroup",
                limits: "The cgroup's CPU quota stops the server before the CPUs are busy",
                advice: "Raise or remove the quota (systemd: CPUQuota=; containers: --cpus)",
                next: || {
                    vec![Step::Advice(
                        "systemctl show UNIT -p CPUQuotaPerSecUSec shows the quota".to_owned(),
                    )]
                },
                refuted_by: "throttling ends and throughput stays",
            },
            observation,
        )
    },
};

pub(super) const SWAP: Rule = Rule {
    name: "swap",
    subject: "pages that are read back from swap",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| observation.metrics.mean("swap_in_pages_s"),
                unit: Unit::PerSecond,
                kind: Kind::Cause,
                least: 50.0,
                full: 5000.0,
                reason: "each is a read that the server waits for",
                source: "swap_in_pages_s",
                needs: Needs::Host,
                quantity: "Pages read from swap",
                bottleneck: "memory: the host swaps",
                limits: "The host has too little memory, and the server waits for its own pages",
                advice: "Lower the server's memory (buffer pool, maxmemory), or add memory",
                next: || vec![Step::Knob(Knob::Swappiness)],
                refuted_by: "swapping ends and throughput stays",
            },
            observation,
        )
    },
};

pub(super) const MEMORY_PRESSURE: Rule = Rule {
    name: "memory-pressure",
    subject: "tasks that wait for memory",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| observation.process.as_ref()?.memory_stall,
                unit: Unit::Share,
                kind: Kind::Cause,
                least: 0.1,
                full: 1.0,
                reason: "reclaiming memory then slows the server down",
                source: "memory.pressure of the server's cgroup, or /proc/pressure/memory",
                needs: Needs::Server,
                quantity: "Time in which a task waited for memory",
                bottleneck: "memory: the server's cgroup or the host has too little",
                limits: "The server waits while the kernel looks for free memory",
                advice: "Raise the cgroup's limit, lower the server's memory, or add memory",
                next: || vec![Step::Command("saiga tune database SYSTEM".to_owned())],
                refuted_by: "the pressure ends and throughput stays",
            },
            observation,
        )
    },
};

pub(super) const BACKLOG: Rule = Rule {
    name: "listen-backlog",
    subject: "queue of connections that wait for accept(2)",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| observation.metrics.mean("tcp_listen_overflows_s"),
                unit: Unit::PerSecond,
                kind: Kind::Error,
                least: 0.2,
                full: 100.0,
                reason: "a client whose connection is dropped waits a second and more",
                source: "tcp_listen_overflows_s",
                needs: Needs::Host,
                quantity: "Connections that found the queue of a listener full",
                bottleneck: "the listen backlog",
                limits: "New connections are dropped because a server does not accept them in time",
                advice: "Raise the server's backlog and net.core.somaxconn, or open fewer \
                         connections",
                next: || {
                    vec![
                        Step::Knob(Knob::Somaxconn),
                        Step::Advice("back_log (MySQL), tcp-backlog (Redis)".to_owned()),
                    ]
                },
                refuted_by: "overflows end and connections are still slow",
            },
            observation,
        )
    },
};

pub(super) const RETRANSMISSION: Rule = Rule {
    name: "retransmission",
    subject: "segments that are sent again",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| {
                    let again = observation.metrics.mean("tcp_retransmits_s")?;
                    let sent = observation.metrics.mean("tcp_out_segments_s")?;
                    (sent >= 10.0).then(|| again / sent)
                },
                unit: Unit::Share,
                kind: Kind::Cause,
                least: 0.002,
                full: 0.05,
                reason: "local networks lose less than one of ten thousand",
                source: "tcp_retransmits_s and tcp_out_segments_s",
                needs: Needs::Host,
                quantity: "Segments that were sent again",
                bottleneck: "the network: it loses packets",
                limits: "The network loses packets, and each loss costs at least 200 ms or a round \
                         trip",
                advice: "Look for errors and drops of the interfaces, switches and firewalls on \
                         the path",
                next: || vec![Step::Command("ip -s link; ethtool -S DEVICE".to_owned())],
                refuted_by: "retransmissions end and throughput stays",
            },
            observation,
        )
    },
};

pub(super) const CONNECTION_TRACKING: Rule = Rule {
    name: "connection-tracking",
    subject: "table of tracked connections",
    judge: |observation| {
        judge(
            &Counted {
                number: |observation| {
                    // A host without the table has nothing to fill.
                    let (used, limit) = observation.network.as_ref()?.tracked.unwrap_or((0, 1));
                    (limit > 0).then(|| used as f64 / limit as f64)
                },
                unit: Unit::Share,
                kind: Kind::Error,
                least: 0.95,
                full: 1.0,
                reason: "packets of new connections are dropped when the table is full",
                source: "nf_conntrack_count and nf_conntrack_max",
                needs: Needs::Host,
                quantity: "Entries in use of the table of tracked connections",
                bottleneck: "the table of tracked connections",
                limits: "The firewall's table of connections is full, and new ones are dropped",
                advice: "Raise net.netfilter.nf_conntrack_max, or do not track database traffic",
                next: || {
                    vec![Step::Command(
                        "sysctl net.netfilter.nf_conntrack_max".to_owned(),
                    )]
                },
                refuted_by: "the table has room and connections are still dropped",
            },
            observation,
        )
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::network::Network;
    use crate::observation::process::Process;

    fn with(metrics: &[(&str, f64)]) -> Observation {
        let mut observation = Observation::default();
        for (name, value) in metrics {
            observation.metrics.add(name, 1.0, *value);
        }
        observation
    }

    #[track_caller]
    fn assert_found(rule: &Rule, observation: &Observation, share: f64, text: &str) {
        let Judgement::Found(finding) = (rule.judge)(observation) else {
            panic!("{} found nothing", rule.name);
        };
        assert!((finding.share - share).abs() < 1e-9, "{finding:?}");
        assert!(finding.summary[1].contains(text), "{finding:?}");
    }

    #[track_caller]
    fn assert_clear(rule: &Rule, observation: &Observation, text: &str) {
        assert_eq!((rule.judge)(observation), Judgement::Clear(text.to_owned()));
    }

    #[test]
    fn counters_above_their_threshold_are_found() {
        assert_found(&STEAL, &with(&[("steal_percent", 25.0)]), 0.5, "25.0 %");
        assert_found(&SWAP, &with(&[("swap_in_pages_s", 500.0)]), 0.1, "500.0/s");
        assert_found(
            &BACKLOG,
            &with(&[("tcp_listen_overflows_s", 10.0)]),
            0.1,
            "10.00/s",
        );
        let lossy = with(&[("tcp_retransmits_s", 10.0), ("tcp_out_segments_s", 1000.0)]);
        assert_found(&RETRANSMISSION, &lossy, 0.2, "1.0 %");
    }

    #[test]
    fn counters_below_their_threshold_are_shown() {
        assert_clear(
            &STEAL,
            &with(&[("steal_percent", 1.0)]),
            "1.0 % (limit: 10.0 %)",
        );
        let quiet = with(&[("tcp_retransmits_s", 1.0), ("tcp_out_segments_s", 1000.0)]);
        assert_clear(&RETRANSMISSION, &quiet, "0.1 % (limit: 0.2 %)");
        // A retransmission of an idle host has no meaning.
        let idle = with(&[("tcp_retransmits_s", 1.0), ("tcp_out_segments_s", 5.0)]);
        assert!(matches!(
            (RETRANSMISSION.judge)(&idle),
            Judgement::Unknown(_)
        ));
    }

    #[test]
    fn limits_of_the_cgroup_and_of_the_firewall_are_found() {
        let throttling = Throttling {
            cpus: 1.0,
            periods: 200,
            throttled: 120,
        };
        let process = Process {
            throttling: Some(throttling),
            ..Process::default()
        };
        let network = Network {
            tracked: Some((262_000, 262_144)),
            ..Network::default()
        };
        let observation = Observation {
            process: Some(process),
            network: Some(network),
            ..Observation::default()
        };
        assert_found(&THROTTLING, &observation, 0.6, "60.0 %");
        assert_found(
            &CONNECTION_TRACKING,
            &observation,
            262_000.0 / 262_144.0,
            "99.9 %",
        );
        assert!(matches!(
            (THROTTLING.judge)(&Observation::default()),
            Judgement::Unknown(_)
        ));
    }
}
