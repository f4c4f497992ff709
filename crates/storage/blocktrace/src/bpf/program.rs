//! The two BPF programs: one tells each write to a ring, one adds bytes up by device and hint.
//!
//! Both run at `block_bio_queue`, read the bio by bpf_probe_read_kernel, and end early for everything but writes and
//! discards with data on wanted devices. What is lost for lack of room is counted in a map with one number.

use super::instructions::{Assembler, Helper, Instruction, Is, Label, Reg, Width};
use super::kernel::{Kernel, OPERATION_MASK};
use crate::device::Device;

/// What the ring gets for each write.
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

/// Its length in the ring.
pub(super) const RECORD_BYTES: usize = 40;

// Where its parts lie on the program's stack, from the end of that, and so in the ring from RECORD_BYTES before.
const RECORD: i16 = -40;
const T_NS: i16 = RECORD;
const SECTOR: i16 = RECORD + 8;
const SIZE: i16 = RECORD + 16;
const OPF: i16 = RECORD + 20;
const DEV: i16 = RECORD + 24;
const PID: i16 = RECORD + 28;
const HINT: i16 = RECORD + 32;
// The rest of the stack: a pointer, a zero as key and as value, and the meter's key of device and hint.
const BDEV: i16 = -48;
const ZERO: i16 = -56;
const KEY: i16 = -64;
/// `BPF_NOEXIST`.
const ONLY_IF_NEW: i32 = 1;

impl Record {
    /// From the ring's bytes; `None` when there are too few.
    pub(super) fn of(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        Some(Self {
            t_ns: u64::from_ne_bytes(part(bytes, T_NS)?),
            sector: u64::from_ne_bytes(part(bytes, SECTOR)?),
            size: u32::from_ne_bytes(part(bytes, SIZE)?),
            opf: u32::from_ne_bytes(part(bytes, OPF)?),
            dev: u32::from_ne_bytes(part(bytes, DEV)?),
            pid: u32::from_ne_bytes(part(bytes, PID)?),
            hint: u8::from_ne_bytes(part(bytes, HINT)?),
        })
    }
}

/// The bytes of a part of the record.
fn part<const N: usize>(bytes: &[u8; RECORD_BYTES], place: i16) -> Option<[u8; N]> {
    let from = usize::try_from(place - RECORD).ok()?;
    bytes.get(from..from + N)?.try_into().ok()
}

/// The descriptors of the maps of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps {
    /// The ring, or the map of bytes.
    pub(super) main: i32,
    /// One number: what found no room there.
    pub(super) losses: i32,
}

/// Tells every write and discard on `devices` (all, if none are given) to a ring.
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
    begin(&mut code, kernel, &operations, devices, end);
    read(&mut code, SECTOR, 8, Reg::R7, kernel.sector);
    code.store_number(Width::Double, Reg::Stack, HINT, 0);
    if let Some(offset) = kernel.hint {
        read(&mut code, HINT, 1, Reg::R7, offset);
    }
    code.call(Helper::KtimeGetNs);
    code.store(Width::Double, Reg::Stack, T_NS, Reg::R0);
    code.call(Helper::CurrentPidTgid);
    // The process is in the upper half, the thread in the lower one.
    code.shift_right(Reg::R0, 32);
    code.store(Width::Word, Reg::Stack, PID, Reg::R0);
    code.load_map(Reg::R1, maps.main);
    point(&mut code, Reg::R2, RECORD);
    code.set(Reg::R3, i32::try_from(RECORD_BYTES).ok()?);
    code.set(Reg::R4, 0);
    code.call(Helper::RingbufOutput);
    code.jump_if(Reg::R0, Is::Equal, 0, end);
    count_loss(&mut code, maps.losses, end);
    code.place(end);
    code.end();
    code.finish()
}

