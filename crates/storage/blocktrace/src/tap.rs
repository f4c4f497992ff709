//! One stream of events, from BPF or from tracefs.

use crate::bpf::{BpfError, BpfTap};
use crate::device::Device;
use crate::event::Event;
use crate::tracefs::{TracefsError, TracefsTap};

/// Options of [`Tap::open`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Devices whose writes are followed; all devices if empty. Writes are submitted to the
    /// mounted device: give the partition instead of its disk, or both
    /// ([`Device::disk_and_partitions`]).
    pub devices: Vec<Device>,
    /// Size of the buffer for events that were not read yet: a power of two; the kernel's pages may
    /// be larger. An event takes 48 bytes with BPF, and about 100 with tracefs, which divides the
    /// buffer among the CPUs.
    pub buffer_bytes: u32,
    /// `None` tries BPF, then tracefs.
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

/// The kernel interface that events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A BPF program: events have hints, and times in nanoseconds.
    Bpf,
    /// Lines of text from tracefs: events have no hints, and times in microseconds.
    Tracefs,
}

/// An error of opening or reading a [`Tap`].
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// An error of BPF, when [`Options::via`] asked for it or while events were read.
    #[error("cannot follow block writes by BPF: {0}")]
    Bpf(#[from] BpfError),
    /// An error of tracefs, when [`Options::via`] asked for it or while events were read.
    #[error("cannot follow block writes by tracefs: {0}")]
    Tracefs(#[from] TracefsError),
    #[error("cannot follow block writes: by BPF, {bpf}; by tracefs, {tracefs}")]
    Neither {
        bpf: BpfError,
        tracefs: TracefsError,
    },
}

/// Follows every write and discard until it is dropped.
#[derive(Debug)]
pub struct Tap {
    source: Source,
    bpf_error: Option<BpfError>,
}

#[derive(Debug)]
enum Source {
    Bpf(BpfTap),
    Tracefs(TracefsTap),
}

impl Tap {
    /// Starts to follow writes.
    ///
    /// # Errors
    /// Fails if the kernel refuses the interface of [`Options::via`], or both interfaces if that
    /// is `None`.
    pub fn open(options: &Options) -> Result<Self, TapError> {
        let Options {
            devices,
            buffer_bytes,
            via,
        } = options;
        let tap = |source| Self {
            source,
            bpf_error: None,
        };
        if *via == Some(Via::Tracefs) {
            let tracefs = TracefsTap::open(devices, *buffer_bytes)?;
            return Ok(tap(Source::Tracefs(tracefs)));
        }
        let bpf = match BpfTap::open(devices, *buffer_bytes) {
            Ok(bpf) => return Ok(tap(Source::Bpf(bpf))),
            Err(error) => error,
        };
        if *via == Some(Via::Bpf) {
            return Err(bpf.into());
        }
        match TracefsTap::open(devices, *buffer_bytes) {
            Ok(tracefs) => Ok(Self {
                source: Source::Tracefs(tracefs),
                bpf_error: Some(bpf),
            }),
            Err(tracefs) => Err(TapError::Neither { bpf, tracefs }),
        }
    }

    /// Returns the kernel interface in use.
    #[must_use]
    pub fn via(&self) -> Via {
        match self.source {
            Source::Bpf(_) => Via::Bpf,
            Source::Tracefs(_) => Via::Tracefs,
        }
    }

    /// Returns the error of BPF if tracefs is used because BPF failed.
    #[must_use]
    pub fn bpf_error(&self) -> Option<&BpfError> {
        self.bpf_error.as_ref()
    }

    /// Passes each event since the last call to `on_event`, without waiting. Events of different
    /// CPUs may be out of order.
    ///
    /// # Errors
    /// Fails if the kernel's buffer cannot be read.
    pub fn read(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), TapError> {
        match &mut self.source {
            Source::Bpf(tap) => Ok(tap.read(on_event)?),
            Source::Tracefs(tap) => Ok(tap.read(on_event)?),
        }
    }

    /// Returns the number of events that were lost since the tap was opened, because the buffer
    /// was full or the BPF program was running on that CPU already. Tracefs may also count
    /// some events of other devices.
    ///
    /// # Errors
    /// Fails if the kernel's counters cannot be read.
    pub fn lost(&self) -> Result<u64, TapError> {
        match &self.source {
            Source::Bpf(tap) => Ok(tap.lost()?),
            Source::Tracefs(tap) => Ok(tap.lost()?),
        }
    }
}
