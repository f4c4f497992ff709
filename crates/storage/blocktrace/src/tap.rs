//! One stream of events, whichever way the kernel allows.

use crate::bpf::{BpfError, BpfTap};
use crate::device::Device;
use crate::event::Event;
use crate::tracefs::{TracefsError, TracefsTap};

/// How to listen.
#[derive(Debug, Clone)]
pub struct Options {
    /// Devices whose writes are told; all, if there are none. Writes are submitted to the device that is mounted: name
    /// the partition and not its disk, or both ([`Device::disk_and_partitions`]).
    pub devices: Vec<Device>,
    /// Room for events that wait to be read: a power of two, one page at least. An event takes 48 bytes by BPF, and
    /// about a hundred by tracefs, where every CPU has a share of the room.
    pub buffer_bytes: u32,
    /// By which way; `None` for the best that is allowed.
    pub via: Option<Via>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            buffer_bytes: 16 << 20,
            via: None,
        }
    }
}

/// A way by which events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A BPF program: with hints.
    Bpf,
    /// Lines of text from tracefs: without, and to the microsecond.
    Tracefs,
}

/// Why there are no events.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// BPF was asked for.
    #[error("cannot follow block writes by BPF: {0}")]
    Bpf(#[from] BpfError),
    /// Tracefs was asked for.
    #[error("cannot follow block writes by tracefs: {0}")]
    Tracefs(#[from] TracefsError),
    /// Both are refused.
    #[error("cannot follow block writes: by BPF, {bpf}; by tracefs, {tracefs}")]
    Neither {
        /// Why not by the one.
        bpf: BpfError,
        /// Why not by the other.
        tracefs: TracefsError,
    },
}

/// Tells every write and discard from the moment it is opened until it is dropped.
#[derive(Debug)]
pub struct Tap {
    way: Way,
    why_not_bpf: Option<BpfError>,
}

#[derive(Debug)]
enum Way {
    Bpf(BpfTap),
    Tracefs(TracefsTap),
}

impl Tap {
    /// Begins to listen.
    ///
    /// # Errors
    /// What is missing, for each way that was tried.
    pub fn open(options: &Options) -> Result<Self, TapError> {
        let Options {
            devices,
            buffer_bytes,
            via,
        } = options;
        let tap = |way| Self {
            way,
            why_not_bpf: None,
        };
        if *via == Some(Via::Tracefs) {
            return Ok(tap(Way::Tracefs(TracefsTap::open(devices, *buffer_bytes)?)));
        }
        let bpf = match BpfTap::open(devices, *buffer_bytes) {
            Ok(bpf) => return Ok(tap(Way::Bpf(bpf))),
            Err(error) => error,
        };
        if *via == Some(Via::Bpf) {
            return Err(bpf.into());
        }
        match TracefsTap::open(devices, *buffer_bytes) {
            Ok(tracefs) => Ok(Self {
                way: Way::Tracefs(tracefs),
                why_not_bpf: Some(bpf),
            }),
            Err(tracefs) => Err(TapError::Neither { bpf, tracefs }),
        }
    }

    /// The way by which events come.
    #[must_use]
    pub fn via(&self) -> Via {
        match self.way {
            Way::Bpf(_) => Via::Bpf,
            Way::Tracefs(_) => Via::Tracefs,
        }
    }

    /// Why it is not the best one.
    #[must_use]
    pub fn why_not_bpf(&self) -> Option<&BpfError> {
        self.why_not_bpf.as_ref()
    }

    /// Tells what has come since the last call and returns at once. Of two events on different CPUs the later one may
    /// come first.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn read(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), TapError> {
        match &mut self.way {
            Way::Bpf(tap) => Ok(tap.read(tell)?),
            Way::Tracefs(tap) => Ok(tap.read(tell)?),
        }
    }

    /// How many events were lost since it was opened, because nobody read them in time or they came while another one
    /// was told on the same CPU. Tracefs may count some events of other devices, too.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn lost(&self) -> Result<u64, TapError> {
        match &self.way {
            Way::Bpf(tap) => Ok(tap.lost()?),
            Way::Tracefs(tap) => Ok(tap.lost()?),
        }
    }
}
