//! One labeller for one directory, whatever happens to the directory, its path and its disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::site::{Labeller, Site, run};
use crate::support::{Said, said, text};

fn try_run(site: &Site, dir: &Path) -> Said {
    let locks = site.path("locks");
    let words = ["run", text(dir), "--rules", "mysql"];
    said(&mut site.streams(&[&words[..], &["--lock-dir", text(&locks)]].concat()))
}

fn refused(site: &Site, dir: &Path, first: &Labeller) -> String {
    let out = try_run(site, dir);
    assert_eq!(out.code, Some(2), "{out:?}");
    let pid = format!("(pid {})", first.child.id());
    assert!(out.stderr.contains(&pid), "{out:?}");
    out.stderr
}

#[test]
fn a_replaced_directory_still_has_one_labeller() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let (data, old) = (disk.join("data"), disk.join("old"));
    fs::create_dir(&data).unwrap();
    let mut first = site.labeller(&data, &["--rules", "mysql"]);
    fs::rename(&data, &old).unwrap();
    first.wait_for("is gone; waiting for it");
    // Whether or not the labeller already watches the new directory.
    fs::create_dir(&data).unwrap();
    refused(&site, &data, &first);
    fs::write(data.join("ibdata1"), "").unwrap();
    first.wait_for("ibdata1 long");
    refused(&site, &data, &first);
    // The renamed directory is free now.
    let mut second = site.labeller(&old, &["--rules", "mysql"]);
    assert_eq!((second.end(), first.end()), (Some(0), Some(0)));
}

#[test]
fn a_directory_locked_by_another_labeller_is_left_to_it() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let (data, next) = (disk.join("data"), disk.join("next"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&next).unwrap();
    let mut first = site.labeller(&data, &["--rules", "mysql", "--look", "10ms"]);
    let mut second = site.labeller(&next, &["--rules", "mysql"]);
    fs::rename(&data, disk.join("old")).unwrap();
    first.wait_for("is gone; waiting for it");
    fs::rename(&next, &data).unwrap();
    let pid = format!(
        "is labelled by another `saiga streams run` (pid {})",
        second.child.id()
    );
    first.wait_for(&pid);
    second.wait_for("is gone; waiting for it");
    assert_eq!(second.end(), Some(0));
    fs::write(data.join("ibdata1"), "").unwrap();
    first.wait_for("ibdata1 long");
    assert_eq!(first.end(), Some(0));
}

#[test]
fn labellers_do_not_share_a_part_of_a_directory() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let (outer, inner) = (disk.join("data"), disk.join("data/sub"));
    fs::create_dir_all(&inner).unwrap();
    for (one, two) in [(&outer, &inner), (&inner, &outer)] {
        let mut first = site.labeller(one, &["--rules", "mysql"]);
        let why = refused(&site, two, &first);
        assert!(why.contains("share files"), "{why}");
        assert_eq!(first.end(), Some(0));
    }
    // One labeller for both is allowed.
    let mut both = site.labeller(&outer, &[text(&inner), "--rules", "mysql"]);
    assert_eq!(both.end(), Some(0));
}

fn device_of(dir: &Path) -> PathBuf {
    let device = fs::metadata(dir).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap();
    Path::new("/dev").join(link.file_name().unwrap())
}

/// The root of each file system has the same inode number, and device numbers are reused.
#[test]
fn another_disk_with_the_same_number_is_another_directory() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let device = device_of(&data);
    let mut first = site.labeller(&data, &["--rules", "mysql"]);
    run("umount", &[text(&data)]);
    fs::remove_dir(&data).unwrap();
    first.wait_for("is gone; waiting for it");
    run("/usr/sbin/mkfs.xfs", &["-qf", text(&device)]);
    let other = site.path("other");
    fs::create_dir(&other).unwrap();
    run("mount", &[text(&device), text(&other)]);
    let mut second = site.labeller(&other, &["--rules", "mysql"]);
    let ends = (second.end(), first.end());
    run("umount", &[text(&other)]);
    assert_eq!(ends, (Some(0), Some(0)));
}

/// A user who can open a lock file could hold its lock.
#[test]
fn no_other_user_can_hold_a_lock() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let lock = || {
        let mut locks = fs::read_dir(site.path("locks")).unwrap();
        locks.next().unwrap().unwrap().path()
    };
    let mode = || fs::metadata(lock()).unwrap().permissions().mode() & 0o777;
    site.labeller(&data, &["--rules", "mysql"]).end();
    assert_eq!(mode(), 0o600);
    // A lock file of an older version.
    fs::set_permissions(lock(), fs::Permissions::from_mode(0o644)).unwrap();
    let mut labeller = site.labeller(&data, &["--rules", "mysql"]);
    assert_eq!(mode(), 0o600);
    assert_eq!(labeller.end(), Some(0));
}
