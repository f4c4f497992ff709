//! DPDK in this process: its environment abstraction layer (EAL), which begins once.
//!
//! Source: "EAL parameters" in the Linux guide of DPDK. There are no other processes of the same
//! DPDK, so neither its files nor its sockets are made. Its workers' threads are not used: the
//! caller's threads call the queues.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::error::DpdkError;
use super::plugin::Plugin;

/// Whether DPDK was begun.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// How DPDK begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The memory of frames.
    pub memory: Memory,
    /// Where hugetlbfs is mounted; `None` for the mount that DPDK finds.
    pub huge_dir: Option<PathBuf>,
    /// PCI addresses of the cards that DPDK may touch, such as `0000:04:00.0`.
    pub cards: Vec<String>,
    /// Further arguments of the EAL.
    pub arguments: Vec<String>,
}

/// The memory of frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Memory {
    /// Huge pages as they are needed.
    #[default]
    Needed,
    /// Huge pages that are taken at once: MiB on each node.
    PerNode(Vec<u64>),
    /// Ordinary pages, all taken at once. A card then needs an IOMMU.
    Ordinary {
        /// MiB of all ports together.
        mebibytes: u64,
    },
}

/// DPDK, begun.
#[derive(Debug)]
pub struct Dpdk {
    pub(super) plugin: Plugin,
}

impl Dpdk {
    /// Begins DPDK, which starts a thread for its interrupts. `log` takes its warnings, line by
    /// line, on any thread. The calling thread keeps its CPUs.
    ///
    /// # Errors
    /// [`DpdkError::Begun`], and [`DpdkError::Begin`] if DPDK refuses a setting or lacks memory.
    pub fn begin(plugin: Plugin, settings: &Settings, log: fn(&str)) -> Result<Self, DpdkError> {
        let failed = |source| DpdkError::Begin { source };
        let cpus = sched_getaffinity(None).map_err(|error| failed(error.into()))?;
        let arguments = arguments(settings, &cpus).into_iter().map(CString::new);
        let arguments: Result<Vec<CString>, _> = arguments.collect();
        let arguments = arguments.map_err(|error| failed(error.into()))?;
        if BEGUN.swap(true, Ordering::Relaxed) {
            return Err(DpdkError::Begun);
        }
        let begun = plugin.start(&arguments, log).map_err(failed);
        // DPDK has moved this thread to its own CPU.
        sched_setaffinity(None, &cpus).map_err(|error| failed(error.into()))?;
        begun.map(|()| Self { plugin })
    }

    /// Runs `work` on DPDK's own thread, and waits for its result.
    ///
    /// # Errors
    /// If DPDK cannot set its timer.
    pub fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (sender, receiver) = mpsc::channel();
        self.plugin.on_thread(Box::new(move || {
            // The receiver waits below.
            let _sent = sender.send(work());
        }))?;
        receiver.recv().map_err(io::Error::other)
    }
}

/// The arguments of `rte_eal_init`. Those of the settings come last, and win.
fn arguments(settings: &Settings, cpus: &CpuSet) -> Vec<String> {
    let Settings {
        memory,
        huge_dir,
        cards,
        arguments,
    } = settings;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu));
    let mut all = vec![
        "saiga".to_owned(),
        "--file-prefix=saiga".to_owned(),
        "--no-telemetry".to_owned(),
        "--log-level=warning".to_owned(),
        format!("--lcores=0@{}", first.unwrap_or(0)),
    ];
    match memory {
        Memory::Needed => all.push("--in-memory".to_owned()),
        Memory::PerNode(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            all.push("--in-memory".to_owned());
            all.push(format!("--socket-mem={}", nodes.join(",")));
        }
        // `--in-memory` and `--no-huge` exclude each other.
        Memory::Ordinary { mebibytes } => {
            all.extend(["--no-shconf", "--no-huge", "-m"].map(str::to_owned));
            all.push(mebibytes.to_string());
        }
    }
    if let Some(folder) = huge_dir {
        all.push(format!("--huge-dir={}", folder.display()));
    }
    if cards.is_empty() {
        all.push("--no-pci".to_owned());
    }
    for card in cards {
        all.push(format!("--allow={card}"));
    }
    all.extend(arguments.iter().cloned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(settings: &Settings) -> String {
        let mut cpus = CpuSet::new();
        [5, 7].into_iter().for_each(|cpu| cpus.set(cpu));
        arguments(settings, &cpus).join(" ")
    }

    const BEGIN: &str =
        "saiga --file-prefix=saiga --no-telemetry --log-level=warning --lcores=0@5 ";

    /// Without `--no-pci`, DPDK would try to take every card of the machine that it has a driver
    /// for.
    #[test]
    fn only_the_named_cards_are_touched() {
        let plain = Settings::default();
        assert_eq!(said(&plain), format!("{BEGIN}--in-memory --no-pci"));
        let cards = Settings {
            cards: vec!["0000:04:00.0".to_owned(), "0000:05:00.0".to_owned()],
            arguments: vec!["-n4".to_owned()],
            ..plain
        };
        let end = "--in-memory --allow=0000:04:00.0 --allow=0000:05:00.0 -n4";
        assert_eq!(said(&cards), format!("{BEGIN}{end}"));
    }

    #[test]
    fn memory_is_of_one_kind() {
        let with = |memory| Settings {
            memory,
            ..Settings::default()
        };
        let per_node = said(&with(Memory::PerNode(vec![2048, 0])));
        assert_eq!(
            per_node,
            format!("{BEGIN}--in-memory --socket-mem=2048,0 --no-pci")
        );
        let ordinary = said(&with(Memory::Ordinary { mebibytes: 64 }));
        assert_eq!(
            ordinary,
            format!("{BEGIN}--no-shconf --no-huge -m 64 --no-pci")
        );
    }
}
