//! The gate: labels before the first byte, and no open waits for a stalled or dead labeller.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use saiga_streams::hint::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};
use saiga_trials::witness::await_true;

use crate::site::{Labeller, Site, hint, metric, run};
use crate::support::text;

#[test]
fn a_file_has_its_hint_before_its_first_byte() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind);
        fs::create_dir(data.join("shop")).unwrap();
        let metrics = site.path("saiga.prom");
        let more = [
            "--rules",
            "mysql",
            "--mode",
            "gate",
            "--metrics",
            text(&metrics),
        ];
        let mut labeller = site.labeller(&data, &more);
        for number in 0..300 {
            let path = data.join(format!("shop/t{number}.ibd"));
            let file = fs::File::create_new(&path).unwrap();
            // Nothing was written and no time has passed: the open set the hint.
            assert_eq!(
                Fcntl.read(file.as_fd()).unwrap(),
                Hint::Extreme,
                "{kind} {number}"
            );
        }
        fs::write(data.join("auto.cnf"), "no rule").unwrap();
        assert_eq!(hint(&data.join("auto.cnf")), Hint::NotSet);
        assert_eq!(labeller.end(), Some(0));
        assert_eq!(metric(&metrics, "labels_set_total"), 300);
        assert_eq!(metric(&metrics, "labels_gated_total"), 300);
        assert_eq!(metric(&metrics, "gate_stalls_total"), 0);
    }
}

/// A process that opens `path` for writing and reports that.
fn opener(path: &Path) -> Child {
    let script = "exec 3>\"$1\"; echo open";
    Command::new("sh")
        .args(["-c", script, "sh", text(path)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a process waits for the gate.
fn wait_until_held(pid: u32) {
    let place = || fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap();
    await_true(
        || place().contains("fanotify"),
        || format!("the opener is not held, but in {:?}", place()),
    );
}

#[test]
fn a_killed_labeller_releases_all_opens() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind);
        let labeller = site.labeller(&data, &["--rules", "mysql", "--mode", "gate"]);
        // Stopped, the labeller and its watchdog answer nothing.
        labeller.signal("STOP");
        let opener = opener(&data.join("ibdata1"));
        wait_until_held(opener.id());
        labeller.signal("KILL");
        let out = opener.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n");
    }
}

#[test]
fn the_watchdog_opens_a_stalled_gate() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let metrics = site.path("saiga.prom");
    let more = [
        "--rules",
        "mysql",
        "--mode",
        "gate",
        "--stall-limit",
        "200ms",
        "--drill",
        "undo_001",
        "--metrics",
        text(&metrics),
    ];
    let mut labeller = site.labeller(&data, &more);
    let stalled = opener(&data.join("undo_001"));
    wait_until_held(stalled.id());
    // Waits behind the stalled open.
    let behind = opener(&data.join("undo_002"));
    for opener in [stalled, behind] {
        let out = opener.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n");
    }
    labeller.wait_for("the gate took longer than 200ms for one open and was opened for good");
    // From here on the labeller works as in notify mode.
    fs::write(data.join("undo_003"), "").unwrap();
    labeller.wait_for("undo_003 long");
    assert_eq!(hint(&data.join("undo_001")), Hint::Long);
    assert_eq!(hint(&data.join("undo_002")), Hint::Long);
    // The stalled thread continues and ends. Another thread must handle signals.
    labeller.wait_until_ended("saiga-gate");
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(metric(&metrics, "gate_stalls_total"), 1);
    assert_eq!(metric(&metrics, "gate_active"), 0);
}

/// The labeller is stopped or killed during an open, with a watchdog limit of an hour.
#[test]
fn a_labeller_that_ends_during_an_open_releases_it() {
    for signal in ["TERM", "KILL"] {
        let mut site = Site::new();
        let data = site.disk("ext4");
        let drill = ["--stall-limit", "1h", "--drill", "undo_001"];
        let more = [&["--rules", "mysql", "--mode", "gate"], &drill[..]].concat();
        let mut labeller = site.labeller(&data, &more);
        let stalled = opener(&data.join("undo_001"));
        wait_until_held(stalled.id());
        let behind = opener(&data.join("undo_002"));
        wait_until_held(behind.id());
        labeller.signal(signal);
        for opener in [stalled, behind] {
            let out = opener.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n", "{signal}");
        }
        let code = labeller.child.wait().unwrap().code();
        assert_eq!(code, (signal == "TERM").then_some(0));
    }
}

