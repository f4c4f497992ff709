//! Reads the resident memory of a process (`man 5 proc_pid_status`) without mapped files. These are
//! mostly its program and libraries, which take the same memory at any number of connections.

use std::fs;
use std::io;

use saiga_process::proc;

/// Resident anonymous and shared memory of process `pid` in bytes.
pub(crate) fn bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    of_status(&status).ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no RssAnon")))
}

fn of_status(status: &str) -> Option<u64> {
    Some(proc::bytes(status, "RssAnon")? + proc::bytes(status, "RssShmem")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_parsed_without_file_pages() {
        let status =
            "VmRSS:\t 7348 kB\nRssAnon:\t 100 kB\nRssFile:\t 7000 kB\nRssShmem:\t 248 kB\n";
        assert_eq!(of_status(status), Some(356_352));
        assert_eq!(of_status("Name:\tkthreadd\n"), None);
    }
}
