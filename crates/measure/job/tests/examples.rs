//! Snapshots of the dry runs of all committed examples, on a machine that meets no requirement.
//!
//! To accept a change: `SAIGA_WRITE_EXAMPLES=1 cargo test -p saiga-job --test examples`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use saiga_experiment::file::Experiment;
use saiga_job::{Job, Machine, dry_run};

/// A machine without programs, users, directories and cores.
struct EmptyMachine;

impl Machine for EmptyMachine {
    fn program(&self, _: &str) -> bool {
        false
    }
    fn path(&self, _: &Path) -> bool {
        false
    }
    fn device(&self, _: &str) -> bool {
        false
    }
    fn user(&self, _: &str) -> bool {
        false
    }
    fn cpu(&self, _: usize) -> bool {
        false
    }
    fn node(&self, _: usize) -> bool {
        false
    }
    fn root(&self) -> bool {
        false
    }
    fn host(&self, _: &str) -> Result<(), String> {
        Err("it is not this machine".to_owned())
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples")
        .canonicalize()
        .unwrap()
}

/// The experiment files among the examples: those with arms. The others are settings and props.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(examples()).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.retain(|path| fs::read_to_string(path).unwrap().contains("[[arm]]"));
    files.sort();
    files
}

#[test]
fn the_dry_run_of_every_example_is_as_committed() {
    for path in files() {
        let file = Experiment::read(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert!(file.goal.is_some(), "{}: goal is missing", path.display());
        let job = Job::described(file, PathBuf::from("saiga"), None).unwrap();
        let shown = dry_run(&job, &job.plan(1, 1), &EmptyMachine);
        let shown = shown.replace(&*examples().to_string_lossy(), "{examples}");
        let name = path.file_stem().unwrap().to_string_lossy();
        let committed =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/examples/{name}.txt"));
        if std::env::var_os("SAIGA_WRITE_EXAMPLES").is_some() {
            fs::create_dir_all(committed.parent().unwrap()).unwrap();
            fs::write(&committed, &shown).unwrap();
        }
        let wanted = fs::read_to_string(&committed).unwrap_or_default();
        assert_eq!(shown, wanted, "{}", committed.display());
    }
}

/// A file that the test above does not find would not be tested.
#[test]
fn every_committed_dry_run_has_its_example() {
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_owned();
    let examples: BTreeSet<_> = files().iter().map(stem).collect();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let entries = fs::read_dir(directory).unwrap();
    let committed: BTreeSet<_> = entries.map(|entry| stem(&entry.unwrap().path())).collect();
    assert_eq!(committed, examples);
}

/// Rows of the table have the form `| step | file:line | text |`; the line must contain the text.
#[test]
fn the_table_of_steps_in_the_readme_names_the_right_lines() {
    let table = fs::read_to_string(examples().join("README.md")).unwrap();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, place, text] = cells.as_slice() else {
            continue;
        };
        let Some((file, line)) = place.trim_matches('`').split_once(':') else {
            continue;
        };
        let content = fs::read_to_string(examples().join(file)).unwrap();
        let line: usize = line.parse().unwrap();
        let actual = content.lines().nth(line - 1).unwrap_or_default();
        let text = text.trim_matches('`').replace("\\|", "|");
        assert!(
            actual.contains(&text),
            "{place}: {text:?} is not in {actual:?}"
        );
        rows += 1;
    }
    assert!(rows > 50, "{rows} rows");
}
