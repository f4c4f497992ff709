//! Faults: lost hints, dropped events, deleted directories, two labellers, bad rules, unsupported
//! file systems.

use std::fs;
use std::os::unix::fs::symlink;

use saiga_streams::hint::Hint;
use saiga_trials::witness::await_true;

use crate::site::{Labeller, Site, hint, metric, run};
use crate::support::{said, text};

fn evict() {
    run("sync", &[]);
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
}

#[test]
fn a_pin_keeps_the_hint_but_no_space() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind);
        let file = data.join("ibdata1");
        fs::write(&file, vec![7; 64 << 20]).unwrap();
        let mut labeller = site.labeller(&data, &["--rules", "mysql"]);
        evict();
        assert_eq!(hint(&file), Hint::Long, "{kind}");
        let free = || rustix::fs::statvfs(&data).unwrap().f_bavail;
        run("sync", &["-f", text(&data)]);
        let before = free();
        fs::remove_file(&file).unwrap();
        run("sync", &["-f", text(&data)]);
        let block = rustix::fs::statvfs(&data).unwrap().f_frsize;
        // XFS frees blocks in the background, but not those of an open file.
        while free() - before < (60 << 20) / block {
            run("sync", &["-f", text(&data)]);
        }
        assert_eq!(labeller.end(), Some(0));
    }
}

/// Other programs have used up all inotify watches, so nothing is pinned.
#[test]
fn a_lost_hint_is_set_again_by_the_next_check() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let system = site.path("system");
    for (name, text) in [
        ("proc/sys/kernel/osrelease", "6.18.0".to_owned()),
        ("proc/sys/fs/inotify/max_user_watches", "0".to_owned()),
        (
            "proc/self/mountinfo",
            fs::read_to_string("/proc/thread-self/mountinfo").unwrap(),
        ),
    ] {
        let path = system.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(data.join("ibdata1"), "").unwrap();
    let metrics = site.path("saiga.prom");
    let more = [
        "--rules",
        "mysql",
        "--look",
        "100ms",
        "--system",
        text(&system),
        "--metrics",
        text(&metrics),
    ];
    let mut labeller = site.labeller(&data, &more);
    labeller
        .said
        .iter()
        .find(|line| line.contains("0 files are pinned"))
        .unwrap();
    // The kernel keeps a busy inode, so one attempt may not be enough.
    labeller.wait_while("ibdata1 had lost its hint; long set again", evict);
    assert_eq!(labeller.end(), Some(0));
    assert!(metric(&metrics, "labels_lost_total") >= 1);
    assert_eq!(
        metric(&metrics, "labels_lost_total"),
        metric(&metrics, "labels_reapplied_total")
    );
}

#[test]
fn dropped_events_lead_to_a_full_check() {
    let mut site = Site::new();
    let data = site.mount_as("tmpfs", "size=64m,nr_inodes=100k", "memory");
    let metrics = site.path("saiga.prom");
    let mut labeller = site.labeller(&data, &["--rules", "mysql", "--metrics", text(&metrics)]);
    let limit = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap();
    let count = limit.trim().parse::<usize>().unwrap() + 100;
    labeller.signal("STOP");
    for number in 0..count {
        fs::File::create(data.join(format!("undo_{number}"))).unwrap();
    }
    labeller.signal("CONT");
    labeller.wait_for("the kernel dropped events");
    labeller.wait_for("scanned all files");
    for number in 0..count {
        assert_eq!(
            hint(&data.join(format!("undo_{number}"))),
            Hint::Long,
            "{number}"
        );
    }
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(metric(&metrics, "queue_overflows_total"), 1);
}

/// Files that are deleted before the labeller is notified: their bytes have no hint, and the files
/// are counted.
#[test]
fn files_deleted_before_they_were_labelled_are_counted() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let metrics = site.path("saiga.prom");
    let mut labeller = site.labeller(&data, &["--rules", "mysql", "--metrics", text(&metrics)]);
    labeller.signal("STOP");
    for name in ["undo_001", "undo_002", "auto.cnf"] {
        fs::write(data.join(name), "").unwrap();
    }
    fs::remove_file(data.join("undo_001")).unwrap();
    fs::remove_file(data.join("auto.cnf")).unwrap();
    fs::rename(data.join("undo_002"), data.join("undo_003")).unwrap();
    labeller.signal("CONT");
    labeller.wait_for("undo_003 long");
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(hint(&data.join("undo_003")), Hint::Long);
    // No rule matches the file that is not a tablespace.
    assert_eq!(metric(&metrics, "labels_missed_total"), 2);
}

