//! Where the memory of a program comes from, on machines with several nodes.
//!
//! Source: `man 2 set_mempolicy`; what `numactl --membind` and `--interleave` do.

#![expect(unsafe_code, reason = "set_mempolicy has no safe wrapper")]

use std::fmt;
use std::io;

use crate::numbers::ranges;

/// `MPOL_BIND` and `MPOL_INTERLEAVE` of `linux/mempolicy.h`.
const BIND: libc::c_int = 2;
const INTERLEAVE: libc::c_int = 3;
/// Nodes in our mask; kernels are built for 1024 at most.
const MAX_NODES: usize = 1024;
const WORD_BITS: usize = 64;

/// A policy for all memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    /// From these nodes only.
    Bind(Vec<usize>),
    /// Page by page from one after the other.
    Interleave(Vec<usize>),
}

/// A policy as the kernel takes it, made before a fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    mode: libc::c_int,
    mask: [u64; MAX_NODES / WORD_BITS],
}

impl Memory {
    /// The nodes named.
    #[must_use]
    pub fn nodes(&self) -> &[usize] {
        match self {
            Self::Bind(nodes) | Self::Interleave(nodes) => nodes,
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        let mode = match self {
            Self::Bind(_) => BIND,
            Self::Interleave(_) => INTERLEAVE,
        };
        let mut mask = [0; MAX_NODES / WORD_BITS];
        for node in self.nodes() {
            if let Some(word) = mask.get_mut(node / WORD_BITS) {
                *word |= 1 << (node % WORD_BITS);
            }
        }
        Policy { mode, mask }
    }
}

/// As options of `numactl`.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(nodes) => write!(f, "--membind={}", ranges(nodes)),
            Self::Interleave(nodes) => write!(f, "--interleave={}", ranges(nodes)),
        }
    }
}

impl Policy {
    /// Puts it in force for the calling thread and what it executes. Makes one system call and
    /// neither allocates nor locks: it may run between fork and exec.
    pub(crate) fn apply(&self) -> io::Result<()> {
        // SAFETY: the mask is valid for the reads of this one call, and as long as we say; the
        // kernel leaves out the last bit of what it is told, hence the one more.
        let result = unsafe {
            libc::syscall(
                libc::SYS_set_mempolicy,
                self.mode,
                self.mask.as_ptr(),
                MAX_NODES + 1,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_shown_as_numactl_takes_it() {
        let interleave = Memory::Interleave(vec![0, 1, 2, 3]);
        assert_eq!(interleave.to_string(), "--interleave=0-3");
        assert_eq!(Memory::Bind(vec![2]).to_string(), "--membind=2");
    }

    #[test]
    fn nodes_are_bits_of_their_words() {
        let policy = Memory::Bind(vec![0, 5, 64]).policy();
        assert_eq!(policy.mask[..3], [0b10_0001, 1, 0]);
    }
}
