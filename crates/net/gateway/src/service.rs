//! A running gateway: devices, routes, stacks and workers as the settings say.
//!
//! The parts are put together in an order in which a failure leaves nothing behind: devices, rules
//! and routes end with their values. Everything acts on the network namespace of the calling
//! thread.
//!
//! Deliberately absent so far: AF_XDP and DPDK, more than one worker, and changes of the network
//! while the gateway runs.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use saiga_anchor::{Fault, Routes, RoutesError};
use saiga_netdev::tap::{self, Tap};
use saiga_netdev::{Device as _, Info};
use saiga_stack::{
    Config, Interface, Link, Listen, Network, Offload, Secrets, Segmentation, Stack,
};
use saiga_wire::ethernet::Tags;

use crate::anchors::Admitted;
use crate::confine::{ConfineError, Confinement};
use crate::settings::{Addresses, Device, Kind, Polling, Settings};
use crate::worker::{Clock, Memory, Parts, Stop, Worker, WorkerError};

/// A gateway that serves.
#[expect(missing_debug_implementations, reason = "the routes have none")]
pub struct Gateway {
    worker: JoinHandle<Result<(), WorkerError>>,
    stop: Stop,
    routes: Routes,
    served: Vec<SocketAddr>,
    left: Vec<IpAddr>,
}