#[test]
fn a_directory_that_vanishes_and_returns_is_labelled_again() {
    for mode in ["notify", "gate"] {
        let mut site = Site::new();
        let data = site.disk("ext4").join("a/data");
        fs::create_dir_all(&data).unwrap();
        let mut labeller = site.labeller(&data, &["--rules", "mysql", "--mode", mode]);
        fs::remove_dir_all(data.parent().unwrap()).unwrap();
        labeller.wait_for("data is gone; waiting for it");
        fs::create_dir_all(&data).unwrap();
        // The gate may cover it in time; then no line is logged.
        fs::write(data.join("ibdata1"), "").unwrap();
        let is_labelled = || hint(&data.join("ibdata1")) == Hint::Long;
        await_true(is_labelled, || format!("{mode}: ibdata1 is not labelled"));
        fs::write(data.join("undo_001"), "").unwrap();
        if mode == "notify" {
            labeller.wait_for("undo_001 long");
        }
        assert_eq!(hint(&data.join("undo_001")), Hint::Long, "{mode}");
        assert_eq!(labeller.end(), Some(0));
    }
}

/// A user's rule that matches no file is a mistake; one of a built-in set may be for another
/// version.
#[test]
fn a_rule_that_matches_nothing_is_named() {
    let site = Site::new();
    let (data, rules) = (site.path("data"), site.path("my.toml"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), "").unwrap();
    let rule = |path: &str| format!("[[rule]]\npath = \"{path}\"\nhint = \"long\"\nwhy = \"w\"\n");
    fs::write(&rules, rule("a") + &rule("typo*")).unwrap();
    let out = said(&mut site.streams(&["check", text(&data), "--rules", text(&rules), "mysql"]));
    assert_eq!(out.code, Some(1));
    let warning = format!(
        "saiga: warning: {}:6 `typo*` matches no file\n",
        rules.display()
    );
    assert_eq!(out.stderr, warning);
}

#[test]
fn unwritable_metrics_are_reported_once_and_retried() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let folder = site.path("metrics");
    let metrics = folder.join("saiga.prom");
    let more = ["--rules", "mysql", "--metrics", text(&metrics)];
    let mut labeller = site.labeller(&data, &more);
    labeller.wait_for("saiga.prom: No such file or directory (os error 2); trying again");
    for number in 0..3 {
        fs::write(data.join(format!("undo_{number}")), "").unwrap();
        labeller.wait_for(&format!("undo_{number} long"));
    }
    fs::create_dir(&folder).unwrap();
    await_true(|| metrics.exists(), || "no metrics".to_owned());
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(metric(&metrics, "labels_set_total"), 3);
    let rest = labeller.rest();
    labeller.said.extend(rest);
    let told = labeller
        .said
        .iter()
        .filter(|line| line.contains("trying again"));
    assert_eq!(told.count(), 1, "{:#?}", labeller.said);
}

#[test]
fn a_log_file_is_reopened_after_a_rotation() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let (log, old, locks) = (site.path("log"), site.path("log.1"), site.path("locks"));
    let words = [
        "run",
        text(&data),
        "-v",
        "--rules",
        "mysql",
        "--log",
        text(&log),
        "--lock-dir",
        text(&locks),
    ];
    let mut labeller = Labeller::warning(&mut site.streams(&words));
    let holds = |path: &std::path::Path, words: &str| {
        let text = || fs::read_to_string(path).unwrap_or_default();
        await_true(|| text().contains(words), text);
    };
    holds(&log, "; labelling files as they appear\n");
    fs::rename(&log, &old).unwrap();
    fs::write(data.join("ibdata1"), "").unwrap();
    holds(&log, "ibdata1 long");
    assert_eq!(labeller.end(), Some(0));
    assert!(fs::read_to_string(&log).unwrap().ends_with("Z ended\n"));
    assert!(!fs::read_to_string(&old).unwrap().contains("ibdata1"));
    assert!(labeller.rest().is_empty(), "{:?}", labeller.said);
}

#[test]
fn a_disk_can_be_unmounted_under_the_labeller_and_comes_back_labelled() {
    for (kind, other) in [("ext4", "xfs"), ("xfs", "ext4")] {
        let mut site = Site::new();
        let data = site.disk(kind);
        fs::write(data.join("ibdata1"), "").unwrap();
        let mut labeller = site.labeller(&data, &["--rules", "mysql"]);
        // Fails with "target is busy" if the labeller holds a file there.
        run("umount", &[text(&data)]);
        // Another process takes the next loop device, so that this disk gets a different one.
        site.disk(other);
        site.mount(kind);
        labeller.wait_for("ibdata1 had lost its hint; long set again");
        assert_eq!(hint(&data.join("ibdata1")), Hint::Long);
        fs::write(data.join("undo_001"), "").unwrap();
        labeller.wait_for("undo_001 long");
    }
}

