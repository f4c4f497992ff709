//! `saiga streams check` and `run --once`: their output and exit status.

use std::fs;
use std::path::{Path, PathBuf};

use saiga_streams::hint::Hint;

use crate::site::{Site, hint, set_hint};
use crate::support::{said, text};

/// Creates proc and sys of a machine where hints on `data` reach a drive.
fn good_machine(site: &Site, data: &Path) -> String {
    let system = site.path("system");
    let write = |name: &str, text: &str| {
        let path = system.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/osrelease", "7.2.0\n");
    let mount = format!("1 0 259:1 / {} rw - f2fs /dev/nvme0n1 rw\n", data.display());
    write("proc/self/mountinfo", &mount);
    // The disk has the number of its subsystem; the controller has another one.
    let disk = "sys/devices/pci/nvme/nvme1/nvme0n1";
    write(&format!("{disk}/queue/max_write_streams"), "8\n");
    write("sys/devices/pci/nvme/nvme1/cntlid", "65\n");
    // 16 GiB.
    write(&format!("{disk}/size"), "33554432\n");
    write(&format!("{disk}/queue/logical_block_size"), "512\n");
    write(&format!("{disk}/nsid"), "1\n");
    for link in ["sys/dev/block/259:1", "sys/class/block/nvme0n1"] {
        let link = system.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(system.join(disk), link).unwrap();
    }
    text(&system).to_owned()
}

/// Files with the expected hint, without it, and with another hint.
fn mixed_files(site: &mut Site) -> PathBuf {
    let data = site.disk("ext4");
    fs::create_dir(data.join("shop")).unwrap();
    for name in ["ibdata1", "undo_001", "shop/a.ibd", "auto.cnf", "mysql.ibd"] {
        fs::write(data.join(name), "x").unwrap();
    }
    set_hint(&data.join("ibdata1"), Hint::Long);
    set_hint(&data.join("shop/a.ibd"), Hint::Short);
    data
}

#[test]
fn the_check_shows_present_and_expected_hints() {
    let mut site = Site::new();
    let data = mixed_files(&mut site);
    let words = ["check", text(&data), "--rules", "mysql"];
    let out = said(&mut site.streams(&words));
    assert_eq!(out.code, Some(1));
    let first = out.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("hints stop at the block layer on "),
        "{first}"
    );
    assert!(first.contains("a loop device drops hints"), "{first}");
    let row = |start: &str| {
        let mut lines = out.stdout.lines();
        let line = lines
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{}", out.stdout));
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(
        row("ibdata1").contains("long long ok mysql:"),
        "{}",
        out.stdout
    );
    assert!(
        row("undo_001").contains("long - missing mysql:"),
        "{}",
        out.stdout
    );
    assert!(
        row("shop/a.ibd").contains("extreme short kept mysql:"),
        "{}",
        out.stdout
    );
    assert!(row("auto.cnf").contains("- - no rule"), "{}", out.stdout);
    assert_eq!(
        hint(&data.join("undo_001")),
        Hint::NotSet,
        "a check changes nothing"
    );
}

#[test]
fn hints_that_do_not_reach_a_drive_fail_without_any_route() {
    let mut site = Site::new();
    let data = mixed_files(&mut site);
    let words = ["check", text(&data), "--rules", "mysql"];
    // A drive that accepts hints, and a missing drive.
    let system = good_machine(&site, &data);
    let good = ["--system", &system];
    let out = said(&mut site.streams(&[&words[..], &good].concat()));
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.starts_with("hints go by F2FS with FDP on "),
        "{}",
        out.stdout
    );
    let locks = site.path("locks");
    let once = [
        "run",
        text(&data),
        "--rules",
        "mysql",
        "--once",
        "--lock-dir",
        text(&locks),
    ];
    assert_eq!(
        said(&mut site.streams(&[&once[..], &good].concat())).code,
        Some(0)
    );
    assert_eq!(hint(&data.join("undo_001")), Hint::Long);
    assert_eq!(
        said(&mut site.streams(&[&words[..], &good].concat())).code,
        Some(0)
    );

    // All hints are set, but do not reach a drive: a failure without --any-route.
    assert_eq!(said(&mut site.streams(&words)).code, Some(1));
    assert_eq!(said(&mut site.streams(&once)).code, Some(1));
    for words in [&words[..], &once] {
        let out = said(&mut site.streams(&[words, &["--any-route"]].concat()));
        assert_eq!(out.code, Some(0), "{}", out.stderr);
    }
    let out = said(&mut site.streams(&[&words[..], &good, &["--plan"]].concat()));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    for expected in [
        "# data: 12 GiB\n",
        "nvme create-ns /dev/nvme1 --nsze=262144",
        "nvme attach-ns /dev/nvme1 --namespace-id=1 --controllers=65\n",
    ] {
        assert!(out.stdout.contains(expected), "{}", out.stdout);
    }
    assert!(
        !out.stdout.contains("nvme delete-ns /dev/nvme0"),
        "{}",
        out.stdout
    );
}

