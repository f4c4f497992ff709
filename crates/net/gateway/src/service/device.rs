//! The device of the settings and its queues, which the workers share out in turn.

use std::ffi::OsStr;
use std::num::NonZeroU16;

use saiga_interface::Snapshot;
use saiga_netdev::dpdk::Dpdk;
use saiga_netdev::tap::{self, Tap};
use saiga_netdev::xdp::{self, Copies, FrameSize, XdpMode};
use saiga_netdev::{Device as Queue, Info};

use super::{ServiceError, cpu, dpdk, memif};
use crate::requirements::network;
use crate::settings::{Copying, Device, Kind, Mode, Settings};
use crate::socket::Owner;

/// A queue of any kind of device.
pub(super) type BoxedDevice = Box<dyn Queue + Send>;

/// Frames that are dropped at a time before the service begins.
const BATCH: usize = 64;

/// A device with open queues.
pub(super) struct Opened {
    /// The queues of each worker.
    pub(super) queues: Vec<Vec<BoxedDevice>>,
    /// For each worker, what leads to the kernel, if the queues do not: a TAP device beside DPDK or
    /// memif.
    pub(super) kernel: Vec<BoxedDevice>,
    /// What the first queue says of the device.
    pub(super) info: Info,
    /// The slots of a ring, which is what a queue holds at most.
    slots: usize,
    /// What redirects frames from the kernel; only AF_XDP has it.
    pub(super) steering: Option<xdp::Interface>,
}

/// Opens the device for workers on these CPUs.
pub(super) fn open(
    settings: &Settings,
    device: &Device,
    cpus: &[Option<usize>],
    dpdk: Option<&Dpdk>,
    owner: Owner,
) -> Result<Opened, ServiceError> {
    match &device.kind {
        Kind::Tap { interface, queues } => {
            let queues = queues.map_or(cpus.len(), usize::from);
            let taps = open_tap(interface.as_str(), queues)?;
            shared_out(boxed(taps), device, cpus.len(), None)
        }
        Kind::Xdp {
            interface,
            queues,
            mode,
            copy,
        } => {
            let options = xdp::Options {
                flows: if settings.outgoing.prefixes.is_empty() {
                    0
                } else {
                    settings.tcp.connections
                },
                ..options(device, *mode, *copy)
            };
            let interface = open_interface(interface.as_str(), options)?;
            check_queues(&interface, *queues, cpus.len())?;
            let queues = open_queues(&interface, cpus)?;
            shared_out(queues, device, cpus.len(), Some(interface))
        }
        Kind::Dpdk { .. } => {
            let dpdk = dpdk.ok_or(ServiceError::Absent("DPDK has not begun"))?;
            let (ports, taps) = dpdk::open(dpdk, device, cpus.len())?;
            let opened = shared_out(boxed(ports), device, cpus.len(), None)?;
            let kernel = boxed(taps);
            Ok(Opened { kernel, ..opened })
        }
        Kind::Memif { .. } => {
            let (memif, taps) = memif::open(device, owner)?;
            let opened = shared_out(boxed(vec![memif]), device, cpus.len(), None)?;
            let kernel = boxed(taps);
            Ok(Opened { kernel, ..opened })
        }
    }
}

fn boxed<Q: Queue + Send + 'static>(queues: Vec<Q>) -> Vec<BoxedDevice> {
    let boxed = queues.into_iter().map(|one| Box::new(one) as BoxedDevice);
    boxed.collect()
}

impl Opened {
    /// The kernel's interface whose network the stacks share: the device itself, or what leads to
    /// the kernel.
    pub(super) fn interface(&self) -> &str {
        let kernel = self.kernel.first();
        kernel.map_or(&self.info.name, |kernel| &kernel.info().name)
    }

