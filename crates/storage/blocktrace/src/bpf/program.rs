//! The two BPF programs: the tap puts a record of each write into a ring, and the meter sums bytes
//! by device and hint.
//!
//! Both run at `block_bio_queue` and read the bio by bpf_probe_read_kernel. They end early for all
//! operations except writes (the tap: and discards) with data on the wanted devices. Events for
//! which the ring or map has no room are counted in a map with one counter.

use saiga_bpf::{Assembler, Condition, Helper, Instruction, Label, Reg, Width};

use super::kernel::{Kernel, OPERATION_MASK};

/// The record of one event in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) t_ns: u64,
    pub(super) sector: u64,
    pub(super) size: u32,
    pub(super) opf: u32,
    pub(super) dev: u32,
    pub(super) pid: u32,
    pub(super) hint: u8,
}

/// The length of a [`Record`] in the ring.
pub(super) const RECORD_BYTES: usize = 40;

// Offsets of the record and its fields from the end of the program's stack.
const RECORD: i16 = -40;
const T_NS: i16 = RECORD;
const SECTOR: i16 = RECORD + 8;
const SIZE: i16 = RECORD + 16;
const OPF: i16 = RECORD + 20;
const DEV: i16 = RECORD + 24;
const PID: i16 = RECORD + 28;
const HINT: i16 = RECORD + 32;
// The rest of the stack: a pointer, a zero for keys and values, the meter's key (device, hint).
const BDEV: i16 = -48;
const ZERO: i16 = -56;
const KEY: i16 = -64;
/// `BPF_NOEXIST`.
const ONLY_IF_NEW: i32 = 1;

impl Record {
    pub(super) fn parse(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        Some(Self {
            t_ns: u64::from_ne_bytes(field(bytes, T_NS)?),
            sector: u64::from_ne_bytes(field(bytes, SECTOR)?),
            size: u32::from_ne_bytes(field(bytes, SIZE)?),
            opf: u32::from_ne_bytes(field(bytes, OPF)?),
            dev: u32::from_ne_bytes(field(bytes, DEV)?),
            pid: u32::from_ne_bytes(field(bytes, PID)?),
            hint: u8::from_ne_bytes(field(bytes, HINT)?),
        })
    }
}

/// Returns the bytes of the field that has this offset on the program's stack.
fn field<const N: usize>(bytes: &[u8; RECORD_BYTES], stack_offset: i16) -> Option<[u8; N]> {
    let start = usize::try_from(stack_offset - RECORD).ok()?;
    bytes.get(start..start + N)?.try_into().ok()
}

/// The descriptors of the maps of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps {
    /// The ring of the tap, or the meter's map of sums.
    pub(super) main: i32,
    /// The map with the counter of lost events.
    pub(super) losses: i32,
}

/// Returns the program of the tap, which puts a record of every write and discard on `devices`
/// into a ring (on all devices if empty); `None` if there are too many devices.
pub(super) fn tap(kernel: &Kernel, devices: &[u32], maps: Maps) -> Option<Vec<Instruction>> {
    let mut code = Assembler::default();
    let end = code.label();
    let numbers = &kernel.operations;
    let operations = [
        Some(numbers.write),
        numbers.zone_append,
        Some(numbers.discard),
        numbers.secure_erase,
        numbers.write_zeroes,
    ];
    filter(&mut code, kernel, &operations, devices, end);
    read_kernel(&mut code, SECTOR, 8, Reg::R7, kernel.sector);
    code.store_number(Width::Double, Reg::Stack, HINT, 0);
    if let Some(offset) = kernel.hint {
        read_kernel(&mut code, HINT, 1, Reg::R7, offset);
    }
    code.call(Helper::KtimeGetNs);
    code.store(Width::Double, Reg::Stack, T_NS, Reg::R0);
    code.call(Helper::CurrentPidTgid);
    // The PID is in the upper 32 bits, the thread's number in the lower 32 bits.
    code.shift_right(Reg::R0, 32);
    code.store(Width::Word, Reg::Stack, PID, Reg::R0);
    code.load_map(Reg::R1, maps.main);
    stack_address(&mut code, Reg::R2, RECORD);
    code.set(Reg::R3, i32::try_from(RECORD_BYTES).ok()?);
    code.set(Reg::R4, 0);
    code.call(Helper::RingbufOutput);
    code.jump_if(Reg::R0, Condition::Equal, 0, end);
    count_loss(&mut code, maps.losses, end);
    code.bind(end);
    code.set(Reg::R0, 0);
    code.exit();
    code.finish()
}

