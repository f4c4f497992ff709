//! Symbolic links in and above a directory: which are followed, and what happens when they change.

use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use saiga_streams::hint::Hint;
use saiga_trials::witness::await_true;

use crate::site::{Labeller, Site, hint, metric};
use crate::support::{said, text};

/// The database's user.
const USER: u32 = 4321;

/// PostgreSQL's log, moved elsewhere and replaced by a symbolic link.
#[test]
fn a_changed_link_is_followed_immediately() {
    for mode in ["notify", "gate"] {
        let mut site = Site::new();
        let disk = site.disk("ext4");
        let (data, old, new) = (disk.join("data"), disk.join("old"), disk.join("new"));
        for dir in [&data, &old, &new] {
            fs::create_dir(dir).unwrap();
        }
        symlink(&old, data.join("pg_wal")).unwrap();
        let more = ["--rules", "postgres", "--mode", mode, "--look", "1h"];
        let mut labeller = site.labeller(&data, &more);
        symlink(&new, data.join("next")).unwrap();
        labeller.wait_for("next leads to ");
        fs::rename(data.join("next"), data.join("pg_wal")).unwrap();
        labeller.wait_for("pg_wal leads to ");
        let segment = "000000010000000000000001";
        fs::write(data.join("pg_wal").join(segment), "").unwrap();
        if mode == "notify" {
            labeller.wait_for("000000000001 short");
        }
        assert_eq!(hint(&new.join(segment)), Hint::Short, "{mode}");
        assert_eq!(labeller.end(), Some(0));
    }
}

/// A link in the path of the database changes; the directory itself does not.
#[test]
fn a_directory_with_a_replaced_ancestor_is_labelled_immediately() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let disk = site.disk(kind);
        fs::create_dir_all(disk.join("a/data")).unwrap();
        fs::create_dir_all(disk.join("b/data")).unwrap();
        symlink(disk.join("a"), disk.join("link")).unwrap();
        let more = ["--rules", "mysql", "--mode", "gate", "--look", "1h"];
        let metrics = site.path("saiga.prom");
        let more = [&more[..], &["--metrics", text(&metrics)]].concat();
        let mut labeller = site.labeller(&disk.join("link/data"), &more);
        fs::rename(disk.join("a"), disk.join("away")).unwrap();
        labeller.wait_for("data is gone; waiting for it");
        fs::rename(disk.join("away"), disk.join("a")).unwrap();
        labelled(&disk.join("link/data"));
        symlink(disk.join("b"), disk.join("next")).unwrap();
        fs::rename(disk.join("next"), disk.join("link")).unwrap();
        labelled(&disk.join("b/data"));
        // The gate covers it, too.
        fs::write(disk.join("b/data/undo_001"), "").unwrap();
        assert_eq!(hint(&disk.join("b/data/undo_001")), Hint::Long);
        assert_eq!(labeller.end(), Some(0));
        assert!(metric(&metrics, "labels_gated_total") >= 1);
    }
}

/// Waits until the labeller has checked all files this many times.
fn await_checks(metrics: &Path, count: u64) {
    await_true(
        || metrics.exists() && metric(metrics, "looks_total") >= count,
        || format!("not {count} looks"),
    );
}

/// Creates a file and waits for its hint.
fn labelled(dir: &Path) {
    let file = dir.join("ibdata1");
    fs::write(&file, "").unwrap();
    let complaint = || format!("{} has no hint", file.display());
    await_true(|| hint(&file) != Hint::NotSet, complaint);
}

