//! Decides the phases of a build from the request and the state of the database.
//!
//! The decision precedes all changes, so that a request that cannot be carried out fails without
//! side effects.

use super::error::{BuildError, RowProgress};
use super::owner;
use crate::state::{Job, LoadProgress, Stage, State};

/// A request to build, or to complete a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildRequest {
    pub part: BuildPart,
    /// Number of warehouses in total.
    pub warehouses: u32,
    /// First and last warehouse that this process may load; `None` for all.
    pub range: Option<(u32, u32)>,
    /// The seed that the user asks for.
    pub seed: Option<u64>,
    /// Whether to continue an incomplete load.
    pub resume: bool,
    /// Whether the rows will be loaded from CSV files by another tool.
    pub by_files: bool,
}

/// The part of a build that this process performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildPart {
    Whole,
    /// The tables; by one host.
    Tables,
    /// The rows; by any number of hosts.
    Load,
    /// All steps after the rows; by one host.
    Finish,
}

/// A phase of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildPhase {
    /// Creates the tables and records the jobs.
    Tables,
    /// Creates the tables; `bmsql_config` is loaded with the rows.
    EmptyTables,
    /// Deletes the rows of incomplete jobs.
    Reset,
    /// Loads the jobs that no other process has taken.
    Rows,
    /// Creates indexes and keys, and collects statistics.
    Finish,
}

/// Returns the phases that carry out the request, or the reason why this is impossible.
pub(super) fn plan(
    state: &State,
    request: &BuildRequest,
    owner: &str,
) -> Result<Vec<BuildPhase>, BuildError> {
    check_range(request)?;
    match state {
        State::Empty { .. } => match request.part {
            BuildPart::Whole => Ok(vec![
                BuildPhase::Tables,
                BuildPhase::Rows,
                BuildPhase::Finish,
            ]),
            BuildPart::Tables if request.by_files => Ok(vec![BuildPhase::EmptyTables]),
            BuildPart::Tables => Ok(vec![BuildPhase::Tables]),
            BuildPart::Load | BuildPart::Finish => Err(BuildError::NoTables),
        },
        State::Unidentified { tables } => Err(BuildError::Unidentified {
            tables: tables.clone(),
        }),
        State::TablesMissing { missing } => Err(BuildError::TablesMissing {
            missing: missing.clone(),
        }),
        State::ConfigEmpty => Err(BuildError::ConfigEmpty),
        State::Complete(loaded) if request.resume && loaded.warehouses == request.warehouses => {
            Ok(Vec::new())
        }
        State::Complete(loaded) => Err(BuildError::AlreadyBuilt {
            warehouses: loaded.warehouses,
        }),
        State::InProgress(progress) => resume_phases(progress, request, owner),
    }
}

/// Checks the requested range. A whole build must include all warehouses.
fn check_range(request: &BuildRequest) -> Result<(), BuildError> {
    let Some((first, last)) = request.range else {
        return Ok(());
    };
    if last > request.warehouses {
        return Err(BuildError::Range {
            last,
            warehouses: request.warehouses,
        });
    }
    match request.part {
        BuildPart::Whole if (first, last) != (1, request.warehouses) => Err(BuildError::Part {
            first,
            last,
            warehouses: request.warehouses,
        }),
        BuildPart::Whole | BuildPart::Tables | BuildPart::Load | BuildPart::Finish => Ok(()),
    }
}

fn resume_phases(
    progress: &LoadProgress,
    request: &BuildRequest,
    owner: &str,
) -> Result<Vec<BuildPhase>, BuildError> {
    check_same(progress, request)?;
    let rows = || RowProgress::of(progress);
    let loads = progress.stage == Stage::Rows;
    match (request.part, request.resume) {
        (BuildPart::Whole, true) if loads => {
            check_no_local_loader(progress, owner)?;
            Ok(vec![
                BuildPhase::Reset,
                BuildPhase::Rows,
                BuildPhase::Finish,
            ])
        }
        (BuildPart::Load, true) if loads => {
            check_no_local_loader(progress, owner)?;
            Ok(vec![BuildPhase::Reset, BuildPhase::Rows])
        }
        (BuildPart::Load, false) if loads => Ok(vec![BuildPhase::Rows]),
        (BuildPart::Load, _) => Err(BuildError::RowsLoaded),
        (BuildPart::Finish, _) if loads && !rows().is_whole() => {
            Err(BuildError::Unfinished(rows()))
        }
        (BuildPart::Finish, _) if loads => Ok(vec![BuildPhase::Finish]),
        (BuildPart::Finish, false) if progress.stage == Stage::ROWS_DONE => {
            Ok(vec![BuildPhase::Finish])
        }
        (BuildPart::Whole | BuildPart::Finish, true) => Ok(vec![BuildPhase::Finish]),
        (BuildPart::Whole | BuildPart::Finish | BuildPart::Tables, _) => {
            Err(BuildError::InProgress {
                rows: rows(),
                stage: progress.stage,
            })
        }
    }
}

