//! The examples for several load hosts, and the Ansible collection, with the real programs: Ansible
//! over ssh, and Slurm.
//!
//! `tools/ansible target/ansible` and `tools/slurm target/slurm` fetch them; `make soak` calls
//! these tools. Load hosts are processes of this host in namespaces (which need root), with
//! directories, keys and ports of the test. The end of the namespace kills all its processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ansible;
#[path = "../bench_tpcc_servers/bench.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod bench;
#[path = "../bench_tpcc_servers/books.rs"]
mod books;
#[path = "../marked/mod.rs"]
mod marked;
mod slurm;
#[path = "../bench_tpcc_servers/system.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod system;
mod tune;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saiga_trials::bounded::{self, Outcome};
use saiga_trials::parity::Arm;
use saiga_trials::sys;
use saiga_trials::witness::{Evidence, Site};

use bench::{Bench, TERMINALS, TRANSACTIONS, record};
use books::{Books, total};

/// Number of load hosts.
const HOSTS: u32 = 3;
/// The hosts start after a minute and run for seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// A directory for load hosts.
fn site() -> Site {
    assert!(
        sys::is_root(),
        "load hosts have namespaces of their own: run as root"
    );
    Site::new(Evidence::None)
}

/// The root of the repository.
fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// A program that `tools/KIT target/KIT` has installed.
fn fetched(kit: &str, name: &str) -> PathBuf {
    let path = repository().join("target").join(kit).join(name);
    let path_told = path.display();
    assert!(
        path.exists(),
        "{path_told} is missing: run tools/{kit} target/{kit}"
    );
    path
}

/// A command that runs `script` in namespaces; all processes end with the first one.
fn in_namespaces(site: &Site, script: &str) -> Command {
    let mut command = site.command("unshare", Arm::Kernel);
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        script,
    ]);
    command
}

/// Builds one warehouse, and runs it with `play`, which gets a props file and the directory for the
/// sum.
fn all_hosts_make_one_run(bench: &Bench, play: impl FnOnce(&Bench) -> (Outcome, PathBuf)) {
    let built = bench.said("build", &[]);
    assert_eq!(built.code, Some(0), "{built:?}");
    let books = Books::of(bench);
    let (outcome, folder) = play(bench);
    assert!(outcome.is_success(), "{outcome:#?}");
    let sum = record(&folder);
    for number in 1..=HOSTS {
        let part = folder.join(format!("../parts/worker-{number}.json"));
        assert!(part.exists(), "{}", part.display());
    }
    assert_eq!(sum.conditions.terminals, TERMINALS);
    let done = total(&sum, |track| track.committed + track.rolled_back);
    assert_eq!(done, i64::from(TERMINALS * TRANSACTIONS));
    assert_eq!((&sum.end[..], &sum.errors[..]), ("done", &[][..]));
    // Each host did its part, and the sum has all parts once.
    books.assert_agreement(bench, &sum);
    bench.must_hold();
}

/// Runs a command, which must end in time.
fn run_to_end(command: Command) -> Outcome {
    bounded::run(command, LIMIT)
}
