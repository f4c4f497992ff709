//! A running gateway: devices, routes, stacks and workers as the settings say.
//!
//! The parts are put together in an order in which a failure leaves nothing behind: devices, rules
//! and routes end with their values. Everything acts on the network namespace of the calling
//! thread. With AF_XDP, frames are redirected first, then the kernel's connections are listed, and
//! the frames that came until then are dropped: so no stack gets a segment of a connection that the
//! kernel has.

mod attached;
mod beside;
mod cpu;
mod device;
mod dpdk;
mod error;
mod follow;
mod guard;
mod memif;
mod memory;
mod network;
mod outgoing;
mod stack;
mod support;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ipnet::IpNet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use saiga_anchor::{Routes, RoutesError};
use saiga_netdev::dpdk::Dpdk;
use saiga_netdev::{Device as _, Info};

use crate::anchors::{Admission, Admitted};
use crate::confine::Confinement;
use crate::inspection::{Inspection, Listeners};
use crate::observer::{Observer, Subject};
use crate::settings::{Polling, Settings};
use crate::worker::{Clock, Handle, Memory, Opener, Parts, Worker, WorkerError};
use attached::Attached;
use device::BoxedDevice;
pub use dpdk::check_plugin;
pub(crate) use dpdk::{OWN_BYTES, frame_bytes};
pub use error::ServiceError;
use follow::{Asker, Follow};
use network::{Plan, Source};
pub use support::supported;

/// Hosts that the kernel keeps: replies to them do not come to an anchor.
pub(crate) type Left = Arc<Mutex<BTreeSet<IpAddr>>>;

/// The addresses and ports that are served now.
pub(crate) type Served = Arc<Mutex<Vec<SocketAddr>>>;

/// A gateway that serves.
#[expect(missing_debug_implementations, reason = "the routes have none")]
pub struct Gateway {
    workers: Vec<JoinHandle<Ended>>,
    follow: JoinHandle<Follow>,
    stop: Stop,
    /// A message comes when a thread has ended.
    ended: mpsc::Receiver<()>,
    stop_follow: follow::Stop,
    inspection: Inspection,
    served: Vec<SocketAddr>,
    carried: Vec<IpNet>,
    left: Vec<IpAddr>,
    left_out: Vec<String>,
}

/// Ends a gateway from another thread.
#[derive(Debug, Clone)]
pub struct Stop(Vec<Handle>);

impl Stop {
    /// The workers end after their present turns, and with them the gateway.
    ///
    /// # Errors
    /// If a sleeping worker cannot be woken: it ends at its next event.
    pub fn stop(&self) -> io::Result<()> {
        let stopped = self.0.iter().map(Handle::stop);
        stopped.fold(Ok(()), io::Result::and)
    }
}

impl Gateway {
    /// Begins to serve. The calling thread is the only one of the process. It gives up the rights
    /// of root, and keeps the memory policy of `workers.memory_bind`. DPDK, if a device needs it,
    /// begins here and has a thread, which does the same.
    ///
    /// # Errors
    /// A [`ServiceError`]; what was changed is undone.
    pub fn up(settings: &Settings) -> Result<Self, ServiceError> {
        supported(settings)?;
        memory::bind(&settings.workers.memory_bind)?;
        let confinement = Confinement::plan(settings)?;
        raise_descriptors().map_err(system("cannot raise the limit of descriptors"))?;
        let listeners = Listeners::open(settings, confinement.owner())?;
        let dpdk = dpdk::begin(settings)?;
        let attached = settings.devices.iter();
        let attached = attached
            .map(|device| Attached::open(settings, device, dpdk.as_ref(), confinement.owner()));
        let mut attached = attached.collect::<Result<Vec<_>, _>>()?;
        let served = attached.iter().flat_map(|one| &one.plan.served);
        let served: Vec<SocketAddr> = served.copied().collect();
        let left_out = attached.iter().flat_map(|one| one.plan.left_out.clone());
        let left_out = left_out.collect();
        let mut routes = routes(&served, &mut attached)?;
        let user = confinement.user();
        let mut opener = outgoing::open(settings, &mut routes, &attached, user)?;
        let left: BTreeSet<IpAddr> = routes.left().collect();
        let starting = Starting {
            settings,
            workers: attached.iter().map(|one| one.cpus.len()).sum(),
            left: Arc::new(Mutex::new(left.clone())),
            clock: Clock::start(),
            admissions: settings.serve.iter().map(Admission::new).collect(),
            memory: Memory::of(&settings.tcp),
        };
        let (asker, asked) = follow::channel()?;
        let (mut ready, mut followed) = (Vec::new(), Vec::new());
        for (number, device) in attached.into_iter().enumerate() {
            let (workers, device) = starting.workers(device, (number, &asker), &mut opener)?;
            ready.extend(workers);
            followed.push(device);
        }
        let shared = Arc::new(Mutex::new(served.clone()));
        let follow = Follow::new(follow::Parts {
            devices: followed,
            routes,
            served: Arc::clone(&shared),
            left: Arc::clone(&starting.left),
            asked,
        })?;
        let subjects = ready.iter().map(|one| Subject {
            handle: one.worker.handle(),
            devices: one.infos.clone(),
        });
        confine(&confinement, dpdk.as_ref())?;
        let inspection = listeners.serve(Observer {
            subjects: subjects.collect(),
            served: shared,
        })?;
        let (ending, ended) = mpsc::channel();
        let stop_follow = follow.stop();
        let gateway = Self {
            workers: Vec::new(),
            follow: spawn("gateway-net", &ending, || follow.run())?,
            stop: Stop(ready.iter().map(|one| one.worker.handle()).collect()),
            ended,
            stop_follow,
            inspection,
            served,
            carried: settings.outgoing.prefixes.clone(),
            left: left.into_iter().collect(),
            left_out,
        };
        gateway.start(ready, &ending)
    }

