//! NUMA memory policy of a program.
//!
//! Equivalent to `numactl --membind` and `--interleave`. Source: `man 2 set_mempolicy`.

#![expect(unsafe_code, reason = "set_mempolicy has no safe wrapper")]

use std::fmt;
use std::io;

use crate::numbers::ranges;

/// `MPOL_BIND` in `linux/mempolicy.h`; [`INTERLEAVE`] is `MPOL_INTERLEAVE`.
const BIND: libc::c_int = 2;
const INTERLEAVE: libc::c_int = 3;
/// Bits in the node mask; the kernel supports at most 1024 nodes.
const MAX_NODES: usize = 1024;
const WORD_BITS: usize = 64;

/// A memory policy for a whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    /// Allocates from these nodes only.
    Bind(Vec<usize>),
    /// Distributes pages over these nodes in turn.
    Interleave(Vec<usize>),
}

/// Arguments of set_mempolicy(2), prepared before fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    mode: libc::c_int,
    mask: [u64; MAX_NODES / WORD_BITS],
}

impl Memory {
    /// The nodes of the policy.
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

/// Prints the options of `numactl`.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(nodes) => write!(f, "--membind={}", ranges(nodes)),
            Self::Interleave(nodes) => write!(f, "--interleave={}", ranges(nodes)),
        }
    }
}

impl Policy {
    /// Applies the policy to the calling thread and to the program that it executes. Makes one
    /// system call and neither allocates nor locks, so it may run between fork and exec.
    pub(crate) fn apply(&self) -> io::Result<()> {
        // SAFETY: the mask is valid for reads of MAX_NODES bits during this call; the kernel
        // decrements the given number of bits by one before it reads (`get_nodes` in
        // mm/mempolicy.c), hence the + 1.
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
    fn a_policy_is_printed_as_options_of_numactl() {
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