/// A link to a file has no row in the table, and a backup would contain only the link.
#[test]
fn a_linked_file_outside_prevents_a_plan() {
    let mut site = Site::new();
    let data = mixed_files(&mut site);
    let system = good_machine(&site, &data);
    let words = [
        "check",
        text(&data),
        "--rules",
        "mysql",
        "--plan",
        "--system",
        &system,
    ];
    std::os::unix::fs::symlink("a.ibd", data.join("shop/b.ibd")).unwrap();
    assert_eq!(said(&mut site.streams(&words)).code, Some(0));
    let fast = site.path("fast.MYD");
    fs::write(&fast, "x").unwrap();
    std::os::unix::fs::symlink(&fast, data.join("shop/t.MYD")).unwrap();
    let out = said(&mut site.streams(&words));
    assert_eq!(out.code, Some(2), "{}", out.stdout);
    let expected = format!("{} belongs to it by a link", fast.display());
    assert!(out.stderr.contains(&expected), "{}", out.stderr);
}

#[test]
fn the_same_as_json() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    fs::write(data.join("ibdata1"), "four").unwrap();
    let rules = site.path("my.toml");
    let rule = |path: &str| format!("[[rule]]\npath = \"{path}\"\nhint = \"long\"\nwhy = \"w\"\n");
    fs::write(&rules, rule("ibdata*") + &rule("nothing")).unwrap();
    let words = ["check", text(&data), "--rules", text(&rules), "--json"];
    let out = said(&mut site.streams(&words));
    assert_eq!(out.code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let dir = &value["directories"][0];
    assert_eq!(dir["route"]["reaches"], "no");
    assert_eq!(dir["route"]["file_system"], "xfs");
    let file = &dir["files"][0];
    assert_eq!(file["bytes"], 4);
    assert_eq!(file["wanted"], "long");
    assert_eq!(file["found"], serde_json::Value::Null);
    assert_eq!(file["standing"], "missing");
    assert_eq!(file["is_well"], false);
    assert_eq!(file["rule"]["path"], "ibdata*");
    let idle = value["rules_without_files"][0].as_str().unwrap();
    assert!(idle.ends_with("my.toml:6 `nothing`"), "{idle}");
}

#[test]
fn a_memory_file_system_has_no_drive() {
    let mut site = Site::new();
    let data = site.mount_as("tmpfs", "size=1m", "memory");
    fs::write(data.join("ibdata1"), "").unwrap();
    let out = said(&mut site.streams(&["check", text(&data), "--rules", "mysql"]));
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.starts_with("hints have no effect on "),
        "{}",
        out.stdout
    );
    assert!(
        out.stdout.contains("tmpfs keeps files in memory"),
        "{}",
        out.stdout
    );
}

#[test]
fn cyclic_links_are_followed_once() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let (one, two) = (data.join("one"), data.join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    fs::write(two.join("t.ibd"), "").unwrap();
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    link(&two, &one.join("two"));
    link(&one, &two.join("one"));
    link(&data, &two.join("up"));
    let out = said(&mut site.streams(&["check", text(&one), "--rules", "mysql", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        value["directories"][0]["files"].as_array().unwrap().len(),
        1
    );
    let mut labeller = site.labeller(&one, &["--rules", "mysql"]);
    assert_eq!(hint(&two.join("t.ibd")), Hint::Extreme);
    assert_eq!(labeller.end(), Some(0));
}
