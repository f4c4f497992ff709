//! One run: two namespaces, the modelled path between them in real time, and the flows.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::event::PollFlags;
use saiga_goodput::cells::Cell;
use saiga_path::{Link, Totals};

use crate::counts::Counts;
use crate::engine::{self, Flows};
use crate::kernel::{self, RECEIVER};
use crate::namespace;
use crate::sys;

/// Address of the kernel's senders.
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) cell: Cell,
    /// Flows of the engine and of the kernel.
    pub(crate) ours: usize,
    pub(crate) linux: usize,
    /// Time before bytes count, and the whole time.
    pub(crate) skip: Duration,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Bits per second of each flow.
    pub(crate) ours: Vec<f64>,
    pub(crate) linux: Vec<f64>,
    /// What happened to the packets with data.
    totals: Totals,
    our_counts: Counts,
    linux_counts: Counts,
}

impl Outcome {
    /// Bits per second of all flows.
    pub(crate) fn sum(&self) -> f64 {
        self.ours.iter().chain(&self.linux).sum()
    }

    /// The engine's share of all.
    pub(crate) fn share(&self) -> f64 {
        self.ours.iter().sum::<f64>() / self.sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ours,
            linux,
            totals,
            our_counts,
            linux_counts,
        } = self;
        let kinds = [("Saiga", ours, our_counts), ("Linux", linux, linux_counts)];
        for (name, rates, counts) in kinds {
            if !rates.is_empty() {
                let rates: Vec<String> = rates
                    .iter()
                    .map(|one| format!("{:.2}", one / 1e6))
                    .collect();
                write!(f, "{name} {} Mbit/s {counts:?}; ", rates.join(" "))?;
            }
        }
        let Totals {
            sent,
            overflowed,
            lost,
            ..
        } = totals;
        write!(f, "{sent} sent, {overflowed} overflowed, {lost} lost")
    }
}

/// When the threads begin.
type Begin = Instant;
/// Bytes by peer.
type Received = BTreeMap<SocketAddrV4, u64>;
/// The other end of a device, where to tell its thread to begin, and the thread.
type Side<T> = (File, Sender<Begin>, JoinHandle<anyhow::Result<T>>);

