//! Block writes by BPF: loads the programs of [`program`] by bpf(2), attaches them to the
//! tracepoint `block_bio_queue`, and reads their ring or map.

mod instructions;
mod kernel;
mod program;

use std::path::Path;

use rustix::io::Errno;

use crate::device::Device;
use crate::event::Event;
use crate::sys::{Map, MapKind, Next, Program, ProgramError, Ring};
use kernel::{Kernel, Operations};
use program::{Maps, RECORD_BYTES, Record};

pub(crate) use instructions::Instruction;

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
    /// The kernel's verifier refused a program; `log` is the verifier's output.
    #[error("the kernel refused the program: {error}{}: {}", advice(*error), last_line(log))]
    Program { error: Errno, log: String },
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

fn last_line(log: &str) -> &str {
    log.lines()
        .rev()
        .find(|line| !line.starts_with("processed "))
        .unwrap_or("the verifier gave no reason")
}

fn refused(action: &'static str) -> impl Fn(Errno) -> BpfError {
    move |error| BpfError::Refused { action, error }
}

impl From<ProgramError> for BpfError {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::Load(error, log) => Self::Program { error, log },
            ProgramError::Attach(error) => {
                refused("attach a program to the tracepoint block_bio_queue")(error)
            }
        }
    }
}

fn read_kernel() -> Result<Kernel, BpfError> {
    kernel::read(Path::new(BTF)).map_err(|error| BpfError::Kernel(error.to_string()))
}

/// A program's name in the form of `union bpf_attr`: at most 15 bytes, padded with zeros.
const fn name(text: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    let mut index = 0;
    while index < text.len() && index < 15 {
        name[index] = text[index];
        index += 1;
    }
    name
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
    fn count(&self, program: &Program) -> Result<u64, BpfError> {
        let dropped = self.map.value(&[0; 4]).map_err(refused("read a BPF map"))?;
        let misses = program
            .misses()
            .map_err(refused("read the program's count of misses"))?;
        Ok(u64::from_ne_bytes(dropped.unwrap_or_default()).saturating_add(misses))
    }
}

/// Every write and discard, from a BPF ring.
#[derive(Debug)]
pub(crate) struct BpfTap {
    // Dropped first, so that the program is detached before the ring is unmapped.
    program: Program,
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
            program: Program::start(name(b"saiga_tap"), &code, TRACEPOINT)?,
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
        self.losses.count(&self.program)
    }
}

/// Sums of written bytes by device and hint, computed in the kernel.
#[derive(Debug)]
pub(crate) struct BpfMeter {
    program: Program,
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
            program: Program::start(name(b"saiga_meter"), &code, TRACEPOINT)?,
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
        self.losses.count(&self.program)
    }
}

/// Returns the numbers of `devices` as the kernel has them in `dev_t`.
fn device_numbers(devices: &[Device]) -> Result<Vec<u32>, BpfError> {
    let numbers = devices.iter();
    numbers
        .map(|device| device.kernel().ok_or(BpfError::Device(*device)))
        .collect()
}
