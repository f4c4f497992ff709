//! What a simulated device is: its size, its spare space, its streams, how it collects garbage.

use std::num::NonZeroU32;

/// Most classes that pages can be told apart by.
pub const MAX_CLASSES: usize = 256;
const GIB: f64 = (1_u64 << 30) as f64;
/// Most reclaim unit handles.
pub const MAX_HANDLES: usize = 128;

/// Whether data that garbage collection moves stay apart from those of other handles (NVMe TP4146).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// What is moved goes into units that all such handles share.
    Initially,
    /// What is moved goes into units of its own handle.
    Persistently,
}

/// Which closed unit is collected.
///
/// A unit without any valid page never waits for a policy: it is erased at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The one with the fewest valid pages.
    Greedy,
    /// The one that was closed first.
    Fifo,
    /// The one with the fewest valid pages of this many that are drawn at random.
    Choice(NonZeroU32),
    /// The one with the greatest (1 - u) / 2u * age, where u is the share of its pages that are
    /// valid and age is counted in host writes since it was closed (LFS, and eNVy for flash).
    CostBenefit,
}

/// Whose units victims are chosen from.
///
/// The spare space, which is all dead pages, is shared out between the handles; what initially
/// isolated ones share for moved pages counts as a further handle. The victim is the policy's
/// choice among the units of the handle that holds most dead pages beyond its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// All units.
    None,
    /// Those of one handle; all have the same share.
    Even,
    /// Those of one handle; shares are in proportion to the valid pages that handles hold.
    Data,
}

/// Where garbage collection writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcFrontier {
    /// Into the unit that host writes of the same handle go to; for initially isolated handles,
    /// of the first of them.
    WithHost,
    /// Into open units of its own.
    Own,
}

/// What over-provisioning is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// The units that are closed when a victim is chosen: T of the formulas. The reserve and the
    /// other open units come on top.
    ClosedUnits,
    /// All units, as on a drive: the reserve and the open units are taken out of it.
    WholeDevice,
}

/// A device.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Pages that the host can address (U).
    pub logical_pages: u32,
    /// (T - U) / U, where T are the physical pages.
    pub over_provisioning: f64,
    /// Pages of a reclaim unit (Np): a power of two from 2 to 2^20.
    pub unit_pages: u32,
    /// What T counts.
    pub counting: Counting,
    /// Erased units that are kept for garbage collection; at least one.
    pub reserve_units: u32,
    /// How victims are chosen.
    pub policy: Policy,
    /// Among whose units.
    pub quota: Quota,
    /// Where garbage collection writes.
    pub gc: GcFrontier,
    /// The kind of each handle.
    pub handles: Vec<Isolation>,
    /// The handle of each stream.
    pub streams: Vec<usize>,
    /// The stream of each class of data; a class is what pages are accounted by.
    pub classes: Vec<usize>,
    /// Where random choices of the device begin.
    pub seed: u64,
    /// Bytes of memory that it may take.
    pub memory_bytes: u64,
}

impl Config {
    /// A greedy device with one class, one stream and one frontier, counted as the formulas do.
    #[must_use]
    pub fn plain(logical_pages: u32, over_provisioning: f64, unit_pages: u32) -> Self {
        Self {
            logical_pages,
            over_provisioning,
            unit_pages,
            counting: Counting::ClosedUnits,
            reserve_units: 1,
            policy: Policy::Greedy,
            quota: Quota::None,
            gc: GcFrontier::WithHost,
            handles: vec![Isolation::Initially],
            streams: vec![0],
            classes: vec![0],
            seed: 1,
            memory_bytes: u64::MAX,
        }
    }

    /// The same with a class, a stream and a handle of the given kind for each of `count`.
    #[must_use]
    pub fn with_streams(self, count: usize, isolation: Isolation) -> Self {
        Self {
            handles: vec![isolation; count],
            streams: (0..count).collect(),
            classes: (0..count).collect(),
            ..self
        }
    }
}

/// Why there can be no such device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// There is nothing to write to.
    #[error("a device without logical pages cannot be simulated; give it at least one")]
    NoPages,
    /// Reclaim units are addressed by shifts.
    #[error("{pages} pages per reclaim unit: use a power of two from 2 to 1048576")]
    UnitPages {
        /// What was asked for.
        pages: u32,
    },
    /// Without spare space nothing can be collected, and ten times the data is not an SSD.
    #[error("over-provisioning {value}: use a share above 0 and at most 10, as 0.07 for 7 %")]
    OverProvisioning {
        /// What was asked for.
        value: f64,
    },
    /// Garbage collection needs an erased unit to begin with.
    #[error("a reserve of no unit: garbage collection needs at least one erased unit to begin")]
    NoReserve,
    /// A list is empty or too long.
    #[error("{count} {what}: use 1 to {limit}")]
    Count {
        /// `handles`, `streams` or `classes`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A class or stream leads nowhere.
    #[error("{what} {number} names {target} {value}, but there are only {limit}, from 0 on")]
    Missing {
        /// `class` or `stream`.
        what: &'static str,
        /// Which one.
        number: usize,
        /// `stream` or `handle`.
        target: &'static str,
        /// What it names.
        value: usize,
        /// How many there are.
        limit: usize,
    },
    /// The open units leave no spare space.
    #[error(
        "{units} reclaim units of {unit_pages} pages, of which {taken} are open or in reserve, cannot hold \
         {logical_pages} pages and a spare one; use more over-provisioning, smaller units or fewer streams"
    )]
    TooSmall {
        /// All units.
        units: u64,
        /// Pages of each.
        unit_pages: u32,
        /// Units that hold no data when a victim is chosen, or few.
        taken: u64,
        /// Pages that must fit into the others.
        logical_pages: u32,
    },
    /// It would take the memory of others, or end this process.
    #[error(
        "the device takes {:.1} GiB of memory, of which {:.1} GiB are available; simulate larger pages (--page-bytes) or \
         fewer (--pages)",
        *needed_bytes as f64 / GIB, *available_bytes as f64 / GIB
    )]
    Memory {
        /// What it takes.
        needed_bytes: u64,
        /// What it may take.
        available_bytes: u64,
    },
    /// Pages are numbered with 32 bits.
    #[error("{pages} physical pages; at most {} can be simulated, so scale the device down", u32::MAX - 1)]
    TooLarge {
        /// How many there would be.
        pages: u64,
    },
}
