//! CPUs without idle time, and whose work fills them.

use std::collections::BTreeMap;

use saiga_document::number::{counted, percent, value};

use crate::observation::Observation;
use crate::observation::metrics::Metrics;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::rules::database;

/// Busy time of the server's CPUs from which threads wait for a CPU, in percent.
const BUSY_PERCENT: f64 = 85.0;
/// Share of the busy time from which other programs are named as the cause.
const OTHERS: f64 = 0.25;
/// Share of the time in which one thread runs, from which it has hardly any time left.
const THREAD: f64 = 0.9;

pub(super) const RULE: Rule = Rule {
    name: "cpu",
    subject: "CPUs of the server",
    judge,
};

pub(super) const ONE_THREAD: Rule = Rule {
    name: "one-thread",
    subject: "busiest thread of the server",
    judge: judge_thread,
};

/// CPU time by user, in CPUs.
struct Users {
    server: f64,
    client: f64,
    others: f64,
}

fn judge(observation: &Observation) -> Judgement {
    let idle = observation.metrics.by_cpu("idle");
    let cpus: Vec<usize> = match &observation.process {
        Some(process) if !process.cpus.is_empty() => process.cpus.clone(),
        _ => idle.keys().copied().collect(),
    };
    let used = used_of(&observation.metrics, cpus);
    if used.is_empty() {
        return Judgement::Unknown(Needs::Host);
    }
    let sum = used.iter().map(|[used, _]| used).sum::<f64>() / 100.0;
    let left = used.iter().map(|[_, left]| left).sum::<f64>() / 100.0;
    let mean = sum / left * 100.0;
    let count = counted(used.len() as u64, "CPU");
    let quota = observation
        .process
        .as_ref()
        .and_then(|process| process.throttling);
    if quota.is_some_and(|quota| quota.throttled * 2 >= quota.periods.max(1)) {
        return Judgement::Clear("the CPU quota of the cgroup limits the server first".to_owned());
    }
    if mean < BUSY_PERCENT {
        return Judgement::Clear(format!(
            "{count}: {} busy on average",
            percent(mean / 100.0)
        ));
    }
    let server = cpus_of_group(&observation.metrics, "server");
    let users = server.map(|server| {
        // The client may run on other CPUs than the server.
        let others = others(&observation.metrics)
            .unwrap_or(0.0)
            .min(sum - server)
            .max(0.0);
        Users {
            server,
            client: (sum - server - others).max(0.0),
            others,
        }
    });
    let names: Vec<String> = observation
        .busy
        .iter()
        .map(|one| format!("{} {}", one.name, value(one.cpus)))
        .collect();
    let mut finding = finding(mean, sum, &count, users.as_ref());
    finding.share *= cpu_share(observation, server);
    if !names.is_empty() {
        finding.evidence.push(Evidence::new(
            "other programs, in CPUs",
            names.join(", "),
            "none that this host could do without",
            "/proc/*/stat",
        ));
    }
    Judgement::Found(Box::new(finding))
}

/// CPUs that programs other than the server and its clients on this host use on average; `None`
/// without a server.
pub(super) fn others(metrics: &Metrics) -> Option<f64> {
    let server = cpus_of_group(metrics, "server")?;
    let client = cpus_of_group(metrics, "client").unwrap_or(0.0);
    let all = used_of(metrics, metrics.by_cpu("idle").into_keys());
    let everywhere = all.iter().map(|[used, _]| used).sum::<f64>() / 100.0;
    Some((everywhere - server - client).max(0.0))
}

/// CPUs that the server or its clients use on average.
fn cpus_of_group(metrics: &Metrics, group: &str) -> Option<f64> {
    let percent = metrics.mean(&format!("{group}_cpu_percent"))?;
    Some(percent / 100.0)
}

/// Used time of each known CPU and the time that the hypervisor left to it, in percent.
pub(super) fn used_of(metrics: &Metrics, cpus: impl IntoIterator<Item = usize>) -> Vec<[f64; 2]> {
    let (idle, iowait, steal) = (
        metrics.by_cpu("idle"),
        metrics.by_cpu("iowait"),
        metrics.by_cpu("steal"),
    );
    let used = |cpu: usize| {
        let other = |kind: &BTreeMap<usize, f64>| kind.get(&cpu).copied().unwrap_or(0.0);
        let left = (100.0 - other(&steal)).max(1.0);
        Some([(left - idle.get(&cpu)? - other(&iowait)).max(0.0), left])
    };
    cpus.into_iter().filter_map(used).collect()
}

