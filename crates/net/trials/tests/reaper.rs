//! Every process that a test process started ends with it, in whatever way the test process ends.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command, thread, time::Duration};

use saiga_trials::{
    bounded::{self, Ending},
    library,
    peer::Peer,
    reaper,
    sys::{self, Signal},
};

/// A process that has not ended after this time counts as surviving.
const LIMIT: Duration = Duration::from_secs(30);

/// Checks that servers started by a harness end when it is killed; at least `least` processes.
fn ends_with_its_harness(kind: &str, least: usize) {
    for signal in [Signal::KILL, Signal::TERM] {
        // A killed process leaves its files; servers of other users must be able to read theirs.
        let folder = tempfile::tempdir().expect("a temporary directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("our own folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command
            .arg(kind)
            .env("SAIGA_LIBRARY", library::path())
            .env("TMPDIR", folder.path());
        let mut harness = Peer::spawn(command);
        let said = harness.expect("started ");
        let pids: Vec<u32> = said
            .split(' ')
            .map(|pid| pid.parse().expect("a pid"))
            .collect();
        assert!(pids.len() >= least, "{kind}: {said}");
        for pid in &pids {
            assert!(is_alive(*pid), "{kind}: {pid} of {said}");
        }
        harness.signal(signal);
        for pid in &pids {
            let ended = sys::await_end(*pid, LIMIT).expect("a process to watch");
            assert!(ended, "{kind}: {pid} of {said} outlives {signal:?}");
        }
    }
}

fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn children_end_with_their_harness() {
    ends_with_its_harness("children", 2);
}

#[test]
fn redis_which_is_a_daemon_ends_with_its_harness() {
    ends_with_its_harness("redis", 1);
}

#[test]
fn mariadb_ends_with_its_harness() {
    ends_with_its_harness("mariadb", 1);
}

/// The postmaster, its helper processes, and the backend of one connection.
#[test]
fn postgres_and_its_children_end_with_their_harness() {
    ends_with_its_harness("postgres", 6);
}

#[test]
fn postgres_that_pg_ctl_started_ends_with_its_harness() {
    ends_with_its_harness("postgres-restarted", 6);
}

/// The master and three workers, which dropped root's rights.
#[test]
fn nginx_and_its_workers_end_with_their_harness() {
    ends_with_its_harness("nginx", 4);
}

/// The kernel sends the signal at the end of a thread, not of a process.
#[test]
fn a_child_outlives_the_thread_that_requested_it() {
    let start = || Peer::spawn(Command::new("cat"));
    let mut cat = thread::spawn(start).join().expect("cat is started");
    cat.tell("here");
    assert_eq!(cat.line().as_deref(), Some("here"));
    let (_, status) = cat.finish();
    assert!(status.success(), "{status}");
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_keeper_passes_on_output_and_exit_code() {
    let outcome = bounded::run_daemon(shell("echo out; echo err >&2; exit 3"));
    assert_eq!(outcome.ending, Ending::Exited(3));
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("out\n", "err\n"));
    let killed = bounded::run_daemon(shell("kill -TERM $$"));
    assert_eq!(killed.ending, Ending::Exited(128 + libc::SIGTERM));
}

#[test]
fn a_missing_program_is_reported_also_with_a_keeper() {
    let mut command = Command::new("/no/such/program");
    reaper::keep(&mut command);
    let error = command.spawn().expect_err("the program does not exist");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_keeper_reaps_a_daemon_and_ends_with_it() {
    let outcome = bounded::run_daemon(shell("sleep 1000 >/dev/null 2>&1 & echo $!"));
    let daemon: u32 = outcome.stdout.trim().parse().expect("a pid");
    let keeper = parent_of(daemon);
    assert_ne!(keeper, std::process::id());
    sys::signal(daemon, Signal::KILL).expect("a running daemon");
    assert!(sys::await_end(keeper, LIMIT).expect("a process to watch"));
    assert!(!fs::exists(format!("/proc/{daemon}")).expect("/proc is mounted"));
}

fn parent_of(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let parent = fields.split_whitespace().nth(1);
    parent
        .and_then(|text| text.parse().ok())
        .expect("the parent's PID")
}
