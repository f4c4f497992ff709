//! Checks a configuration, and computes the number of units and the frontiers of streams and moves.

use crate::config::{
    Config, ConfigError, Counting, GcFrontier, Isolation, MAX_CLASSES, MAX_HANDLES, Quota,
};

/// The pages that are written at a frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Host writes to this handle.
    Host(usize),
    /// Pages moved from units of this persistently isolated handle.
    GcOf(usize),
    /// Pages moved from units of all initially isolated handles.
    SharedGc,
}

/// Values derived from a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) units: u32,
    /// Closed units at the choice of a victim, once every frontier is open.
    pub(crate) closed_units: u32,
    /// log2 of the pages of a unit.
    pub(crate) shift: u32,
    /// The frontiers of the host by handle, then those of garbage collection.
    pub(crate) roles: Vec<Role>,
    /// For each frontier that filled a unit, the frontier for pages moved from the unit.
    pub(crate) gc_of: Vec<usize>,
    /// The frontier for host writes of each class.
    pub(crate) route: Vec<usize>,
    /// The account of each frontier, and the number of accounts: see [`Quota`].
    pub(crate) account_of: Vec<u8>,
    pub(crate) accounts: usize,
}

impl Layout {
    /// Checks a configuration.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        check_scalars(config)?;
        check_lists(config)?;
        let (roles, gc_of) = frontiers(config);
        let route = config
            .classes
            .iter()
            .map(|&stream| config.streams[stream])
            .collect();
        let (units, closed_units) = units(config, roles.len())?;
        let account_of = accounts(config, &roles);
        Ok(Self {
            units,
            accounts: account_of
                .iter()
                .map(|last| usize::from(*last) + 1)
                .max()
                .unwrap_or(1),
            account_of,
            closed_units,
            shift: config.unit_pages.trailing_zeros(),
            roles,
            gc_of,
            route,
        })
    }
}

fn check_scalars(config: &Config) -> Result<(), ConfigError> {
    if config.logical_pages == 0 {
        return Err(ConfigError::NoPages);
    }
    let pages = config.unit_pages;
    if !pages.is_power_of_two() || !(2..=1 << 20).contains(&pages) {
        return Err(ConfigError::UnitPages { pages });
    }
    let value = config.over_provisioning;
    // This form also refuses NaN.
    if !(value > 0.0 && value <= 10.0) {
        return Err(ConfigError::OverProvisioning { value });
    }
    if config.reserve_units == 0 {
        return Err(ConfigError::NoReserve);
    }
    Ok(())
}

fn check_lists(config: &Config) -> Result<(), ConfigError> {
    for (what, count, limit) in [
        ("handles", config.handles.len(), MAX_HANDLES),
        ("streams", config.streams.len(), MAX_CLASSES),
        ("classes", config.classes.len(), MAX_CLASSES),
    ] {
        if !(1..=limit).contains(&count) {
            return Err(ConfigError::Count { what, count, limit });
        }
    }
    for (what, list, target, limit) in [
        ("stream", &config.streams, "handle", config.handles.len()),
        ("class", &config.classes, "stream", config.streams.len()),
    ] {
        let missing = list.iter().position(|&value| value >= limit);
        if let Some(number) = missing {
            return Err(ConfigError::Missing {
                what,
                number,
                target,
                value: list[number],
                limit,
            });
        }
    }
    Ok(())
}

/// Returns the frontiers, and for each the frontier for pages moved from its units.
fn frontiers(config: &Config) -> (Vec<Role>, Vec<usize>) {
    let handles = &config.handles;
    let mut roles: Vec<Role> = (0..handles.len()).map(Role::Host).collect();
    // Without a frontier of their own, moved pages go to the first initially isolated handle.
    let mut shared = handles
        .iter()
        .position(|kind| *kind == Isolation::Initially);
    if config.gc == GcFrontier::Own && shared.is_some() {
        shared = Some(roles.len());
        roles.push(Role::SharedGc);
    }
    let mut gc_of = Vec::new();
    for (handle, kind) in handles.iter().enumerate() {
        gc_of.push(match (kind, config.gc, shared) {
            (Isolation::Initially, _, Some(shared)) => shared,
            (Isolation::Persistently, GcFrontier::Own, _) => {
                roles.push(Role::GcOf(handle));
                roles.len() - 1
            }
            (Isolation::Persistently, GcFrontier::WithHost, _)
            | (Isolation::Initially, _, None) => handle,
        });
    }
    gc_of.extend(handles.len()..roles.len());
    (roles, gc_of)
}