/// Share of the server's work that runs or waits for a CPU; the rest waits for row locks. Busy CPUs
/// do not matter to sessions that wait for each other. One without these numbers.
fn cpu_share(observation: &Observation, server: Option<f64>) -> f64 {
    let waits = observation
        .process
        .as_ref()
        .and_then(|process| process.cpu_waits);
    let locks = database::lock_waits(observation).map(|waits| waits.waiting);
    match (server, waits, locks) {
        (Some(runs), Some(waits), Some(locks)) if runs + waits + locks > 0.0 => {
            (runs + waits) / (runs + waits + locks)
        }
        _ => 1.0,
    }
}

/// The bottleneck, what it limits, and the advice.
fn cause(users: Option<&Users>, sum: f64) -> [&'static str; 3] {
    match users {
        Some(users) if users.others >= OTHERS * sum => [
            "CPU time that other programs take",
            "Other programs use the CPUs that the server needs",
            "Stop the other programs, or give them CPUs of their own",
        ],
        Some(users) if users.client > users.server => [
            "the CPU time of the client on this host",
            "The client uses more CPU time than the server, on the same host",
            "Move the client to another host, or bind client and server to different CPUs",
        ],
        Some(_) => [
            "the CPU time of the server",
            "The server uses all CPU time that it can get",
            "Make the requests cheaper (indexes, prepared statements, saiga run), or add CPUs",
        ],
        None => [
            "the CPUs of this host",
            "The CPUs have no idle time",
            "Find out which programs use them: give --pid or --port of the server",
        ],
    }
}

fn split(users: &Users) -> String {
    let Users {
        server,
        client,
        others,
    } = users;
    format!(
        "server {} CPUs, client {}, others {}",
        value(*server),
        value(*client),
        value(*others)
    )
}

fn finding(mean: f64, sum: f64, count: &str, users: Option<&Users>) -> Finding {
    let [bottleneck, limits, advice] = cause(users, sum);
    let mut evidence = vec![Evidence::new(
        format!("busy time of {count}"),
        percent(mean / 100.0),
        format!(
            "{}: threads then wait for a CPU",
            percent(BUSY_PERCENT / 100.0)
        ),
        "cpuN_idle_percent, cpuN_iowait_percent",
    )];
    evidence.extend(users.map(|users| {
        Evidence::new(
            "users of the CPU time",
            split(users),
            format!("others below {}", percent(OTHERS)),
            "server_cpu_percent, client_cpu_percent",
        )
    }));
    let used = users.map_or(String::new(), |users| format!(": {}", split(users)));
    Finding {
        bottleneck: bottleneck.to_owned(),
        kind: Kind::Cause,
        certainty: if users.is_some() {
            Certainty::Measured
        } else {
            Certainty::Likely
        },
        share: (mean / 100.0).min(1.0),
        summary: [
            format!("{limits}."),
            format!(
                "{} of the time of {count} is used{used}.",
                percent(mean / 100.0)
            ),
            format!("{advice}."),
        ],
        evidence,
        next: vec![
            Step::Command("saiga tune plan   # cores for server, client and interrupts".to_owned()),
            Step::Command("perf top -p PID   # where the time goes".to_owned()),
        ],
        refuted_by: "throughput stays with more CPUs".to_owned(),
    }
}