    /// Drops the frames that wait.
    pub(super) fn drain(&mut self) -> Result<(), ServiceError> {
        for queue in self.queues.iter_mut().flatten() {
            // Not until it is empty: frames may go on coming.
            for _ in 0..=self.slots / BATCH {
                if queue.receive(BATCH, &mut |_| {})? < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Gives queue n to worker n modulo their number.
fn shared_out(
    queues: Vec<BoxedDevice>,
    device: &Device,
    workers: usize,
    steering: Option<xdp::Interface>,
) -> Result<Opened, ServiceError> {
    let info = queues.first().map(|queue| queue.info().clone());
    let info = info.ok_or(ServiceError::Absent("the device has no queue"))?;
    if queues.len() < workers {
        return Err(ServiceError::Queues {
            interface: info.name,
            queues: queues.len(),
            workers,
        });
    }
    let mut of_workers: Vec<Vec<BoxedDevice>> = (0..workers).map(|_| Vec::new()).collect();
    for (number, queue) in queues.into_iter().enumerate() {
        of_workers[number % workers].push(queue);
    }
    Ok(Opened {
        queues: of_workers,
        kernel: Vec::new(),
        info,
        slots: device.ring as usize,
        steering,
    })
}

fn open_tap(name: &str, queues: usize) -> Result<Vec<Tap>, ServiceError> {
    // The settings have at most 256 workers and as many queues.
    let queues = u16::try_from(queues).ok().and_then(NonZeroU16::new);
    let settings = |origin| tap::Settings {
        name,
        link: saiga_netdev::Link::Ethernet,
        origin,
        queues: queues.unwrap_or(NonZeroU16::MIN),
        has_offloads: true,
    };
    let opened = match Tap::open(&settings(tap::Origin::Attach)) {
        Err(tap::OpenError::Missing { .. }) => Tap::open(&settings(tap::Origin::Make)),
        opened => opened,
    };
    Ok(opened?)
}

fn options(device: &Device, mode: Mode, copy: Copying) -> xdp::Options {
    xdp::Options {
        mode: match mode {
            Mode::Auto => None,
            Mode::Native => Some(XdpMode::Native),
            Mode::Generic => Some(XdpMode::Generic),
        },
        vlan: device.vlan,
        slots: device.ring,
        frame_count: Some(device.frames),
        copies: match copy {
            Copying::Auto => Copies::IfNeeded,
            Copying::Copy => Copies::Always,
            Copying::ZeroCopy => Copies::Never,
        },
        ..xdp::Options::default()
    }
}

/// Opens an interface with the smallest frames that hold its packets.
fn open_interface(name: &str, options: xdp::Options) -> Result<xdp::Interface, ServiceError> {
    let link = Snapshot::take(OsStr::new(name))?.device.link;
    if let Some(reason) = network::unfit(&link) {
        let interface = name.to_owned();
        return Err(ServiceError::Unfit { interface, reason });
    }
    let opened = match xdp::Interface::open(name, &options) {
        Err(xdp::OpenError::Mtu { .. }) => {
            let options = xdp::Options {
                frames: FrameSize::Bytes4096,
                ..options
            };
            xdp::Interface::open(name, &options)
        }
        opened => opened,
    };
    Ok(opened?)
}

/// All queues of an interface are served: the routes bring all replies of the served ports to the
/// gateway, also those of connections that the kernel would have on other queues.
fn check_queues(
    interface: &xdp::Interface,
    wanted: Option<u16>,
    workers: usize,
) -> Result<(), ServiceError> {
    let (name, queues) = (interface.name().to_owned(), interface.queues());
    match wanted {
        Some(wanted) if u32::from(wanted) != queues => Err(ServiceError::OtherQueues {
            interface: name,
            queues,
            wanted,
        }),
        _ if interface.spreads_flows() && workers > 1 => {
            Err(ServiceError::Spreads { interface: name })
        }
        Some(_) | None => Ok(()),
    }
}

/// Opens all queues of an interface, each in the memory of its worker's node.
fn open_queues(
    interface: &xdp::Interface,
    cpus: &[Option<usize>],
) -> Result<Vec<BoxedDevice>, ServiceError> {
    let mut queues = Vec::new();
    for (number, cpu) in (0..interface.queues()).zip(cpus.iter().cycle()) {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let queue = cpu::on(*cpu, || interface.open_queue(number))??;
        queues.push(Box::new(queue) as BoxedDevice);
    }
    Ok(queues)
}
