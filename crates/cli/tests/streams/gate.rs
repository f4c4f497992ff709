//! The gate: labels before the first byte, and nobody is kept waiting by a labeller that stalls or dies.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use saiga_streams::hint::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};

use crate::site::{Site, hint, metric, run};
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
            // Nothing was written yet, and nothing waited for: the open itself did.
            assert_eq!(
                Fcntl.read(file.as_fd()).unwrap(),
                Hint::Long,
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

/// A process that opens `path` for writing and says so.
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
    let place = format!("/proc/{pid}/wchan");
    loop {
        let waits_in = fs::read_to_string(&place).unwrap();
        if waits_in.contains("fanotify") {
            return;
        }
        assert!(!waits_in.is_empty(), "the opener is gone");
        std::thread::yield_now();
    }
}

#[test]
fn a_labeller_that_is_killed_lets_everybody_through() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind);
        let labeller = site.labeller(&data, &["--rules", "mysql", "--mode", "gate"]);
        // Stopped, it answers nobody, and neither does its watchdog.
        labeller.signal("STOP");
        let opener = opener(&data.join("ibdata1"));
        wait_until_held(opener.id());
        labeller.signal("KILL");
        let out = opener.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n");
    }
}

#[test]
fn the_watchdog_opens_a_gate_that_stalls() {
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
    // Behind the stalled one, so held up by it.
    let behind = opener(&data.join("undo_002"));
    for opener in [stalled, behind] {
        let out = opener.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "open\n");
    }
    labeller.wait_for("the gate took longer than 200ms for one open and was opened for good");
    // From here on it is as if the mode were notify.
    fs::write(data.join("undo_003"), "").unwrap();
    labeller.wait_for("undo_003 medium");
    assert_eq!(hint(&data.join("undo_001")), Hint::Medium);
    assert_eq!(hint(&data.join("undo_002")), Hint::Medium);
    // The thread that has stalled goes on and ends. Somebody must hear signals all the same.
    labeller.wait_until_ended("saiga-gate");
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(metric(&metrics, "gate_stalls_total"), 1);
    assert_eq!(metric(&metrics, "gate_active"), 0);
}

/// Ended or killed in the middle of an open, with a watchdog that would wait for an hour.
#[test]
fn a_labeller_that_ends_within_an_open_lets_it_through() {
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

#[test]
fn the_gate_goes_by_new_rules_once_they_are_read() {
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

/// A container sees its volume by a mount of its own, under another path.
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
        for name in ["ibdata1", "shop/t.ibd"] {
            assert_eq!(hint(&data.join(name)), Hint::Long, "{kind} {name}");
        }
        assert_eq!(labeller.end(), Some(0));
        assert_eq!(metric(&metrics, "labels_gated_total"), 2, "{kind}");
    }
}

/// A mount of a part of the disk comes first, and shows nothing of the other directory.
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
        // As in a container: by a mount of its own.
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
