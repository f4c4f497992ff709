//! What is to be done for what the user asks, from what is there: decided before anything is.

use super::error::{BuildError, Half};
use super::owner;
use crate::state::{Job, Ledger, Stage, State};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Which part of it.
    pub part: Part,
    /// How many warehouses altogether.
    pub warehouses: u32,
    /// The first and the last that this process may load; `None` for any.
    pub range: Option<(u32, u32)>,
    /// A certain seed.
    pub seed: Option<u64>,
    /// To go on with what was left half done.
    pub resume: bool,
    /// Rows come from CSV files, by other means than this.
    pub by_files: bool,
}

/// Which part of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The tables, by one host.
    Tables,
    /// The rows, by as many hosts as there are.
    Load,
    /// Everything behind the rows, by one host.
    Finish,
}

/// One thing after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Makes the tables, and writes down what is to be loaded.
    Tables,
    /// Makes the tables: what is loaded comes with the rows.
    EmptyTables,
    /// Half-loaded warehouses are emptied.
    TakeBack,
    /// Loads what nobody else does.
    Rows,
    /// Keys, indexes, statistics.
    Finish,
}

/// # Errors
/// Why it cannot be done, and what can be.
pub(super) fn plan(state: &State, asked: &Asked, who: &str) -> Result<Vec<Phase>, BuildError> {
    check_range(asked)?;
    match state {
        State::Empty { .. } => match asked.part {
            Part::Whole => Ok(vec![Phase::Tables, Phase::Rows, Phase::Finish]),
            Part::Tables if asked.by_files => Ok(vec![Phase::EmptyTables]),
            Part::Tables => Ok(vec![Phase::Tables]),
            Part::Load | Part::Finish => Err(BuildError::NoTables),
        },
        State::NotOurs { tables } => Err(BuildError::NotOurs {
            tables: tables.clone(),
        }),
        State::Torn { missing } => Err(BuildError::Torn {
            missing: missing.clone(),
        }),
        State::Blank => Err(BuildError::Blank),
        State::Complete(loaded) if asked.resume && loaded.warehouses == asked.warehouses => {
            Ok(Vec::new())
        }
        State::Complete(loaded) => Err(BuildError::Built {
            warehouses: loaded.warehouses,
        }),
        State::Begun(ledger) => go_on(ledger, asked, who),
    }
}

/// A part of the warehouses is not a whole build.
fn check_range(asked: &Asked) -> Result<(), BuildError> {
    let Some((first, last)) = asked.range else {
        return Ok(());
    };
    if last > asked.warehouses {
        return Err(BuildError::Range {
            last,
            warehouses: asked.warehouses,
        });
    }
    match asked.part {
        Part::Whole if (first, last) != (1, asked.warehouses) => Err(BuildError::Part {
            first,
            last,
            warehouses: asked.warehouses,
        }),
        Part::Whole | Part::Tables | Part::Load | Part::Finish => Ok(()),
    }
}

fn go_on(ledger: &Ledger, asked: &Asked, who: &str) -> Result<Vec<Phase>, BuildError> {
    check_same(ledger, asked)?;
    let half = || Half::of(ledger);
    let loads = ledger.stage == Stage::Rows;
    match (asked.part, asked.resume) {
        (Part::Whole, true) if loads => {
            check_nobody_loads(ledger, who)?;
            Ok(vec![Phase::TakeBack, Phase::Rows, Phase::Finish])
        }
        (Part::Load, true) if loads => {
            check_nobody_loads(ledger, who)?;
            Ok(vec![Phase::TakeBack, Phase::Rows])
        }
        (Part::Load, false) if loads => Ok(vec![Phase::Rows]),
        (Part::Load, _) => Err(BuildError::RowsAreThere),
        (Part::Finish, _) if loads && !half().is_whole() => Err(BuildError::Unfinished(half())),
        (Part::Finish, _) if loads => Ok(vec![Phase::Finish]),
        (Part::Finish, false) if ledger.stage == Stage::ROWS_DONE => Ok(vec![Phase::Finish]),
        (Part::Whole | Part::Finish, true) => Ok(vec![Phase::Finish]),
        (Part::Whole | Part::Finish | Part::Tables, _) => Err(BuildError::Begun {
            half: half(),
            stage: ledger.stage,
        }),
    }
}

fn check_same(ledger: &Ledger, asked: &Asked) -> Result<(), BuildError> {
    let there = &ledger.loaded;
    if there.warehouses != asked.warehouses {
        let (there, asked) = (there.warehouses, asked.warehouses);
        return Err(BuildError::OtherWarehouses { there, asked });
    }
    match (there.origin, asked.seed) {
        (Some(origin), Some(seed)) if origin.seed != seed => Err(BuildError::OtherSeed {
            there: origin.seed,
            asked: seed,
        }),
        _ => Ok(()),
    }
}

