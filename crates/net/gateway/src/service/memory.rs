//! NUMA nodes of the gateway's memory.
//!
//! Source: set_mempolicy(2). A thread inherits the policy of the thread that starts it, so one call
//! before the first thread is enough. The kernel leaves nodes without memory out of a set, and does
//! not say so: each node is tried alone first.
#![expect(unsafe_code, reason = "set_mempolicy(2) reads a mask by pointer")]

use std::io;

use syscalls::{Sysno, syscall};

use super::ServiceError;

/// Words of a mask of 1,024 nodes, the most that Linux can have.
const WORDS: usize = 1024 / usize::BITS as usize;

/// Takes memory from these nodes alone from now on. Without nodes, each thread goes on taking it
/// from the node of its CPU.
pub(super) fn bind(nodes: &[usize]) -> Result<(), ServiceError> {
    for &node in nodes {
        set(&[node]).map_err(|source| ServiceError::Node { node, source })?;
    }
    match nodes {
        [.., node] => set(nodes).map_err(|source| ServiceError::Node {
            node: *node,
            source,
        }),
        [] => Ok(()),
    }
}

fn set(nodes: &[usize]) -> io::Result<()> {
    let mut mask = [0_usize; WORDS];
    for node in nodes {
        let word = mask.get_mut(node / usize::BITS as usize);
        let word = word.ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node % usize::BITS as usize);
    }
    let at = mask.as_ptr();
    // The kernel reads one bit less than this number (mm/mempolicy.c, `get_nodes`).
    let bits = WORDS * usize::BITS as usize + 1;
    // SAFETY: the mask has as many bits as the kernel reads, and outlives the call.
    let done = unsafe { syscall!(Sysno::set_mempolicy, libc::MPOL_BIND, at, bits) };
    done.map_err(|error| io::Error::from_raw_os_error(error.into_raw()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;

    /// In a thread of its own, which keeps the policy.
    #[test]
    fn memory_comes_from_the_nodes_or_is_refused_by_the_number() {
        let bound = thread::spawn(|| {
            bind(&[0]).unwrap();
            let page = vec![1_u8; 1 << 20];
            let maps = fs::read_to_string("/proc/thread-self/numa_maps").unwrap();
            drop(page);
            let refused = bind(&[0, 1023]).unwrap_err().to_string();
            (maps, refused)
        });
        let (maps, refused) = bound.join().unwrap();
        assert!(maps.contains(" bind:0 "), "{maps}");
        assert!(refused.contains("NUMA node 1023"), "{refused}");
    }
}