    /// Starts the workers.
    fn start(mut self, ready: Vec<Ready>, ending: &mpsc::Sender<()>) -> Result<Self, ServiceError> {
        for (number, one) in ready.into_iter().enumerate() {
            let Ready {
                mut worker, cpu, ..
            } = one;
            let name = format!("gateway-{number}");
            let run = move || (worker.run(), worker);
            let started = cpu::on(cpu, || spawn(&name, ending, run));
            match started.and_then(|started| started) {
                Ok(worker) => self.workers.push(worker),
                Err(error) => return self.end().and(Err(error)),
            }
        }
        Ok(self)
    }

    /// The addresses and ports that were served at the start.
    #[must_use]
    pub fn served(&self) -> &[SocketAddr] {
        &self.served
    }

    /// Networks to which it carries connections of this host.
    #[must_use]
    pub fn carried(&self) -> &[IpNet] {
        &self.carried
    }

    /// Hosts that the gateway leaves to the kernel until their connections from before its start
    /// have ended.
    #[must_use]
    pub fn left(&self) -> &[IpAddr] {
        &self.left
    }

    /// Parts of the kernel's network that the gateway does not serve, each with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What ends the gateway.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Waits until the gateway is stopped or a part of it fails, and removes what it has changed on
    /// this host.
    ///
    /// # Errors
    /// Why a thread has ended, or what could not be removed.
    pub fn wait(self) -> Result<(), ServiceError> {
        let _ended = self.ended.recv();
        self.end()
    }

    /// Ends all threads, and removes what the gateway has changed on this host.
    fn end(self) -> Result<(), ServiceError> {
        // A thread that cannot be woken ends at its next event.
        let _woken = self.stop.stop();
        let mut first = Ok(());
        let mut workers = Vec::new();
        for worker in self.workers {
            let ended = worker.join().map_err(|_| ServiceError::Panicked);
            first = first.and(ended.and_then(|(ended, worker)| {
                workers.push(worker);
                Ok(ended?)
            }));
        }
        drop(self.inspection);
        let _woken = self.stop_follow.stop();
        let follow = self.follow.join().map_err(|_| ServiceError::Panicked);
        // TAP devices end with their workers, which the thread would have reported. The rules hold
        // until no anchor is left, whose segments would reach the client otherwise.
        drop(workers);
        first.and(follow.and_then(Follow::down))
    }
}

/// Removes what a killed gateway has left; returns it in the words of ip(8).
///
/// # Errors
/// If the kernel refuses that.
pub fn remove_leftovers() -> Result<Vec<String>, RoutesError> {
    saiga_anchor::remove_leftovers(saiga_anchor::Config::default().table)
}

/// Gives up the rights of root, before the first thread: each has rights of its own. The thread of
/// DPDK is there already.
fn confine(confinement: &Confinement, dpdk: Option<&Dpdk>) -> Result<(), ServiceError> {
    let Some(dpdk) = dpdk else {
        return Ok(confinement.enter(0)?);
    };
    let for_thread = confinement.clone();
    let confined = dpdk.on_thread(move || for_thread.confine_thread());
    confined.map_err(system("cannot reach the thread of DPDK"))??;
    Ok(confinement.enter(dpdk::THREADS)?)
}

/// Redirects the served frames, and brings replies to loopback; the queues are empty afterwards.
fn routes(served: &[SocketAddr], attached: &mut [Attached]) -> Result<Routes, ServiceError> {
    for device in &*attached {
        if let Some(steering) = &device.opened.steering {
            let served = device.plan.served.iter();
            served.copied().try_for_each(|one| steering.serve(one))?;
        }
    }
    let mut routes = Routes::up(&saiga_anchor::Config::default(), served)?;
    let mut anchors = saiga_anchor::Anchors::new().map_err(system("netlink"))?;
    saiga_anchor::self_test(&mut routes, &mut anchors)?;
    for device in attached {
        if let Some(steering) = &device.opened.steering {
            routes.left().try_for_each(|host| steering.pass(host))?;
            device.opened.drain()?;
        }
    }
    Ok(routes)
}

