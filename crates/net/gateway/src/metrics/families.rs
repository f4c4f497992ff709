//! The names of the metrics, and their values from the state of a gateway.
//!
//! Source: "Metric and label naming" of Prometheus' documentation: base units, a name for each
//! thing that is counted, and labels for its kinds. The encoder adds the prefix, and `_total` to
//! counters.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::tcp::TCP;
use crate::control::{BOUNDS_US, Device, Latency, Status, Worker};

/// Labels of a sample.
type Labels = Vec<(&'static str, String)>;

/// The metrics of a gateway at one instant.
#[derive(Debug)]
pub(super) struct Snapshot(Vec<Family>);

/// A metric with its samples.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    samples: Samples,
}

/// The values of a metric by labels.
#[derive(Debug)]
enum Samples {
    /// A count that never decreases.
    Counts(Vec<(Labels, u64)>),
    /// A time that never decreases.
    Seconds(Vec<(Labels, f64)>),
    /// A value.
    Gauges(Vec<(Labels, u64)>),
    /// Times.
    Histograms(Vec<(Labels, Times)>),
}

/// A histogram of seconds.
#[derive(Debug)]
struct Times {
    sum: f64,
    count: u64,
    /// Upper bounds, and the numbers of values between them.
    buckets: Vec<(f64, u64)>,
}

impl Snapshot {
    /// The metrics of a gateway in this state.
    pub(super) fn new(status: Status) -> Self {
        let Status {
            version: _,
            pid: _,
            served: _,
            workers,
            silent_workers,
        } = status;
        let mut families = of_workers(&workers, &silent_workers);
        families.extend(of_devices(&workers));
        families.extend(of_stacks(&workers));
        families.push(of_latency(&workers));
        families.extend(TCP.map(|(snmp, name, help)| {
            let count = |one: &Worker| one.tcp.get(snmp).copied().unwrap_or(0);
            counts(name, help, &workers, count)
        }));
        Self(families)
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            family.encode(&mut encoder)?;
        }
        Ok(())
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match self.samples {
            Samples::Counts(_) | Samples::Seconds(_) => MetricType::Counter,
            Samples::Gauges(_) => MetricType::Gauge,
            Samples::Histograms(_) => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        match &self.samples {
            Samples::Counts(samples) => samples.iter().try_for_each(|(labels, count)| {
                let mut one = metric.encode_family(labels)?;
                one.encode_counter::<NoLabelSet, u64, u64>(count, None)
            }),
            Samples::Seconds(samples) => samples.iter().try_for_each(|(labels, time)| {
                let mut one = metric.encode_family(labels)?;
                one.encode_counter::<NoLabelSet, f64, u64>(time, None)
            }),
            Samples::Gauges(samples) => samples
                .iter()
                .try_for_each(|(labels, value)| metric.encode_family(labels)?.encode_gauge(value)),
            Samples::Histograms(samples) => samples.iter().try_for_each(|(labels, times)| {
                let Times {
                    sum,
                    count,
                    buckets,
                } = times;
                let mut one = metric.encode_family(labels)?;
                one.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            }),
        }
    }
}

fn of_workers(workers: &[Worker], silent: &[u32]) -> Vec<Family> {
    let up = workers.iter().map(|one| (one.worker, 1));
    let ups = up.chain(silent.iter().map(|one| (*one, 0)));
    let seconds = |time: fn(&Worker) -> u64| {
        let samples = workers.iter();
        Samples::Seconds(
            samples
                .map(|one| (of(one), as_seconds(time(one))))
                .collect(),
        )
    };
    let gauges = |value: fn(&Worker) -> u64| {
        let samples = workers.iter();
        Samples::Gauges(samples.map(|one| (of(one), value(one))).collect())
    };
    vec![
        Family {
            name: "worker_up",
            help: "Whether the worker has answered",
            samples: Samples::Gauges(
                ups.map(|(worker, up)| (vec![("worker", worker.to_string())], up))
                    .collect(),
            ),
        },
        Family {
            name: "uptime_seconds",
            help: "Time since the start of the worker",
            samples: seconds(|one| one.uptime_us),
        },
        Family {
            name: "busy_seconds",
            help: "Time in turns with work",
            samples: seconds(|one| one.busy_us),
        },
        counts("busy_turns", "Turns with work", workers, |one| {
            one.busy_turns
        }),
        Family {
            name: "connections",
            help: "Connections by state",
            samples: Samples::Gauges(by(workers, "state", |one| &one.connections)),
        },
        Family {
            name: "conversations",
            help: "Connections with an anchor",
            samples: gauges(|one| u64::from(one.conversations)),
        },
        Family {
            name: "ring_bytes",
            help: "Memory in the rings of connections",
            samples: gauges(|one| one.ring_bytes),
        },
    ]
}