impl Trial {
    /// When flows begin: the first at once, others within a second.
    fn begins_us(&self, count: usize, seed: u64) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count)
            .map(|index| {
                if index == 0 {
                    0
                } else {
                    random.u64(0..1_000_000)
                }
            })
            .collect()
    }

    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (near, begin_sender, sender) = self.spawn_sender()?;
        let (far, begin_receiver, receiver) = self.spawn_receiver()?;
        let begin = Instant::now() + Duration::from_millis(20);
        begin_sender.send(begin)?;
        begin_receiver.send(begin)?;
        let (totals, our_counts) = self.forward(near, far, begin)?;
        let sent = sender.join();
        let linux_counts = sent.map_err(|_| anyhow!("the sender has failed"))??;
        let received = receiver.join();
        let received = received.map_err(|_| anyhow!("the receiver has failed"))??;
        let seconds = (self.length - self.skip).as_secs_f64();
        let of = |address: Ipv4Addr, count: usize| {
            let rates = received.iter().filter(|(peer, _)| *peer.ip() == address);
            let mut rates: Vec<f64> = rates
                .map(|(_, bytes)| *bytes as f64 * 8.0 / seconds)
                .collect();
            rates.resize(count, 0.0);
            rates
        };
        Ok(Outcome {
            ours: of(engine::ADDRESS, self.ours),
            linux: of(SENDER, self.linux),
            totals,
            our_counts,
            linux_counts,
        })
    }

    fn spawn_sender(self) -> anyhow::Result<Side<Counts>> {
        let (give_device, device) = channel();
        let (begin, begins) = channel();
        let thread = std::thread::spawn(move || {
            give_device.send(namespace::enter(SENDER))?;
            let begin: Begin = begins.recv()?;
            let at = |us: &u64| begin + Duration::from_micros(*us);
            let mut begins: Vec<Instant> = self
                .begins_us(self.linux, self.seed ^ 1)
                .iter()
                .map(at)
                .collect();
            begins.sort();
            kernel::send(&begins, begin + self.length)
        });
        Ok((first(&device)?, begin, thread))
    }

    fn spawn_receiver(self) -> anyhow::Result<Side<Received>> {
        let (give_device, device) = channel();
        let (begin, begins) = channel();
        let thread = std::thread::spawn(move || {
            give_device.send(namespace::enter(*RECEIVER.ip()))?;
            let listener = kernel::listen()?;
            let begin: Begin = begins.recv()?;
            kernel::receive(&listener, begin + self.skip, begin + self.length)
        });
        Ok((first(&device)?, begin, thread))
    }

    /// Forwards packets between the two devices and the engine's flows.
    fn forward(
        self,
        mut near: File,
        mut far: File,
        begin: Begin,
    ) -> anyhow::Result<(Totals, Counts)> {
        sys::use_exact_timers()?;
        let mut out: Link<Vec<u8>> = Link::new(self.cell.forward(), self.seed);
        let is_shared = self.ours + self.linux > 1;
        let back = if is_shared {
            self.cell.back_with_jitter()
        } else {
            self.cell.back()
        };
        let mut back: Link<Vec<u8>> = Link::new(back, self.seed);
        let mut flows = Flows::new(&self.begins_us(self.ours, self.seed), self.seed);
        let epoch = begin - Duration::from_millis(20);
        let offset_us = 20_000;
        let end = begin + self.length;
        let mut buffer = vec![0; 65_536];
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok((out.totals(), flows.counts()));
            }
            let now_us = micros(now.saturating_duration_since(epoch));
            let present = saiga_tcp::Instant(now_us.saturating_sub(offset_us));
            take(&mut near, &mut out, &mut buffer, now_us);
            take(&mut far, &mut back, &mut buffer, now_us);
            while let Some(one) = out.receive(now_us) {
                let _ = far.write(&one.packet);
            }
            while let Some(one) = back.receive(now_us) {
                if one.packet.get(16..20) == Some(engine::ADDRESS.octets().as_slice()) {
                    flows.on_packet(&one.packet, present);
                } else {
                    let _ = near.write(&one.packet);
                }
            }
            if now >= begin {
                flows.serve(present, |packet| send(&mut out, packet, now_us));
            }
            let arrivals = [out.next_arrival_us(), back.next_arrival_us()];
            let timer = flows.next_timeout(present).map(|at| at.0 + offset_us);
            let next = arrivals.into_iter().flatten().chain(timer).min();
            let patience = next.map_or(Duration::from_millis(1), |next| {
                Duration::from_micros(next.saturating_sub(now_us))
            });
            let patience = patience.min(end.saturating_duration_since(now));
            kernel::wait([&near, &far].into_iter(), PollFlags::IN, patience)?;
        }
    }
}

/// The device that a thread hands over.
fn first(device: &Receiver<anyhow::Result<File>>) -> anyhow::Result<File> {
    device.recv().context("the thread has failed")?
}

/// Takes all packets that the kernel has sent.
fn take(device: &mut File, link: &mut Link<Vec<u8>>, buffer: &mut [u8], now_us: u64) {
    while let Ok(length) = device.read(buffer) {
        let packet = &buffer[..length];
        // The kernel also sends multicast packets of IPv6.
        if packet.first().is_some_and(|byte| byte >> 4 == 4) {
            send(link, packet.to_vec(), now_us);
        }
    }
}

fn send(link: &mut Link<Vec<u8>>, packet: Vec<u8>, now_us: u64) {
    let bytes = u32::try_from(packet.len()).unwrap_or(u32::MAX);
    link.send(packet, bytes, now_us);
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
