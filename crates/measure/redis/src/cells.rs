//! The cells of `compare redis`: default plan, full plan, and plan with hogs.

use saiga_experiment::plan::{Cell, everywhere};
use saiga_process::cores::{Cores, Hog, Placement};

use crate::load::{RedisLoad, Test};
use crate::topology::Topology;

const LARGE_VALUE: u32 = 100_000;
/// Connections that write during a fail-over.
const FAILOVER_WRITERS: u32 = 4;
const BOTH: [Test; 2] = [Test::Set, Test::Get];

/// SET and GET with 1, 50 and 200 clients, with a pipeline, and with large values.
#[must_use]
pub fn default_loads() -> Vec<RedisLoad> {
    let of = |test| {
        let fifty = RedisLoad::new(test, 50);
        [
            RedisLoad::new(test, 1),
            fifty.clone(),
            RedisLoad::new(test, 200),
            RedisLoad {
                pipeline: 16,
                ..fifty.clone()
            },
            RedisLoad {
                value_bytes: LARGE_VALUE,
                ..fifty
            },
        ]
    };
    BOTH.into_iter().flat_map(of).collect()
}

/// The loads beside idle connections; one is enough, because the cost of idle connections does not
/// depend on the requests.
#[must_use]
pub fn idle_loads() -> Vec<RedisLoad> {
    vec![RedisLoad::new(Test::Get, 50)]
}

/// The loads of `--full`: the default loads and further ones.
#[must_use]
pub fn full_loads() -> Vec<RedisLoad> {
    let fifty = RedisLoad::new(Test::Set, 50);
    let mut loads = default_loads();
    loads.extend(BOTH.map(|test| RedisLoad::new(test, 1000)));
    loads.extend(BOTH.map(|test| RedisLoad {
        value_bytes: 4096,
        ..RedisLoad::new(test, 50)
    }));
    loads.push(RedisLoad {
        client_threads: 2,
        ..fifty.clone()
    });
    loads.push(RedisLoad {
        io_threads: 2,
        ..fifty
    });
    loads.push(RedisLoad {
        reconnect: true,
        ..RedisLoad::new(Test::Ping, 50)
    });
    loads
}

/// The loads that `--full` repeats beside CPU hogs.
#[must_use]
pub fn hog_loads() -> Vec<RedisLoad> {
    vec![RedisLoad::new(Test::Set, 1), RedisLoad::new(Test::Set, 50)]
}

/// The loads of a topology: SET and GET, and a fail-over for sentinels. There are few, because most
/// of the time of a run is spent on starting the topology.
#[must_use]
pub fn topology_loads(topology: Topology, full: bool) -> Vec<RedisLoad> {
    let joined = |load: RedisLoad| RedisLoad { topology, ..load };
    let counts: &[u32] = if full { &[1, 50, 1000] } else { &[50] };
    let both = |&clients: &u32| BOTH.map(|test| joined(RedisLoad::new(test, clients)));
    let mut loads: Vec<RedisLoad> = counts.iter().flat_map(both).collect();
    if topology == Topology::Sentinel {
        loads.push(joined(RedisLoad::new(Test::Failover, FAILOVER_WRITERS)));
    }
    loads
}

/// A cell for each load in each placement that `cores` allow, beside `hog`; none if the hog needs a
/// core that does not exist. Loads with several threads on a side run only unpinned, because pinned
/// threads would share a core. Fail-overs also run only unpinned, because their duration does not
/// depend on the placement.
#[must_use]
pub fn cells(loads: &[RedisLoad], hog: Hog, cores: &Cores) -> Vec<Cell<RedisLoad>> {
    let fits = |load: &RedisLoad, placement: Placement| {
        let threads = load.client_threads > 1 || load.io_threads > 1;
        let anywhere = threads || load.test == Test::Failover;
        !anywhere || placement == Placement::Unpinned
    };
    everywhere(loads, hog, cores, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids of the cells on two cores.
    fn ids(loads: &[RedisLoad], hog: Hog) -> Vec<String> {
        let two = Cores::among(vec![0, 1]).unwrap();
        cells(loads, hog, &two)
            .into_iter()
            .map(|cell| cell.id)
            .collect()
    }

    #[test]
    fn the_default_plan_is_ten_loads_in_three_placements() {
        let mut all = ids(&default_loads(), Hog::None);
        assert_eq!(all.len(), 30);
        assert_eq!(all[0], "set-c1-one-core");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 30, "ids are unique");
    }

    #[test]
    fn the_full_plan_has_unique_cells_too() {
        let mut all = ids(&full_loads(), Hog::None);
        for hog in [Hog::First, Hog::Second, Hog::Both] {
            all.extend(ids(&hog_loads(), hog));
        }
        let planned = all.len();
        all.sort();
        all.dedup();
        assert_eq!((all.len(), planned), (65, 65));
        assert!(all.contains(&"set-c1-two-cores-hog-both".to_owned()));
    }
}
