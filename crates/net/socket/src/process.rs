//! Properties of the process and the machine that the kernel reports: limits, memory, CPUs.

#![expect(unsafe_code, reason = "system calls with out-parameters")]

use core::mem::MaybeUninit;
use saiga_channel::sys;
use syscalls::Sysno;

/// RLIMIT_NOFILE (`man 2 getrlimit`).
pub(crate) fn rlimit_nofile(limit: &mut libc::rlimit) {
    let resource = libc::RLIMIT_NOFILE as usize;
    let args = [0, resource, 0, core::ptr::from_mut(limit) as usize, 0, 0];
    // SAFETY: writes one rlimit, which the caller lent us.
    let _ = unsafe { sys::call(Sysno::prlimit64, args) };
}

/// Memory of the machine in bytes (`man 2 sysinfo`); 0 when the kernel does not say.
pub(crate) fn memory() -> u64 {
    let mut known = MaybeUninit::<libc::sysinfo>::zeroed();
    let args = [known.as_mut_ptr() as usize, 0, 0, 0, 0, 0];
    // SAFETY: the kernel writes one sysinfo.
    let asked = unsafe { sys::call(Sysno::sysinfo, args) };
    // SAFETY: a structure of integers, for which zero is valid.
    let known = unsafe { known.assume_init() };
    asked.map_or(0, |_| known.totalram.saturating_mul(known.mem_unit.into()))
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
