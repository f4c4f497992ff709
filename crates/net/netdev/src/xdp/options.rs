//! Options of an AF_XDP interface and its queues.

pub use saiga_bpf::XdpMode;

use super::error::OpenError;

/// Bytes in front of a received frame that belong to the program (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// An Ethernet header with one tag.
const LINK_BYTES: usize = 18;
/// Slots of a ring: the fewest and the most.
const FEWEST_SLOTS: u32 = 64;
const MOST_SLOTS: u32 = 32_768;
/// Most frames of a queue.
const MOST_FRAMES: u32 = 1 << 20;

/// Options of [`Interface::open`](super::Interface::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Where the program runs; `None`: in the driver, or in the kernel's core if the driver cannot.
    pub mode: Option<XdpMode>,
    /// The VLAN whose frames are redirected, 1 to 4094; `None`: the frames without a VLAN. All
    /// others go to the kernel.
    pub vlan: Option<u16>,
    /// Size of a frame in memory.
    pub frames: FrameSize,
    /// Slots in each of the four rings of a queue: a power of two from 64 to 32,768.
    pub slots: u32,
    /// Frames for which a queue has memory, from two for each slot, the default, to 1,048,576. Half
    /// of them can wait for the worker, and half for the device.
    pub frame_count: Option<u32>,
    /// Whether to take huge pages for the frames, if there are enough.
    pub wants_huge_pages: bool,
    /// Whether the kernel may copy frames.
    pub copies: Copies,
    /// Poll the device instead of waiting for its interrupts.
    pub busy_poll: Option<BusyPoll>,
    /// Most connections that are redirected one by one, beside those to endpoints.
    pub flows: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: None,
            vlan: None,
            frames: FrameSize::Bytes2048,
            slots: 2048,
            frame_count: None,
            wants_huge_pages: false,
            copies: Copies::IfNeeded,
            busy_poll: None,
            flows: 0,
        }
    }
}

/// Size of a frame in memory. 256 bytes of it are the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSize {
    /// 2,048 bytes: an MTU of at most 1,774.
    Bytes2048,
    /// 4,096 bytes: an MTU of at most 3,822.
    Bytes4096,
}

impl FrameSize {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Bytes2048 => 2048,
            Self::Bytes4096 => 4096,
        }
    }

    /// The largest MTU.
    pub(super) const fn most_mtu(self) -> usize {
        self.bytes() - HEADROOM - LINK_BYTES
    }
}

/// Whether the kernel copies frames between its memory and that of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// If the driver cannot do without.
    IfNeeded,
    /// Even if the driver could do without.
    Always,
    /// The queue is not opened if the driver cannot do without.
    Never,
}

/// Busy polling (Linux 5.11): the kernel polls the device within the worker's calls.
///
/// It keeps interrupts off only if the interface defers them (`napi_defer_hard_irqs` and
/// `gro_flush_timeout` in its folder of /sys), which is the owner's to set and to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPoll {
    /// The longest time of one poll, in microseconds (`SO_BUSY_POLL`).
    pub micros: u16,
    /// Most frames of one poll (`SO_BUSY_POLL_BUDGET`).
    pub budget: u16,
}

impl Options {
    /// Checks what the kernel would refuse without a reason.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let is_valid =
            self.slots.is_power_of_two() && (FEWEST_SLOTS..=MOST_SLOTS).contains(&self.slots);
        if !is_valid {
            return Err(OpenError::Slots(self.slots));
        }
        if !(2 * self.slots..=MOST_FRAMES).contains(&self.chunks()) {
            return Err(OpenError::FrameCount(self.chunks()));
        }
        Ok(())
    }

    /// Chunks of a queue.
    pub(super) fn chunks(&self) -> u32 {
        self.frame_count.unwrap_or(2 * self.slots)
    }
}
