//! An AF_XDP socket with its four rings.
//!
//! Kernel: Documentation/networking/af_xdp.rst, linux/if_xdp.h. The socket is bound without
//! `XDP_USE_SG`, so a frame is one chunk.
#![expect(
    unsafe_code,
    reason = "no crate of the project sets the options of busy polling"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags, XdpRingOffset,
    XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::options::{BusyPoll, Copies};
use super::ring::{Consumer, Layout, Producer};
use super::umem::Umem;
use crate::mapping::Mapping;

// asm-generic/socket.h
const SO_BUSY_POLL: i32 = 46;
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;

/// How long a queue may be in use by a socket that is closed already: the kernel ends a socket in
/// the background. In steps that double, about a second in all.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSES: u32 = 10;

/// A socket and this process's ends of its rings.
#[derive(Debug)]
pub(super) struct Socket {
    // The rings are mapped memory of their own, which may outlive the descriptor.
    fd: OwnedFd,
    /// Chunks for frames to come.
    pub(super) fill: Producer<1>,
    /// Frames that have come.
    pub(super) received: Consumer<2>,
    /// Frames to send.
    pub(super) sending: Producer<2>,
    /// Chunks whose frames were sent.
    pub(super) completed: Consumer<1>,
}

/// What a slot of a ring of frames holds (`struct xdp_desc`, without options).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) length: u32,
}

impl Descriptor {
    pub(super) fn of_slot([address, rest]: [u64; 2]) -> Self {
        let [a, b, c, d, ..] = rest.to_ne_bytes();
        let length = u32::from_ne_bytes([a, b, c, d]);
        Self { address, length }
    }

    pub(super) fn slot(self) -> [u64; 2] {
        let [a, b, c, d] = self.length.to_ne_bytes();
        [self.address, u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])]
    }
}

/// The step at which a socket could not be opened, and the error.
pub(super) type Failure = (Step, io::Error);

/// A step of opening a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Socket,
    Memory,
    Rings,
    BusyPoll,
    Bind,
}

impl Step {
    /// What the step does, for messages.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::Socket => "open an AF_XDP socket",
            Self::Memory => "give the memory for frames to the kernel",
            Self::Rings => "map the rings of a socket",
            Self::BusyPoll => "set busy polling",
            Self::Bind => "bind a socket to a queue",
        }
    }
}

fn at<E: Into<io::Error>>(step: Step) -> impl Fn(E) -> Failure {
    move |error| (step, error.into())
}

