//! `[workers]`: CPUs and memory of the workers, and how they wait.

use std::fmt;
use std::str::FromStr;

use saiga_process::numbers::ranges;
use saiga_settings::{Profile, Spin};

use super::output::Output;
use super::reader::Table;
use super::value::list;

/// CPUs above this number are rejected, as everywhere in Saiga.
pub(crate) const CPU_MAX: usize = 4095;
/// NUMA nodes above this number are rejected (`CONFIG_NODES_SHIFT` is at most 10).
const NODE_MAX: usize = 1023;
/// Most workers.
const MOST: usize = 256;

/// The workers: one for each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workers {
    /// The CPUs, ascending; empty for one worker that may run on any CPU.
    pub cpus: Vec<usize>,
    /// How long a worker without work polls before it sleeps.
    pub spin: Polling,
    /// NUMA nodes of the workers' memory; empty for the node of each worker's CPU.
    pub memory_bind: Vec<usize>,
}

/// How long a worker without work polls before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polling {
    /// It never sleeps: the CPU is always busy.
    Always,
    /// It sleeps after this time without work.
    For(Spin),
}

impl Polling {
    /// A worker without work sleeps at once.
    pub(crate) const fn none() -> Self {
        Self::For(Profile::Gentle.spin())
    }
}

impl FromStr for Polling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "always" {
            return Ok(Self::Always);
        }
        let spin = text.parse().map(Self::For);
        spin.map_err(|_| "write a time of at most 10ms such as \"50us\", or \"always\"".to_owned())
    }
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::For(spin) => fmt::Display::fmt(spin, f),
        }
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            cpus: Vec::new(),
            spin: Polling::For(Profile::Default.spin()),
            memory_bind: Vec::new(),
        }
    }
}

impl Workers {
    /// The number of workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cpus.len().max(1)
    }

    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let default = Self::default();
        let cpus = table.parsed_by("cpus", |text| list(text, CPU_MAX));
        let memory_bind = table.parsed_by("memory_bind", |text| list(text, NODE_MAX));
        let workers = Self {
            cpus: cpus.unwrap_or_default(),
            spin: table.parsed("spin").unwrap_or(default.spin),
            memory_bind: memory_bind.unwrap_or_default(),
        };
        if workers.cpus.len() > MOST {
            table.problem("cpus", &format!("write at most {MOST} CPUs"));
        }
        workers
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self {
            cpus,
            spin,
            memory_bind,
        } = self;
        out.table("workers");
        for (key, numbers) in [("cpus", cpus), ("memory_bind", memory_bind)] {
            if !numbers.is_empty() {
                out.text(key, ranges(numbers));
            }
        }
        if *spin != Self::default().spin {
            out.text("spin", spin);
        }
    }
}
