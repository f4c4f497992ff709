//! A network interface whose served flows go to AF_XDP sockets.
//!
//! The kernel keeps the interface with its addresses, and all other frames. The program is attached
//! by a link, so that it ends with this value, or with the process: the kernel then gets all
//! frames.
//!
//! Replies to ARP and neighbour solicitations, and ICMP errors about the gateway's own segments, go
//! to the kernel, too. So the owner takes the MAC addresses of neighbours from the kernel's table,
//! and TCP finds the path's MTU by probing.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use saiga_bpf::{Link, Program, XdpMode};

use super::error::{OpenError, SteerError};
use super::nic::Nic;
use super::options::{Copies, Options};
use super::partial;
use super::queue::{Parts, Queue};
use super::socket::{Failure, Socket, Step};
use super::steering::{Flows, Steering};
use super::umem::Umem;
use crate::device::{Device as _, Info, Offload};

/// An interface with the program. Every queue needs a [`Queue`]: the frames of a queue without one
/// go to the kernel.
#[derive(Debug)]
pub struct Interface {
    // Dropped first: detaches the program.
    _link: Link,
    mode: XdpMode,
    native_error: Option<io::Error>,
    steering: Steering,
    nic: Nic,
    options: Options,
}

impl Interface {
    /// Attaches the program to the interface `name` of this thread's network namespace. It passes
    /// all frames to the kernel until there are queues and endpoints.
    ///
    /// Some drivers reset the device when the first program comes and when the last one goes: the
    /// link is then down for a moment.
    ///
    /// # Errors
    /// If there is no such interface or it is not an Ethernet interface, a right is missing, the
    /// kernel or driver cannot do it, another program is attached, the interface's MTU is too large
    /// for the frames, or it takes the tags of the VLAN out of them.
    pub fn open(name: &str, options: &Options) -> Result<Self, OpenError> {
        options.check()?;
        let nic = Nic::read(name)?;
        check_mtu(&nic, options)?;
        check_tags(&nic, options)?;
        let steering = Steering::load(name, nic.queues, options)?;
        let (link, mode, native_error) = attach(&steering.program, &nic, options.mode)?;
        Ok(Self {
            _link: link,
            mode,
            native_error,
            steering,
            nic,
            options: *options,
        })
    }