fn check_same(progress: &LoadProgress, request: &BuildRequest) -> Result<(), BuildError> {
    let found = &progress.info;
    if found.warehouses != request.warehouses {
        let (there, wanted) = (found.warehouses, request.warehouses);
        return Err(BuildError::OtherWarehouses { there, wanted });
    }
    match (found.origin, request.seed) {
        (Some(origin), Some(seed)) if origin.seed != seed => Err(BuildError::OtherSeed {
            there: origin.seed,
            wanted: seed,
        }),
        _ => Ok(()),
    }
}

/// Fails if another running process of this host has taken jobs. `owner` is the mark of this
/// process.
pub(crate) fn check_no_local_loader(
    progress: &LoadProgress,
    owner: &str,
) -> Result<(), BuildError> {
    for (job, taken) in &progress.jobs {
        let Job::Taken(by) = taken else { continue };
        if let Some(pid) = owner::running_pid(by, owner) {
            return Err(BuildError::StillLoading { job: *job, pid });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::script::Step;
    use crate::spec::nurand::Constants;
    use crate::state::{LoadInfo, Origin};
    use crate::table::Table;

    fn request(part: BuildPart) -> BuildRequest {
        BuildRequest {
            part,
            warehouses: 3,
            range: None,
            seed: None,
            resume: false,
            by_files: false,
        }
    }

    fn resume(part: BuildPart) -> BuildRequest {
        BuildRequest {
            resume: true,
            ..request(part)
        }
    }

    fn loaded() -> LoadInfo {
        let constants = Constants {
            last_name: 1,
            customer: 2,
            item: 3,
        };
        LoadInfo {
            warehouses: 3,
            constants,
            origin: Some(Origin { seed: 5, time: 6 }),
        }
    }

    fn begun(stage: Stage, jobs: &[Job]) -> State {
        let jobs: BTreeMap<u32, Job> = (0..).zip(jobs.iter().cloned()).collect();
        State::InProgress(LoadProgress {
            info: loaded(),
            stage,
            jobs,
        })
    }

    fn taken(by: &str) -> Job {
        Job::Taken(by.to_owned())
    }

    /// The phases, or the error message.
    fn planned(state: &State, request: &BuildRequest) -> Result<Vec<BuildPhase>, String> {
        plan(state, request, "here:1").map_err(|error| error.to_string())
    }

    #[test]
    fn each_part_has_its_phases() {
        let empty = State::Empty {
            other_tools: Vec::new(),
        };
        let complete = State::Complete(loaded());
        let rows = begun(
            Stage::Rows,
            &[Job::Done, Job::Open, taken("db7:1"), Job::Done],
        );
        let all = begun(Stage::Rows, &[Job::Done, Job::Done, Job::Done, Job::Done]);
        let keys = begun(Stage::Step(Step::ForeignKeys, 2), &[]);
        let copied = begun(Stage::ROWS_DONE, &[]);
        use BuildPhase::{Finish, Reset, Rows, Tables};
        for (name, state, request, wanted) in [
            (
                "new",
                &empty,
                request(BuildPart::Whole),
                vec![Tables, Rows, Finish],
            ),
            (
                "new, resumed",
                &empty,
                resume(BuildPart::Whole),
                vec![Tables, Rows, Finish],
            ),
            ("tables", &empty, request(BuildPart::Tables), vec![Tables]),
            ("rows", &rows, request(BuildPart::Load), vec![Rows]),
            (
                "rows, resumed",
                &rows,
                resume(BuildPart::Load),
                vec![Reset, Rows],
            ),
            (
                "resumed",
                &rows,
                resume(BuildPart::Whole),
                vec![Reset, Rows, Finish],
            ),
            ("finish", &all, request(BuildPart::Finish), vec![Finish]),
            (
                "finish after copies",
                &copied,
                request(BuildPart::Finish),
                vec![Finish],
            ),
            (
                "finish, resumed",
                &keys,
                resume(BuildPart::Finish),
                vec![Finish],
            ),
            (
                "resumed at the end",
                &keys,
                resume(BuildPart::Whole),
                vec![Finish],
            ),
            (
                "complete already",
                &complete,
                resume(BuildPart::Whole),
                vec![],
            ),
        ] {
            assert_eq!(planned(state, &request), Ok(wanted), "{name}");
        }
    }

    #[test]
    fn a_load_from_csv_files_needs_empty_tables() {
        let empty = State::Empty {
            other_tools: Vec::new(),
        };
        let by_files = BuildRequest {
            by_files: true,
            ..request(BuildPart::Tables)
        };
        assert_eq!(
            planned(&empty, &by_files),
            Ok(vec![BuildPhase::EmptyTables])
        );
    }

    fn assert_refused(rows: &[(&State, BuildRequest, &str)]) {
        for (state, request, wanted) in rows {
            let said = planned(state, request).unwrap_err();
            assert!(said.starts_with(wanted), "{wanted}: {said}");
        }
    }

    #[test]
    fn an_existing_database_is_never_overwritten() {
        let empty = State::Empty {
            other_tools: Vec::new(),
        };
        let complete = State::Complete(loaded());
        let unidentified = State::Unidentified {
            tables: vec![Table::Item],
        };
        let missing = State::TablesMissing {
            missing: vec![Table::Stock],
        };
        let whole = request(BuildPart::Whole);
        let some = |part, range| BuildRequest {
            range: Some(range),
            ..request(part)
        };
        let more = BuildRequest {
            warehouses: 4,
            resume: true,
            ..whole
        };
        assert_refused(&[
            (&empty, request(BuildPart::Load), "there are no tables yet"),
            (
                &empty,
                request(BuildPart::Finish),
                "there are no tables yet",
            ),
            (
                &complete,
                whole,
                "the database is already built (warehouses: 3)",
            ),
            (&complete, more, "the database is already built"),
            (
                &State::ConfigEmpty,
                whole,
                "the tables exist and bmsql_config is empty",
            ),
            (
                &unidentified,
                whole,
                "the database has bmsql_item, but no bmsql_config",
            ),
            (&missing, whole, "bmsql_stock is missing"),
            (
                &empty,
                some(BuildPart::Whole, (1, 2)),
                "warehouses 1 to 2 of 3 are a part",
            ),
            (&empty, some(BuildPart::Load, (2, 9)), "loadidend is 9"),
        ]);
    }

    #[test]
    fn a_load_is_resumed_only_as_it_was_begun() {
        let rows = begun(
            Stage::Rows,
            &[Job::Done, Job::Open, taken("db7:1"), Job::Done],
        );
        let keys = begun(Stage::Step(Step::ForeignKeys, 2), &[]);
        let load = request(BuildPart::Load);
        let (other_seed, more) = (
            BuildRequest {
                seed: Some(6),
                ..load
            },
            BuildRequest {
                warehouses: 4,
                ..load
            },
        );
        assert_refused(&[
            (&rows, request(BuildPart::Whole), "the load is incomplete"),
            (&rows, request(BuildPart::Tables), "the load is incomplete"),
            (
                &rows,
                request(BuildPart::Finish),
                "rows are missing: 1 of 3 warehouses is loaded",
            ),
            (&keys, load, "all rows are loaded"),
            (
                &keys,
                request(BuildPart::Finish),
                "the load is incomplete: all rows",
            ),
            (
                &rows,
                other_seed,
                "the load in the database has seed 5, not 6",
            ),
            (&rows, more, "the load in the database has 3 warehouses"),
        ]);
    }

    #[test]
    fn a_running_process_of_this_host_keeps_its_jobs() {
        let ours = format!("here:{}", std::process::id());
        let resume = BuildRequest {
            resume: true,
            ..request(BuildPart::Whole)
        };
        let running = begun(Stage::Rows, &[Job::Done, taken(&ours)]);
        let said = planned(&running, &resume).unwrap_err();
        assert!(
            said.starts_with("warehouse 1 is being loaded by process"),
            "{said}"
        );
        for dead in ["here:999999999", "there:1"] {
            assert!(
                planned(&begun(Stage::Rows, &[taken(dead)]), &resume).is_ok(),
                "{dead}"
            );
        }
    }
}
