//! The configuration of a simulated device: size, spare space, streams, garbage collection.

use std::num::NonZeroU32;

/// Most accounting classes of pages.
pub const MAX_CLASSES: usize = 256;
const GIB: f64 = (1_u64 << 30) as f64;
/// Most reclaim unit handles.
pub const MAX_HANDLES: usize = 128;

/// Whether moved pages stay separate from those of other handles (NVMe TP4146).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Moved pages go to units that all initially isolated handles share.
    Initially,
    /// Moved pages go to units of their own handle.
    Persistently,
}

/// The choice of the closed unit to collect.
///
/// A unit without valid pages is erased at once, independent of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The unit with the fewest valid pages.
    Greedy,
    /// The unit that was closed first.
    Fifo,
    /// The unit with the fewest valid pages of this many randomly drawn units.
    Choice(NonZeroU32),
    /// The unit with the greatest (1 - u) / 2u * age, where u is its share of valid pages, and age
    /// the number of host writes since it was closed (LFS, and eNVy for flash).
    CostBenefit,
}

/// The units among which victims are chosen.
///
/// The spare space, all dead pages, is divided between the handles; the shared units of initially
/// isolated handles count as a further handle. The victim is the policy's choice among the units of
/// the handle that exceeds its share of dead pages most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    None,
    /// Units of one handle; all handles have the same share.
    Even,
    /// Units of one handle; shares are proportional to the valid pages of handles.
    Data,
}

/// The units to which garbage collection writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcFrontier {
    /// The open unit of host writes of the same handle; for initially isolated handles, that of the
    /// first of them.
    WithHost,
    /// Open units of its own.
    Own,
}

/// The units that count as physical pages for over-provisioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// The closed units at the choice of a victim: T of the formulas. The reserve and other open
    /// units are in addition.
    ClosedUnits,
    /// All units, as on a drive, including the reserve and open units.
    WholeDevice,
}

/// The configuration of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Pages that the host can address (U).
    pub logical_pages: u32,
    /// (T - U) / U, where T are the physical pages.
    pub over_provisioning: f64,
    /// Pages of a reclaim unit (Np): a power of two from 2 to 2^20.
    pub unit_pages: u32,
    /// The units that T includes.
    pub counting: Counting,
    /// Erased units that are kept for garbage collection; at least one.
    pub reserve_units: u32,
    pub policy: Policy,
    pub quota: Quota,
    pub gc: GcFrontier,
    /// The isolation of each handle.
    pub handles: Vec<Isolation>,
    /// The handle of each stream.
    pub streams: Vec<usize>,
    /// The stream of each accounting class.
    pub classes: Vec<usize>,
    /// The seed of random choices.
    pub seed: u64,
    /// The limit for the memory of the device.
    pub memory_bytes: u64,
}

impl Config {
    /// Returns a greedy device with one class, stream and frontier, counted as in the formulas.
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

    /// Returns this configuration with `count` classes, each with its own stream and handle.
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

/// An error of a configuration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("a device without logical pages cannot be simulated; give it at least one")]
    NoPages,
    #[error("{pages} pages per reclaim unit: use a power of two from 2 to 1048576")]
    UnitPages { pages: u32 },
    /// Garbage collection needs spare space.
    #[error("over-provisioning {value}: use a share above 0 and at most 10, as 0.07 for 7 %")]
    OverProvisioning { value: f64 },
    #[error("a reserve of 0 units: garbage collection needs at least one erased unit")]
    NoReserve,
    /// A list (`handles`, `streams` or `classes`) is empty or too long.
    #[error("{count} {what}: use 1 to {limit}")]
    Count {
        what: &'static str,
        count: usize,
        limit: usize,
    },
    /// A class names a missing stream, or a stream a missing handle.
    #[error("{what} {number} names {target} {value}, but there are only {limit}, counted from 0")]
    Missing {
        what: &'static str,
        number: usize,
        target: &'static str,
        value: usize,
        limit: usize,
    },
    /// The open and reserved units (`taken`) leave no spare space.
    #[error(
        "{units} reclaim units of {unit_pages} pages, of which {taken} are open or in reserve, \
         cannot hold {logical_pages} pages and a spare one; use more over-provisioning, smaller \
         units or fewer streams"
    )]
    TooSmall {
        units: u64,
        unit_pages: u32,
        taken: u64,
        logical_pages: u32,
    },
    /// The device exceeds [`Config::memory_bytes`].
    #[error(
        "the device takes {:.1} GiB of memory, of which {:.1} GiB are available; simulate larger \
         pages (--page-bytes) or fewer (--pages)",
        *needed_bytes as f64 / GIB, *available_bytes as f64 / GIB
    )]
    Memory {
        needed_bytes: u64,
        available_bytes: u64,
    },
    /// Page numbers have 32 bits.
    #[error(
        "{pages} physical pages; at most {} can be simulated, so scale the device down",
        u32::MAX - 1
    )]
    TooLarge { pages: u64 },
}