fn of_devices(workers: &[Worker]) -> Vec<Family> {
    let all: Vec<(Labels, &Device)> = workers
        .iter()
        .flat_map(|worker| {
            let devices = worker.devices.iter();
            devices.map(move |device| (of_device(worker, device), device))
        })
        .collect();
    let traffic = |name, help, count: fn(&Device) -> u64| Family {
        name,
        help,
        samples: Samples::Counts(
            all.iter()
                .map(|(labels, device)| (labels.clone(), count(device)))
                .collect(),
        ),
    };
    let drops = all.iter().flat_map(|(labels, device)| {
        let drops = device.drops.iter();
        drops.map(move |(reason, count)| (with(labels, "reason", reason), *count))
    });
    vec![
        traffic("received_frames", "Frames from the device", |one| {
            one.received.frames
        }),
        traffic("received_bytes", "Bytes of frames from the device", |one| {
            one.received.bytes
        }),
        traffic(
            "received_batches",
            "Batches of frames from the device",
            |one| one.received.batches,
        ),
        traffic("sent_frames", "Frames to the device", |one| one.sent.frames),
        traffic("sent_bytes", "Bytes of frames to the device", |one| {
            one.sent.bytes
        }),
        traffic("sent_batches", "Batches of frames to the device", |one| {
            one.sent.batches
        }),
        Family {
            name: "drops",
            help: "Dropped frames by reason",
            samples: Samples::Counts(drops.collect()),
        },
    ]
}

fn of_stacks(workers: &[Worker]) -> Vec<Family> {
    vec![
        Family {
            name: "stack_events",
            help: "Counts of the stack below TCP",
            samples: Samples::Counts(by(workers, "event", |one| &one.stack)),
        },
        Family {
            name: "malformed_packets",
            help: "Malformed packets by reason",
            samples: Samples::Counts(by(workers, "reason", |one| &one.malformed)),
        },
    ]
}

fn of_latency(workers: &[Worker]) -> Family {
    let all = workers.iter().flat_map(|worker| {
        let parts = worker.latency.iter();
        parts.map(move |(part, latency)| (with(&of(worker), "part", part), times(latency)))
    });
    Family {
        name: "latency_seconds",
        help: "Time that bytes take through a part of the worker",
        samples: Samples::Histograms(all.collect()),
    }
}

fn times(latency: &Latency) -> Times {
    let bounds = BOUNDS_US.iter().map(|bound| as_seconds(*bound));
    let bounds = bounds.chain([f64::INFINITY]);
    Times {
        sum: as_seconds(latency.sum_us),
        count: latency.count,
        buckets: bounds.zip(latency.buckets.iter().copied()).collect(),
    }
}

/// A count of each worker.
fn counts(
    name: &'static str,
    help: &'static str,
    workers: &[Worker],
    count: impl Fn(&Worker) -> u64,
) -> Family {
    let samples = workers.iter().map(|one| (of(one), count(one)));
    Family {
        name,
        help,
        samples: Samples::Counts(samples.collect()),
    }
}

