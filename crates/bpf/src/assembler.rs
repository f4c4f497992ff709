//! An assembler for BPF: instructions by name, and jumps to labels.
//!
//! Format: linux/bpf.h, Documentation/bpf/standardization/instruction-set.rst. The assembler has
//! the instructions of Saiga's programs, and no others. Jumps go forward only.

/// One instruction: operation, registers, offset and immediate in the order of `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    operation: u8,
    /// Destination in the low four bits, source in the high four bits; the reverse on big-endian
    /// machines.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8, "as bpf(2) reads it");

/// A register. Calls destroy R1 to R5; R6 to R8 survive them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reg {
    /// The result of a call, and of the program.
    R0 = 0,
    /// The context at the start of the program; the first argument of a call.
    R1 = 1,
    /// The second argument of a call.
    R2 = 2,
    /// The third argument of a call.
    R3 = 3,
    /// The fourth argument of a call.
    R4 = 4,
    /// The fifth argument of a call.
    R5 = 5,
    /// Survives calls.
    R6 = 6,
    /// Survives calls.
    R7 = 7,
    /// Survives calls.
    R8 = 8,
    /// The address of the stack's end; the stack grows downwards from there.
    Stack = 10,
}

/// The size of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 1 byte.
    Byte = 0x10,
    /// 2 bytes.
    Half = 0x08,
    /// 4 bytes.
    Word = 0x00,
    /// 8 bytes.
    Double = 0x18,
}

/// A function of the kernel (`enum bpf_func_id`, bpf-helpers(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `bpf_map_lookup_elem`
    MapLookup = 1,
    /// `bpf_map_update_elem`
    MapUpdate = 2,
    /// `bpf_ktime_get_ns`
    KtimeGetNs = 5,
    /// `bpf_get_current_pid_tgid`
    CurrentPidTgid = 14,
    /// `bpf_get_current_uid_gid`
    CurrentUidGid = 15,
    /// `bpf_redirect`
    Redirect = 23,
    /// `bpf_setsockopt`
    SetSockOpt = 49,
    /// `bpf_redirect_map`
    RedirectMap = 51,
    /// `bpf_sk_release`
    SkRelease = 86,
    /// `bpf_probe_read_kernel`
    ProbeReadKernel = 113,
    /// `bpf_get_netns_cookie`
    NetnsCookie = 122,
    /// `bpf_sk_assign`
    SkAssign = 124,
    /// `bpf_ringbuf_output`
    RingbufOutput = 130,
}

/// The condition of a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// The values are equal.
    Equal = 0x10,
    /// The values have a common bit.
    CommonBit = 0x40,
    /// The values are not equal.
    NotEqual = 0x50,
}

/// The target of jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// Assembles one program from instructions and labels.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// For each label the index of its instruction; `None` until [`bind`](Self::bind).
    targets: Vec<Option<usize>>,
    /// The index of each jump, and its label.
    jumps: Vec<(usize, Label)>,
}

// linux/bpf.h, bpf_common.h: class, mode and operation.
const LDX_MEM: u8 = 0x61;
const STX_MEM: u8 = 0x63;
const ST_MEM: u8 = 0x62;
const ATOMIC_ADD_DOUBLE: u8 = 0xdb;
const LD_IMM_DOUBLE: u8 = 0x18;
const MOV_REGISTER: u8 = 0xbf;
const MOV_NUMBER: u8 = 0xb7;
const ADD_NUMBER: u8 = 0x07;
const AND_NUMBER: u8 = 0x57;
const SHIFT_RIGHT_NUMBER: u8 = 0x77;
/// Converts the lower bits of a register to network byte order; the immediate is their number.
const TO_NETWORK_ORDER: u8 = 0xdc;
const JUMP: u8 = 0x05;
/// Compares 32 bits, so that the sign of the immediate does not matter.
const JUMP_32: u8 = 0x06;
/// Compares two registers, all 64 bits and unsigned.
const JUMP_IF_GREATER: u8 = 0x2d;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// `BPF_PSEUDO_MAP_FD` as the source register of a load: the immediate is a map's descriptor.
const IS_MAP: u8 = 1;

impl Assembler {
    fn push(&mut self, operation: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers = if cfg!(target_endian = "big") {
            to << 4 | from
        } else {
            from << 4 | to
        };
        self.code.push(Instruction {
            operation,
            registers,
            offset,
            immediate,
        });
    }

    /// `to = *(base + offset)`, extended with zeros.
    pub fn load(&mut self, width: Width, to: Reg, base: Reg, offset: i16) {
        self.push(LDX_MEM | width as u8, to as u8, base as u8, offset, 0);
    }

    /// `*(base + offset) = from`
    pub fn store(&mut self, width: Width, base: Reg, offset: i16, from: Reg) {
        self.push(STX_MEM | width as u8, base as u8, from as u8, offset, 0);
    }

    /// `*(base + offset) = number`
    pub fn store_number(&mut self, width: Width, base: Reg, offset: i16, number: i32) {
        self.push(ST_MEM | width as u8, base as u8, 0, offset, number);
    }

    /// `*(u64 *)(base + offset) += from`, atomically.
    pub fn add_atomically(&mut self, base: Reg, offset: i16, from: Reg) {
        self.push(ATOMIC_ADD_DOUBLE, base as u8, from as u8, offset, 0);
    }