/// Why a gateway does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The settings ask for something that this version does not have.
    #[error("{0}")]
    Absent(&'static str),
    /// The settings have a key that this version does not follow.
    #[error("`{0}` has no effect in this version: remove the key")]
    NoEffect(&'static str),
    /// The process lacks rights, or cannot give them up.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The TAP device cannot be opened.
    #[error(transparent)]
    Tap(#[from] tap::OpenError),
    /// The replies of servers cannot be brought to the gateway.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// Something on this host prevents anchors.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The addresses or routes contradict each other.
    #[error("{interface}: {source}")]
    Network {
        /// Name of the network interface.
        interface: String,
        /// What is wrong.
        source: saiga_stack::NetworkError,
    },
    /// Two `[[serve]]` ask for the same port.
    #[error(transparent)]
    Listen(#[from] saiga_stack::ListenError),
    /// The worker cannot begin, or has ended.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The worker has ended by a fault of the program.
    #[error("the worker has ended by a fault of the program; its message is above")]
    Panicked,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// Its error.
        source: io::Error,
    },
}

impl Gateway {
    /// Begins to serve. The calling thread is the only one of the process, and gives up the rights
    /// of root.
    ///
    /// # Errors
    /// A [`ServiceError`]; what was changed is undone.
    pub fn up(settings: &Settings) -> Result<Self, ServiceError> {
        let device = supported(settings)?;
        let confinement = Confinement::plan(settings)?;
        raise_descriptors().map_err(system("cannot raise the limit of descriptors"))?;
        let tap = open(device)?;
        let served = served(device, settings);
        let mut routes = Routes::up(&saiga_anchor::Config::default(), &served)?;
        let mut anchors = saiga_anchor::Anchors::new().map_err(system("netlink"))?;
        saiga_anchor::self_test(&mut routes, &mut anchors)?;
        let left: Vec<IpAddr> = routes.left().collect();
        let clock = Clock::start();
        let parts = Parts {
            stack: stack(device, tap.info(), settings, clock)?,
            device: tap,
            clock,
            anchors: Admitted::new(anchors, settings.serve.clone(), left.clone()),
            settings: saiga_stack::Settings {
                // The server's own setting decides what it sends at a time.
                is_nodelay: true,
                keep_alive: settings.tcp.keep_alive,
                user_timeout_ms: settings.tcp.user_timeout_ms.and_then(NonZeroU32::new),
            },
            ring_bytes: settings.tcp.buffer.get(),
            memory: Memory::of(&settings.tcp),
            spin: match settings.workers.spin {
                Polling::Always => Duration::MAX,
                Polling::For(spin) => spin.get(),
            },
        };
        let mut worker = Worker::new(parts)?;
        let stop = worker.stop();
        confinement.enter()?;
        let thread = thread::Builder::new().name("gateway-0".to_owned());
        let cpu = settings.workers.cpus.first().copied();
        let worker = on_cpu(cpu, || thread.spawn(move || worker.run()))?
            .map_err(system("cannot start the worker's thread"))?;
        Ok(Self {
            worker,
            stop,
            routes,
            served,
            left,
        })
    }

    /// The served addresses and ports.
    #[must_use]
    pub fn served(&self) -> &[SocketAddr] {
        &self.served
    }

    /// Hosts that the gateway leaves to the kernel: they have connections from before its start.
    #[must_use]
    pub fn left(&self) -> &[IpAddr] {
        &self.left
    }

    /// What ends the gateway.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Waits until the gateway is stopped or fails, and removes what it has changed on this host.
    ///
    /// # Errors
    /// Why the worker has ended, or what could not be removed.
    pub fn wait(self) -> Result<(), ServiceError> {
        let ended = self.worker.join();
        let removed = self.routes.down();
        ended.map_err(|_| ServiceError::Panicked)??;
        Ok(removed?)
    }
}

/// Removes what a killed gateway has left; returns it in the words of ip(8).
///
/// # Errors
/// If the kernel refuses that.
pub fn remove_leftovers() -> Result<Vec<String>, RoutesError> {
    saiga_anchor::remove_leftovers(saiga_anchor::Config::default().table)
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> ServiceError {
    move |source| ServiceError::System { what, source }
}

/// The device, if this version can serve the settings.
///
/// # Errors
/// What it cannot do.
pub fn supported(settings: &Settings) -> Result<&Device, ServiceError> {
    let device = only_device(settings)?;
    tap_name(device)?;
    refuse_without_effect(device, settings)?;
    Ok(device)
}

fn only_device(settings: &Settings) -> Result<&Device, ServiceError> {
    match settings.devices.as_slice() {
        [device] if settings.workers.count() == 1 => Ok(device),
        _ => Err(ServiceError::Absent(
            "this version serves one device with one worker: leave one `[[device]]`, and one CPU \
             in `workers.cpus`",
        )),
    }
}

/// A limit or a service that the operator has asked for must not be missing without a word.
fn refuse_without_effect(device: &Device, settings: &Settings) -> Result<(), ServiceError> {
    let has_limit = settings.serve.iter().any(|one| one.connections.is_some());
    let keys = [
        ("device.vlan", device.vlan.is_some()),
        ("serve.connections", has_limit),
        (
            "workers.memory_bind",
            !settings.workers.memory_bind.is_empty(),
        ),
        ("outgoing.prefixes", !settings.outgoing.prefixes.is_empty()),
        ("metrics.listen", settings.metrics.listen.is_some()),
        (
            "device.queues",
            matches!(
                device.kind,
                Kind::Tap {
                    queues: Some(2..),
                    ..
                }
            ),
        ),
    ];
    match keys.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(ServiceError::NoEffect(key)),
        None => Ok(()),
    }
}

/// Runs `start` on a CPU, which its threads inherit; this thread is not moved.
fn on_cpu<T>(cpu: Option<usize>, start: impl FnOnce() -> T) -> Result<T, ServiceError> {
    let Some(cpu) = cpu else {
        return Ok(start());
    };
    let failed = "cannot run on the CPU of `workers.cpus`";
    if cpu >= CpuSet::MAX_CPU {
        return Err(system(failed)(io::ErrorKind::InvalidInput.into()));
    }
    let before = sched_getaffinity(None).map_err(io::Error::from);
    let before = before.map_err(system(failed))?;
    let mut only = CpuSet::new();
    only.set(cpu);
    let moved = sched_setaffinity(None, &only).map_err(io::Error::from);
    moved.map_err(system(failed))?;
    let started = start();
    let moved = sched_setaffinity(None, &before).map_err(io::Error::from);
    moved.map_err(system(failed))?;
    Ok(started)
}

/// As many descriptors as this process may have: each connection takes one.
fn raise_descriptors() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

fn tap_name(device: &Device) -> Result<&str, ServiceError> {
    match &device.kind {
        Kind::Tap { interface, .. } => Ok(interface.as_str()),
        Kind::Xdp { .. } | Kind::Dpdk { .. } => Err(ServiceError::Absent(
            "this version serves devices of kind \"tap\" only: change `device.kind`",
        )),
    }
}

fn open(device: &Device) -> Result<Tap, ServiceError> {
    let name = tap_name(device)?;
    let settings = |origin| tap::Settings {
        name,
        link: saiga_netdev::Link::Ethernet,
        origin,
        queues: NonZeroU16::MIN,
        has_offloads: true,
    };
    let queues = match Tap::open(&settings(tap::Origin::Attach)) {
        Err(tap::OpenError::Missing { .. }) => Tap::open(&settings(tap::Origin::Make)),
        opened => opened,
    }?;
    let mut queues = queues.into_iter();
    queues.next().ok_or(ServiceError::Absent("no queue"))
}

/// All addresses and ports that servers of this host are reached at.
fn served(device: &Device, settings: &Settings) -> Vec<SocketAddr> {
    let own = device.addresses.own();
    let mut served = Vec::new();
    for serve in &settings.serve {
        let addresses = own.iter().map(ipnet::IpNet::addr);
        let of_serve = addresses.filter(|one| serve.address.is_none_or(|only| only == *one));
        for address in of_serve {
            served.extend(
                serve
                    .ports
                    .iter()
                    .map(|port| SocketAddr::new(address, *port)),
            );
        }
    }
    served
}

/// A stack with the device's addresses and a listener for each served port.
fn stack(
    device: &Device,
    info: &Info,
    settings: &Settings,
    clock: Clock,
) -> Result<Stack, ServiceError> {
    let secrets = secrets().map_err(system("no random numbers"))?;
    let mut stack = Stack::new(config(info, settings), secrets, clock.now());
    let network = network(device, info);
    let configured = stack.configure(network, clock.now());
    configured.map_err(|source| ServiceError::Network {
        interface: info.name.clone(),
        source,
    })?;
    for serve in &settings.serve {
        for port in &serve.ports {
            stack.listen(Listen {
                address: serve.address,
                port: *port,
                backlog: serve.backlog,
                has_cookies: true,
                buffer: settings.tcp.buffer.get(),
            })?;
        }
    }
    Ok(stack)
}

fn config(info: &Info, settings: &Settings) -> Config {
    let offload = &info.offload;
    let tcp = saiga_tcp::Config {
        congestion: settings.tcp.congestion,
        ..saiga_tcp::Config::default()
    };
    Config {
        tcp,
        most_connections: settings.tcp.connections,
        offload: Offload {
            checksum: offload.checksum,
            segmentation: offload.segmentation.map(|one| Segmentation {
                checksum: one.checksum,
                most_bytes: one.most_bytes,
            }),
        },
        ..Config::default()
    }
}

fn network(device: &Device, info: &Info) -> Network {
    let routes = match &device.addresses {
        Addresses::Kernel => Vec::new(),
        Addresses::Own { routes, .. } => routes
            .iter()
            .map(|route| saiga_stack::Route {
                destination: route.destination,
                gateway: Some(route.gateway),
                interface: 0,
            })
            .collect(),
    };
    let link = match info.mac {
        Some(mac) => Link::Ethernet {
            mac,
            tags: Tags::None,
        },
        None => Link::None,
    };
    Network {
        interfaces: vec![Interface {
            link,
            mtu: device.mtu.unwrap_or(info.mtu),
            addresses: device.addresses.own().to_vec(),
        }],
        routes,
    }
}

fn secrets() -> io::Result<Secrets> {
    let mut bytes = [0; 48];
    getrandom::fill(&mut bytes)?;
    let mut words = bytes.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    let mut key = || [words.next().unwrap_or(0), words.next().unwrap_or(0)];
    Ok(Secrets {
        flows: key(),
        sequence_numbers: key(),
        cookies: key(),
    })
}
