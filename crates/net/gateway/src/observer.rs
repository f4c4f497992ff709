//! The workers as an operator sees them: their answers to requests, with names.
//!
//! Each request goes to one worker. A worker that does not answer is left out and named. The names
//! are formed here, in the asking thread, so that workers only copy numbers.

use std::collections::BTreeMap;

use saiga_netdev::Info;
use saiga_stack::StateName;
use saiga_wire::Malformed;

use crate::control::{
    Anchor, BOUNDS_US, Connection, Connections, Device, Latency, Status, Tcp, Traffic, Worker,
};
use crate::service::{Served, locked};
use crate::worker::{self, AskError, Handle, Report, Rings, Shown, Times};

/// Most connections of one answer.
const MOST_CONNECTIONS: usize = 1000;
/// The state of a connection before the server's kernel has decided.
const UNDECIDED: &str = "UNDECIDED";

/// A worker and its devices.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Reaches the worker.
    pub(crate) handle: Handle,
    /// Its devices, in the order in which it has them.
    pub(crate) devices: Vec<Info>,
}

/// Asks the workers of a gateway.
#[derive(Debug)]
pub(crate) struct Observer {
    /// The workers; the index of each is its number.
    pub(crate) subjects: Vec<Subject>,
    /// The served addresses and ports.
    pub(crate) served: Served,
}

impl Observer {
    /// The state of the gateway.
    pub(crate) fn status(&self) -> Status {
        let mut workers = Vec::new();
        let mut silent_workers = Vec::new();
        for (number, subject) in (0..).zip(&self.subjects) {
            match self.worker(number, subject) {
                Ok(worker) => workers.push(worker),
                Err(_) => silent_workers.push(number),
            }
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            served: locked(&self.served).clone(),
            workers,
            silent_workers,
        }
    }

    /// Some connections of a worker, from a place on.
    pub(crate) fn connections(&self, worker: u32, from: u32) -> Result<Connections, AskError> {
        let subject = self.subjects.get(worker as usize).ok_or(AskError::Ended)?;
        let mut connections = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next
            && connections.len() < MOST_CONNECTIONS
        {
            let page = subject.handle.page(from)?;
            connections.extend(page.connections.iter().map(|one| connection(worker, one)));
            next = page.next;
        }
        Ok(Connections { connections, next })
    }

    fn worker(&self, number: u32, subject: &Subject) -> Result<Worker, AskError> {
        let report = subject.handle.report()?;
        let connections = states(&subject.handle)?;
        Ok(worker(number, &subject.devices, &report, connections))
    }
}

/// The connections of a worker by state.
fn states(handle: &Handle) -> Result<BTreeMap<String, u64>, AskError> {
    let mut states: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let page = handle.page(from)?;
        for shown in &page.connections {
            *states.entry(state(shown)).or_default() += 1;
        }
        next = page.next;
    }
    Ok(owned(states))
}

fn worker(
    number: u32,
    infos: &[Info],
    report: &Report,
    connections: BTreeMap<String, u64>,
) -> Worker {
    let Report {
        devices,
        stack,
        connections: _,
        conversations,
        ring_bytes,
        uptime,
        busy,
        busy_turns,
        latency,
    } = report;
    let malformed = Malformed::ALL
        .into_iter()
        .zip(stack.malformed)
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.name(), count));
    Worker {
        worker: number,
        uptime_us: uptime.0,
        busy_us: busy.0,
        busy_turns: *busy_turns,
        connections,
        conversations: *conversations,
        ring_bytes: *ring_bytes,
        devices: infos
            .iter()
            .zip(devices)
            .map(|(info, counters)| device(info, counters))
            .collect(),
        latency: latencies(latency),
        stack: owned(stack.named()),
        malformed: owned(malformed),
        tcp: owned(stack.tcp.named()),
    }
}

fn latencies(latency: &worker::Latency) -> BTreeMap<String, Latency> {
    let worker::Latency {
        device_to_ring,
        ring_to_server,
        server_to_ring,
        ring_to_device,
    } = latency;
    [
        ("device_to_ring", device_to_ring),
        ("ring_to_server", ring_to_server),
        ("server_to_ring", server_to_ring),
        ("ring_to_device", ring_to_device),
    ]
    .into_iter()
    .map(|(part, times)| (part.to_owned(), latency_of(times)))
    .collect()
}

/// Quantiles and buckets of a histogram.
fn latency_of(times: &Times) -> Latency {
    let histogram = times.histogram();
    let mut buckets = vec![0; BOUNDS_US.len() + 1];
    let mut sum_us = 0_u64;
    for one in histogram.iter_recorded() {
        let (time, count) = (one.value_iterated_to(), one.count_at_value());
        let bucket = BOUNDS_US.partition_point(|bound| *bound < time);
        if let Some(bucket) = buckets.get_mut(bucket) {
            *bucket += count;
        }
        sum_us = sum_us.saturating_add(time.saturating_mul(count));
    }
    Latency {
        count: histogram.len(),
        sum_us,
        p50_us: histogram.value_at_quantile(0.5),
        p90_us: histogram.value_at_quantile(0.9),
        p99_us: histogram.value_at_quantile(0.99),
        p999_us: histogram.value_at_quantile(0.999),
        p9999_us: histogram.value_at_quantile(0.9999),
        max_us: histogram.max(),
        buckets,
    }
}

fn device(info: &Info, counters: &saiga_netdev::Counters) -> Device {
    Device {
        name: info.name.clone(),
        queue: info.queue,
        received: traffic(counters.received),
        sent: traffic(counters.sent),
        drops: owned(counters.drops.named()),
    }
}

const fn traffic(traffic: saiga_netdev::Traffic) -> Traffic {
    let saiga_netdev::Traffic {
        frames,
        bytes,
        batches,
    } = traffic;
    Traffic {
        frames,
        bytes,
        batches,
    }
}

fn state(shown: &Shown) -> &'static str {
    shown.view.state.map_or(UNDECIDED, StateName::name)
}

fn connection(worker: u32, shown: &Shown) -> Connection {
    Connection {
        worker,
        local: shown.view.flow.local(),
        remote: shown.view.flow.remote(),
        state: state(shown).to_owned(),
        anchor: shown.rings.map(anchor),
        tcp: shown.view.info.as_ref().map(tcp),
    }
}

const fn anchor(rings: Rings) -> Anchor {
    let Rings {
        is_accepted,
        inbound,
        outbound,
        capacity,
    } = rings;
    Anchor {
        is_accepted,
        inbound_bytes: inbound,
        outbound_bytes: outbound,
        ring_bytes: capacity,
    }
}

fn tcp(info: &saiga_stack::Info) -> Tcp {
    let saiga_stack::Info {
        cwnd,
        ssthresh,
        in_flight,
        lost,
        srtt,
        rttvar,
        rto,
        snd_wnd,
        rcv_wnd,
        mss,
        retransmitted,
    } = *info;
    Tcp {
        cwnd_bytes: cwnd,
        ssthresh_bytes: (ssthresh < u32::MAX).then_some(ssthresh),
        srtt_us: srtt.map(|span| span.0),
        rttvar_us: rttvar.map(|span| span.0),
        rto_us: rto.0,
        snd_wnd_bytes: snd_wnd,
        rcv_wnd_bytes: rcv_wnd,
        in_flight_bytes: in_flight,
        lost_bytes: lost,
        retransmitted_segments: retransmitted,
        mss_bytes: mss,
    }
}

/// Counts with names that the receiver owns.
fn owned(counts: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    counts.into_iter().map(named).collect()
}
