//! Computes the memory of a device before it is allocated.
//!
//! A line of a trace can require a device of terabytes, on a host whose database needs the memory.

use super::Unit;
use crate::config::{Config, ConfigError};
use crate::layout::Layout;

/// Most bytes for each unit in the data structures of all policies: a position and a list entry.
const CLOSED_BYTES_PER_UNIT: u64 = 12;

/// Fails if a device exceeds its memory limit.
pub(super) fn check(config: &Config, layout: &Layout) -> Result<(), ConfigError> {
    let (needed_bytes, available_bytes) = (bytes(config, layout), config.memory_bytes);
    if needed_bytes > available_bytes {
        return Err(ConfigError::Memory {
            needed_bytes,
            available_bytes,
        });
    }
    Ok(())
}

/// Returns the bytes on the heap, or slightly more.
fn bytes(config: &Config, layout: &Layout) -> u64 {
    let units = u64::from(layout.units);
    let physical = units << layout.shift;
    // Bits of live pages; a small unit uses a part of a word.
    let live = units * 8 * u64::from(config.unit_pages.div_ceil(64));
    let ring = 4 * units.next_power_of_two();
    let borders = 8 * (u64::from(config.unit_pages) + 2);
    let closed = CLOSED_BYTES_PER_UNIT * units + ring + borders;
    // The place of each logical page; page and class of each physical page; state of each unit, and
    // its number while it is erased.
    4 * u64::from(config.logical_pages)
        + 5 * physical
        + live
        + units * (size_of::<Unit>() as u64 + 4)
        + closed * layout.accounts as u64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::config::{Isolation, Policy, Quota};
    use crate::device::Device;

    #[test]
    fn the_computed_bytes_are_those_of_the_device() {
        for policy in [
            Policy::Greedy,
            Policy::Fifo,
            Policy::Choice(NonZeroU32::new(10).unwrap()),
            Policy::CostBenefit,
        ] {
            for (quota, unit_pages) in [(Quota::None, 256), (Quota::None, 8), (Quota::Even, 256)] {
                let config = Config {
                    policy,
                    quota,
                    ..Config::plain(1 << 20, 0.07, unit_pages)
                };
                let config = config.with_streams(4, Isolation::Persistently);
                let needed = bytes(&config, &Layout::new(&config).unwrap());
                let taken = Device::new(config).unwrap().heap_bytes() as u64;
                let what = format!("{policy:?}, {quota:?}, {unit_pages}: {taken} of {needed}");
                assert!(taken <= needed, "{what}");
                assert!(needed - taken < taken / 5, "{what}");
            }
        }
    }

    #[test]
    fn a_device_above_its_memory_limit_is_refused() {
        let config = |memory_bytes| Config {
            memory_bytes,
            ..Config::plain(1 << 20, 0.07, 256)
        };
        assert!(Device::new(config(16 << 20)).is_ok());
        let error = Device::new(config(1 << 20)).unwrap_err();
        assert!(matches!(error, ConfigError::Memory { .. }), "{error}");
        // Eight terabytes in one line of a trace.
        let huge = Config {
            memory_bytes: 3 << 29,
            ..Config::plain(1 << 31, 0.07, 1 << 20)
        };
        let error = Device::new(huge).unwrap_err().to_string();
        let expected = "the device takes 19.0 GiB of memory, of which 1.5 GiB are available; simulate larger pages";
        assert!(error.starts_with(expected), "{error}");
    }
}