/// Returns the program of the meter, which sums the bytes of every write on `devices` by device
/// and hint (on all devices if empty); `None` if there are too many devices.
pub(super) fn meter(kernel: &Kernel, devices: &[u32], maps: Maps) -> Option<Vec<Instruction>> {
    let mut code = Assembler::default();
    let (end, add) = (code.label(), code.label());
    let operations = [Some(kernel.operations.write), kernel.operations.zone_append];
    filter(&mut code, kernel, &operations, devices, end);
    code.load(Width::Word, Reg::R8, Reg::Stack, SIZE);
    code.load(Width::Word, Reg::R1, Reg::Stack, DEV);
    code.store_number(Width::Double, Reg::Stack, KEY, 0);
    code.store(Width::Word, Reg::Stack, KEY, Reg::R1);
    if let Some(offset) = kernel.hint {
        read_kernel(&mut code, KEY + 4, 1, Reg::R7, offset);
    }
    look_up(&mut code, maps.main, KEY);
    code.jump_if_null(Reg::R0, Condition::NotEqual, add);
    // Adds a row with zero bytes, unless another CPU has just added the row, and looks up again.
    code.store_number(Width::Double, Reg::Stack, ZERO, 0);
    code.load_map(Reg::R1, maps.main);
    stack_address(&mut code, Reg::R2, KEY);
    stack_address(&mut code, Reg::R3, ZERO);
    code.set(Reg::R4, ONLY_IF_NEW);
    code.call(Helper::MapUpdate);
    look_up(&mut code, maps.main, KEY);
    code.jump_if_null(Reg::R0, Condition::NotEqual, add);
    count_loss(&mut code, maps.losses, end);
    code.bind(add);
    code.add_atomically(Reg::R0, 0, Reg::R8);
    code.bind(end);
    code.set(Reg::R0, 0);
    code.exit();
    code.finish()
}

/// Jumps to `end` unless the bio has data, one of `operations`, and one of `devices`. Stores the
/// bio's address in R7, and its operation, size and device on the stack.
fn filter(
    code: &mut Assembler,
    kernel: &Kernel,
    operations: &[Option<u32>],
    devices: &[u32],
    end: Label,
) {
    let wanted: Vec<u32> = operations.iter().copied().flatten().collect();
    code.load(Width::Double, Reg::R7, Reg::R1, 8 * kernel.bio_argument);
    read_kernel(code, OPF, 4, Reg::R7, kernel.opf);
    code.load(Width::Word, Reg::R1, Reg::Stack, OPF);
    code.and(Reg::R1, OPERATION_MASK.cast_signed());
    require_one_of(code, Reg::R1, &wanted, end);
    read_kernel(code, SIZE, 4, Reg::R7, kernel.size);
    code.load(Width::Word, Reg::R1, Reg::Stack, SIZE);
    // A size of 0 is a flush without data.
    code.jump_if(Reg::R1, Condition::Equal, 0, end);
    read_kernel(code, BDEV, 8, Reg::R7, kernel.bdev);
    code.load(Width::Double, Reg::R3, Reg::Stack, BDEV);
    read_kernel(code, DEV, 4, Reg::R3, kernel.dev);
    if !devices.is_empty() {
        code.load(Width::Word, Reg::R1, Reg::Stack, DEV);
        require_one_of(code, Reg::R1, devices, end);
    }
}

/// Jumps to `end` unless the register has one of the values.
fn require_one_of(code: &mut Assembler, register: Reg, values: &[u32], end: Label) {
    let wanted = code.label();
    for value in values {
        code.jump_if(register, Condition::Equal, *value, wanted);
    }
    code.jump(end);
    code.bind(wanted);
}

/// Copies `bytes` of kernel memory at `from + offset` to the stack; zeroes if the read faults.
fn read_kernel(code: &mut Assembler, stack_offset: i16, bytes: i32, from: Reg, offset: i32) {
    stack_address(code, Reg::R1, stack_offset);
    code.set(Reg::R2, bytes);
    if from != Reg::R3 {
        code.copy(Reg::R3, from);
    }
    code.add(Reg::R3, offset);
    code.call(Helper::ProbeReadKernel);
}

/// `to = stack + stack_offset`
fn stack_address(code: &mut Assembler, to: Reg, stack_offset: i16) {
    code.copy(to, Reg::Stack);
    code.add(to, stack_offset.into());
}

/// `r0 = &map[key]`, or null. `key` is the offset of the key on the stack.
fn look_up(code: &mut Assembler, map: i32, key: i16) {
    code.load_map(Reg::R1, map);
    stack_address(code, Reg::R2, key);
    code.call(Helper::MapLookup);
}

/// Adds one to the counter of lost events and jumps to `end`.
fn count_loss(code: &mut Assembler, losses: i32, end: Label) {
    code.store_number(Width::Double, Reg::Stack, ZERO, 0);
    look_up(code, losses, ZERO);
    code.jump_if_null(Reg::R0, Condition::Equal, end);
    code.set(Reg::R1, 1);
    code.add_atomically(Reg::R0, 0, Reg::R1);
    code.jump(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_parsed() {
        let mut bytes = [0; RECORD_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &5_u64.to_ne_bytes());
        put(8, &6_u64.to_ne_bytes());
        put(16, &7_u32.to_ne_bytes());
        put(20, &8_u32.to_ne_bytes());
        put(24, &9_u32.to_ne_bytes());
        put(28, &10_u32.to_ne_bytes());
        put(32, &[11]);
        let expected = Record {
            t_ns: 5,
            sector: 6,
            size: 7,
            opf: 8,
            dev: 9,
            pid: 10,
            hint: 11,
        };
        assert_eq!(Record::parse(&bytes), Some(expected));
    }
}