/// Another process holds a lease on a file. The kernel breaks it when it opens the file for the
/// gate, which takes as long as the holder wants.
#[test]
fn the_watchdog_opens_a_gate_that_waits_in_the_kernel() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let leased = data.join("leased");
    fs::write(&leased, "").unwrap();
    let more = ["--rules", "mysql", "--mode", "gate"];
    let mut labeller = site.labeller(&data, &[&more[..], &["--stall-limit", "200ms"]].concat());
    let script = "import fcntl, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); \
                  file = os.open(sys.argv[1], os.O_RDWR); fcntl.fcntl(file, fcntl.F_SETLEASE, \
                  fcntl.F_WRLCK); \
                  print('leased', flush=True); signal.pause()";
    let mut holder = Command::new("python3");
    let mut holder = Labeller::telling(holder.args(["-c", script, text(&leased)]));
    holder.wait_for("leased");
    let first = opener(&leased);
    labeller.wait_until_in("saiga-gate", "lease");
    let other = opener(&data.join("undo_001")).wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&other.stdout), "open\n");
    labeller.wait_for("the gate took longer than 200ms for one open and was opened for good");
    drop(holder);
    let first = first.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&first.stdout), "open\n");
    assert_eq!(labeller.end(), Some(0));
}

/// The kernel needs a descriptor for each open that it reports, and refuses the open if there is
/// none.
#[test]
fn more_parallel_opens_than_descriptors_are_all_released() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let more = ["--rules", "mysql", "--mode", "gate"];
    let mut labeller = site.labeller_after("ulimit -n 64", &data, &more);
    labeller.signal("STOP");
    let openers: Vec<_> = (0..100)
        .map(|number| {
            let path = data.join(format!("undo_{number:03}"));
            std::thread::spawn(move || fs::File::create_new(path))
        })
        .collect();
    await_true(
        || waiting_threads() == 100,
        || format!("{} of 100 opens wait", waiting_threads()),
    );
    labeller.signal("CONT");
    for opener in openers {
        let file = opener.join().unwrap().unwrap();
        assert_eq!(Fcntl.read(file.as_fd()).unwrap(), Hint::Long);
    }
    assert_eq!(labeller.end(), Some(0));
}

/// Threads of this process that wait for the gate.
fn waiting_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let places = tasks.map(|task| fs::read_to_string(task.path().join("wchan")));
    places
        .filter(|place| place.as_ref().is_ok_and(|it| it.contains("fanotify")))
        .count()
}

/// A core dump would be written to the current directory, with an open that waits for the gate.
#[test]
fn a_crashed_labeller_releases_all_opens() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let first = format!("ulimit -c unlimited && cd {}", text(&data));
    let mut labeller = site.labeller_after(&first, &data, &["--rules", "mysql", "--mode", "gate"]);
    labeller.signal("ABRT");
    let out = opener(&data.join("undo_001")).wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n");
    assert_eq!(labeller.child.wait().unwrap().code(), None);
    let mut names = fs::read_dir(&data).unwrap().flatten();
    assert!(names.all(|entry| entry.file_name() != "core"));
}

#[test]
fn a_terminal_does_not_stop_a_labeller_with_a_gate() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    for (mode, is_ignored) in [("notify", false), ("gate", true)] {
        let mut labeller = site.labeller(&data, &["--rules", "mysql", "--mode", mode]);
        let status = fs::read_to_string(format!("/proc/{}/status", labeller.child.id())).unwrap();
        let mut lines = status.lines();
        let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:\t"));
        let ignored = u64::from_str_radix(ignored.unwrap(), 16).unwrap();
        for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
            let bit = ignored >> (signal - 1) & 1;
            assert_eq!(bit == 1, is_ignored, "{mode} {signal}");
        }
        assert_eq!(labeller.end(), Some(0));
    }
}

/// A file is renamed after it was written, and another rule matches its new name.
#[test]
fn the_gate_may_change_hints_that_it_set() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let rules = site.path("my.toml");
    let rule =
        |path, hint| format!("[[rule]]\npath = \"{path}\"\nhint = \"{hint}\"\nwhy = \"w\"\n");
    fs::write(&rules, rule("*.tmp", "short") + &rule("*.dat", "long")).unwrap();
    let mut labeller = site.labeller(&data, &["--rules", text(&rules), "--mode", "gate"]);
    for number in 0..200 {
        let [before, after] = ["tmp", "dat"].map(|end| data.join(format!("{number}.{end}")));
        fs::write(&before, "x").unwrap();
        fs::rename(&before, &after).unwrap();
    }
    labeller.wait_for("199.dat long");
    for number in 0..200 {
        assert_eq!(
            hint(&data.join(format!("{number}.dat"))),
            Hint::Long,
            "{number}"
        );
    }
    assert_eq!(labeller.end(), Some(0));
}

