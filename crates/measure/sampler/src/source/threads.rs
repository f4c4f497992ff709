//! Context switches and private memory of processes.
//!
//! `/proc/PID/status` has the switches of the first thread only. The third number of a thread's
//! `schedstat` counts how often the thread was scheduled on a core. Reading one file per thread is
//! expensive with a thousand threads, so [`Throttle`] limits the reads.

use std::collections::HashMap;

use procfs::FromRead;
use procfs::process::Schedstat;

use crate::throttle::Throttle;

use super::text::{Files, names_in};

/// Limit for reading threads: files per row, on average.
const FILES_PER_ROW: usize = 80;

/// Number of times that each thread was scheduled, by process and thread.
type Counts = HashMap<(i32, i32), u64>;

/// Reader of the threads of one group.
#[derive(Debug)]
pub(super) struct Threads {
    throttle: Throttle,
    before: Option<(f64, Counts)>,
}

/// The values of a group in one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Detail {
    /// `None` at the first reading, or if the kernel has no `schedstat`.
    pub(super) switches_s: Option<f64>,
    /// Resident pages that are not shared with a file or with other processes.
    pub(super) private_pages: Option<u64>,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self {
            throttle: Throttle::new(FILES_PER_ROW),
            before: None,
        }
    }

    /// Reads the processes; `None` in a row that must not read them.
    pub(super) fn sample(&mut self, at_s: f64, pids: &[i32], files: &mut Files) -> Option<Detail> {
        if !self.throttle.is_due() {
            return None;
        }
        let mut counts = Counts::new();
        let mut private_pages = None;
        for &pid in pids {
            if let Some(pages) = files
                .proc(&format!("{pid}/statm"))
                .and_then(private_pages_of)
            {
                private_pages = Some(private_pages.unwrap_or(0) + pages);
            }
            count_threads(pid, files, &mut counts);
        }
        self.throttle.on_read(pids.len() + counts.len());
        let before = self.before.take();
        let switches_s = before.and_then(|(before_s, before)| {
            let seconds = at_s - before_s;
            let rate = switches(&before, &counts) as f64 / seconds;
            (seconds > 0.0 && !counts.is_empty()).then_some(rate)
        });
        self.before = Some((at_s, counts));
        Some(Detail {
            switches_s,
            private_pages,
        })
    }
}

/// Switches between two readings. All switches of a new thread count; those of a thread that has
/// ended since the previous reading are lost.
fn switches(before: &Counts, now: &Counts) -> u64 {
    let of_thread = |(thread, count): (&(i32, i32), &u64)| {
        count.saturating_sub(before.get(thread).copied().unwrap_or(0))
    };
    now.iter().map(of_thread).sum()
}

fn count_threads(pid: i32, files: &mut Files, counts: &mut Counts) {
    let directory = files.proc_path(&format!("{pid}/task"));
    for name in names_in(&directory) {
        let path = format!("{pid}/task/{name}/schedstat");
        let stat = files
            .proc_bytes(&path)
            .and_then(|bytes| Schedstat::from_read(bytes).ok());
        if let (Some(stat), Ok(thread)) = (stat, name.parse()) {
            counts.insert((pid, thread), stat.pcount);
        }
    }
}

/// Resident pages minus shared pages, from a line `size resident shared ...` of `statm`.
fn private_pages_of(statm: &str) -> Option<u64> {
    let mut words = statm.split_ascii_whitespace().skip(1);
    let (resident, shared): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    #[test]
    fn switches_of_all_threads_are_counted() {
        let host = Host::new();
        let mut files = host.files();
        let mut threads = Threads::new();
        host.proc("7/statm", "900 300 100 1 0 50 0\n");
        host.proc("7/task/7/schedstat", "5 5 100\n");
        host.proc("7/task/8/schedstat", "5 5 1000\n");
        let first = threads.sample(0.0, &[7], &mut files).unwrap();
        assert_eq!(
            first,
            Detail {
                switches_s: None,
                private_pages: Some(200)
            }
        );
        host.remove("7/task/8");
        host.proc("7/task/7/schedstat", "5 5 140\n");
        host.proc("7/task/9/schedstat", "5 5 20\n");
        let second = threads.sample(2.0, &[7], &mut files).unwrap();
        assert_eq!(second.switches_s, Some(30.0));
    }

    #[test]
    fn values_of_unreadable_processes_are_unknown() {
        let host = Host::new();
        let mut threads = Threads::new();
        for at_s in [0.0, 1.0] {
            let detail = threads.sample(at_s, &[7], &mut host.files()).unwrap();
            assert_eq!(
                detail,
                Detail {
                    switches_s: None,
                    private_pages: None
                }
            );
        }
    }
}