#[test]
fn each_directory_has_one_labeller() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let (one, two, locks) = (disk.join("one"), disk.join("two"), site.path("locks"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    symlink(&one, disk.join("link")).unwrap();
    let first = site.labeller(&one, &["--rules", "mysql"]);
    let link = disk.join("link");
    let words = [
        "run",
        text(&link),
        "--rules",
        "mysql",
        "--lock-dir",
        text(&locks),
    ];
    let second = said(&mut site.streams(&words));
    assert_eq!(second.code, Some(2));
    let pid = first.child.id();
    let expected = format!(
        "is labelled by another `saiga streams run` (pid {pid}); `saiga streams stop` ends it"
    );
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    let mut other = site.labeller(&two, &["--rules", "redis"]);
    fs::write(two.join("appendonly.aof"), "").unwrap();
    other.wait_for("appendonly.aof medium");
    drop(first);
    assert_eq!(other.end(), Some(0));
}

#[test]
fn valid_new_rules_are_loaded_and_invalid_ones_are_not() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let rules = site.path("my.toml");
    let write = |hint: &str| {
        let text = format!("[[rule]]\npath = \"a*\"\nhint = \"{hint}\"\nwhy = \"a test\"\n");
        // As editors save a file: a reader sees the old or the new file, never a part.
        let new = rules.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &rules).unwrap();
    };
    write("short");
    fs::write(data.join("a"), "").unwrap();
    let metrics = site.path("saiga.prom");
    let mut labeller = site.labeller(
        &data,
        &["--rules", text(&rules), "--metrics", text(&metrics)],
    );
    assert_eq!(hint(&data.join("a")), Hint::Short);
    // A changed file is reloaded; the labeller set the hint, so it may change it.
    write("long");
    labeller.wait_for("1 rules read again and applied");
    assert_eq!(hint(&data.join("a")), Hint::Long);
    write("nonsense");
    labeller.wait_for("the old rules stay: ");
    let line = labeller.said.last().unwrap();
    assert!(
        line.contains("my.toml:3: `nonsense` is not a hint"),
        "{line}"
    );
    fs::write(data.join("ab"), "").unwrap();
    labeller.wait_for("ab long");
    labeller.signal("HUP");
    labeller.wait_for("the old rules stay: ");
    write("medium");
    labeller.wait_for("1 rules read again and applied");
    labeller.signal("HUP");
    labeller.wait_for("1 rules read again and applied");
    assert_eq!(hint(&data.join("ab")), Hint::Medium);
    assert_eq!(labeller.end(), Some(0));
    assert!(metric(&metrics, "rules_rejected_total") >= 2);
}

#[test]
fn signals_stop_the_labeller_cleanly() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    for (mode, signal) in [("notify", "INT"), ("gate", "TERM")] {
        let mut labeller = site.labeller(&data, &["--rules", "mysql", "--mode", mode]);
        labeller.signal(signal);
        assert_eq!(labeller.child.wait().unwrap().code(), Some(0), "{mode}");
        labeller.wait_for("ended");
    }
}

/// A time beyond the range of the clock never comes.
#[test]
fn huge_times_never_expire() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let long = "500000000000years";
    let mut labeller = site.labeller(&data, &["--rules", "mysql", "--look", long]);
    assert_eq!(labeller.end(), Some(0));
    let more = ["--rules", "mysql", "--mode", "gate", "--stall-limit", long];
    assert_eq!(site.labeller(&data, &more).end(), Some(0));
    let words = ["check", text(&data), "--rules", "mysql", "--any-route"];
    let words = [&words[..], &["--for", long]].concat();
    let mut check = Labeller::warning(&mut site.streams(&words));
    check.wait_for("following writes to ");
    check.signal("INT");
    // Nothing was written, so nothing is proven.
    assert_eq!(check.child.wait().unwrap().code(), Some(1));
}

/// stderr is a pipe that is not read any more.
#[test]
fn a_stopped_reader_of_stderr_delays_no_label() {
    for mode in ["notify", "gate"] {
        let mut site = Site::new();
        let data = site.disk("ext4");
        let (reader, writer) = std::io::pipe().unwrap();
        let locks = site.path("locks");
        let words = ["run", text(&data), "-v", "--rules", "mysql", "--mode", mode];
        let mut command = site.streams(&[&words[..], &["--lock-dir", text(&locks)]].concat());
        let mut labeller = Labeller::telling(command.stderr(writer));
        drop(command);
        for number in 0..3000 {
            fs::write(data.join(format!("undo_{number}")), "").unwrap();
        }
        let last = data.join("undo_2999");
        let is_labelled = || hint(&last) == Hint::Long;
        await_true(is_labelled, || format!("{mode}: the last is not labelled"));
        labeller.signal("TERM");
        // The pipe ends with its last writer; it holds whole lines, and the others were dropped.
        let ended = labeller.child.wait().unwrap();
        assert_eq!(ended.code(), Some(0), "{mode}");
        let said = std::io::read_to_string(reader).unwrap();
        assert!(said.ends_with('\n') && said.len() <= 65536, "{said}");
        assert!(
            said.lines().all(|line| line.starts_with("saiga: ")),
            "{said}"
        );
    }
}