#[test]
fn the_gate_applies_new_rules_once_loaded() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let rules = site.path("my.toml");
    let write = |hint: &str| {
        let text = format!("[[rule]]\npath = \"a*\"\nhint = \"{hint}\"\nwhy = \"a test\"\n");
        let new = rules.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &rules).unwrap();
    };
    write("short");
    let more = ["--rules", text(&rules), "--mode", "gate"];
    let mut labeller = site.labeller(&data, &more);
    fs::write(data.join("a1"), "").unwrap();
    assert_eq!(hint(&data.join("a1")), Hint::Short);
    write("long");
    labeller.wait_for("1 rules read again and applied");
    fs::write(data.join("a2"), "").unwrap();
    assert_eq!(hint(&data.join("a2")), Hint::Long);
    write("nonsense");
    labeller.wait_for("the old rules stay: ");
    fs::write(data.join("a3"), "").unwrap();
    assert_eq!(hint(&data.join("a3")), Hint::Long);
    assert_eq!(labeller.end(), Some(0));
}

/// A container sees its volume through a mount of its own, under another path.
#[test]
fn an_open_through_another_mount_waits_for_its_label_too() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let disk = site.disk(kind);
        let (data, elsewhere) = (disk.join("data"), site.path("elsewhere"));
        fs::create_dir_all(data.join("shop")).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let metrics = site.path("saiga.prom");
        let more = [
            "--rules",
            "mysql",
            "--mode",
            "gate",
            "--metrics",
            text(&metrics),
        ];
        let mut labeller = site.labeller(&data, &more);
        let script = "mount --bind \"$1\" \"$2\" && : >\"$2/ibdata1\" && : >\"$2/shop/t.ibd\"";
        let words = [
            "--mount",
            "sh",
            "-ec",
            script,
            "sh",
            text(&data),
            text(&elsewhere),
        ];
        run("unshare", &words);
        assert_eq!(hint(&data.join("ibdata1")), Hint::Long, "{kind}");
        assert_eq!(hint(&data.join("shop/t.ibd")), Hint::Extreme, "{kind}");
        assert_eq!(labeller.end(), Some(0));
        assert_eq!(metric(&metrics, "labels_gated_total"), 2, "{kind}");
    }
}

/// A mount of a part of the disk comes first, and does not show the other directory.
#[test]
fn directories_on_several_mounts_of_one_disk_are_all_labelled() {
    for mode in ["notify", "gate"] {
        let mut site = Site::new();
        let disk = site.disk("ext4");
        let (one, two) = (disk.join("one"), disk.join("two"));
        let (bound, elsewhere) = (site.path("bound"), site.path("elsewhere"));
        for dir in [&one, &two, &bound, &elsewhere] {
            fs::create_dir(dir).unwrap();
        }
        site.bind(&one, &bound);
        let more = [text(&two), "--rules", "mysql", "--mode", mode];
        let mut labeller = site.labeller(&bound, &more);
        // As in a container: through a mount of its own.
        let script = "mount --bind \"$1\" \"$2\" && : >\"$2/ibdata1\"";
        let words = [
            "--mount",
            "sh",
            "-ec",
            script,
            "sh",
            text(&two),
            text(&elsewhere),
        ];
        run("unshare", &words);
        if mode == "notify" {
            labeller.wait_for("two/ibdata1 long");
        }
        assert_eq!(hint(&two.join("ibdata1")), Hint::Long, "{mode}");
        assert_eq!(labeller.end(), Some(0));
    }
}

#[test]
fn only_the_given_directories_have_a_gate() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let data = disk.join("data");
    fs::create_dir(&data).unwrap();
    let labeller = site.labeller(&data, &["--rules", "mysql", "--mode", "gate"]);
    labeller.signal("STOP");
    fs::write(disk.join("ibdata1"), "nobody has to answer").unwrap();
    labeller.signal("CONT");
    run("true", &[]);
}
