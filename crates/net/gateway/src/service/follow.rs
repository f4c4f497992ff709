//! The thread that follows the kernel's network.
//!
//! It tells the workers of changes of addresses, routes and neighbours, asks the kernel for
//! neighbours, begins to serve new addresses, and takes hosts over that were left to the kernel.
//! It owns rules and routes, puts them back when other programs take them, and owns the program
//! that redirects frames.
//!
//! A host is taken over when the kernel has no connection with it. A connection that the kernel
//! accepts between the last look and the redirection, some microseconds, is reset.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use saiga_anchor::{Routes, RoutesError, existing};
use saiga_interface::{Cause, Changes, Neighbour, NeighbourState, Resolver, SnapshotError};
use saiga_netdev::xdp;

use super::guard::Guard;
use super::network::{Plan, Source};
use super::{Left, Served, ServiceError, locked, system};
use crate::worker::{Change, Handle};

/// How often the thread looks whether hosts can be taken over.
const LOOK: Duration = Duration::from_secs(1);
/// The kernel's tables are read at most this often.
const RENEW: Duration = Duration::from_millis(50);
/// Questions that wait, at most. One that finds no room comes again after a second.
const MOST_ASKED: usize = 4096;
const CHANGES: Token = Token(0);
const WAKE: Token = Token(1);

/// Asks the thread to resolve neighbours.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    to: SyncSender<Question>,
    waker: Arc<Waker>,
}

/// A neighbour that a stack needs.
struct Question {
    /// Numbers of the device, and of the interface in its network.
    device: usize,
    interface: usize,
    address: IpAddr,
}

/// The other end of an [`Asker`].
pub(super) struct Asked {
    from: Receiver<Question>,
    poll: Poll,
    waker: Arc<Waker>,
}

/// Ends the thread.
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<AtomicBool>, Arc<Waker>);

/// What the thread is made of.
pub(super) struct Parts {
    pub(super) devices: Vec<Device>,
    pub(super) routes: Routes,
    pub(super) served: Served,
    pub(super) left: Left,
    pub(super) asked: Asked,
}

/// A device whose network is followed.
pub(super) struct Device {
    pub(super) source: Source,
    /// Name of the kernel's interface.
    pub(super) interface: String,
    pub(super) steering: Option<xdp::Interface>,
    pub(super) plan: Plan,
    pub(super) workers: Vec<Handle>,
}

/// The state of the thread.
pub(super) struct Follow {
    devices: Vec<Device>,
    routes: Routes,
    guard: Guard,
    /// All that was ever served: the rules stay.
    ruled: BTreeSet<SocketAddr>,
    served: Served,
    left: Left,
    asked: Asked,
    resolver: Resolver,
    /// Something has changed: the kernel's tables are read again.
    must_renew: bool,
    renewed_at: Instant,
    looked_at: Instant,
    /// Messages that were told, each once.
    told: HashSet<String>,
    stop: Arc<AtomicBool>,
    end: Result<(), ServiceError>,
}

/// A queue of questions to the thread.
pub(super) fn channel() -> Result<(Asker, Asked), ServiceError> {
    let poll = Poll::new().map_err(system("cannot wait for events"))?;
    let waker = Waker::new(poll.registry(), WAKE).map_err(system("cannot wait for events"))?;
    let waker = Arc::new(waker);
    let (to, from) = mpsc::sync_channel(MOST_ASKED);
    let asker = Asker {
        to,
        waker: Arc::clone(&waker),
    };
    Ok((asker, Asked { from, poll, waker }))
}

impl Asker {
    /// Asks for the MAC address of a neighbour at an interface of a device. Never waits.
    pub(super) fn ask(&self, device: usize, interface: usize, address: IpAddr) {
        let question = Question {
            device,
            interface,
            address,
        };
        if self.to.try_send(question).is_ok() {
            // Without it, the question waits for the next event.
            let _woken = self.waker.wake();
        }
    }
}

impl Stop {
    /// The thread ends at its next event.
    pub(super) fn stop(&self) -> io::Result<()> {
        self.0.store(true, Ordering::Release);
        self.1.wake()
    }
}

impl Device {
    fn gone(&self) -> ServiceError {
        ServiceError::Gone {
            interface: self.interface.clone(),
        }
    }

    fn on_neighbour(&self, neighbour: &Neighbour) {
        let Some((interface, address, mac)) = self.plan.numbered(neighbour) else {
            return;
        };
        match (mac, neighbour.state) {
            // The kernel is asking.
            (None, NeighbourState::Incomplete) => {}
            (mac, _) => self.tell_workers(&Change::Neighbour {
                interface,
                address,
                mac,
            }),
        }
    }

    fn tell_workers(&self, change: &Change) {
        for worker in &self.workers {
            worker.change(change.clone());
        }
    }
}