/// Adds the bytes of every write on `devices` (all, if none are given) up by device and hint.
pub(super) fn meter(kernel: &Kernel, devices: &[u32], maps: Maps) -> Option<Vec<Instruction>> {
    let mut code = Assembler::default();
    let (end, add) = (code.label(), code.label());
    let operations = [Some(kernel.operations.write), kernel.operations.zone_append];
    begin(&mut code, kernel, &operations, devices, end);
    code.load(Width::Word, Reg::R8, Reg::Stack, SIZE);
    code.load(Width::Word, Reg::R1, Reg::Stack, DEV);
    code.store_number(Width::Double, Reg::Stack, KEY, 0);
    code.store(Width::Word, Reg::Stack, KEY, Reg::R1);
    if let Some(offset) = kernel.hint {
        read(&mut code, KEY + 4, 1, Reg::R7, offset);
    }
    look_up(&mut code, maps.main, KEY);
    code.jump_if_null(Reg::R0, Is::NotEqual, add);
    // The first of its kind: a row with nothing in it, unless another CPU is faster, and once more.
    code.store_number(Width::Double, Reg::Stack, ZERO, 0);
    code.load_map(Reg::R1, maps.main);
    point(&mut code, Reg::R2, KEY);
    point(&mut code, Reg::R3, ZERO);
    code.set(Reg::R4, ONLY_IF_NEW);
    code.call(Helper::MapUpdate);
    look_up(&mut code, maps.main, KEY);
    code.jump_if_null(Reg::R0, Is::NotEqual, add);
    count_loss(&mut code, maps.losses, end);
    code.place(add);
    code.add_atomically(Reg::R0, 0, Reg::R8);
    code.place(end);
    code.end();
    code.finish()
}

/// Leaves the bio in R7, and operation, size and device in their places; goes to `end` for what is not wanted.
fn begin(
    code: &mut Assembler,
    kernel: &Kernel,
    operations: &[Option<u32>],
    devices: &[u32],
    end: Label,
) {
    let wanted: Vec<u32> = operations.iter().copied().flatten().collect();
    code.load(Width::Double, Reg::R7, Reg::R1, 8 * kernel.bio_argument);
    read(code, OPF, 4, Reg::R7, kernel.opf);
    code.load(Width::Word, Reg::R1, Reg::Stack, OPF);
    code.and(Reg::R1, OPERATION_MASK.cast_signed());
    one_of(code, Reg::R1, &wanted, end);
    read(code, SIZE, 4, Reg::R7, kernel.size);
    code.load(Width::Word, Reg::R1, Reg::Stack, SIZE);
    // A flush without data.
    code.jump_if(Reg::R1, Is::Equal, 0, end);
    read(code, BDEV, 8, Reg::R7, kernel.bdev);
    code.load(Width::Double, Reg::R3, Reg::Stack, BDEV);
    read(code, DEV, 4, Reg::R3, kernel.dev);
    if !devices.is_empty() {
        code.load(Width::Word, Reg::R1, Reg::Stack, DEV);
        one_of(code, Reg::R1, devices, end);
    }
}

/// Goes on behind this if the register has one of the values, else at `end`.
fn one_of(code: &mut Assembler, register: Reg, values: &[u32], end: Label) {
    let wanted = code.label();
    for value in values {
        code.jump_if(register, Is::Equal, *value, wanted);
    }
    code.jump(end);
    code.place(wanted);
}

/// Reads some of the kernel's memory at `from + offset` into the stack; zeroes if that is not memory.
fn read(code: &mut Assembler, place: i16, bytes: i32, from: Reg, offset: i32) {
    point(code, Reg::R1, place);
    code.set(Reg::R2, bytes);
    if from != Reg::R3 {
        code.copy(Reg::R3, from);
    }
    code.add(Reg::R3, offset);
    code.call(Helper::ProbeReadKernel);
}

/// `to = &stack[place]`
fn point(code: &mut Assembler, to: Reg, place: i16) {
    code.copy(to, Reg::Stack);
    code.add(to, place.into());
}

/// `r0 = map[key]`, or null.
fn look_up(code: &mut Assembler, map: i32, key: i16) {
    code.load_map(Reg::R1, map);
    point(code, Reg::R2, key);
    code.call(Helper::MapLookup);
}

/// Adds one to the number in the map of losses and goes to `end`.
fn count_loss(code: &mut Assembler, losses: i32, end: Label) {
    code.store_number(Width::Double, Reg::Stack, ZERO, 0);
    look_up(code, losses, ZERO);
    code.jump_if_null(Reg::R0, Is::Equal, end);
    code.set(Reg::R1, 1);
    code.add_atomically(Reg::R0, 0, Reg::R1);
    code.jump(end);
}

/// The numbers of devices as the kernel has them in memory; `None` if one cannot be.
pub(super) fn numbers(devices: &[Device]) -> Option<Vec<u32>> {
    devices.iter().map(|device| device.kernel()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_is_laid_out() {
        let mut bytes = [0; RECORD_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
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
        assert_eq!(Record::of(&bytes), Some(expected));
    }
}
