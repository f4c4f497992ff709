//! Which files get their hint, and when: existing, new, renamed and moved files, and new
//! directories.

use std::fs;

use rustix::fs::{AtFlags, Mode, OFlags};
use saiga_streams::hint::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};

use crate::site::{Site, hint, metric, set_hint};
use crate::support::text;

#[test]
fn files_are_labelled_wherever_they_come_from() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind).join("mysql");
        fs::create_dir_all(data.join("#innodb_redo")).unwrap();
        fs::write(data.join("ibdata1"), "there before").unwrap();
        fs::write(data.join("#innodb_redo/#ib_redo1"), "there before").unwrap();
        fs::write(data.join("auto.cnf"), "no rule").unwrap();
        let metrics = site.path("saiga.prom");
        let mut labeller = site.labeller(&data, &["--rules", "mysql", "--metrics", text(&metrics)]);
        assert!(
            labeller.said[0].contains("hints stop at the block layer on "),
            "{:?}",
            labeller.said
        );
        assert_eq!(hint(&data.join("ibdata1")), Hint::Long);
        assert_eq!(hint(&data.join("#innodb_redo/#ib_redo1")), Hint::Medium);
        assert_eq!(hint(&data.join("auto.cnf")), Hint::NotSet);

        fs::write(data.join("#ib_16384_0.dblwr"), "made").unwrap();
        labeller.wait_for("#ib_16384_0.dblwr short (mysql:");
        assert_eq!(hint(&data.join("#ib_16384_0.dblwr")), Hint::Short);

        fs::write(data.join("binlog.tmp"), "renamed into place").unwrap();
        fs::rename(data.join("binlog.tmp"), data.join("binlog.000001")).unwrap();
        labeller.wait_for("binlog.000001 medium (");
        assert_eq!(hint(&data.join("binlog.000001")), Hint::Medium);

        fs::create_dir_all(data.join("shop/deep")).unwrap();
        fs::write(
            data.join("shop/deep/t.ibd"),
            "in a directory that came with it",
        )
        .unwrap();
        labeller.wait_for("shop/deep/t.ibd extreme (");
        assert_eq!(hint(&data.join("shop/deep/t.ibd")), Hint::Extreme);

        let outside = data.parent().unwrap().join("elsewhere");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.ibd"), "moved in with its directory").unwrap();
        fs::write(data.parent().unwrap().join("ibdata1"), "not below").unwrap();
        fs::rename(&outside, data.join("moved")).unwrap();
        labeller.wait_for("moved/a.ibd extreme (");
        assert_eq!(hint(&data.join("moved/a.ibd")), Hint::Extreme);
        assert_eq!(hint(&data.parent().unwrap().join("ibdata1")), Hint::NotSet);

        // Created without a name (O_TMPFILE), and linked later.
        let unnamed = rustix::fs::openat(
            rustix::fs::CWD,
            &data,
            OFlags::TMPFILE | OFlags::WRONLY,
            Mode::RUSR,
        )
        .unwrap();
        let own = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&unnamed)
        );
        let (from, flags) = (rustix::fs::CWD, AtFlags::SYMLINK_FOLLOW);
        rustix::fs::linkat(from, own, from, data.join("undo_001"), flags).unwrap();
        labeller.wait_for("undo_001 long (");
        assert_eq!(hint(&data.join("undo_001")), Hint::Long);

        // A longer path than astream supports.
        let mut deep = data.clone();
        for _ in 0..5 {
            deep.push("d".repeat(240));
            fs::create_dir(&deep).unwrap();
        }
        fs::write(deep.join("t.ibd"), "").unwrap();
        labeller.wait_for("/t.ibd extreme (");
        assert_eq!(hint(&deep.join("t.ibd")), Hint::Extreme);

        assert_eq!(labeller.end(), Some(0));
        assert_eq!(metric(&metrics, "labels_set_total"), 8);
        assert_eq!(metric(&metrics, "pinned_files"), 8);
        assert_eq!(metric(&metrics, "labels_refused_total"), 0);
    }
}

