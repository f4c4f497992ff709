//! The memory that this process can use without swapping out other processes.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// MemAvailable of /proc/meminfo in bytes, or RLIMIT_AS if it is lower. `u64::MAX` without both.
pub(crate) fn available_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let limit = getrlimit(Resource::As).current;
    available(&meminfo)
        .unwrap_or(u64::MAX)
        .min(limit.unwrap_or(u64::MAX))
}

fn available(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let value = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_counts_kib() {
        let text = "MemTotal:       65842888 kB\nMemFree:  1 kB\nMemAvailable:   23648420 kB\n";
        assert_eq!(available(text), Some(23_648_420 * 1024));
        for text in [
            "",
            "MemAvailable: many kB",
            "MemAvailable: 18446744073709551615 kB",
        ] {
            assert_eq!(available(text), None, "{text}");
        }
        assert!(available_bytes() < 1 << 60);
    }
}
