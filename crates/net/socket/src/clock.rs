//! Time for waiting: the CPU's counter, calibrated against the monotonic clock.

#![expect(unsafe_code, reason = "reads the CPU's time counter and clock_gettime")]

use core::sync::atomic::{AtomicU64, Ordering};

/// Counter ticks in a microsecond, times 1024.
static TICKS_PER_US_X1024: AtomicU64 = AtomicU64::new(1024 * 1000);

/// Monotonic time in nanoseconds (`CLOCK_MONOTONIC`, through the vDSO).
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Monotonic time as of the last timer tick, at most a few milliseconds ago. Costs a few loads on
/// every host (`CLOCK_MONOTONIC_COARSE`).
pub(crate) fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is writable.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    let part = |v: i64| u64::try_from(v).unwrap_or(0);
    part(t.tv_sec) * 1_000_000_000 + part(t.tv_nsec)
}

/// The CPU's time counter, in ticks of its own rate.
#[cfg(target_arch = "x86_64")]
pub(crate) fn ticks() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 CPU and Linux lets user space run it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The CPU's time counter, in ticks of its own rate.
#[cfg(target_arch = "aarch64")]
pub(crate) fn ticks() -> u64 {
    let value: u64;
    // SAFETY: Linux lets user space read the virtual counter.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
    value
}

/// Monotonic nanoseconds, on CPUs whose counter is not supported.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn ticks() -> u64 {
    monotonic_ns()
}

/// Measures the counter's rate over about 20 microseconds.
pub(crate) fn calibrate() {
    let (ns0, t0) = (monotonic_ns(), ticks());
    let mut ns = ns0;
    while ns < ns0 + 20_000 {
        ns = monotonic_ns();
    }
    let gone = ticks().saturating_sub(t0);
    let rate = gone.saturating_mul(1024 * 1000) / (ns - ns0);
    TICKS_PER_US_X1024.store(rate.max(1), Ordering::Relaxed);
}

/// Converts microseconds to ticks.
pub(crate) fn us(micros: u64) -> u64 {
    micros * TICKS_PER_US_X1024.load(Ordering::Relaxed) / 1024
}

/// Converts ticks to nanoseconds.
pub(crate) fn to_ns(ticks: u64) -> u64 {
    ticks.saturating_mul(1024 * 1000) / TICKS_PER_US_X1024.load(Ordering::Relaxed)
}