impl Follow {
    pub(super) fn new(parts: Parts) -> Result<Self, ServiceError> {
        let Parts {
            devices,
            routes,
            served,
            left,
            asked,
        } = parts;
        let guard = Guard::open(&routes)?;
        let followers = devices.iter().filter_map(|device| match &device.source {
            Source::Kernel(following) => Some(following.follower.as_fd()),
            Source::Settings => None,
        });
        for descriptor in followers.chain([guard.watch().as_fd()]) {
            let registry = asked.poll.registry();
            let descriptor = descriptor.as_raw_fd();
            registry
                .register(&mut SourceFd(&descriptor), CHANGES, Interest::READABLE)
                .map_err(system("cannot wait for events"))?;
        }
        let ruled = locked(&served).iter().copied().collect();
        Ok(Self {
            devices,
            routes,
            guard,
            ruled,
            served,
            left,
            asked,
            resolver: Resolver::open()?,
            must_renew: false,
            renewed_at: Instant::now(),
            looked_at: Instant::now(),
            told: HashSet::new(),
            stop: Arc::new(AtomicBool::new(false)),
            end: Ok(()),
        })
    }

    /// What ends the thread.
    pub(super) fn stop(&self) -> Stop {
        Stop(Arc::clone(&self.stop), Arc::clone(&self.asked.waker))
    }

    /// Follows until it is stopped or fails. The rules stay until [`Self::down`].
    pub(super) fn run(mut self) -> Self {
        self.end = self.follow();
        self
    }

    /// Removes programs, rules and routes.
    pub(super) fn down(self) -> Result<(), ServiceError> {
        drop(self.devices);
        let removed = self.routes.down();
        self.end.and(Ok(removed?))
    }

