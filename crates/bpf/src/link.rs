//! Links: programs that are attached until the link is dropped, or its process ends.
//!
//! Kernel: `BPF_LINK_CREATE` (Linux 5.9 for XDP), `BPF_LINK_DETACH`, `BPF_RAW_TRACEPOINT_OPEN`. The
//! kernel detaches the program when the last descriptor of the link is closed, so a killed process
//! leaves nothing behind.
#![expect(unsafe_code, reason = "bpf(2) takes names by pointer")]

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::call::{Command, bpf, number, open};
use crate::program::{Program, ProgramKind};

/// `BPF_XDP` and `BPF_TCX_INGRESS` of `enum bpf_attach_type`.
const XDP: u32 = 37;
const TCX_INGRESS: u32 = 46;

/// Where an XDP program runs. The numbers are those of linux/if_link.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpMode {
    /// In the kernel's network core, with any driver (`XDP_FLAGS_SKB_MODE`).
    Generic = 1 << 1,
    /// In the driver, before the kernel allocates anything (`XDP_FLAGS_DRV_MODE`).
    Native = 1 << 2,
}

// Members of `union bpf_attr`, without padding.
#[repr(C)]
struct LinkCreate {
    program: u32,
    /// An interface's index or a descriptor.
    target: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct LinkDetach {
    link: u32,
}

#[repr(C)]
struct RawTracepointOpen {
    name: u64,
    program: u32,
    zero: u32,
}

/// A program that is attached while this value lives.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

impl Link {
    /// Attaches a program of [`ProgramKind::RawTracepoint`] to a tracepoint.
    ///
    /// # Errors
    /// `ENOENT` if there is no such tracepoint, and others of the kernel.
    pub fn raw_tracepoint(program: &Program, name: &CStr) -> Result<Self, Errno> {
        let mut attributes = RawTracepointOpen {
            name: name.as_ptr() as u64,
            program: number(program.as_fd()),
            zero: 0,
        };
        // SAFETY: these are the attributes of the command, which returns a new descriptor; the name
        // ends with a zero.
        let fd = unsafe { open(Command::RawTracepointOpen, &mut attributes) }?;
        Ok(Self { fd })
    }

    /// Attaches a program of [`ProgramKind::Xdp`] to the network interface with this index.
    ///
    /// # Errors
    /// `EBUSY` or `EEXIST` if another program is attached, `EOPNOTSUPP` if the driver cannot run
    /// programs, `ENODEV` if there is no such interface, `EPERM` without CAP_NET_ADMIN, `EINVAL`
    /// before Linux 5.9, and others of drivers that do not accept their present settings.
    pub fn xdp(program: &Program, interface: u32, mode: XdpMode) -> Result<Self, Errno> {
        attach(program, interface, XDP, mode as u32)
    }

    /// Attaches a program of [`ProgramKind::Packets`] to the packets that the network interface
    /// with this index receives, behind other programs.
    ///
    /// # Errors
    /// `ENODEV` if there is no such interface, `EPERM` without CAP_NET_ADMIN, `EINVAL` before Linux
    /// 6.6.
    pub fn received(program: &Program, interface: u32) -> Result<Self, Errno> {
        attach(program, interface, TCX_INGRESS, 0)
    }

    /// Attaches a program of [`ProgramKind::Connect4`] or `Connect6` to the processes of a cgroup,
    /// or one of [`ProgramKind::SocketLookup`] to a network namespace.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_ADMIN, `EBADF` if `target` is not a directory of cgroup2 or a
    /// network namespace, `EINVAL` before Linux 5.9.
    pub fn target(
        program: &Program,
        kind: ProgramKind,
        target: BorrowedFd<'_>,
    ) -> Result<Self, Errno> {
        attach(program, number(target), kind.attach_type(), 0)
    }
}

impl Drop for Link {
    /// Detaches the program at once. A child that was just forked can have a copy of the descriptor
    /// until it executes a program.
    fn drop(&mut self) {
        let mut attributes = LinkDetach {
            link: number(self.fd.as_fd()),
        };
        // SAFETY: these are the attributes of the command, which have no pointers. Links to
        // tracepoints end with their descriptor alone (EOPNOTSUPP).
        let _detached = unsafe { bpf(Command::LinkDetach, &mut attributes) };
    }
}

fn attach(program: &Program, target: u32, attach_type: u32, flags: u32) -> Result<Link, Errno> {
    let mut attributes = LinkCreate {
        program: number(program.as_fd()),
        target,
        attach_type,
        flags,
    };
    // SAFETY: these are the attributes of the command, which have no pointers. The command returns
    // a new descriptor.
    let fd = unsafe { open(Command::LinkCreate, &mut attributes) }?;
    Ok(Link { fd })
}
