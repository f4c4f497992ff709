//! Block writes by BPF: loads the programs of [`program`] by bpf(2), attaches them to the
//! tracepoint `block_bio_queue`, and reads their ring or map.

mod kernel;
mod program;

use std::path::Path;

use rustix::io::Errno;
use saiga_bpf::{Instruction, Link, LoadError, Map, MapKind, Next, Program, ProgramKind, Ring};

use crate::device::Device;
use crate::event::Event;
use kernel::{Kernel, Operations};
use program::{Maps, RECORD_BYTES, Record};

/// The kernel's type information (Documentation/bpf/btf.rst).
const BTF: &str = "/sys/kernel/btf/vmlinux";
const TRACEPOINT: &std::ffi::CStr = c"block_bio_queue";

/// An error of following writes by BPF.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel has no type information, or its structures are not those that Saiga expects.
    #[error("{0}")]
    Kernel(String),
    #[error("cannot {action}: {error}{}", advice(*error))]
    Refused { action: &'static str, error: Errno },
    /// The kernel's verifier refused a program.
    #[error("the kernel refused the program: {}{}: {}", .0.error, advice(.0.error), .0.reason())]
    Program(LoadError),
    #[error("{0} is not a valid device number (Linux has 12 bits for major, 20 for minor numbers)")]
    Device(Device),
    #[error("BPF cannot filter by {0} devices; give fewer devices or none")]
    TooManyDevices(usize),
    #[error("the BPF ring holds a record of invalid length {0:#x}; reading cannot go on")]
    Ring(u32),
}

fn advice(error: Errno) -> &'static str {
    match error {
        Errno::PERM | Errno::ACCESS => {
            " (BPF needs CAP_BPF and CAP_PERFMON, which root has outside containers, and a kernel \
             that is not locked down)"
        }
        Errno::INVAL => " (BPF rings and programs like this one need Linux 5.12)",
        Errno::NOSYS => " (the kernel was built without BPF)",
        _ => "",
    }
}

fn refused(action: &'static str) -> impl Fn(Errno) -> BpfError {
    move |error| BpfError::Refused { action, error }
}

fn read_kernel() -> Result<Kernel, BpfError> {
    kernel::read(Path::new(BTF)).map_err(|error| BpfError::Kernel(error.to_string()))
}

/// A program that runs at the tracepoint while this value lives.
#[derive(Debug)]
struct Attached {
    // Dropped first: detaches the program.
    _link: Link,
    program: Program,
}

impl Attached {
    fn start(name: &str, code: &[Instruction]) -> Result<Self, BpfError> {
        let program = Program::load(ProgramKind::RawTracepoint, name, code);
        let program = program.map_err(BpfError::Program)?;
        let link = Link::raw_tracepoint(&program, TRACEPOINT).map_err(refused(
            "attach a program to the tracepoint block_bio_queue",
        ))?;
        Ok(Self {
            _link: link,
            program,
        })
    }
}

/// A map with one counter, in which a program counts the events that it lost.
#[derive(Debug)]
struct Losses {
    map: Map<4, 8>,
}

impl Losses {
    fn new() -> Result<Self, BpfError> {
        let map = Map::new(MapKind::Array, 1).map_err(refused("create a BPF map"))?;
        Ok(Self { map })
    }

    /// Returns the number of events for which the ring or map had no room, plus those at which
    /// the program did not run because it was running on that CPU already.
    fn count(&self, attached: &Attached) -> Result<u64, BpfError> {
        let dropped = self.map.value(&[0; 4]).map_err(refused("read a BPF map"))?;
        let misses = attached
            .program
            .misses()
            .map_err(refused("read the program's count of misses"))?;
        Ok(u64::from_ne_bytes(dropped.unwrap_or_default()).saturating_add(misses))
    }
}

/// Every write and discard, from a BPF ring.
#[derive(Debug)]
pub(crate) struct BpfTap {
    // Dropped first, so that the program is detached before the ring is unmapped.
    attached: Attached,
    losses: Losses,
    ring: Ring,
    operations: Operations,
    has_hint: bool,
}

