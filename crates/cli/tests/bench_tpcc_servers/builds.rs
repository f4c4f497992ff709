//! Builds that are killed, and `destroy`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use saiga_trials::scale::{Rng, by_scale, seed};
use saiga_trials::sys::wait_stopped;
use saiga_trials::witness::await_true;

use crate::bench::{Bench, ELSEWHERE};
use crate::marked::send;
use crate::system::{OWNER, PASSWORD, wait_out};

/// Number of warehouses that are being loaded.
const LOADING: &str = "select count(*) from bmsql_config where cfg_name = 'saiga_job_1' \
                       and cfg_value <> 'open' and cfg_value <> 'done'";
/// Number of TPC-C tables in this database.
const TABLES: &str =
    "select count(*) from information_schema.tables where table_name like 'bmsql%'";

pub(crate) fn a_killed_build_is_recognised_and_completed(bench: &Bench) {
    let mut build = bench.spawn_elsewhere("build", &["--seed", "7"]);
    await_true(
        || bench.number(TABLES) == 10 && bench.number(LOADING) == 1,
        || "no warehouse is loaded".to_owned(),
    );
    // The loader lives on another host, which cannot be checked from here.
    send(&build, Signal::STOP);
    wait_stopped(build.id()).unwrap();
    let said = bench.said("build", &["--resume"]);
    let wanted = format!("is being loaded by process {ELSEWHERE}:{} (", build.id());
    let is_refused = said.code == Some(2) && said.stderr.contains(&wanted);
    assert!(is_refused, "{said:?}");
    build.kill().unwrap();
    build.wait().unwrap();
    is_recognised(bench);
    let mut rng = Rng::new(seed(40));
    for _ in 0..by_scale(0, 40) {
        is_killed_at_random(bench, &mut rng);
    }
    let said = bench.said("build", &["--resume"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let name = bench.system.name();
    let wanted = format!("{name}: complete, 1 warehouse, seed 7; ");
    assert!(said.stdout.starts_with(&wanted), "{said:?}");
    is_as_loaded(bench);
}

/// Every step names the way to continue, and changes nothing.
fn is_recognised(bench: &Bench) {
    let half = "0 of 1 warehouses";
    for (step, more, wanted) in [
        (
            "check",
            &[][..],
            "continue with `saiga bench tpcc build --resume`",
        ),
        (
            "run",
            &[],
            "continue it with `saiga bench tpcc build --resume`",
        ),
        (
            "run",
            &["--no-check"],
            "continue it with `saiga bench tpcc build --resume`",
        ),
        (
            "build",
            &[],
            "continue with --resume when no other process loads",
        ),
        (
            "build",
            &["--only", "finish"],
            "--resume takes over the jobs of dead processes",
        ),
    ] {
        let said = bench.refused(&mut bench.command(step, more));
        assert!(said.contains(wanted), "{step} {more:?}: {said}");
        let named = step == "run" || said.contains(half) || said.contains("0 of 1 warehouse");
        assert!(named, "{step} {more:?}: {said}");
    }
    assert_eq!(bench.number(LOADING), 1);
}

/// Kills a resumed build at any point: while rows are removed or loaded, and in later steps.
fn is_killed_at_random(bench: &Bench, rng: &mut Rng) {
    let mut build = bench.spawn("build", &["--resume"]);
    wait_out(Duration::from_millis(rng.below(6000)));
    build.kill().unwrap();
    build.wait().unwrap();
}

/// Checks the population (§4.3.3.1) and all twelve conditions.
fn is_as_loaded(bench: &Bench) {
    let said = bench.said("check", &["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(report["after_load"], true);
    assert_eq!(report["findings"], serde_json::json!([]));
    let checked = report["checked"].as_array().unwrap();
    let of = |clause: &str| {
        let clauses = checked.iter().map(|one| one["clause"].as_str().unwrap());
        clauses.filter(|one| one.starts_with(clause)).count()
    };
    assert_eq!((of("3.3.2."), of("4.3.3.1")), (12, 10), "{report}");
}

pub(crate) fn tables_are_dropped(bench: &Bench) {
    let said = bench.said("destroy", &["--yes"]);
    let (name, db) = (bench.system.name(), bench.system.db());
    let wanted = format!(
        "{name}: dropped the 10 tables of TPC-C with 1 warehouse, by sql.{db}/tableDrops.sql \
         (built in)\n"
    );
    assert_eq!((said.code, said.stdout), (Some(0), wanted));
    assert_eq!(bench.number(TABLES), 0);
    let said = bench.refused(&mut bench.command("run", &[]));
    assert!(said.contains("the database has no TPC-C tables"), "{said}");
}

/// The props file and the statements of the committed example, for another server and one
/// warehouse.
pub(crate) fn the_example_for_opengauss_makes_no_foreign_keys(bench: &Bench) {
    const NAME: &str = "opengauss-812-terminals.conf";
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let system = bench.system.props();
    let conn = system.lines().find(|line| line.starts_with("conn="));
    let own = |line: &str| match line.split_once('=') {
        Some(("conn", _)) => conn.unwrap().to_owned(),
        Some(("user", _)) => format!("user={OWNER}"),
        Some(("password", _)) => format!("password={PASSWORD}"),
        Some(("warehouses", _)) => "warehouses=1".to_owned(),
        Some(("terminals", _)) => "terminals=10".to_owned(),
        Some(_) | None => line.to_owned(),
    };
    let text = fs::read_to_string(examples.join(NAME)).unwrap();
    let lines: Vec<String> = text.lines().map(own).collect();
    fs::write(bench.path(NAME), lines.join("\n")).unwrap();
    for folder in fs::read_dir(examples).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        if !name.starts_with("sql.") {
            continue;
        }
        fs::create_dir(bench.path(&name)).unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), bench.path(&name).join(file.file_name())).unwrap();
        }
    }
    let said = bench.said_with(NAME, "build");
    assert_eq!(said.code, Some(0), "{said:?}");
    let keys = |kind: &str| {
        bench.number(&format!(
            "select count(*) from information_schema.table_constraints \
             where constraint_type = '{kind} KEY' and table_name like 'bmsql%'"
        ))
    };
    assert_eq!((keys("PRIMARY"), keys("FOREIGN")), (10, 0), "{said:?}");
}
