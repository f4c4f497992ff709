//! Resident memory of a process (`VmRSS` of `man 5 proc_pid_status`).

use std::fs;
use std::io;

/// What process `pid` has in memory now, shared pages included.
pub(crate) fn bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    of_status(&status).ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no VmRSS")))
}

fn of_status(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_its_own_unit() {
        let status = "VmHWM:\t    9000 kB\nVmRSS:\t    7348 kB\nRssAnon:\t 100 kB\n";
        assert_eq!(of_status(status), Some(7_524_352));
        assert_eq!(of_status("Name:\tkthreadd\n"), None);
    }
}