/// The kernel shows it as `#12 (deleted)`, which no rule should match.
#[test]
fn a_file_without_a_name_gets_its_hint_with_its_name() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let rules = site.path("my.toml");
    fs::write(
        &rules,
        "[[rule]]\npath = \"*\"\nhint = \"short\"\nwhy = \"w\"\n",
    )
    .unwrap();
    let more = ["--rules", text(&rules), "--mode", "gate"];
    let mut labeller = site.labeller(&data, &more);
    let (here, flags) = (rustix::fs::CWD, OFlags::TMPFILE | OFlags::WRONLY);
    let unnamed = rustix::fs::openat(here, &data, flags, Mode::RUSR).unwrap();
    let read = || Fcntl.read(std::os::fd::AsFd::as_fd(&unnamed)).unwrap();
    assert_eq!(read(), Hint::NotSet);
    let raw = std::os::fd::AsRawFd::as_raw_fd(&unnamed);
    let own = format!("/proc/self/fd/{raw}");
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(here, own, here, data.join("named"), flags).unwrap();
    labeller.wait_for("named short (");
    assert_eq!(read(), Hint::Short);
    assert_eq!(labeller.end(), Some(0));
}

#[test]
fn a_hint_of_the_database_itself_stays() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let (own, other) = (data.join("000001.log"), data.join("000002.log"));
    fs::write(&own, "").unwrap();
    set_hint(&own, Hint::Medium);
    let mut labeller = site.labeller(&data, &["--rules", "rocksdb"]);
    labeller
        .said
        .iter()
        .find(|line| line.contains("keeps the hint `medium`"))
        .unwrap();
    assert_eq!(hint(&own), Hint::Medium);
    fs::write(&other, "").unwrap();
    labeller.wait_for("000002.log short");
    labeller.end();
    let labeller = site.labeller(&data, &["--rules", "rocksdb", "--force"]);
    assert_eq!(hint(&own), Hint::Short);
    drop(labeller);
}

/// PostgreSQL's log on another disk, and a tablespace that is linked later.
#[test]
fn links_and_mounts_are_followed_as_the_database_sees_them() {
    let mut site = Site::new();
    let (data, fast) = (site.disk("ext4"), site.disk("xfs"));
    let wal = fast.join("wal");
    fs::create_dir_all(data.join("pg_tblspc")).unwrap();
    fs::create_dir(&wal).unwrap();
    fs::write(wal.join("000000010000000000000001"), "").unwrap();
    std::os::unix::fs::symlink(&wal, data.join("pg_wal")).unwrap();
    let mut labeller = site.labeller(&data, &["--rules", "postgres"]);
    assert_eq!(hint(&wal.join("000000010000000000000001")), Hint::Short);
    fs::write(wal.join("000000010000000000000002"), "").unwrap();
    labeller.wait_for("000000010000000000000002 short");
    let space = fast.join("space");
    fs::create_dir_all(space.join("PG_15_202209061/5")).unwrap();
    std::os::unix::fs::symlink(&space, data.join("pg_tblspc/17000")).unwrap();
    labeller.wait_for("leads to");
    fs::write(space.join("PG_15_202209061/5/17001"), "").unwrap();
    labeller.wait_for("PG_15_202209061/5/17001 long");
    // A mount that is made later, below the directory.
    fs::create_dir_all(data.join("base")).unwrap();
    let memory = site.path("ext4/base");
    site.mount_as("tmpfs", "size=1m", "ext4/base");
    labeller.wait_for("is another mount, which is labelled too");
    fs::create_dir(memory.join("5")).unwrap();
    fs::write(memory.join("5/16384"), "").unwrap();
    labeller.wait_for("base/5/16384 long");
}

#[test]
fn rules_of_astream_are_applied() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let rules = site.path("rules");
    let lines = format!("{0}/ib_logfile 2\n{0}/undo 4\nlonely\n", data.display());
    fs::write(&rules, lines).unwrap();
    let mut labeller = site.labeller(&data, &["--rules", text(&rules)]);
    labeller
        .said
        .iter()
        .find(|line| line.contains("rules:3: astream wants"))
        .unwrap();
    fs::write(data.join("ib_logfile0"), "").unwrap();
    fs::write(data.join("undo_001"), "").unwrap();
    labeller.wait_for("undo_001 long (");
    assert_eq!(hint(&data.join("ib_logfile0")), Hint::Short);
    assert_eq!(hint(&data.join("undo_001")), Hint::Long);
}
