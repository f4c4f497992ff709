//! The server's processes: CPU time of their threads, and where their memory and code are.

use std::collections::BTreeMap;
use std::fs;

use saiga_process::proc::{self, Stat};
use saiga_process::root::Root;
use saiga_topology::machine::Machine;

use super::cgroup::Counters;
use super::volumes::Volumes;
use crate::observation::Gap;
use crate::observation::process::{Process, Thread};

/// A server at the begin of an observation.
#[derive(Debug)]
pub(super) struct Server {
    pid: u32,
    /// Start time in ticks after boot; identifies the process.
    started: u64,
    threads: BTreeMap<u32, Times>,
    cgroup: Counters,
    cpus: Vec<usize>,
    nodes: Vec<u32>,
    placement: Option<[BTreeMap<u32, u64>; 2]>,
    volumes: Volumes,
}

impl Server {
    /// `None` if there is no such process.
    pub(super) fn begin(pid: u32, machine: &Machine, gaps: &mut Vec<Gap>) -> Option<Self> {
        let root = Root::host();
        let started = Stat::of(pid).ok()?.start_ticks;
        let placed = saiga_topology::process::Process::read(&root, pid);
        let mut server = Self {
            pid,
            started,
            threads: threads(pid),
            cgroup: Counters::read(&root, pid),
            cpus: Vec::new(),
            nodes: Vec::new(),
            placement: None,
            volumes: Volumes::read(pid),
        };
        match placed {
            Ok(placed) => server.place(&placed, machine),
            Err(error) => gaps.push(Gap {
                source: format!("/proc/{pid}/numa_maps"),
                reason: error.to_string(),
            }),
        }
        Some(server)
    }

    fn place(&mut self, placed: &saiga_topology::process::Process, machine: &Machine) {
        let allowed = placed.allowed();
        self.cpus = allowed.iter().map(|cpu| *cpu as usize).collect();
        let on = |cpu: &&saiga_topology::machine::Cpu| cpu.is_online && allowed.contains(&cpu.id);
        self.nodes = machine.cpus.iter().filter(on).map(|cpu| cpu.node).collect();
        self.nodes.sort_unstable();
        self.nodes.dedup();
        // With one node, all memory is local.
        if machine.nodes.len() < 2 {
            return;
        }
        let mut text: BTreeMap<u32, u64> = BTreeMap::new();
        for (node, bytes) in placed.texts.iter().flat_map(|text| &text.bytes) {
            *text.entry(*node).or_default() += bytes;
        }
        self.placement = placed.memory.clone().map(|memory| [memory, text]);
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The process after `seconds`; `None` if it has ended.
    pub(super) fn finish(self, seconds: f64) -> Option<Process> {
        let now = Stat::of(self.pid).ok()?;
        if now.start_ticks != self.started || now.has_ended() {
            return None;
        }
        let [memory_bytes, text_bytes] = self.placement.unwrap_or_default();
        let cgroup = Counters::read(&Root::host(), self.pid);
        let threads = threads(self.pid);
        Some(Process {
            pid: self.pid,
            name: proc::name(self.pid),
            cpus: self.cpus,
            nodes: self.nodes,
            busiest_thread: busiest(&self.threads, &threads, seconds),
            cpu_waits: cpu_waits(&self.threads, &threads, seconds),
            throttling: cgroup.throttling_since(&self.cgroup),
            memory_stall: cgroup.memory_stall_since(&self.cgroup, seconds),
            volumes: Volumes::read(self.pid).since(&self.volumes, seconds),
            memory_bytes,
            text_bytes,
        })
    }
}

/// Times of a thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    /// CPU time in ticks.
    ran: u64,
    /// Time in which it was ready and another task had the CPU, in nanoseconds.
    waited_ns: Option<u64>,
}

/// Times of all threads of a process and its descendants.
fn threads(pid: u32) -> BTreeMap<u32, Times> {
    let mut threads = BTreeMap::new();
    for pid in tree(pid) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let name = task.file_name();
            let tid = name.to_str().and_then(|name| name.parse::<u32>().ok());
            let stat = tid.and_then(|tid| Some((tid, Stat::of_thread(pid, tid).ok()?)));
            if let Some((tid, stat)) = stat {
                let schedstat = fs::read_to_string(task.path().join("schedstat"));
                let times = Times {
                    ran: stat.own_ticks,
                    waited_ns: schedstat.ok().and_then(|text| waited_ns(&text)),
                };
                threads.insert(tid, times);
            }
        }
    }
    threads
}

/// A process and its descendants.
pub(super) fn tree(pid: u32) -> Vec<u32> {
    let (mut found, mut left) = (Vec::new(), vec![pid]);
    while let Some(pid) = left.pop() {
        left.extend(proc::children(pid));
        found.push(pid);
    }
    found
}

/// The second number: nanoseconds on a run queue.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// The thread that used most CPU time between two readings.
fn busiest(
    before: &BTreeMap<u32, Times>,
    after: &BTreeMap<u32, Times>,
    seconds: f64,
) -> Option<Thread> {
    let used = |(tid, times): (&u32, &Times)| {
        let then = before.get(tid).copied().unwrap_or_default();
        (*tid, times.ran.saturating_sub(then.ran))
    };
    let (tid, ticks) = after.iter().map(used).max_by_key(|(_, ticks)| *ticks)?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some(Thread {
        name: proc::name(tid),
        busy: ticks as f64 / per_second / seconds,
    })
}

/// Mean number of threads that wait for a CPU; `None` if the kernel does not count the time.
fn cpu_waits(
    before: &BTreeMap<u32, Times>,
    after: &BTreeMap<u32, Times>,
    seconds: f64,
) -> Option<f64> {
    let waited = after.iter().filter_map(|(tid, times)| {
        let then = before.get(tid).and_then(|times| times.waited_ns);
        Some(times.waited_ns?.saturating_sub(then.unwrap_or(0)))
    });
    let is_counted = after.values().any(|times| times.waited_ns.is_some());
    is_counted.then(|| waited.sum::<u64>() as f64 / 1e9 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_is_the_one_with_most_new_ticks() {
        let me = std::process::id();
        let per_second = rustix::param::clock_ticks_per_second();
        let times = |ran, waited_ns| Times {
            ran,
            waited_ns: Some(waited_ns),
        };
        let before = BTreeMap::from([(me, times(900, 0)), (1, times(5, 10))]);
        let after = BTreeMap::from([
            (me, times(900 + per_second, 1_000_000_000)),
            (1, times(6, 10)),
            (2, times(per_second / 2, 2_000_000_000)),
        ]);
        let thread = busiest(&before, &after, 2.0).unwrap();
        assert_eq!((thread.name, thread.busy), (proc::name(me), 0.5));
        assert_eq!(cpu_waits(&before, &after, 2.0), Some(1.5));
        assert_eq!(waited_ns("93 4711 2\n"), Some(4711));
    }

    #[test]
    fn all_threads_and_children_are_read() {
        let waits = std::sync::mpsc::channel::<()>();
        let (name, named) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            name.send(tid.cast_unsigned()).unwrap();
            let _ = waits.1.recv();
        });
        let tid = named.recv().unwrap();
        assert!(threads(std::process::id()).contains_key(&tid));
        drop(waits.0);
        thread.join().unwrap();
    }
}
