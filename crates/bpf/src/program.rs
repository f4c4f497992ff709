//! Programs that the kernel has accepted.
//!
//! Kernel: Documentation/bpf/verifier.rst. Loading proves to the kernel that a program ends and
//! reads no foreign memory. A loaded program does nothing until a [`Link`](crate::Link) attaches
//! it.
#![expect(unsafe_code, reason = "bpf(2) takes programs by pointer")]

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::assembler::Instruction;
use crate::call::{Command, address, bpf, length, number, open};

/// A kind of program (`enum bpf_prog_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// `BPF_PROG_TYPE_SCHED_CLS`: packets of an interface.
    Packets,
    /// `BPF_PROG_TYPE_XDP`
    Xdp,
    /// `BPF_PROG_TYPE_RAW_TRACEPOINT`
    RawTracepoint,
    /// `BPF_PROG_TYPE_CGROUP_SOCK_ADDR` for connect(2) of sockets of IPv4.
    Connect4,
    /// The same for IPv6.
    Connect6,
    /// `BPF_PROG_TYPE_SK_LOOKUP`: which listener gets a connection.
    SocketLookup,
}

impl ProgramKind {
    /// `enum bpf_prog_type`
    const fn number(self) -> u32 {
        match self {
            Self::Packets => 3,
            Self::Xdp => 6,
            Self::RawTracepoint => 17,
            Self::Connect4 | Self::Connect6 => 18,
            Self::SocketLookup => 30,
        }
    }

    /// `enum bpf_attach_type`, where the kernel wants it for loading; otherwise 0.
    pub(crate) const fn attach_type(self) -> u32 {
        match self {
            Self::Packets | Self::Xdp | Self::RawTracepoint => 0,
            Self::Connect4 => 10,
            Self::Connect6 => 11,
            Self::SocketLookup => 36,
        }
    }
}

// Members of `union bpf_attr`, without padding.
#[repr(C)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
struct TestRun {
    program: u32,
    result: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
}

#[repr(C)]
struct InfoByFd {
    object: u32,
    bytes: u32,
    info: u64,
}

/// Bytes of `struct bpf_prog_info` that are requested, up to and with `recursion_misses`.
const INFO_BYTES: usize = 216;
/// Offset of `name`, which has 16 bytes.
const NAME: usize = 64;
/// Offset of `recursion_misses`, which stays 0 before Linux 5.12.
const MISSES: usize = 208;

/// The kernel allows some of its functions only to programs with a GPL-compatible licence.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// A program in the kernel, until it is dropped and nothing else uses it.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// The kernel refused to load a program.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refused the program: {error}: {}", reason(log))]
pub struct LoadError {
    /// The error of bpf(2).
    pub error: Errno,
    /// The output of the verifier; empty if the program did not reach the verifier.
    pub log: String,
}

impl LoadError {
    /// Returns the verifier's last sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        reason(&self.log)
    }
}

fn reason(log: &str) -> &str {
    log.lines()
        .rev()
        .find(|line| !line.starts_with("processed "))
        .unwrap_or("the verifier gave no reason")
}

/// The result of [`Program::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// What the program returned.
    pub result: u32,
    /// The mean duration of a run in nanoseconds.
    pub duration_ns: u32,
}

/// Signals during the load of a program that are one too many.
const SIGNALS: usize = 5;

impl Program {
    /// Loads a program. The first 15 bytes of `name` are what bpftool(8) shows.
    ///
    /// # Errors
    /// If the kernel refuses the program: `EPERM` without CAP_BPF and the right of its kind
    /// (CAP_NET_ADMIN for XDP, CAP_PERFMON for tracepoints), others by the verifier.
    pub fn load(kind: ProgramKind, name: &str, code: &[Instruction]) -> Result<Self, LoadError> {
        let load = |log: &mut [u8]| load(kind, name, code, log);
        // A signal ends the verifier with EAGAIN.
        let mut loaded = load(&mut []);
        for _ in 0..SIGNALS {
            if !matches!(loaded, Err(Errno::AGAIN)) {
                break;
            }
            loaded = load(&mut []);
        }
        match loaded {
            Ok(fd) => Ok(Self { fd }),
            Err(error) => {
                let mut log = vec![0; 1 << 20];
                // Loads again for the verifier's output. The first error counts even if this
                // succeeds.
                let _again = load(&mut log);
                let text = String::from_utf8_lossy(&log);
                let log = text.trim_end_matches('\0').trim_end().to_owned();
                Err(LoadError { error, log })
            }
        }
    }