/// Returns the account of each frontier.
fn accounts(config: &Config, roles: &[Role]) -> Vec<u8> {
    let account = |role: &Role| match (config.quota, *role) {
        (Quota::None, _) => 0,
        (_, Role::Host(handle) | Role::GcOf(handle)) => handle,
        (_, Role::SharedGc) => config.handles.len(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most 128 handles")]
    roles.iter().map(|role| account(role) as u8).collect()
}

/// Returns the number of units, and of closed units at the choice of a victim.
fn units(config: &Config, frontiers: usize) -> Result<(u32, u32), ConfigError> {
    let unit_pages = u64::from(config.unit_pages);
    // A victim is chosen when the unit of one frontier has just been closed.
    let taken = u64::from(config.reserve_units) + frontiers as u64 - 1;
    let physical = f64::from(config.logical_pages) * (1.0 + config.over_provisioning);
    let wanted = physical / f64::from(config.unit_pages);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and below 2^36 because U has 32 bits"
    )]
    let units = match config.counting {
        Counting::ClosedUnits => wanted.round() as u64 + taken,
        Counting::WholeDevice => wanted.floor() as u64,
    };
    let pages = units * unit_pages;
    let closed = units.saturating_sub(taken);
    match (u32::try_from(units), u32::try_from(closed)) {
        // u32::MAX is reserved for unmapped pages.
        (Ok(units), Ok(closed_units)) if pages < u64::from(u32::MAX) => {
            // With less, all closed units could be full of valid pages, and collection would not
            // end.
            if closed * unit_pages > u64::from(config.logical_pages) {
                return Ok((units, closed_units));
            }
        }
        _ => return Err(ConfigError::TooLarge { pages }),
    }
    Err(ConfigError::TooSmall {
        units,
        unit_pages: config.unit_pages,
        taken,
        logical_pages: config.logical_pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(gc: GcFrontier, handles: &[Isolation]) -> Layout {
        let config = Config {
            gc,
            handles: handles.to_vec(),
            ..Config::plain(4096, 0.25, 64)
        };
        Layout::new(&config).unwrap()
    }

    #[test]
    fn the_frontier_of_moved_pages_depends_on_isolation() {
        use Isolation::{Initially, Persistently};
        for (what, gc, handles, roles, gc_of) in [
            (
                "one log",
                GcFrontier::WithHost,
                &[Initially][..],
                &[Role::Host(0)][..],
                &[0][..],
            ),
            (
                "one stream, own frontier",
                GcFrontier::Own,
                &[Initially],
                &[Role::Host(0), Role::SharedGc],
                &[1, 1],
            ),
            (
                "initially isolated",
                GcFrontier::Own,
                &[Initially, Initially],
                &[Role::Host(0), Role::Host(1), Role::SharedGc],
                &[2, 2, 2],
            ),
            (
                "persistently isolated",
                GcFrontier::Own,
                &[Persistently, Persistently],
                &[Role::Host(0), Role::Host(1), Role::GcOf(0), Role::GcOf(1)],
                &[2, 3, 2, 3],
            ),
            (
                "both kinds",
                GcFrontier::Own,
                &[Persistently, Initially],
                &[Role::Host(0), Role::Host(1), Role::SharedGc, Role::GcOf(0)],
                &[3, 2, 2, 3],
            ),
            (
                "both kinds, with the host",
                GcFrontier::WithHost,
                &[Persistently, Initially, Initially],
                &[Role::Host(0), Role::Host(1), Role::Host(2)],
                &[0, 1, 1],
            ),
        ] {
            let layout = layout(gc, handles);
            assert_eq!(layout.roles, roles, "{what}");
            assert_eq!(layout.gc_of, gc_of, "{what}");
            // 4096 * 1.25 / 64, independent of open units.
            assert_eq!(layout.closed_units, 80, "{what}");
        }
    }

    #[test]
    fn a_whole_device_pays_for_its_open_units() {
        let config = Config {
            counting: Counting::WholeDevice,
            ..Config::plain(4096, 0.25, 64)
        };
        let layout = Layout::new(&config.with_streams(3, Isolation::Initially)).unwrap();
        assert_eq!((layout.units, layout.closed_units), (80, 77));
    }

    /// Invalid configurations, and a part of the error.
    fn invalid() -> Vec<(Config, &'static str)> {
        let good = Config::plain(4096, 0.25, 64);
        vec![
            (
                Config {
                    logical_pages: 0,
                    ..good.clone()
                },
                "without logical pages",
            ),
            (
                Config {
                    unit_pages: 48,
                    ..good.clone()
                },
                "48 pages per reclaim unit",
            ),
            (
                Config {
                    over_provisioning: 0.0,
                    ..good.clone()
                },
                "over-provisioning 0",
            ),
            (
                Config {
                    over_provisioning: f64::NAN,
                    ..good.clone()
                },
                "over-provisioning NaN",
            ),
            (
                Config {
                    reserve_units: 0,
                    ..good.clone()
                },
                "reserve of 0 units",
            ),
            (
                Config {
                    streams: vec![0, 1],
                    ..good.clone()
                },
                "stream 1 names handle 1",
            ),
            (
                Config {
                    classes: vec![0, 0, 7],
                    ..good.clone()
                },
                "class 2 names stream 7",
            ),
            (
                Config {
                    logical_pages: u32::MAX,
                    ..good.clone()
                },
                "at most 4294967294 can be simulated",
            ),
            (
                Config {
                    counting: Counting::WholeDevice,
                    over_provisioning: 0.01,
                    ..good.clone()
                },
                "64 reclaim units of 64 pages, of which 1 are open or in reserve, cannot hold 4096 pages",
            ),
        ]
    }

    #[test]
    fn invalid_configurations_are_named() {
        for (config, text) in invalid() {
            let error = Layout::new(&config).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