    fn follow(&mut self) -> Result<(), ServiceError> {
        let mut events = Events::with_capacity(8);
        // What changed while the gateway was put together.
        let mut has_more = true;
        while !self.stop.load(Ordering::Acquire) {
            let timeout = if has_more {
                Some(Duration::ZERO)
            } else {
                self.timeout()
            };
            match self.asked.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(system("cannot wait for events")(error));
                }
                Ok(()) | Err(_) => {}
            }
            self.resolve_asked();
            // One round at a time: hosts on the link can cause changes without end.
            has_more = self.guard.read()?;
            self.repair()?;
            for device in 0..self.devices.len() {
                has_more |= self.read_changes(device)?;
            }
            if self.must_renew && self.renewed_at.elapsed() >= RENEW {
                self.renew()?;
            }
            if self.looked_at.elapsed() >= LOOK {
                self.looked_at = Instant::now();
                self.take_over();
            }
        }
        Ok(())
    }

    /// How long the thread may sleep.
    fn timeout(&self) -> Option<Duration> {
        let rest = |at: Instant, pause: Duration| pause.saturating_sub(at.elapsed());
        let renew = self.must_renew.then(|| rest(self.renewed_at, RENEW));
        let has_left = !locked(&self.left).is_empty();
        let look = has_left.then(|| rest(self.looked_at, LOOK));
        renew.into_iter().chain(look).chain(self.guard.rest()).min()
    }

    /// Puts back what other programs have taken.
    fn repair(&mut self) -> Result<(), ServiceError> {
        let mut lines = Vec::new();
        let done = self.guard.repair(&mut self.routes, &mut lines);
        lines.iter().for_each(|line| say(line));
        match done {
            Err(error @ RoutesError::Gone { .. }) => return Err(error.into()),
            Err(error) => self.tell(error.to_string()),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Asks the kernel for the neighbours that the stacks need.
    fn resolve_asked(&mut self) {
        let asked: Vec<_> = self.asked.from.try_iter().take(MOST_ASKED).collect();
        for question in asked {
            let device = self.devices.get(question.device);
            let Some(index) = device.and_then(|one| one.plan.index(question.interface)) else {
                continue;
            };
            if let Err(error) = self.resolver.resolve(index, question.address) {
                self.tell(error.to_string());
            }
        }
    }

    /// Reads some changes of a device; returns whether there may be more.
    fn read_changes(&mut self, number: usize) -> Result<bool, ServiceError> {
        let device = &mut self.devices[number];
        let Source::Kernel(following) = &mut device.source else {
            return Ok(false);
        };
        let changes = following.follower.read()?;
        for neighbour in &changes.neighbours {
            device.on_neighbour(neighbour);
        }
        match changes.cause {
            None => {}
            Some(Cause::Gone) => return Err(device.gone()),
            Some(Cause::Overrun) => {
                // The workers forget the neighbours whose change was missed.
                device.plan.network.interfaces.clear();
                self.must_renew = true;
            }
            Some(Cause::Routes | Cause::Addresses | Cause::Link) => self.must_renew = true,
        }
        Ok(changes != Changes::default())
    }

    /// Reads the kernel's tables again, and tells the workers.
    fn renew(&mut self) -> Result<(), ServiceError> {
        self.renewed_at = Instant::now();
        self.must_renew = false;
        for number in 0..self.devices.len() {
            self.renew_device(number)?;
        }
        let served = self.devices.iter().flat_map(|one| &one.plan.served);
        *locked(&self.served) = served.copied().collect();
        Ok(())
    }

    fn renew_device(&mut self, number: usize) -> Result<(), ServiceError> {
        let device = &mut self.devices[number];
        let Source::Kernel(following) = &mut device.source else {
            return Ok(());
        };
        let snapshot = match following.follower.renew() {
            Ok(snapshot) => snapshot,
            Err(SnapshotError::NoInterface { .. }) => return Err(device.gone()),
            // It can succeed later.
            Err(error) => {
                self.must_renew = true;
                self.tell(error.to_string());
                return Ok(());
            }
        };
        let plan = following.plan(snapshot);
        if let Err(error) = plan.network.check() {
            self.tell(format!("the network stays as it was: {error}"));
            return Ok(());
        }
        if plan.network != device.plan.network {
            device.tell_workers(&Change::Network(plan.network.clone()));
        }
        for &(interface, address, mac) in &plan.neighbours {
            device.tell_workers(&Change::Neighbour {
                interface,
                address,
                mac: Some(mac),
            });
        }
        self.serve(number, &plan.served);
        self.devices[number].plan = plan;
        Ok(())
    }

    /// Serves what is served now. The rules of what is not served any more stay: its anchors may
    /// have data on the way.
    fn serve(&mut self, number: usize, served: &[SocketAddr]) {
        let Device {
            steering,
            plan,
            interface,
            ..
        } = &self.devices[number];
        let Some(steering) = steering else {
            return;
        };
        tell_addresses(interface, &plan.served, served);
        let mut failed = Vec::new();
        for one in plan.served.iter().filter(|one| !served.contains(one)) {
            failed.extend(steering.stop(*one).err().map(ServiceError::from));
        }
        for one in served.iter().filter(|one| !plan.served.contains(one)) {
            let begun = steering.serve(*one).map_err(ServiceError::from);
            let begun = begun.and_then(|()| Ok(self.routes.add(*one)?));
            if let Err(error) = begun {
                let _stopped = steering.stop(*one);
                failed.push(error);
                continue;
            }
            self.ruled.insert(*one);
        }
        failed.extend(self.leave().err());
        for error in failed {
            self.tell(error.to_string());
        }
    }

    /// Leaves hosts to the kernel that have connections with a new address.
    fn leave(&self) -> Result<(), ServiceError> {
        let known = locked(&self.left).clone();
        for host in self.routes.left().filter(|host| !known.contains(host)) {
            locked(&self.left).insert(host);
            self.pass(host)?;
        }
        Ok(())
    }

    /// The frames of a host go to the kernel, whichever device they come by.
    fn pass(&self, host: IpAddr) -> Result<(), ServiceError> {
        for steering in self.devices.iter().filter_map(|one| one.steering.as_ref()) {
            steering.pass(host)?;
        }
        Ok(())
    }

    /// Takes over the hosts with which the kernel has no connections any more.
    fn take_over(&mut self) {
        let left = locked(&self.left).clone();
        if left.is_empty() {
            return;
        }
        let idle = self.busy().map(|busy| &left - &busy);
        let taken = idle.and_then(|idle| idle.into_iter().try_for_each(|host| self.take(host)));
        if let Err(error) = taken {
            self.tell(error.to_string());
        }
    }

    /// Takes one host over, unless a connection has begun before its frames were redirected.
    fn take(&mut self, host: IpAddr) -> Result<(), ServiceError> {
        let redirected = self.redirect(host).and_then(|()| self.busy());
        if !matches!(&redirected, Ok(busy) if !busy.contains(&host)) {
            self.pass(host)?;
            return redirected.map(drop);
        }
        self.routes.take_over(host)?;
        locked(&self.left).remove(&host);
        Ok(())
    }

    /// The frames of a host come to the workers, whichever device they come by.
    fn redirect(&self, host: IpAddr) -> Result<(), ServiceError> {
        for steering in self.devices.iter().filter_map(|one| one.steering.as_ref()) {
            steering.take(host)?;
        }
        Ok(())
    }

    /// Hosts with which the kernel has connections itself.
    fn busy(&self) -> Result<BTreeSet<IpAddr>, ServiceError> {
        let mut busy = BTreeSet::new();
        for served in &self.ruled {
            let hosts = existing::hosts(*served);
            busy.extend(hosts.map_err(system("cannot list TCP connections"))?);
        }
        Ok(busy)
    }

    /// Tells what failed, each message once. The gateway goes on.
    fn tell(&mut self, message: String) {
        if self.told.len() < 64 && !self.told.contains(&message) {
            say(&message);
            self.told.insert(message);
        }
    }
}

/// Tells which addresses of an interface have gone and come.
fn tell_addresses(interface: &str, before: &[SocketAddr], now: &[SocketAddr]) {
    let addresses =
        |served: &[SocketAddr]| -> BTreeSet<IpAddr> { served.iter().map(SocketAddr::ip).collect() };
    let (before, now) = (addresses(before), addresses(now));
    for lost in &before - &now {
        say(&format!(
            "{interface} has lost {lost}: new connections to it are not served"
        ));
    }
    for new in &now - &before {
        say(&format!("{interface} has {new}: it is served"));
    }
}

fn say(message: &str) {
    // A closed stderr does not end the service.
    let _told = writeln!(io::stderr(), "saiga: {message}");
}
