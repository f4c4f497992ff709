//! Properties of the process that the kernel reports: limit of descriptors, CPUs.

#![expect(unsafe_code, reason = "system calls with out-parameters")]

use saiga_channel::sys;
use syscalls::Sysno;

/// The soft limit of descriptors (RLIMIT_NOFILE, `man 2 getrlimit`); 0 if the call fails.
pub(crate) fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let resource = libc::RLIMIT_NOFILE as usize;
    let args = [0, resource, 0, &raw mut limit as usize, 0, 0];
    // SAFETY: writes one rlimit, which outlives the call.
    let _ = unsafe { sys::call(Sysno::prlimit64, args) };
    limit.rlim_cur
}

/// Number of CPUs that the process may run on (`man 2 sched_getaffinity`).
pub(crate) fn cpus() -> u32 {
    let mut mask = [0u64; 128];
    let args = [0, size_of_val(&mask), mask.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the mask is writable for the size given.
    let written = unsafe { sys::call(Sysno::sched_getaffinity, args) }.unwrap_or(0);
    let words = (written / 8).min(mask.len());
    mask[..words]
        .iter()
        .map(|w| w.count_ones())
        .sum::<u32>()
        .max(1)
}