/// Inodes of 128 bytes have no creation time, so that a reused inode number is not detected.
#[test]
fn inodes_without_a_creation_time_are_labelled_again_when_reused() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let device = rustix::fs::stat(&data).unwrap().st_dev;
    let number = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = fs::read_link(format!("/sys/dev/block/{}:{}", number.0, number.1)).unwrap();
    let device = std::path::Path::new("/dev").join(link.file_name().unwrap());
    run("umount", &[text(&data)]);
    run("/usr/sbin/mkfs.ext4", &["-qF", "-I", "128", text(&device)]);
    site.mount("ext4");
    let mut labeller = site.labeller(&data, &["--rules", "mysql", "--look", "1h"]);
    let name = |number: usize| data.join(format!("undo_{number}"));
    for number in 0..30_000 {
        fs::File::create(name(number)).unwrap();
        if number % 5 != 0 {
            fs::remove_file(name(number)).unwrap();
        }
    }
    fs::write(data.join("undo_last"), "").unwrap();
    labeller.wait_for("undo_last long");
    // If the kernel has dropped events, a scan labels the files, in an order of its own.
    let mut bare: Vec<_> = (0..6_000).map(|number| name(number * 5)).collect();
    let all_labelled = || {
        bare.retain(|file| hint(file) == Hint::NotSet);
        bare.is_empty()
    };
    await_true(all_labelled, || "files stay without a hint".to_owned());
    assert_eq!(labeller.end(), Some(0));
}

#[test]
fn an_overlay_is_refused_and_its_upper_directory_is_not() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    for name in ["lower", "upper", "work"] {
        fs::create_dir(disk.join(name)).unwrap();
    }
    let options = ["lower", "upper", "work"].map(|it| format!("{it}dir={}", text(&disk.join(it))));
    let merged = site.mount_as("overlay", &options.join(","), "merged");
    let refused = said(&mut site.streams(&["run", text(&merged), "--rules", "mysql"]));
    assert_eq!(refused.code, Some(2));
    let upper = disk.join("upper");
    let expected = format!(
        "give it {} (the overlay's upper directory)",
        upper.display()
    );
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    let mut labeller = site.labeller(&upper, &["--rules", "mysql"]);
    fs::write(merged.join("ibdata1"), "").unwrap();
    labeller.wait_for("ibdata1 long");
    assert_eq!(hint(&upper.join("ibdata1")), Hint::Long);
}

#[test]
fn bad_input_is_named_before_the_start() {
    let site = Site::new();
    let (folder, file) = (site.path("folder"), site.path("file"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "x y z w").unwrap();
    let (folder, file) = (text(&folder), text(&file));
    for (words, expected) in [
        (
            &["run", "/no/such", "--rules", "mysql"][..],
            "cannot read /no/such: No such file",
        ),
        (&["run", file, "--rules", "mysql"], "is not a directory"),
        (&["run", folder], "--rules"),
        (
            &["run", "/proc/sys", "--rules", "mysql"],
            "its file system cannot be watched (Operation not supported (os error 95)); label it periodically",
        ),
        (
            &["run", folder, "--rules", "mysql", "--log", folder],
            "cannot write the log to ",
        ),
        (
            &["run", folder, "--rules", "oracle"],
            "there is no rule set `oracle`; use mysql, mariadb,",
        ),
        (
            &["run", folder, "--rules", file],
            "failed to parse the rule: 4 words",
        ),
        (
            &["run", folder, "--rules", "/no/such.toml"],
            "cannot read the rules in /no/such.toml",
        ),
        (
            &["run", folder, "--rules", "mysql", "--look", "0s"],
            "--look must be at least 1ms",
        ),
        (
            &["run", folder, "--rules", "mysql", "--mode", "wall"],
            "invalid value 'wall'",
        ),
        (
            &["check", "/no/such", "--rules", "mysql"],
            "cannot read /no/such",
        ),
        (
            &["check", folder, "--rules", "mysql", "--plan"],
            "is not on an NVMe drive",
        ),
        (&["rules", "oracle"], "there is no rule set `oracle`"),
    ] {
        let out = said(&mut site.streams(words));
        assert_eq!(out.code, Some(2), "{words:?}: {}", out.stderr);
        assert!(out.stderr.contains(expected), "{words:?}: {}", out.stderr);
    }
}