    /// Runs an XDP program `repeat` times on a copy of `frame`, as if the frame had arrived at the
    /// first queue of the loopback interface. The frame goes nowhere.
    ///
    /// # Errors
    /// `EINVAL` if the frame is shorter than an Ethernet header or longer than a page.
    pub fn run(&self, frame: &[u8], repeat: u32) -> Result<Run, Errno> {
        let mut attributes = TestRun {
            program: number(self.fd.as_fd()),
            result: 0,
            data_in_bytes: length(frame)?,
            data_out_bytes: 0,
            data_in: address(frame),
            data_out: 0,
            repeat,
            duration_ns: 0,
        };
        // SAFETY: these are the attributes of the command. The kernel reads the frame, which has
        // the given length, and writes no frame back, because there is no buffer for it.
        unsafe { bpf(Command::ProgramRun, &mut attributes) }?;
        Ok(Run {
            result: attributes.result,
            duration_ns: attributes.duration_ns,
        })
    }

    /// Returns how often the program did not run because it was running on that CPU already.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn misses(&self) -> Result<u64, Errno> {
        let info = self.info()?;
        let misses = info.get(MISSES..).and_then(|rest| rest.try_into().ok());
        Ok(misses.map_or(0, u64::from_ne_bytes))
    }

    /// The name of the loaded program with this number; it may be empty, and is not always UTF-8.
    ///
    /// # Errors
    /// `ENOENT` if there is no such program, `EPERM` without CAP_SYS_ADMIN.
    pub fn name_of(id: u32) -> Result<String, Errno> {
        // The number, and zeros for two members that other commands have.
        let mut attributes = [id, 0, 0];
        // SAFETY: these are the attributes of the command, which returns a new descriptor.
        let fd = unsafe { open(Command::ProgramById, &mut attributes) }?;
        let info = Self { fd }.info()?;
        let name = info.iter().skip(NAME).take(16).copied();
        let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    fn info(&self) -> Result<[u8; INFO_BYTES], Errno> {
        let mut info = [0_u8; INFO_BYTES];
        let mut attributes = InfoByFd {
            object: number(self.fd.as_fd()),
            bytes: length(&info)?,
            info: info.as_mut_ptr() as u64,
        };
        // SAFETY: these are the attributes of the command; the kernel writes at most `bytes` bytes.
        // The pointers that it reads from `info` (buffers for listings) are null: no listing.
        unsafe { bpf(Command::InfoByFd, &mut attributes) }?;
        Ok(info)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Loads a program. The verifier writes its output to `log` unless that is empty.
fn load(
    kind: ProgramKind,
    name: &str,
    code: &[Instruction],
    log: &mut [u8],
) -> Result<OwnedFd, Errno> {
    let mut attributes = Load {
        kind: kind.number(),
        instruction_count: length(code)?,
        instructions: address(code),
        license: LICENSE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: length(log)?,
        log: if log.is_empty() {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        kernel_version: 0,
        flags: 0,
        name: padded(name),
        interface: 0,
        attach_type: kind.attach_type(),
    };
    // SAFETY: these are the attributes of the command, which returns a new descriptor. The counts
    // are the lengths of instructions and log, and the licence ends with a zero.
    unsafe { open(Command::ProgramLoad, &mut attributes) }
}

/// A name as the kernel takes it: at most 15 bytes, padded with zeros.
fn padded(name: &str) -> [u8; 16] {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_that_is_not_statistics() {
        for (log, expected) in [
            ("", "the verifier gave no reason"),
            (
                "0: (95) exit\nR0 !read_ok\nprocessed 1 insns",
                "R0 !read_ok",
            ),
        ] {
            let log = log.to_owned();
            let error = Errno::ACCESS;
            assert_eq!(LoadError { error, log }.reason(), expected);
        }
    }
}
