//! A network namespace with one TUN device, in which the kernel has an address and the script is
//! all other hosts.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sys;

/// Address of the kernel's side.
pub(crate) const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of the script's side.
pub(crate) const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The device is looked at this often while nothing comes, or 500 times in a longer wait, so that a
/// segment is known to be at most this much older than the time at which it is read.
const GLANCE: Duration = Duration::from_millis(10);

/// A time that is known to lie between two instants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) earliest: Instant,
    pub(crate) latest: Instant,
    /// The wait between the two, if there was one.
    doze: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let now = Instant::now();
        Self {
            earliest: now,
            latest: now,
            doze: Duration::ZERO,
        }
    }

    /// How late a segment was read for which the device was watched.
    pub(crate) fn delay(&self) -> Duration {
        if self.doze.is_zero() {
            return Duration::ZERO;
        }
        (self.latest - self.earliest).saturating_sub(self.doze)
    }
}

pub(crate) struct Device {
    file: File,
    /// The device was empty at this time.
    empty: Instant,
    /// The wait since then.
    doze: Duration,
    packets: VecDeque<(Moment, Vec<u8>)>,
}

impl Device {
    /// Moves the calling thread into a namespace of its own with a device that is up.
    pub(crate) fn new() -> io::Result<Self> {
        sys::unshare_network()?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        sys::set_tun(&file, "tun0")?;
        ip(&["address", "add", &format!("{LOCAL}/24"), "dev", "tun0"])?;
        // Segments one by one: for the sake of batches, the kernel would set PSH and wait.
        ip(&["link", "set", "tun0", "up", "gso_max_segs", "1"])?;
        Ok(Self {
            file,
            empty: Instant::now(),
            doze: Duration::ZERO,
            packets: VecDeque::new(),
        })
    }

    /// The largest packet from now on.
    pub(crate) fn set_mtu(&self, bytes: u32) -> io::Result<()> {
        ip(&["link", "set", "tun0", "mtu", &bytes.to_string()])
    }

    /// Has the kernel acknowledge all data at once, as it does at the begin of most connections.
    pub(crate) fn set_quickack(&self) -> io::Result<()> {
        let subnet = format!("{PEER}/32");
        ip(&["route", "add", &subnet, "dev", "tun0", "quickack", "1"])
    }

    /// A packet to the kernel, which handles it before this returns.
    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.file.write_all(packet)
    }

    /// The oldest packet that the kernel has sent so far.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Moment, Vec<u8>)>> {
        self.take()?;
        Ok(self.packets.pop_front())
    }

    /// Waits until `until`, or until the kernel has sent a packet if `is_eager`.
    pub(crate) fn wait(&mut self, until: Instant, is_eager: bool) -> io::Result<()> {
        loop {
            self.take()?;
            let now = Instant::now();
            if now >= until || is_eager && !self.packets.is_empty() {
                return Ok(());
            }
            let rest = until - now;
            self.doze = GLANCE.max(rest / 500).min(rest);
            sys::wait_readable(&self.file, self.doze)?;
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        loop {
            let before = Instant::now();
            match self.file.read(&mut buffer) {
                Ok(length) => {
                    let moment = Moment {
                        earliest: self.empty,
                        latest: Instant::now(),
                        doze: self.doze,
                    };
                    self.packets.push_back((moment, buffer[..length].to_vec()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.empty = before;
                    self.doze = Duration::ZERO;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Sets `net.ipv4.NAME` in the namespace of the calling thread.
pub(crate) fn sysctl(name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value.to_string())
        .map_err(|error| io::Error::new(error.kind(), format!("net.ipv4.{name}: {error}")))
}

/// Runs ip(8) in the namespace of the calling thread.
fn ip(words: &[&str]) -> io::Result<()> {
    let status = Command::new("ip").args(words).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("ip {words:?}: {status}")));
    }
    Ok(())
}
