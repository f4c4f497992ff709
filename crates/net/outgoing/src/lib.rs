//! Connections of local programs to other hosts that the gateway carries.
//!
//! A program calls connect(2) as ever. A BPF program marks its socket, a routing rule brings the
//! marked SYN to `lo` ([`Routes::bring`]), and a second BPF program holds it there. The gateway
//! reads it as an [`Attempt`], and asks the remote host. Then [`Outgoing::admit`] sends it on to
//! a listener of the gateway, or the gateway answers as the remote host or a router has done.
//! docs/adr/0026 says why, `program.rs` who may do what.
//!
//! Everything ends with the process. Everything acts on the network namespace of the calling
//! thread. Deliberately absent: Linux before 6.6, where a program for received packets does not end
//! with its process.

#![deny(missing_docs)]

mod answer;
mod attempt;
mod namespace;
mod program;
mod sockets;
mod steering;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

use ipnet::IpNet;
use saiga_anchor::{Routes, RoutesError};

pub use attempt::Attempt;
use sockets::Sockets;
use steering::Steering;

/// Bytes of the largest SYN: two headers with all their options.
const SYN_BYTES: usize = 120;

/// The networks whose connections the gateway carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destinations {
    /// Each network with the address of this host for programs that have not bound one.
    pub networks: Vec<(IpNet, IpAddr)>,
    /// Addresses in these networks that this host has itself. It may get others later: see
    /// [`Outgoing::pass`].
    pub own: BTreeSet<IpAddr>,
    /// The user of the gateway, whose own connections are not meant.
    pub user: u32,
}

/// Why connections of local programs cannot be carried.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    /// The rules and routes were not made.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// The process lacks a right.
    #[error("outgoing connections need CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF: cannot {action}")]
    NotPermitted {
        /// What was attempted.
        action: &'static str,
    },
    /// The kernel lacks what is needed.
    #[error(
        "outgoing connections need Linux 6.6 with BPF for cgroups: this kernel cannot {action}"
    )]
    NotSupported {
        /// What was attempted.
        action: &'static str,
    },
    /// There is no cgroup2 file system.
    #[error("outgoing connections need cgroup2: mount it (mount -t cgroup2 none /sys/fs/cgroup)")]
    NoCgroup,
    /// The kernel refused a program.
    #[error(transparent)]
    Program(#[from] saiga_bpf::LoadError),
    /// Another error.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// A connection of a local program that was admitted.
#[derive(Debug)]
pub struct Accepted {
    /// The gateway's end, which does not block.
    pub stream: TcpStream,
    /// The program's address and port.
    pub local: SocketAddr,
    /// Those of the remote host.
    pub remote: SocketAddr,
}

/// Carries connections to some networks while this value lives.
#[derive(Debug)]
pub struct Outgoing {
    packets: File,
    sockets: Sockets,
    steering: Steering,
}

impl Outgoing {
    /// Begins to hold new connections to these networks. Those that exist are not touched.
    ///
    /// # Errors
    /// An [`OutgoingError`]; what was changed ends with `routes`.
    pub fn up(routes: &mut Routes, destinations: &Destinations) -> Result<Self, OutgoingError> {
        let (device, packets) = routes.device().map_err(system("read a TUN device"))?;
        let nonblocking = rustix::io::ioctl_fionbio(&packets, true);
        nonblocking.map_err(|error| system("read a TUN device")(error.into()))?;
        let sockets = Sockets::open(&destinations.networks)?;
        let steering = Steering::load(destinations, device, &sockets)?;
        // Only marked sockets need them, and there is none so far.
        routes.bring(&destinations.networks)?;
        let mut outgoing = Self {
            packets,
            sockets,
            steering,
        };
        outgoing.steering.attach()?;
        Ok(outgoing)
    }

    /// The next connection that a program asks for; `None` if there is none now. A program whose
    /// SYN has no answer repeats it, and its attempt comes again.
    ///
    /// # Errors
    /// The errors of `read(2)` on a TUN device.
    pub fn next_attempt(&mut self) -> io::Result<Option<Attempt>> {
        let mut buffer = [0; SYN_BYTES];
        loop {
            let length = match self.packets.read(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // The kernel itself sends packets on the device, such as router solicitations.
            let packet = buffer.get(..length).unwrap_or_default();
            if let Some(attempt) = Attempt::parse(packet) {
                return Ok(Some(attempt));
            }
        }
    }

    /// The remote host has accepted: the program's SYN reaches the listener, and
    /// [`Self::accept`] returns the connection. [`Self::forget`] follows.
    ///
    /// # Errors
    /// The errors of `bpf(2)`, with ENOBUFS or E2BIG for too many attempts at a time, and of
    /// `sendto(2)`.
    pub fn admit(&self, attempt: &Attempt) -> io::Result<()> {
        self.steering.admit(attempt.local, attempt.remote)?;
        self.sockets.send(attempt.remote, attempt.packet())
    }

    /// The connection was accepted, or no one waits for it any more.
    ///
    /// # Errors
    /// The errors of `bpf(2)`.
    pub fn forget(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        self.steering.forget(local, remote)
    }

    /// The destination is this host: the SYN goes to a listener of the kernel, and the programs
    /// leave later connections to the address to the kernel.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn pass(&self, attempt: &Attempt) -> io::Result<()> {
        self.steering.pass(attempt.local, attempt.remote)?;
        self.sockets.send(attempt.remote, attempt.packet())
    }

    /// The remote host has refused: so does the program's connect(2) (ECONNREFUSED).
    ///
    /// # Errors
    /// The errors of `sendto(2)`.
    pub fn refuse(&self, attempt: &Attempt) -> io::Result<()> {
        match answer::reset(attempt) {
            Some(packet) => self.sockets.send(attempt.local, &packet),
            None => Ok(()),
        }
    }

    /// No path leads to the remote host: the program's connect(2) fails with EHOSTUNREACH.
    ///
    /// # Errors
    /// The errors of `sendto(2)`.
    pub fn report_unreachable(&self, attempt: &Attempt) -> io::Result<()> {
        match answer::unreachable(attempt) {
            Some(packet) => self.sockets.send(attempt.local, &packet),
            None => Ok(()),
        }
    }

    /// The next connection that was admitted; `None` if there is none now.
    ///
    /// # Errors
    /// The errors of `accept4(2)`, such as EMFILE.
    pub fn accept(&self) -> io::Result<Option<Accepted>> {
        self.sockets.accept()
    }

    /// Readable when there are attempts, and when there are connections to accept.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.packets.as_fd()).chain(self.sockets.listeners())
    }
}

fn system(action: &'static str) -> impl FnOnce(io::Error) -> OutgoingError {
    move |source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => OutgoingError::NotPermitted { action },
        _ => OutgoingError::System { action, source },
    }
}
