//! Observes this host while its load runs: the sampler's metrics, and the server's connections.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use saiga_capture::Traffic;
use saiga_diagnose::observation::{Gap, Observation};
use saiga_diagnose::source::capture::Capture;
use saiga_diagnose::source::live::Observer;
use saiga_diagnose::source::live::packets::Packets;
use saiga_process::interrupt::Interrupt;
use saiga_process::root::Root;
use saiga_sampler::status::StatusSource;
use saiga_sampler::{Config, Group, Sampler, Sink};
use saiga_topology::read::read;

use crate::exit;

/// Time between two samples.
const SECOND: Duration = Duration::from_secs(1);

/// What is observed, and for how long.
pub(super) struct Options {
    pub(super) pid: Option<u32>,
    pub(super) status: Option<Box<dyn StatusSource>>,
    /// Whether the packets of the server are read, too.
    pub(super) packets: bool,
    pub(super) length: Duration,
}

/// Observes for `length`, or until the user interrupts.
pub(super) fn observe(options: Options, observation: &mut Observation) -> anyhow::Result<()> {
    let Options {
        pid,
        status,
        packets,
        length,
    } = options;
    let machine = read(&Root::host())?;
    let mut observer = Observer::begin(pid, &machine)?;
    let packets = packets.then(|| start(observer.ports())).transpose()?;
    let group = |name: &str, pids: Vec<u32>| Group {
        name: name.to_owned(),
        pids,
    };
    let groups = pid.map(|pid| [group("server", vec![pid]), group("client", vec![])]);
    let config = Config {
        groups: groups.into_iter().flatten().collect(),
        sources: status.into_iter().collect(),
        ..Config::default()
    };
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let sampler = Sampler::start(config, &Sink::default())?;
    exit::say(&format!(
        "observing for {}; Ctrl-C ends it earlier",
        saiga_document::number::time(length)
    ));
    let began = Instant::now();
    let (mut row, mut time_s) = (0, 0.0);
    loop {
        let left = length.saturating_sub(began.elapsed());
        let is_interrupted = interrupt.wait(left.min(SECOND))?;
        let known = observer.local_clients().len();
        observer.sample();
        if observer.local_clients().len() > known {
            let clients: Vec<u32> = observer.local_clients().iter().copied().collect();
            // The configuration has this group whenever there are local clients.
            let _is_known = sampler.set_group("client", &clients);
        }
        let latest = sampler.latest();
        if latest.row > row {
            for (name, value) in latest.metrics() {
                if let Some(value) = value {
                    observation.metrics.add(name, latest.time_s - time_s, value);
                }
            }
            (row, time_s) = (latest.row, latest.time_s);
        }
        if is_interrupted || left <= SECOND {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    if let Some(packets) = packets {
        add_packets(packets.finish(), observation);
    }
    observer.finish(seconds, observation);
    let summary = sampler.stop();
    let warnings = summary.warnings.into_iter().map(|reason| Gap {
        source: "host metrics".to_owned(),
        reason,
    });
    observation.gaps.extend(warnings);
    Ok(())
}

/// Begins to read the packets of the server.
fn start(ports: &BTreeSet<u16>) -> anyhow::Result<Packets> {
    if ports.is_empty() {
        bail!("--packets: give the server by --port, or by --pid of a process that listens");
    }
    Packets::start(ports).context("--packets: cannot read packets (needs CAP_NET_RAW: run as root)")
}

/// Adds the load that the packets show.
fn add_packets(traffic: Traffic, observation: &mut Observation) {
    match Capture::new("packets", traffic, None) {
        Ok(capture) => {
            let hop = capture.hop(&capture.name(), capture.start(), 0);
            observation.load.hops.push(hop);
            observation.gaps.extend(capture.gaps());
        }
        Err(error) => observation.gaps.push(Gap {
            source: "packets".to_owned(),
            reason: format!("{error}; connections that Saiga has moved have no packets"),
        }),
    }
}
