//! Real children: their ends, their lines, and what cannot be started.

use super::*;
use crate::proc;

fn start(line: &CommandLine) -> Child {
    let null = || File::create("/dev/null").unwrap();
    line.spawn("coreutils", null(), null()).unwrap()
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let null = || File::create("/dev/null").unwrap();
    let error = CommandLine::new("saiga-no-such-program", [""; 0])
        .spawn("redis-server", null(), null())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "saiga-no-such-program is not installed (not found in PATH); \
         on Debian: apt-get install redis-server"
    );
}

#[test]
fn names_are_searched_in_path_and_paths_are_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    for (name, mode) in [("runs", 0o755), ("rests", 0o644)] {
        let file = dir.path().join(name);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for (program, is_there) in [
        ("runs", true),
        ("rests", false),
        ("folder", false),
        ("no", false),
        ("./no", true),
    ] {
        let mut line = CommandLine::new(program, [""; 0]);
        let path = dir.path().to_string_lossy().into_owned();
        line.env.insert("PATH".into(), path);
        assert_eq!(line.find("x").is_ok(), is_there, "{program}");
    }
}

#[test]
fn a_command_line_is_displayed_as_a_shell_command() {
    let mut line = CommandLine::new("redis-server", ["--save", "", "--dir", "/tmp/a b"]);
    line.env
        .insert("LD_PRELOAD".into(), "/lib/libsaiga.so".into());
    line.cpus = vec![0, 3];
    assert_eq!(
        line.to_string(),
        "taskset -c 0,3 env LD_PRELOAD=/lib/libsaiga.so redis-server --save '' --dir '/tmp/a b'"
    );
}

/// Needs root.
#[test]
fn a_child_runs_in_its_network_namespace() {
    let namespace = crate::network::Namespace::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let run = |network: Option<PathBuf>| {
        let line = CommandLine {
            network,
            ..CommandLine::new("readlink", ["/proc/self/ns/net"])
        };
        let log = dir.path().join("log");
        let mut child = line.spawn_logged("coreutils", &log).unwrap();
        child
            .wait(Duration::from_secs(30), &Interrupt::never())
            .unwrap();
        std::fs::read_to_string(log).unwrap()
    };
    let [ours, theirs] = [None, Some(namespace.path())].map(run);
    assert!(theirs.starts_with("net:["), "{theirs}");
    assert_ne!(ours, theirs);

    let mut line = CommandLine::new("redis-server", ["--port", "6379"]);
    line.network = Some("{server}".into());
    line.cpus = vec![0];
    assert_eq!(
        line.to_string(),
        "nsenter --net={server} taskset -c 0 redis-server --port 6379"
    );
}

#[test]
fn the_exit_status_and_the_cpu_time_of_a_child_are_returned() {
    let mut child = start(&CommandLine::new(
        "sh",
        [
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7",
        ],
    ));
    let waited = child
        .wait(Duration::from_secs(30), &Interrupt::never())
        .unwrap();
    let Waited::Ended(ended) = waited else {
        panic!("{waited:?}")
    };
    assert_eq!(ended.status.code(), Some(7));
    assert!(ended.cpu > Duration::from_micros(500), "{:?}", ended.cpu);
}

#[test]
fn a_child_is_pinned_to_its_core_and_stops_when_asked() {
    let mut line = CommandLine::new("sleep", ["1000"]);
    line.cpus = vec![0];
    let mut child = start(&line);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.pid())).unwrap();
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    let waited = child.wait(Duration::ZERO, &Interrupt::never()).unwrap();
    assert!(matches!(waited, Waited::TimeOver), "{waited:?}");
    assert_eq!(child.stop().unwrap().status.signal(), Some(libc::SIGTERM));
}