fn judge_thread(observation: &Observation) -> Judgement {
    let thread = observation
        .process
        .as_ref()
        .and_then(|process| Some((process, process.busiest_thread.as_ref()?)));
    let Some((process, thread)) = thread else {
        return Judgement::Unknown(Needs::Server);
    };
    // The thread cannot run while the hypervisor runs another guest.
    let steal = observation.metrics.mean("steal_percent").unwrap_or(0.0);
    let busy = (thread.busy / (1.0 - steal / 100.0).max(0.01)).min(1.0);
    if busy < THREAD {
        return Judgement::Clear(format!(
            "the busiest thread, {}, runs {} of the time",
            thread.name,
            percent(busy)
        ));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("the thread {} of {}", thread.name, process.name),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: busy,
        summary: [
            format!(
                "One thread of {} does the work, and it runs all the time.",
                process.name
            ),
            format!("{} runs {} of the time.", thread.name, percent(busy)),
            "Start more instances (a cluster), make its requests cheaper, or use saiga run: more \
             CPUs do not help."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            format!("time in which {} runs, without steal", thread.name),
            percent(busy),
            format!("{}: it has no time for more requests", percent(THREAD)),
            format!("/proc/{}/task/*/stat", process.pid),
        )],
        next: vec![
            Step::Command("saiga run -- COMMAND   # cheaper connections on this host".to_owned()),
            Step::Advice("io-threads (Redis), more shards or instances".to_owned()),
        ],
        refuted_by: "more requests are answered while the thread stays at 100 %".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::process::{Process, Thread, Throttling};

    fn observed(idle: &[f64], groups: &[(&str, f64)]) -> Observation {
        let mut observation = Observation::default();
        for (cpu, idle) in idle.iter().enumerate() {
            observation
                .metrics
                .add(&format!("cpu{cpu}_idle_percent"), 1.0, *idle);
        }
        for (name, value) in groups {
            observation
                .metrics
                .add(&format!("{name}_cpu_percent"), 1.0, *value);
        }
        observation
    }

    #[track_caller]
    fn bottleneck(observation: &Observation) -> String {
        match judge(observation) {
            Judgement::Found(finding) => finding.bottleneck,
            other @ (Judgement::Clear(_) | Judgement::Unknown(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_user_of_most_cpu_time_is_named() {
        let busy = [2.0, 4.0];
        let server = observed(&busy, &[("server", 120.0), ("client", 60.0)]);
        assert_eq!(bottleneck(&server), "the CPU time of the server");
        let client = observed(&busy, &[("server", 60.0), ("client", 120.0)]);
        assert_eq!(
            bottleneck(&client),
            "the CPU time of the client on this host"
        );
        let others = observed(&busy, &[("server", 80.0), ("client", 30.0)]);
        assert_eq!(bottleneck(&others), "CPU time that other programs take");
        assert_eq!(bottleneck(&observed(&busy, &[])), "the CPUs of this host");
    }

    #[test]
    fn time_that_the_hypervisor_takes_is_not_used_by_other_programs() {
        let mut observation = observed(&[4.0, 4.0], &[("server", 100.0), ("client", 30.0)]);
        for cpu in 0..2 {
            observation
                .metrics
                .add(&format!("cpu{cpu}_steal_percent"), 1.0, 30.0);
        }
        // 132 % of 140 % are used.
        assert_eq!(bottleneck(&observation), "the CPU time of the server");
    }

    #[test]
    fn only_the_cpus_of_the_server_count() {
        let mut observation = observed(&[0.0, 95.0, 95.0, 95.0], &[("server", 40.0)]);
        assert!(matches!(judge(&observation), Judgement::Clear(_)));
        observation.process = Some(Process {
            cpus: vec![0],
            ..Process::default()
        });
        assert_eq!(
            bottleneck(&observation),
            "CPU time that other programs take"
        );
    }

    #[test]
    fn busy_cpus_do_not_hide_a_quota_or_locks() {
        let mut observation = observed(&[0.0, 0.0], &[("server", 20.0)]);
        observation.process = Some(Process {
            cpus: vec![0, 1],
            cpu_waits: Some(0.1),
            ..Process::default()
        });
        let share = |observation: &Observation| match judge(observation) {
            Judgement::Found(finding) => Some(finding.share),
            Judgement::Clear(_) | Judgement::Unknown(_) => None,
        };
        assert_eq!(share(&observation), Some(1.0));
        // 5.7 sessions wait for locks, 0.2 run and 0.1 wait for a CPU.
        observation
            .metrics
            .add("db_mysql_Innodb_row_lock_time_s", 1.0, 5700.0);
        let demoted = share(&observation).unwrap();
        assert!((demoted - 0.05).abs() < 1e-9, "{demoted}");
        let throttled = |throttled| Throttling {
            cpus: 0.2,
            periods: 100,
            throttled,
        };
        let process = observation.process.as_mut().unwrap();
        process.throttling = Some(throttled(49));
        assert!(share(&observation).is_some());
        observation.process.as_mut().unwrap().throttling = Some(throttled(50));
        assert_eq!(share(&observation), None);
    }

    #[test]
    fn a_thread_that_always_runs_is_the_limit() {
        let with = |busy| Observation {
            process: Some(Process {
                name: "redis-server".to_owned(),
                busiest_thread: Some(Thread {
                    name: "redis-server".to_owned(),
                    busy,
                }),
                ..Process::default()
            }),
            ..Observation::default()
        };
        assert!(matches!(judge_thread(&with(0.99)), Judgement::Found(_)));
        assert!(matches!(judge_thread(&with(0.80)), Judgement::Clear(_)));
        assert!(matches!(
            judge_thread(&Observation::default()),
            Judgement::Unknown(_)
        ));
    }
}