/// Another process of this host that has jobs and is alive is loading them; `who` is our mark.
pub(crate) fn check_nobody_loads(ledger: &Ledger, who: &str) -> Result<(), BuildError> {
    for (job, taken) in &ledger.jobs {
        let Job::Taken(by) = taken else { continue };
        if let Some(pid) = owner::alive(by, who) {
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
    use crate::state::{Loaded, Origin};
    use crate::table::Table;

    fn asked(part: Part) -> Asked {
        Asked {
            part,
            warehouses: 3,
            range: None,
            seed: None,
            resume: false,
            by_files: false,
        }
    }

    fn loaded() -> Loaded {
        let constants = Constants {
            last_name: 1,
            customer: 2,
            item: 3,
        };
        Loaded {
            warehouses: 3,
            constants,
            origin: Some(Origin { seed: 5, time: 6 }),
        }
    }

    fn begun(stage: Stage, jobs: &[Job]) -> State {
        let jobs: BTreeMap<u32, Job> = (0..).zip(jobs.iter().cloned()).collect();
        State::Begun(Ledger {
            loaded: loaded(),
            stage,
            jobs,
        })
    }

    fn taken(by: &str) -> Job {
        Job::Taken(by.to_owned())
    }

    /// The phases, or the first words of the refusal.
    fn planned(state: &State, asked: &Asked) -> Result<Vec<Phase>, String> {
        plan(state, asked, "here:1").map_err(|error| error.to_string())
    }

    #[test]
    fn each_part_begins_where_it_may() {
        let empty = State::Empty {
            strangers: Vec::new(),
        };
        let complete = State::Complete(loaded());
        let rows = begun(
            Stage::Rows,
            &[Job::Done, Job::Open, taken("db7:1"), Job::Done],
        );
        let all = begun(Stage::Rows, &[Job::Done, Job::Done, Job::Done, Job::Done]);
        let keys = begun(Stage::Step(Step::ForeignKeys, 2), &[]);
        let copied = begun(Stage::ROWS_DONE, &[]);
        let resume = |part| Asked {
            resume: true,
            ..asked(part)
        };
        use Phase::{Finish, Rows, Tables, TakeBack};
        for (name, state, asked, wanted) in [
            (
                "new",
                &empty,
                asked(Part::Whole),
                vec![Tables, Rows, Finish],
            ),
            (
                "new, resumed",
                &empty,
                resume(Part::Whole),
                vec![Tables, Rows, Finish],
            ),
            ("tables", &empty, asked(Part::Tables), vec![Tables]),
            ("rows", &rows, asked(Part::Load), vec![Rows]),
            (
                "rows, resumed",
                &rows,
                resume(Part::Load),
                vec![TakeBack, Rows],
            ),
            (
                "resumed",
                &rows,
                resume(Part::Whole),
                vec![TakeBack, Rows, Finish],
            ),
            ("finish", &all, asked(Part::Finish), vec![Finish]),
            (
                "finish after copies",
                &copied,
                asked(Part::Finish),
                vec![Finish],
            ),
            ("finish, resumed", &keys, resume(Part::Finish), vec![Finish]),
            (
                "resumed at the end",
                &keys,
                resume(Part::Whole),
                vec![Finish],
            ),
            ("there already", &complete, resume(Part::Whole), vec![]),
        ] {
            assert_eq!(planned(state, &asked), Ok(wanted), "{name}");
        }
        let by_files = Asked {
            by_files: true,
            ..asked(Part::Tables)
        };
        assert_eq!(planned(&empty, &by_files), Ok(vec![Phase::EmptyTables]));
    }

    fn assert_refused(rows: &[(&State, Asked, &str)]) {
        for (state, asked, wanted) in rows {
            let said = planned(state, asked).unwrap_err();
            assert!(said.starts_with(wanted), "{wanted}: {said}");
        }
    }

    #[test]
    fn whatever_is_there_is_never_built_over() {
        let empty = State::Empty {
            strangers: Vec::new(),
        };
        let complete = State::Complete(loaded());
        let strange = State::NotOurs {
            tables: vec![Table::Item],
        };
        let torn = State::Torn {
            missing: vec![Table::Stock],
        };
        let whole = asked(Part::Whole);
        let some = |part, range| Asked {
            range: Some(range),
            ..asked(part)
        };
        let more = Asked {
            warehouses: 4,
            resume: true,
            ..whole
        };
        assert_refused(&[
            (&empty, asked(Part::Load), "there are no tables yet"),
            (&empty, asked(Part::Finish), "there are no tables yet"),
            (&complete, whole, "it is built already (warehouses: 3)"),
            (&complete, more, "it is built already"),
            (
                &State::Blank,
                whole,
                "the tables are there and bmsql_config is empty",
            ),
            (&strange, whole, "it has bmsql_item, but no bmsql_config"),
            (&torn, whole, "bmsql_stock is missing"),
            (
                &empty,
                some(Part::Whole, (1, 2)),
                "warehouses 1 to 2 of 3 are a part",
            ),
            (&empty, some(Part::Load, (2, 9)), "loadidend is 9"),
        ]);
    }

    #[test]
    fn what_was_begun_is_gone_on_with_as_it_was() {
        let rows = begun(
            Stage::Rows,
            &[Job::Done, Job::Open, taken("db7:1"), Job::Done],
        );
        let keys = begun(Stage::Step(Step::ForeignKeys, 2), &[]);
        let load = asked(Part::Load);
        let (other_seed, more) = (
            Asked {
                seed: Some(6),
                ..load
            },
            Asked {
                warehouses: 4,
                ..load
            },
        );
        assert_refused(&[
            (
                &rows,
                asked(Part::Whole),
                "a load was begun and is not complete",
            ),
            (
                &rows,
                asked(Part::Tables),
                "a load was begun and is not complete",
            ),
            (
                &rows,
                asked(Part::Finish),
                "rows are missing: 1 of 3 warehouses is loaded",
            ),
            (&keys, load, "all rows are there"),
            (
                &keys,
                asked(Part::Finish),
                "a load was begun and is not complete: all rows",
            ),
            (&rows, other_seed, "its load has seed 5, not 6"),
            (&rows, more, "its load is of 3 warehouses"),
        ]);
    }

    #[test]
    fn a_living_process_of_this_host_keeps_its_jobs() {
        let ours = format!("here:{}", std::process::id());
        let resume = Asked {
            resume: true,
            ..asked(Part::Whole)
        };
        let living = begun(Stage::Rows, &[Job::Done, taken(&ours)]);
        let said = planned(&living, &resume).unwrap_err();
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