impl BpfTap {
    /// Follows writes to `devices`; to all devices if `devices` is empty.
    pub(crate) fn open(devices: &[Device], ring_bytes: u32) -> Result<Self, BpfError> {
        let kernel = read_kernel()?;
        let numbers = device_numbers(devices)?;
        let ring = Ring::new(ring_bytes).map_err(refused("create a BPF ring"))?;
        let losses = Losses::new()?;
        let maps = Maps {
            main: ring.number(),
            losses: losses.map.number(),
        };
        let code =
            program::tap(&kernel, &numbers, maps).ok_or(BpfError::TooManyDevices(devices.len()))?;
        Ok(Self {
            attached: Attached::start("saiga_tap", &code)?,
            losses,
            ring,
            has_hint: kernel.hint.is_some(),
            operations: kernel.operations,
        })
    }

    /// Passes each event since the last call to `on_event`.
    pub(crate) fn read(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), BpfError> {
        let mut bytes = [0; RECORD_BYTES];
        // At most a full ring, so that this call returns even while other processes write.
        for _ in 0..self.ring.capacity(RECORD_BYTES) {
            match self.ring.take(&mut bytes) {
                Next::Nothing => break,
                Next::Discarded => {}
                Next::Invalid(length) => return Err(BpfError::Ring(length)),
                Next::Record => {
                    if let Some(event) = Record::parse(&bytes).and_then(|it| self.event(&it)) {
                        on_event(event);
                    }
                }
            }
        }
        Ok(())
    }

    fn event(&self, record: &Record) -> Option<Event> {
        let Record {
            t_ns,
            sector,
            size,
            opf,
            dev,
            pid,
            hint,
        } = *record;
        Some(Event {
            t_ns,
            device: Device::from_kernel(dev),
            address: sector.checked_mul(512)?,
            len: size.into(),
            operation: self.operations.of(opf)?,
            hint: self.has_hint.then_some(hint),
            is_metadata: self.operations.is_metadata(opf),
            pid: Some(pid),
        })
    }

    /// Returns the number of lost events.
    pub(crate) fn lost(&self) -> Result<u64, BpfError> {
        self.losses.count(&self.attached)
    }
}

/// Sums of written bytes by device and hint, computed in the kernel.
#[derive(Debug)]
pub(crate) struct BpfMeter {
    attached: Attached,
    losses: Losses,
    map: Map<8, 8>,
    has_hint: bool,
}

/// Capacity of the meter's map, which has a row for each pair of device and hint.
const METER_ROWS: u32 = 4096;

impl BpfMeter {
    /// Counts writes to `devices`; to all devices if `devices` is empty.
    pub(crate) fn open(devices: &[Device]) -> Result<Self, BpfError> {
        let kernel = read_kernel()?;
        let numbers = device_numbers(devices)?;
        let map = Map::new(MapKind::Hash, METER_ROWS).map_err(refused("create a BPF map"))?;
        let losses = Losses::new()?;
        let maps = Maps {
            main: map.number(),
            losses: losses.map.number(),
        };
        let code = program::meter(&kernel, &numbers, maps)
            .ok_or(BpfError::TooManyDevices(devices.len()))?;
        Ok(Self {
            attached: Attached::start("saiga_meter", &code)?,
            losses,
            map,
            has_hint: kernel.hint.is_some(),
        })
    }

    /// Returns device, hint and bytes of each row, unordered.
    pub(crate) fn read(&self) -> Result<Vec<(Device, Option<u8>, u64)>, BpfError> {
        let fail = || refused("read a BPF map");
        let mut rows = Vec::new();
        let mut last = None;
        // Rows are never removed, so the kernel returns each key once; the limit ends the loop
        // even if it does not.
        while let Some(key) = self.map.key_after(last.as_ref()).map_err(fail())? {
            if rows.len() as u64 >= METER_ROWS.into() {
                break;
            }
            let [d0, d1, d2, d3, hint, ..] = key;
            let device = Device::from_kernel(u32::from_ne_bytes([d0, d1, d2, d3]));
            if let Some(bytes) = self.map.value(&key).map_err(fail())? {
                let hint = self.has_hint.then_some(hint);
                rows.push((device, hint, u64::from_ne_bytes(bytes)));
            }
            last = Some(key);
        }
        Ok(rows)
    }

    /// Returns the number of writes that were not counted.
    pub(crate) fn lost(&self) -> Result<u64, BpfError> {
        self.losses.count(&self.attached)
    }
}

/// Returns the numbers of `devices` as the kernel has them in `dev_t`.
fn device_numbers(devices: &[Device]) -> Result<Vec<u32>, BpfError> {
    let numbers = devices.iter();
    numbers
        .map(|device| device.kernel().ok_or(BpfError::Device(*device)))
        .collect()
}
