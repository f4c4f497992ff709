//! The cells of `compare sql`: default plan, full plan, and plan with hogs.

use saiga_database::Engine;
use saiga_experiment::plan::{Cell, everywhere};
use saiga_process::cores::{Cores, Hog};

use crate::load::{SqlLoad, Test};

/// Number of clients that reconnect for each transaction.
const CHURNING: u32 = 4;

/// Reads with 1, 16 and 64 connections, writing transactions with 16, and reconnecting clients.
#[must_use]
pub fn default_loads(engine: Engine) -> Vec<SqlLoad> {
    let mut loads: Vec<SqlLoad> = [1, 16, 64]
        .map(|connections| SqlLoad::new(engine, Test::Select, connections))
        .to_vec();
    loads.push(SqlLoad::new(engine, Test::ReadWrite, 16));
    loads.push(SqlLoad {
        reconnect: true,
        ..SqlLoad::new(engine, Test::Select, CHURNING)
    });
    loads
}

/// The loads of `--full`: both tests with 1, 16, 64 and 256 connections, and reconnecting clients.
/// They run with and without hogs.
#[must_use]
pub fn full_loads(engine: Engine) -> Vec<SqlLoad> {
    let mut loads = default_loads(engine);
    loads.push(SqlLoad::new(engine, Test::Select, 256));
    loads
        .extend([1, 64, 256].map(|connections| SqlLoad::new(engine, Test::ReadWrite, connections)));
    loads
}

/// A cell for each load in each placement that `cores` allow, beside `hog`; none if the hog needs a
/// core that does not exist.
#[must_use]
pub fn cells(loads: &[SqlLoad], hog: Hog, cores: &Cores) -> Vec<Cell<SqlLoad>> {
    everywhere(loads, hog, cores, |_, _| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Cores {
        Cores::among(vec![0, 1]).unwrap()
    }

    #[test]
    fn the_default_plan_is_five_loads_in_three_placements() {
        let cells = cells(&default_loads(Engine::MariaDb), Hog::None, &two());
        let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids.len(), 15);
        assert_eq!(ids[0], "mariadb-point-select-c1-one-core");
        assert_eq!(ids[14], "mariadb-churn-c4-unpinned");
    }

    #[test]
    fn the_full_plan_has_unique_cells_for_both_engines_and_every_hog() {
        let mut ids = Vec::new();
        for engine in Engine::ALL {
            for hog in [Hog::None, Hog::First, Hog::Second, Hog::Both] {
                ids.extend(
                    cells(&full_loads(engine), hog, &two())
                        .into_iter()
                        .map(|cell| cell.id),
                );
            }
        }
        let planned = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!((ids.len(), planned), (216, 216));
        assert!(ids.contains(&"postgres-tpcb-c256-two-cores-hog-both".to_owned()));
    }
}
