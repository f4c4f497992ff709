//! What only the threads and maps of a process tell: context switches and private memory.
//!
//! `/proc/PID/status` counts the switches of the first thread only; the number of times that
//! each thread was put on a core is the third number of its `schedstat`. One file per thread
//! is costly with a thousand of them, so this is read as often as their number allows.

use std::collections::HashMap;

use procfs::FromRead;
use procfs::process::Schedstat;

use crate::pace::Pace;

use super::text::{Files, names_in};

/// Files per row, on average.
const FILES_PER_ROW: usize = 80;

/// How often each thread (process, thread) was put on a core.
type Counts = HashMap<(i32, i32), u64>;

/// One group between two looks.
#[derive(Debug)]
pub(super) struct Threads {
    pace: Pace,
    before: Option<(f64, Counts)>,
}

/// One look at a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Detail {
    /// `None` at the first look, or where the kernel has no `schedstat`.
    pub(super) switches_s: Option<f64>,
    /// Resident pages that are not shared with a file or with other processes.
    pub(super) private_pages: Option<u64>,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self {
            pace: Pace::new(FILES_PER_ROW),
            before: None,
        }
    }

    /// `None` in rows in which the look would cost too much.
    pub(super) fn look(&mut self, at_s: f64, pids: &[i32], files: &mut Files) -> Option<Detail> {
        if !self.pace.is_due() {
            return None;
        }
        let mut counts = Counts::new();
        let mut private_pages = None;
        for &pid in pids {
            if let Some(pages) = files.proc(&format!("{pid}/statm")).and_then(private) {
                private_pages = Some(private_pages.unwrap_or(0) + pages);
            }
            count_threads(pid, files, &mut counts);
        }
        self.pace.on_read(pids.len() + counts.len());
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

/// A thread that was not there before was put on a core only since; one that ended is lost.
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

/// Of `size resident shared ...`, what is resident and not shared.
fn private(statm: &str) -> Option<u64> {
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
        let first = threads.look(0.0, &[7], &mut files).unwrap();
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
        let second = threads.look(2.0, &[7], &mut files).unwrap();
        assert_eq!(second.switches_s, Some(30.0));
    }

    #[test]
    fn where_nothing_can_be_read_nothing_is_known() {
        let host = Host::new();
        let mut threads = Threads::new();
        for at_s in [0.0, 1.0] {
            let detail = threads.look(at_s, &[7], &mut host.files()).unwrap();
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