#[test]
fn a_missing_directory_is_not_reported_as_a_missing_program() {
    let null = || File::create("/dev/null").unwrap();
    let line = CommandLine {
        directory: Some(PathBuf::from("/no/such/place")),
        ..CommandLine::new("true", [""; 0])
    };
    let error = line.spawn("coreutils", null(), null()).unwrap_err();
    let expected = "cannot start true in /no/such/place: the directory does not exist; create it, \
                    or name another";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_missing_interpreter_is_not_reported_as_a_missing_script() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("server");
    std::fs::write(&script, "#! /no/such/sh -e\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let null = || File::create("/dev/null").unwrap();
    let by_path = CommandLine::new(&script.to_string_lossy(), [""; 0]);
    let mut by_name = CommandLine::new("server", [""; 0]);
    by_name
        .env
        .insert("PATH".into(), dir.path().to_string_lossy().into_owned());
    let relative = CommandLine {
        directory: Some(dir.path().to_owned()),
        ..CommandLine::new("./server", [""; 0])
    };
    for line in [by_path, by_name, relative] {
        let error = line.spawn("x", null(), null()).unwrap_err().to_string();
        let wanted = "its first line names /no/such/sh, which does not exist";
        assert!(error.contains(wanted), "{error}");
    }
}

/// Starts a shell with a pipeline; returns the shell and the PIDs of the pipeline once all run.
fn pipeline() -> (Child, Vec<u32>) {
    let child = start(&CommandLine::new("sh", ["-c", "sleep 1000 | sleep 1000"]));
    loop {
        let pids = proc::children(child.pid());
        if pids.len() == 2 && pids.iter().all(|pid| proc::name(*pid) == "sleep") {
            return (child, pids);
        }
        std::thread::yield_now();
    }
}

/// Whether the process is alive. Zombies count as dead: in a container PID 1 may not reap them.
fn lives(pid: &u32) -> bool {
    proc::Stat::of(*pid).is_ok_and(|stat| !stat.has_ended())
}

#[test]
fn killing_a_shell_kills_its_pipeline() {
    let endings: [fn(Child); 3] = [
        |mut child| {
            child.kill().unwrap();
        },
        |mut child| {
            child.stop().unwrap();
        },
        drop,
    ];
    for end in endings {
        let (child, pids) = pipeline();
        assert!(pids.iter().all(lives), "{pids:?}");
        end(child);
        assert!(!pids.iter().any(lives), "{pids:?}");
    }
}

/// A child may leave processes behind on purpose, such as daemons.
#[test]
fn the_children_of_a_child_that_ends_by_itself_are_not_killed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let line = CommandLine::new("sh", ["-c", "sleep 1000 & echo $!"]);
    let mut child = line.spawn_logged("dash", &out).unwrap();
    let long = Duration::from_secs(30);
    let waited = child.wait(long, &Interrupt::never()).unwrap();
    assert!(matches!(waited, Waited::Ended(_)), "{waited:?}");
    drop(child);
    let pid: i32 = std::fs::read_to_string(&out)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_group_is_waited_for_to_its_last_member() {
    let mut child = start(&CommandLine::new("sh", ["-c", "sleep 1000 & exit 7"]));
    let seen = child.wait_without_reaping(Duration::from_secs(30), &Interrupt::never());
    assert!(matches!(seen, Ok(WaitResult::End)));
    assert!(child.wait_for_group(Duration::ZERO).unwrap().is_none());
    let [left] = &child.group()[..] else {
        panic!("{:?}", child.group())
    };
    assert!(left.contains('('), "{left}");
    child.signal_group(Signal::TERM);
    let ended = loop {
        if let Some(ended) = child.wait_for_group(Duration::from_secs(1)).unwrap() {
            break ended;
        }
    };
    assert_eq!(ended.status.code(), Some(7));
    assert_eq!(child.group(), Vec::<String>::new());
}

#[test]
fn passwords_are_not_shown() {
    let mut line = CommandLine::new("redis-benchmark", ["-a", "hunter2", "-n", "5"]);
    line.env.insert("PGPASSWORD".into(), "hunter2".into());
    assert_eq!(
        line.to_string(),
        "env PGPASSWORD='***' redis-benchmark -a '***' -n 5"
    );
}

#[test]
fn a_dropped_child_is_killed() {
    let child = start(&CommandLine::new("sleep", ["1000"]));
    let folder = format!("/proc/{}", child.pid());
    assert!(std::path::Path::new(&folder).exists());
    drop(child);
    assert!(!std::path::Path::new(&folder).exists());
}
