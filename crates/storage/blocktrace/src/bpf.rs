//! The kernel's own view of each bio: programs that are written here, loaded by bpf(2) and attached to a tracepoint.

mod instructions;
mod kernel;
mod program;

use std::path::Path;

use rustix::io::Errno;

use crate::device::Device;
use crate::event::Event;
use crate::sys::{Map, MapKind, Next, Program, ProgramFailure, Ring};
use kernel::{Kernel, Operations};
use program::{Maps, RECORD_BYTES, Record};

pub(crate) use instructions::Instruction;

/// Where the kernel describes itself.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const TRACEPOINT: &std::ffi::CStr = c"block_bio_queue";

/// Why writes cannot be followed by BPF.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel does not describe itself, or has other structures than are known here.
    #[error("{0}")]
    Kernel(String),
    /// The kernel refused it.
    #[error("cannot {what}: {error}{}", advice(*error))]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        error: Errno,
    },
    /// The kernel's verifier refused a program.
    #[error("the kernel refused the program: {error}{}: {}", advice(*error), last_line(log))]
    Program {
        /// What the kernel said.
        error: Errno,
        /// What its verifier said.
        log: String,
    },
    /// A device has a number that the kernel cannot have.
    #[error("there is no device with one of these numbers")]
    Device,
    /// The ring holds what was not put there.
    #[error("the ring of events holds a record of length {0:#x}: it cannot be read any further")]
    Ring(u32),
}

fn advice(error: Errno) -> &'static str {
    match error {
        Errno::PERM | Errno::ACCESS => {
            " (it takes CAP_BPF and CAP_PERFMON, which root has outside of containers, and a kernel that is not locked \
             down)"
        }
        Errno::INVAL => " (it takes Linux 5.12)",
        Errno::NOSYS => " (the kernel was built without BPF)",
        _ => "",
    }
}

fn last_line(log: &str) -> &str {
    log.lines()
        .rev()
        .find(|line| !line.starts_with("processed "))
        .unwrap_or("it does not say why")
}

fn refused(what: &'static str) -> impl Fn(Errno) -> BpfError {
    move |error| BpfError::Refused { what, error }
}

impl From<ProgramFailure> for BpfError {
    fn from(failure: ProgramFailure) -> Self {
        match failure {
            ProgramFailure::Load(error, log) => Self::Program { error, log },
            ProgramFailure::Attach(error) => {
                refused("attach a program to the tracepoint block_bio_queue")(error)
            }
        }
    }
}

fn look_at_kernel() -> Result<Kernel, BpfError> {
    kernel::read(Path::new(BTF)).map_err(|error| BpfError::Kernel(error.to_string()))
}

/// A name as the kernel keeps it.
const fn name(text: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    let mut at = 0;
    // The last byte stays zero.
    while at < text.len() && at < 15 {
        name[at] = text[at];
        at += 1;
    }
    name
}

/// A map with one number, in which programs count what they lost, and the program that does.
#[derive(Debug)]
struct Losses {
    map: Map<4, 8>,
}

impl Losses {
    fn new() -> Result<Self, BpfError> {
        let map = Map::new(MapKind::Array, 1).map_err(refused("make a BPF map"))?;
        Ok(Self { map })
    }

    /// What found no room, and what came while the program was busy.
    fn count(&self, program: &Program) -> Result<u64, BpfError> {
        let fail = refused("read a BPF map");
        let found = self.map.value(&[0; 4]).map_err(fail)?;
        let misses = program
            .misses()
            .map_err(refused("ask for the program's misses"))?;
        Ok(u64::from_ne_bytes(found.unwrap_or_default()).saturating_add(misses))
    }
}

/// Every write and discard, from a ring.
#[derive(Debug)]
pub(crate) struct BpfTap {
    // Detached before the ring goes.
    program: Program,
    losses: Losses,
    ring: Ring,
    operations: Operations,
    has_hint: bool,
}

impl BpfTap {
    /// Follows writes to `devices`, or to all.
    pub(crate) fn open(devices: &[Device], ring_bytes: u32) -> Result<Self, BpfError> {
        let kernel = look_at_kernel()?;
        let numbers = program::numbers(devices).ok_or(BpfError::Device)?;
        let ring = Ring::new(ring_bytes).map_err(refused("make a BPF ring"))?;
        let losses = Losses::new()?;
        let maps = Maps {
            main: ring.number(),
            losses: losses.map.number(),
        };
        let code = program::tap(&kernel, &numbers, maps).ok_or(BpfError::Device)?;
        Ok(Self {
            program: Program::start(name(b"saiga_tap"), &code, TRACEPOINT)?,
            losses,
            ring,
            has_hint: kernel.hint.is_some(),
            operations: kernel.operations,
        })
    }

    /// Tells what has come since the last call.
    pub(crate) fn read(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), BpfError> {
        let mut bytes = [0; RECORD_BYTES];
        // No more than the ring holds: whoever writes without end shall not keep the reader here.
        for _ in 0..self.ring.records(RECORD_BYTES) {
            match self.ring.take(&mut bytes) {
                Next::Nothing => break,
                Next::Discarded => {}
                Next::Nonsense(length) => return Err(BpfError::Ring(length)),
                Next::Record => {
                    if let Some(event) = Record::of(&bytes).and_then(|it| self.event(&it)) {
                        tell(event);
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

    /// How many were lost.
    pub(crate) fn lost(&self) -> Result<u64, BpfError> {
        self.losses.count(&self.program)
    }
}

/// Bytes written, added up by device and hint in the kernel.
#[derive(Debug)]
pub(crate) struct BpfMeter {
    program: Program,
    losses: Losses,
    map: Map<8, 8>,
    has_hint: bool,
}

/// Rows of the meter: each device has one for each hint that was seen.
const METER_ROWS: u32 = 4096;

impl BpfMeter {
    /// Counts writes to `devices`, or to all.
    pub(crate) fn open(devices: &[Device]) -> Result<Self, BpfError> {
        let kernel = look_at_kernel()?;
        let numbers = program::numbers(devices).ok_or(BpfError::Device)?;
        let map = Map::new(MapKind::Hash, METER_ROWS).map_err(refused("make a BPF map"))?;
        let losses = Losses::new()?;
        let maps = Maps {
            main: map.number(),
            losses: losses.map.number(),
        };
        let code = program::meter(&kernel, &numbers, maps).ok_or(BpfError::Device)?;
        Ok(Self {
            program: Program::start(name(b"saiga_meter"), &code, TRACEPOINT)?,
            losses,
            map,
            has_hint: kernel.hint.is_some(),
        })
    }

    /// Device, hint and bytes of each row, in no order.
    pub(crate) fn read(&self) -> Result<Vec<(Device, Option<u8>, u64)>, BpfError> {
        let fail = || refused("read a BPF map");
        let mut rows = Vec::new();
        let mut last = None;
        // Rows are only ever added, so no key is met twice; the limit is for a kernel that does not keep to that.
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

    /// How many writes were not counted.
    pub(crate) fn lost(&self) -> Result<u64, BpfError> {
        self.losses.count(&self.program)
    }
}