    /// Name of the network interface when it was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.nic.name
    }

    /// Whether frames of one connection can arrive on different queues: a veth device takes the
    /// queue on which the other end has sent.
    #[must_use]
    pub fn spreads_flows(&self) -> bool {
        self.nic.driver == partial::DRIVER
    }

    /// The number of receive queues when the interface was opened.
    #[must_use]
    pub fn queues(&self) -> u32 {
        self.nic.queues
    }

    /// Where the program runs.
    #[must_use]
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Why the program does not run in the driver, if [`Options::mode`] left the choice open.
    #[must_use]
    pub fn native_error(&self) -> Option<&io::Error> {
        self.native_error.as_ref()
    }

    /// Whether the other end decides if VLAN tags are in the frames: a veth device puts those that
    /// it sends beside them, unless `ethtool -K PEER txvlan off` was called. The kernel then gets
    /// the frames of the VLAN.
    #[must_use]
    pub fn hides_tags_of_peer(&self) -> bool {
        self.nic.driver == partial::DRIVER
    }

    /// Opens a queue, counted from 0. Its memory comes from the NUMA node of the calling thread,
    /// which must be in the interface's network namespace.
    ///
    /// Waits up to a second for a socket that had the queue and is closed already.
    ///
    /// # Errors
    /// If there is no such queue, another socket has it, a right is missing, or the limit of locked
    /// memory is too low.
    pub fn open_queue(&self, queue: u16) -> Result<Queue, OpenError> {
        let Self { nic, options, .. } = self;
        if u32::from(queue) >= nic.queues {
            return Err(OpenError::NoQueue {
                name: nic.name.clone(),
                queue,
                queues: nic.queues,
            });
        }
        let copies = self.copies()?;
        let (chunks, bytes) = (options.chunks(), options.frames.bytes());
        let umem = Umem::new(chunks, bytes, options.wants_huge_pages);
        let umem = umem.map_err(|error| self.system("get memory for frames", error))?;
        let failed = |failure| self.failed(queue, failure);
        let socket = Socket::open(&umem, options.slots).map_err(failed)?;
        if let Some(busy_poll) = options.busy_poll {
            socket.set_busy_poll(busy_poll).map_err(failed)?;
        }
        let mut opened = Queue::new(Parts {
            info: self.info(queue),
            socket,
            umem,
            chunks,
            has_partial_checksums: nic.driver == partial::DRIVER,
            polls_busily: options.busy_poll.is_some(),
        });
        opened.bind(nic.index, copies).map_err(failed)?;
        let connected = self.steering.connect(queue, opened.descriptor());
        connected.map_err(|error| self.system("give the socket to the program", error.into()))?;
        Ok(opened)
    }

    /// From now on, redirects the frames for an endpoint. An unspecified address (0.0.0.0 or ::)
    /// stands for all addresses of its version, also for those of other hosts to which this one
    /// forwards.
    ///
    /// # Errors
    /// If there are [`MAX_ENDPOINTS`](super::MAX_ENDPOINTS) already.
    pub fn serve(&self, endpoint: SocketAddr) -> Result<(), SteerError> {
        self.steering.serve(endpoint)
    }

    /// From now on, leaves the frames for an endpoint to the kernel.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn stop(&self, endpoint: SocketAddr) -> Result<(), SteerError> {
        self.steering.stop(endpoint)
    }

    /// From now on, leaves all frames of a host to the kernel: it has connections there that are
    /// older than the program.
    ///
    /// # Errors
    /// If there are [`MAX_HOSTS`](super::MAX_HOSTS) already.
    pub fn pass(&self, host: IpAddr) -> Result<(), SteerError> {
        self.steering.pass(host)
    }

    /// From now on, redirects the frames of a host again.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn take(&self, host: IpAddr) -> Result<(), SteerError> {
        self.steering.take(host)
    }

    /// The connections that are redirected one by one; `None` without [`Options::flows`].
    #[must_use]
    pub fn flows(&self) -> Option<Flows> {
        self.steering.flows()
    }

    /// Frames that a program in the kernel's core sees are copies.
    fn copies(&self) -> Result<Copies, OpenError> {
        match (self.mode, self.options.copies) {
            (XdpMode::Native, copies) => Ok(copies),
            (XdpMode::Generic, Copies::IfNeeded | Copies::Always) => Ok(Copies::Always),
            (XdpMode::Generic, Copies::Never) => Err(OpenError::NoZeroCopy {
                name: self.nic.name.clone(),
            }),
        }
    }

    fn info(&self, queue: u16) -> Info {
        Info {
            name: self.nic.name.clone(),
            queue,
            mac: Some(self.nic.mac),
            mtu: u16::try_from(self.nic.mtu).unwrap_or(u16::MAX),
            offload: Offload::NONE,
        }
    }

    fn failed(&self, queue: u16, (step, source): Failure) -> OpenError {
        let name = self.nic.name.clone();
        let action = step.action();
        match (step, Errno::from_io_error(&source)) {
            (Step::Socket | Step::BusyPoll, Some(Errno::PERM)) => {
                OpenError::NotPermitted { action }
            }
            (Step::Socket, Some(Errno::AFNOSUPPORT)) => OpenError::NotSupported { action },
            (Step::Memory, Some(Errno::NOBUFS)) => OpenError::Memlock {
                bytes: self.options.chunks() as usize * self.options.frames.bytes(),
            },
            (Step::Bind, Some(Errno::BUSY)) => OpenError::QueueInUse { name, queue },
            (Step::Bind, Some(Errno::NODEV)) => OpenError::NoInterface { name },
            (Step::Bind, Some(Errno::OPNOTSUPP)) if self.options.copies == Copies::Never => {
                OpenError::NoZeroCopy { name }
            }
            _ => self.system(action, source),
        }
    }

    fn system(&self, action: &'static str, source: io::Error) -> OpenError {
        OpenError::System {
            name: self.nic.name.clone(),
            action,
            source,
        }
    }
}

