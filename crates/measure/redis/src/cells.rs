//! The cells of `compare redis`: the default plan, the full one, and hogs.

use saiga_experiment::cores::{Cores, Hog, Placement};
use saiga_experiment::plan::{Cell, everywhere};

use crate::load::{RedisLoad, Test};
use crate::topology::Topology;

const LARGE_VALUE: u32 = 100_000;
/// Connections that write through a fail-over.
const FAILOVER_WRITERS: u32 = 4;
const BOTH: [Test; 2] = [Test::Set, Test::Get];

/// Set and get at 1, 50 and 200 clients, pipelined, and with large values.
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

/// What is measured beside idle connections: they are the same whatever the requests do.
#[must_use]
pub fn idle_loads() -> Vec<RedisLoad> {
    vec![RedisLoad::new(Test::Get, 50)]
}

/// The default loads, and what only `--full` has time for.
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

/// The loads that `--full` repeats beside hogs.
#[must_use]
pub fn hog_loads() -> Vec<RedisLoad> {
    vec![RedisLoad::new(Test::Set, 1), RedisLoad::new(Test::Set, 50)]
}

/// What a topology is measured with: set and get, and for sentinels a fail-over. Most of
/// a run is spent on making the topology, so there are few.
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

/// Each load in each placement that these cores allow, beside `hog`; none when the
/// hog needs a core that is not there. Loads with several threads on one side run
/// unpinned only: pinned, these threads would share a core, which nobody wants to know.
/// So does a fail-over: where its processes run is not what it is about.
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

    /// On two cores.
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