/// What the workers of a gateway have in common.
struct Starting<'a> {
    settings: &'a Settings,
    /// The number of workers of all devices.
    workers: usize,
    left: Left,
    clock: Clock,
    admissions: Vec<Admission>,
    memory: Memory,
}

type OneWorker = Worker<BoxedDevice, Admitted>;

/// A worker that has ended, and why.
type Ended = (Result<(), WorkerError>, OneWorker);

/// A worker that has not begun.
struct Ready {
    worker: OneWorker,
    cpu: Option<usize>,
    /// What its queues say of the device.
    infos: Vec<Info>,
}

impl Starting<'_> {
    /// The workers of a device, and what the thread that follows the network needs of it. `asker`:
    /// its number there. The first worker gets `opener`.
    fn workers(
        &self,
        device: Attached,
        asker: (usize, &Asker),
        opener: &mut Option<Opener>,
    ) -> Result<(Vec<Ready>, follow::Device), ServiceError> {
        let Attached {
            cpus,
            opened,
            source,
            plan,
        } = device;
        let interface = opened.interface().to_owned();
        let mut ready = Vec::new();
        let mut kernel = opened.kernel.into_iter();
        for (queues, cpu) in opened.queues.into_iter().zip(cpus) {
            let kernel = kernel.next();
            let infos = queues.iter().chain(&kernel);
            let infos = infos.map(|queue| queue.info().clone()).collect();
            let queues = (queues, kernel);
            let worker = self.worker(queues, (&plan, &source), asker, opener.take())?;
            ready.push(Ready { worker, cpu, infos });
        }
        if source.resolver() == saiga_stack::Resolver::Stack {
            share_neighbours(&mut ready);
        }
        let followed = follow::Device {
            source,
            interface,
            steering: opened.steering,
            plan,
            workers: ready.iter().map(|one| one.worker.handle()).collect(),
        };
        Ok((ready, followed))
    }

    fn worker(
        &self,
        (devices, kernel): (Vec<BoxedDevice>, Option<BoxedDevice>),
        (plan, source): (&Plan, &Source),
        (number, asker): (usize, &Asker),
        opener: Option<Opener>,
    ) -> Result<OneWorker, ServiceError> {
        let Self {
            settings,
            workers,
            left,
            clock,
            admissions,
            memory,
        } = self;
        let info = devices.first().map(|device| device.info().clone());
        let info = info.ok_or(ServiceError::Absent("a worker has no queue"))?;
        let anchors = saiga_anchor::Anchors::new().map_err(system("netlink"))?;
        let asker = asker.clone();
        let parts = Parts {
            stack: stack::stack(&stack::Parts {
                settings,
                plan,
                info: &info,
                resolver: source.resolver(),
                presence: source.presence(),
                workers: *workers,
                clock: *clock,
            })?,
            devices,
            kernel,
            clock: *clock,
            anchors: Admitted::new(anchors, admissions.clone(), Arc::clone(left)),
            settings: saiga_stack::Settings {
                // The server's own setting decides what it sends at a time.
                is_nodelay: true,
                keep_alive: settings.tcp.keep_alive,
                user_timeout_ms: settings.tcp.user_timeout_ms.and_then(NonZeroU32::new),
            },
            ring_bytes: settings.tcp.buffer.get(),
            memory: memory.clone(),
            spin: match settings.workers.spin {
                Polling::Always => Duration::MAX,
                Polling::For(spin) => spin.get(),
            },
            on_unresolved: Box::new(move |interface, address| {
                asker.ask(number, interface, address);
            }),
            opener,
        };
        Ok(Worker::new(parts)?)
    }
}

/// Lets the workers of a device learn of its neighbours from each other.
fn share_neighbours(ready: &mut [Ready]) {
    let handles: Vec<Handle> = ready.iter().map(|one| one.worker.handle()).collect();
    for (number, one) in ready.iter_mut().enumerate() {
        let mut others = handles.clone();
        others.remove(number);
        one.worker.share_with(others);
    }
}

/// Starts a thread that sends a message when it ends, also by a panic.
fn spawn<T: Send + 'static>(
    name: &str,
    ending: &mpsc::Sender<()>,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ServiceError> {
    struct Ending(mpsc::Sender<()>);
    impl Drop for Ending {
        fn drop(&mut self) {
            // Nobody waits for it any more.
            let _sent = self.0.send(());
        }
    }
    let ending = Ending(ending.clone());
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        let _ending = ending;
        run()
    });
    started.map_err(system("cannot start a thread"))
}

/// What threads share.
pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is whole, also beside a panic of another thread.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> ServiceError {
    move |source| ServiceError::System { what, source }
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