fn check_mtu(nic: &Nic, options: &Options) -> Result<(), OpenError> {
    let most = options.frames.most_mtu();
    if nic.mtu as usize <= most {
        return Ok(());
    }
    Err(OpenError::Mtu {
        name: nic.name.clone(),
        mtu: nic.mtu,
        frame_bytes: options.frames.bytes(),
        most,
    })
}

/// A tag beside the frame cannot be seen by the program. A veth device takes none out, whatever it
/// says.
fn check_tags(nic: &Nic, options: &Options) -> Result<(), OpenError> {
    let takes_out = nic.takes_tags_out && nic.driver != partial::DRIVER;
    match options.vlan {
        Some(vlan) if takes_out => Err(OpenError::TagsTakenOut {
            name: nic.name.clone(),
            vlan,
        }),
        Some(_) | None => Ok(()),
    }
}

/// Attaches the program, in the driver if possible. Returns the error of the driver if the choice
/// was open and the driver could not.
fn attach(
    program: &Program,
    nic: &Nic,
    wanted: Option<XdpMode>,
) -> Result<(Link, XdpMode, Option<io::Error>), OpenError> {
    let link = |mode| Link::xdp(program, nic.index, mode);
    if let Some(mode) = wanted {
        return match link(mode) {
            Ok(link) => Ok((link, mode, None)),
            Err(error) => Err(attach_error(nic, error)),
        };
    }
    let native = match link(XdpMode::Native) {
        Ok(link) => return Ok((link, XdpMode::Native, None)),
        Err(error @ (Errno::PERM | Errno::BUSY | Errno::EXIST | Errno::NODEV)) => {
            return Err(attach_error(nic, error));
        }
        Err(error) => io::Error::from(error),
    };
    match link(XdpMode::Generic) {
        Ok(link) => Ok((link, XdpMode::Generic, Some(native))),
        Err(generic) => Err(OpenError::Attach {
            name: nic.name.clone(),
            native,
            generic: generic.into(),
        }),
    }
}

fn attach_error(nic: &Nic, error: Errno) -> OpenError {
    let name = nic.name.clone();
    let action = "attach an XDP program";
    match error {
        Errno::PERM => OpenError::NotPermitted { action },
        Errno::BUSY | Errno::EXIST => OpenError::Occupied { name },
        Errno::NODEV => OpenError::NoInterface { name },
        other => OpenError::System {
            name,
            action,
            source: other.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saiga_wire::ethernet::Mac;

    #[test]
    fn a_vlan_needs_its_tags_in_the_frames() {
        for (driver, takes_tags_out, vlan, expected) in [
            ("ixgbe", false, Some(5), ""),
            ("ixgbe", true, None, ""),
            ("veth", true, Some(5), ""),
            ("ixgbe", true, Some(5), "ethtool -K eth7 rxvlan off"),
        ] {
            let nic = Nic {
                name: "eth7".to_owned(),
                index: 7,
                mac: Mac([2, 0, 0, 0, 0, 7]),
                mtu: 1500,
                queues: 1,
                driver: driver.to_owned(),
                takes_tags_out,
            };
            let options = Options {
                vlan,
                ..Options::default()
            };
            let checked = check_tags(&nic, &options);
            let said = checked.err().map_or(String::new(), |one| one.to_string());
            assert!(said.contains(expected), "{driver}: {said}");
            assert_eq!(said.is_empty(), expected.is_empty(), "{driver}: {said}");
        }
    }
}