    /// `to = from`
    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.push(MOV_REGISTER, to as u8, from as u8, 0, 0);
    }

    /// `to = number`
    pub fn set(&mut self, to: Reg, number: i32) {
        self.push(MOV_NUMBER, to as u8, 0, 0, number);
    }

    /// `to += number`
    pub fn add(&mut self, to: Reg, number: i32) {
        self.push(ADD_NUMBER, to as u8, 0, 0, number);
    }

    /// `to &= number`
    pub fn and(&mut self, to: Reg, number: i32) {
        self.push(AND_NUMBER, to as u8, 0, 0, number);
    }

    /// `to >>= bits`, unsigned.
    pub fn shift_right(&mut self, to: Reg, bits: i32) {
        self.push(SHIFT_RIGHT_NUMBER, to as u8, 0, 0, bits);
    }

    /// Converts the lower 16 bits of a register to network byte order, and clears the others.
    pub fn port(&mut self, to: Reg) {
        self.push(TO_NETWORK_ORDER, to as u8, 0, 0, 16);
    }

    /// `to = map`. `map` is the descriptor of a [`Map`](crate::Map) or [`Ring`](crate::Ring).
    pub fn load_map(&mut self, to: Reg, map: i32) {
        self.push(LD_IMM_DOUBLE, to as u8, IS_MAP, 0, map);
        // The instruction takes two slots; the second holds the upper half of the number.
        self.push(0, 0, 0, 0, 0);
    }

    /// `r0 = helper(r1, ...)`
    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, 0, 0, 0, helper as i32);
    }

    /// `return r0`
    pub fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// Returns a new label, to be bound later.
    pub fn label(&mut self) -> Label {
        self.targets.push(None);
        Label(self.targets.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind(&mut self, label: Label) {
        if let Some(target) = self.targets.get_mut(label.0) {
            *target = Some(self.code.len());
        }
    }

    /// `goto label`
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP, 0, 0, 0, 0);
    }

    /// `if (register is number) goto label`, for the lower 32 bits of the register.
    pub fn jump_if(&mut self, register: Reg, is: Condition, number: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        let number = number.cast_signed();
        self.push(JUMP_32 | is as u8, register as u8, 0, 0, number);
    }

    /// `if (register is 0) goto label`, for all 64 bits of the register: a pointer is null or not.
    pub fn jump_if_null(&mut self, register: Reg, is: Condition, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP | is as u8, register as u8, 0, 0, 0);
    }

    /// `if (register > other) goto label`, unsigned.
    pub fn jump_if_greater(&mut self, register: Reg, other: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP_IF_GREATER, register as u8, other as u8, 0, 0);
    }

    /// Returns the program; `None` if a label is unbound, lies in front of a jump to it, or is too
    /// far from a jump (32,767 instructions).
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<Instruction>> {
        for (jump, Label(label)) in self.jumps {
            let target = self.targets.get(label).copied().flatten()?;
            // An offset counts from the instruction after the jump.
            let distance = target.checked_sub(jump + 1)?;
            self.code.get_mut(jump)?.offset = i16::try_from(distance).ok()?;
        }
        Some(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the output of `bpftool prog dump xlated opcodes` on a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_specification_says() {
        let mut code = Assembler::default();
        let end = code.label();
        code.load(Width::Double, Reg::R7, Reg::R1, 8);
        code.load(Width::Half, Reg::R3, Reg::R7, 12);
        code.load(Width::Byte, Reg::R3, Reg::R7, 23);
        code.store(Width::Word, Reg::Stack, -16, Reg::R8);
        code.store_number(Width::Double, Reg::Stack, -8, 7);
        code.jump_if(Reg::R8, Condition::NotEqual, 0xffff_fffe, end);
        code.jump_if(Reg::R3, Condition::CommonBit, 0xff3f, end);
        code.jump_if_greater(Reg::R2, Reg::R8, end);
        code.load_map(Reg::R1, 3);
        code.call(Helper::MapLookup);
        code.jump_if_null(Reg::R0, Condition::Equal, end);
        code.add_atomically(Reg::R0, 0, Reg::R8);
        code.port(Reg::R3);
        code.bind(end);
        code.set(Reg::R0, 0);
        code.exit();
        let found = code.finish().unwrap();
        let row = |operation, registers, offset, immediate| Instruction {
            operation,
            registers,
            offset,
            immediate,
        };
        let expected = [
            row(0x79, 0x17, 8, 0),
            row(0x69, 0x73, 12, 0),
            row(0x71, 0x73, 23, 0),
            row(0x63, 0x8a, -16, 0),
            row(0x7a, 0x0a, -8, 7),
            row(0x56, 0x08, 8, -2),
            row(0x46, 0x03, 7, 0xff3f),
            row(0x2d, 0x82, 6, 0),
            row(0x18, 0x11, 0, 3),
            row(0x00, 0x00, 0, 0),
            row(0x85, 0x00, 0, 1),
            row(0x15, 0x00, 2, 0),
            row(0xdb, 0x80, 0, 0),
            row(0xdc, 0x03, 0, 16),
            row(0xb7, 0x00, 0, 0),
            row(0x95, 0x00, 0, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_program_with_an_unbound_label_is_refused() {
        let mut code = Assembler::default();
        let unbound = code.label();
        code.jump(unbound);
        assert_eq!(code.finish(), None);
    }

    #[test]
    fn a_jump_backwards_is_refused() {
        let mut code = Assembler::default();
        let start = code.label();
        code.bind(start);
        code.jump(start);
        assert_eq!(code.finish(), None);
    }
}