impl Socket {
    /// Opens a socket whose frames are in `umem`, with `slots` slots in each ring. It receives
    /// nothing until [`Self::bind`].
    pub(super) fn open(umem: &Umem, slots: u32) -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None);
        let fd = fd.map_err(at(Step::Socket))?;
        let memory = XdpUmemReg {
            addr: umem.address(),
            len: umem.bytes() as u64,
            chunk_size: u32::try_from(umem.chunk_bytes()).unwrap_or(u32::MAX),
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&fd, memory).map_err(at(Step::Memory))?;
        Self::with_rings(fd, slots).map_err(at(Step::Rings))
    }

    fn with_rings(fd: OwnedFd, slots: u32) -> io::Result<Self> {
        sockopt::set_xdp_umem_fill_ring_size(&fd, slots)?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, slots)?;
        sockopt::set_xdp_rx_ring_size(&fd, slots)?;
        sockopt::set_xdp_tx_ring_size(&fd, slots)?;
        let offsets = sockopt::xdp_mmap_offsets(&fd)?;
        let ring = |offset, words, page| map(&fd, offset, slots, words, page);
        let (memory, layout) = ring(offsets.fr, 1, XDP_UMEM_PGOFF_FILL_RING)?;
        let fill = Producer::new(memory, layout);
        let (memory, layout) = ring(offsets.rx, 2, XDP_PGOFF_RX_RING)?;
        let received = Consumer::new(memory, layout);
        let (memory, layout) = ring(offsets.tx, 2, XDP_PGOFF_TX_RING)?;
        let sending = Producer::new(memory, layout);
        let (memory, layout) = ring(offsets.cr, 1, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let completed = Consumer::new(memory, layout);
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        Ok(Self {
            fill: fill.ok_or_else(invalid)?,
            received: received.ok_or_else(invalid)?,
            sending: sending.ok_or_else(invalid)?,
            completed: completed.ok_or_else(invalid)?,
            fd,
        })
    }

    /// Lets the kernel poll the device when this process asks for frames, instead of by interrupts.
    pub(super) fn set_busy_poll(&self, busy_poll: BusyPoll) -> Result<(), Failure> {
        let BusyPoll { micros, budget } = busy_poll;
        for (option, value) in [
            (SO_PREFER_BUSY_POLL, 1),
            (SO_BUSY_POLL, i32::from(micros)),
            (SO_BUSY_POLL_BUDGET, i32::from(budget)),
        ] {
            set(&self.fd, option, value).map_err(at(Step::BusyPoll))?;
        }
        Ok(())
    }

    /// Binds the socket to a queue. Frames come when the program redirects them to the socket.
    /// Returns whether the device reads and writes the chunks itself.
    pub(super) fn bind(&self, index: u32, queue: u16, copies: Copies) -> Result<bool, Failure> {
        let copies = match copies {
            Copies::IfNeeded => SocketAddrXdpFlags::empty(),
            Copies::Always => SocketAddrXdpFlags::XDP_COPY,
            Copies::Never => SocketAddrXdpFlags::XDP_ZEROCOPY,
        };
        let flags = copies | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        let address = SocketAddrXdp::new(flags, index, queue.into());
        let mut pause = FIRST_PAUSE;
        let mut bound = rustix::net::bind(&self.fd, &address);
        for _ in 0..MOST_PAUSES {
            if bound != Err(Errno::BUSY) {
                break;
            }
            wait(pause);
            pause *= 2;
            bound = rustix::net::bind(&self.fd, &address);
        }
        bound.map_err(at(Step::Bind))?;
        let options = sockopt::xdp_options(&self.fd).map_err(at(Step::Bind))?;
        Ok(options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    pub(super) fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(sockopt::xdp_statistics(&self.fd)?)
    }

    /// Lets the kernel look at the ring of frames to send.
    pub(super) fn wake_sending(&self) -> Result<(), Errno> {
        rustix::net::send(&self.fd, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// Lets the kernel look at the ring of chunks for frames to come.
    pub(super) fn wake_receiving(&self) -> Result<(), Errno> {
        let mut nothing = [0_u8; 0];
        rustix::net::recv(&self.fd, &mut nothing[..], RecvFlags::DONTWAIT).map(drop)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Maps a ring whose slots have `words` times eight bytes.
fn map(
    fd: &OwnedFd,
    offset: XdpRingOffset,
    slots: u32,
    words: usize,
    page: u64,
) -> io::Result<(Mapping, Layout)> {
    let beyond = |_| io::Error::from(io::ErrorKind::InvalidData);
    let place = |offset: u64| usize::try_from(offset).map_err(beyond);
    let layout = Layout {
        producer: place(offset.producer)?,
        consumer: place(offset.consumer)?,
        // Kernels without flags (before Linux 5.4) have no links either, so opening failed already.
        flags: place(offset.flags.unwrap_or(offset.producer))?,
        slots: place(offset.desc)?,
        count: slots,
    };
    let bytes = layout.slots + slots as usize * words * size_of::<u64>();
    Ok((Mapping::of(fd.as_fd(), bytes, page)?, layout))
}

fn set(fd: &OwnedFd, option: i32, value: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(0);
    let value = (&raw const value).cast();
    // SAFETY: the option's value is an int, which lives until the call returns.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, value, length) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel does not tell when it has ended the socket that had the queue"
)]
fn wait(pause: Duration) {
    std::thread::sleep(pause);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn descriptors_have_the_layout_of_the_kernel() {
        let slot = [0x1_0000, 0x0000_0001_0000_05dc];
        let descriptor = Descriptor {
            address: 0x1_0000,
            length: 1500,
        };
        assert_eq!(Descriptor::of_slot(slot), descriptor, "options are ignored");
        assert_eq!(descriptor.slot(), [0x1_0000, 1500]);
    }
}