/// The counts of a table of each worker.
fn by(
    workers: &[Worker],
    label: &'static str,
    table: fn(&Worker) -> &BTreeMap<String, u64>,
) -> Vec<(Labels, u64)> {
    let rows = workers.iter().flat_map(|worker| {
        let rows = table(worker).iter();
        rows.map(move |(name, count)| (with(&of(worker), label, name), *count))
    });
    rows.collect()
}

fn of(worker: &Worker) -> Labels {
    vec![("worker", worker.worker.to_string())]
}

fn of_device(worker: &Worker, device: &Device) -> Labels {
    let labels = with(&of(worker), "device", &device.name);
    with(&labels, "queue", &device.queue.to_string())
}

fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    let mut all = labels.clone();
    all.push((name, value.to_owned()));
    all
}

fn as_seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::control::Traffic;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    fn table(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let owned = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
        rows.iter().map(owned).collect()
    }

    /// Two times, of 7 and of 5,000,000 microseconds.
    fn latency() -> Latency {
        let mut buckets = vec![0; BOUNDS_US.len() + 1];
        (buckets[1], buckets[BOUNDS_US.len()]) = (1, 1);
        Latency {
            count: 2,
            sum_us: 5_000_007,
            buckets,
            ..Latency::default()
        }
    }

    /// The state of a gateway with one worker that answers and one that does not.
    pub(in crate::metrics) fn status() -> Status {
        let traffic = |frames| Traffic {
            frames,
            bytes: 2000,
            batches: 3,
        };
        Status {
            version: "1".to_owned(),
            pid: 1,
            served: Vec::new(),
            workers: vec![Worker {
                worker: 0,
                uptime_us: 2_500_000,
                busy_us: 500_000,
                busy_turns: 7,
                connections: table(&[("ESTABLISHED", 4)]),
                conversations: 4,
                ring_bytes: 4096,
                devices: vec![Device {
                    name: "tap\"0".to_owned(),
                    queue: 1,
                    received: traffic(20),
                    sent: traffic(30),
                    drops: table(&[("down", 5)]),
                }],
                latency: BTreeMap::from([("ring_to_server".to_owned(), latency())]),
                stack: table(&[("no_route", 6)]),
                malformed: table(&[("tcp_checksum", 8)]),
                tcp: table(&[("RetransSegs", 9)]),
            }],
            silent_workers: vec![1],
        }
    }

    #[test]
    fn each_value_has_its_name_and_labels() {
        let mut registry = Registry::with_prefix("saiga_gateway");
        registry.register_collector(Box::new(Snapshot::new(status())));
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE saiga_gateway_received_frames counter",
            r#"saiga_gateway_worker_up{worker="0"} 1"#,
            r#"saiga_gateway_worker_up{worker="1"} 0"#,
            r#"saiga_gateway_busy_seconds_total{worker="0"} 0.5"#,
            r#"saiga_gateway_connections{worker="0",state="ESTABLISHED"} 4"#,
            r#"saiga_gateway_received_frames_total{worker="0",device="tap\"0",queue="1"} 20"#,
            r#"saiga_gateway_drops_total{worker="0",device="tap\"0",queue="1",reason="down"} 5"#,
            r#"saiga_gateway_malformed_packets_total{worker="0",reason="tcp_checksum"} 8"#,
            r#"saiga_gateway_latency_seconds_count{worker="0",part="ring_to_server"} 2"#,
            r#"saiga_gateway_tcp_retransmitted_segments_total{worker="0"} 9"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        let buckets = text
            .lines()
            .filter(|one| one.contains("latency_seconds_bucket"));
        let counts: Vec<&str> = buckets.filter_map(|one| one.rsplit(' ').next()).collect();
        // Each bucket has the values below it, too.
        assert_eq!(
            (counts[0], counts[1], counts[13], counts[14]),
            ("0", "1", "1", "2")
        );
    }

    #[test]
    fn every_count_of_tcp_has_a_metric() {
        let counted = saiga_tcp::Counters::default().named().map(|(name, _)| name);
        assert_eq!(TCP.map(|(snmp, ..)| snmp), counted);
        let mut names = TCP.map(|(_, name, _)| name);
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "a name twice");
    }
}