/// Otherwise the database's user could make root label, and block, any file.
#[test]
fn a_link_is_followed_only_if_its_owner_may_access_the_target() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let data = disk.join("data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(USER), Some(USER)).unwrap();
    for (link, owner, target, its) in [
        ("planted", USER, "roots", 0),
        ("own", USER, "users", USER),
        ("by_root", 0, "others", 7),
    ] {
        fs::create_dir(disk.join(target)).unwrap();
        fs::write(disk.join(target).join("a.ibd"), "").unwrap();
        chown(disk.join(target), Some(its), Some(its)).unwrap();
        symlink(disk.join(target), data.join(link)).unwrap();
        lchown(data.join(link), Some(owner), Some(owner)).unwrap();
    }
    // A link of root to a place where the user decides where the path leads.
    let hop = disk.join("users/hop");
    symlink(disk.join("roots"), &hop).unwrap();
    lchown(&hop, Some(USER), Some(USER)).unwrap();
    symlink(&hop, data.join("by_root_first")).unwrap();
    let metrics = site.path("saiga.prom");
    let more = ["--rules", "mysql", "--look", "1ms", "--metrics"];
    let more = [&more[..], &[text(&metrics)]].concat();
    let mut labeller = site.labeller(&data, &more);
    await_checks(&metrics, 3);
    assert_eq!(labeller.end(), Some(0));
    let of = |name: &str| hint(&disk.join(name).join("a.ibd"));
    assert_eq!(
        [of("roots"), of("users"), of("others")],
        [Hint::NotSet, Hint::Extreme, Hint::Extreme]
    );
    let rest = labeller.rest();
    labeller.said.extend(rest);
    for name in ["planted", "by_root_first", "users/hop"] {
        let text = format!("{name} is not followed: ");
        let said = labeller.said.iter().filter(|line| line.contains(&text));
        assert_eq!(said.count(), 1, "{name}: {:#?}", labeller.said);
    }
    // The check expects no hint there, either.
    let out = said(&mut site.streams(&["check", text(&data), "--rules", "mysql", "--any-route"]));
    assert!(!out.stdout.contains("planted"), "{out:?}");
    assert!(out.stdout.contains("others/a.ibd"), "{out:?}");
}

/// `saiga streams run --once` with the usual limit of descriptors.
fn label_once(site: &Site, dir: &Path) {
    let locks = site.path("locks");
    let run = [
        "run",
        text(dir),
        "--rules",
        "mysql",
        "--once",
        "--any-route",
    ];
    let inner = site.streams(&[&run[..], &["--lock-dir", text(&locks)]].concat());
    let mut command = Command::new("prlimit");
    command.arg("--nofile=256:256").arg(inner.get_program());
    let out = said(command.args(inner.get_args()));
    assert_eq!(out.code, Some(0), "{out:?}");
}

#[test]
fn deep_directories_need_no_more_descriptors() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    let mut dir = rustix::fs::open(&data, flags, mode).unwrap();
    for _ in 0..1100 {
        rustix::fs::mkdirat(&dir, "d", mode).unwrap();
        dir = rustix::fs::openat(&dir, "d", flags, mode).unwrap();
    }
    // After the deep directory, and in it.
    fs::create_dir(data.join("e")).unwrap();
    fs::write(data.join("e/a.ibd"), "").unwrap();
    let deep = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::RDWR;
    let file = rustix::fs::openat(&dir, "b.ibd", deep, mode).unwrap();
    label_once(&site, &data);
    assert_eq!(hint(&data.join("e/a.ibd")), Hint::Extreme);
    let found = saiga_streams::setter::Setter::read(
        &saiga_streams::setter::Fcntl,
        std::os::fd::AsFd::as_fd(&file),
    );
    assert_eq!(found, Ok(Hint::Extreme));
}

#[test]
fn chains_of_links_need_no_more_descriptors() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let data = disk.join("data");
    fs::create_dir(&data).unwrap();
    let place = |number: u32| disk.join(number.to_string());
    for number in 0..400 {
        fs::create_dir(place(number)).unwrap();
        symlink(place(number + 1), place(number).join("next")).unwrap();
    }
    symlink(place(0), data.join("next")).unwrap();
    fs::write(place(399).join("a.ibd"), "").unwrap();
    label_once(&site, &data);
    assert_eq!(hint(&place(399).join("a.ibd")), Hint::Extreme);
}

/// A file with two names that match different rules.
#[test]
fn a_file_with_several_names_keeps_one_hint() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let (rules, metrics) = (site.path("my.toml"), site.path("saiga.prom"));
    let rule = |path: &str, hint: &str| {
        format!("[[rule]]\npath = \"{path}\"\nhint = \"{hint}\"\nwhy = \"w\"\n")
    };
    fs::write(&rules, rule("*.a", "short") + &rule("*.b", "long")).unwrap();
    fs::write(data.join("f.a"), "").unwrap();
    fs::hard_link(data.join("f.a"), data.join("f.b")).unwrap();
    let more = ["--rules", text(&rules), "--look", "1ms"];
    let more = [&more[..], &["--metrics", text(&metrics)]].concat();
    let mut labeller: Labeller = site.labeller(&data, &more);
    await_checks(&metrics, 5);
    assert_eq!(labeller.end(), Some(0));
    assert_eq!(metric(&metrics, "labels_set_total"), 1);
}
