//! Ports: how they are found and opened, and their end.

use std::fmt;
use std::num::NonZeroU16;

use saiga_wire::ethernet::Mac;
use saiga_wire::offload::Fill;

use super::eal::Dpdk;
use super::error::DpdkError;
use super::pace::Pace;
use super::plugin::{Failed, Plugin};
use super::queue::{Handle, Queue};
use super::raw::{PortInfo, PortRequest, RawQueue};
use crate::device::{Info, Offload, Segmentation};

/// Bytes of a buffer of frames up to this length, as in the plug-in.
const BUFFER_BYTES: u32 = 2048;
/// Bytes of a link layer with two tags.
const LINK_BYTES: u32 = 22;
/// What DPDK adds to a buffer: its headers, and the room in front of a frame.
const AROUND_BUFFER_BYTES: u32 = 512;
/// Most payload of a super-segment, so that an IP packet is shorter than 64 KiB.
const MOST_SEGMENTED_BYTES: u32 = 65_000;
/// Bytes of the headers of a super-segment, at most.
const HEADERS_BYTES: u32 = 142;

/// How a port is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The port.
    pub which: Which,
    /// The number of queues. With more than one, the port must have RSS.
    pub queues: NonZeroU16,
    /// Descriptors of each ring, 64 to 32,768. A driver may change the number.
    pub ring: u16,
    /// Frames of each queue, half of them in each direction.
    pub frames: u32,
    /// Bytes of the largest IP packet; `None` for that of the port.
    pub mtu: Option<u16>,
}

/// Which port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// That of a device: a PCI address among [`Settings::cards`](super::Settings::cards), or a
    /// virtual device with its arguments, such as `net_memif0,role=server`, which is made.
    Device(String),
    /// The one with this MAC address.
    Mac(Mac),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => f.write_str(device),
            Self::Mac(mac) => fmt::Display::fmt(mac, f),
        }
    }
}

impl Options {
    /// Bytes of memory that the frames of the port take, for [`Memory`](super::Memory).
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let frame = u32::from(self.mtu.unwrap_or(0)) + LINK_BYTES;
        let buffer = frame.max(BUFFER_BYTES).next_multiple_of(1024) + AROUND_BUFFER_BYTES;
        let frames = u64::from(self.queues.get()) * u64::from(self.frames.saturating_add(1024));
        frames * u64::from(buffer)
    }
}

/// An open port, which is stopped when its last queue is dropped.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) plugin: Plugin,
    number: u16,
    queues: Vec<*mut RawQueue>,
}

impl Dpdk {
    /// Opens a port with its queues; the index of each is its number. A virtual device that was
    /// made stays until the process ends, and so does the memory of the queues.
    ///
    /// # Errors
    /// Each [`DpdkError`] about a port says when.
    pub fn open(&self, options: &Options) -> Result<Vec<Queue>, DpdkError> {
        let plugin = self.plugin;
        let number = match &options.which {
            Which::Device(device) => plugin.port_of(device),
            Which::Mac(mac) => plugin.port_with_mac(*mac),
        };
        let number = number.map_err(|source| DpdkError::NoPort {
            port: options.which.to_string(),
            source,
        })?;
        let request = PortRequest {
            queues: options.queues.get(),
            ring: options.ring,
            frames: options.frames,
            mtu: options.mtu.unwrap_or(0),
        };
        let opened = plugin.open_port(number, &request);
        let (info, queues) = opened.map_err(|failed| refused(options, failed))?;
        let handles = Handle::all(Port {
            plugin,
            number,
            queues,
        });
        let queues = (0..).zip(handles).map(|(queue, handle)| {
            let info = describe(options, queue, &info);
            let pace = Pace::new().map_err(|source| DpdkError::System {
                what: "cannot make a timer",
                source,
            })?;
            Ok(Queue::new(info, handle, pace))
        });
        queues.collect()
    }
}

impl Port {
    pub(super) fn queues(&self) -> &[*mut RawQueue] {
        &self.queues
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.plugin.stop_port(self.number);
    }
}

fn refused(options: &Options, failed: Failed) -> DpdkError {
    let Failed { call, source } = failed;
    let port = options.which.to_string();
    match call {
        "queues" => DpdkError::Queues {
            port,
            queues: options.queues.get(),
        },
        "RSS" => DpdkError::Spreads { port },
        "memory" => DpdkError::Memory { port },
        call => DpdkError::Port { port, call, source },
    }
}

fn describe(options: &Options, queue: u16, info: &PortInfo) -> Info {
    let name = options.which.to_string();
    let name = name.split(',').next().unwrap_or_default();
    Info {
        name: name.to_owned(),
        queue,
        mac: Some(Mac(info.mac)),
        mtu: info.mtu,
        offload: offload(info),
    }
}

fn offload(info: &PortInfo) -> Offload {
    if info.abilities & PortInfo::SENDS_CHECKSUMS == 0 {
        return Offload::NONE;
    }
    // A frame is copied to a chain of buffers, of which the port takes so many.
    let chain = info.most_segments.saturating_mul(BUFFER_BYTES);
    let most_bytes = match info.most_segments {
        0 => MOST_SEGMENTED_BYTES,
        _ => chain
            .saturating_sub(HEADERS_BYTES)
            .min(MOST_SEGMENTED_BYTES),
    };
    let can_segment = info.abilities & PortInfo::SEGMENTS != 0;
    Offload {
        checksum: Fill::PseudoHeader,
        segmentation: can_segment.then_some(Segmentation {
            checksum: Fill::PseudoHeaderWithoutLength,
            most_bytes,
        }),
    }
}
