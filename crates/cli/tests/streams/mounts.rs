//! Mounts inside a directory, above it and over it: the visible files are labelled and named.

use std::fs;

use saiga_streams::hint::Hint;

use crate::site::{Site, hint, run};
use crate::support::{said, text};

/// A bind mount of the same file system, whose directories have other paths on the outer mount.
#[test]
fn a_bind_mount_inside_is_labelled_by_its_visible_path() {
    for mode in ["notify", "gate"] {
        let mut site = Site::new();
        let disk = site.disk("ext4");
        let (data, other) = (disk.join("data"), disk.join("other"));
        fs::create_dir_all(data.join("shop")).unwrap();
        fs::create_dir(&other).unwrap();
        site.bind(&other, &data.join("shop"));
        fs::write(data.join("shop/a.ibd"), "").unwrap();
        let more = ["--rules", "mysql", "--mode", mode, "--look", "1h"];
        let mut labeller = site.labeller(&data, &more);
        assert_eq!(hint(&data.join("shop/a.ibd")), Hint::Extreme, "{mode}");
        fs::write(data.join("shop/b.ibd"), "").unwrap();
        if mode == "notify" {
            labeller.wait_for("shop/b.ibd extreme");
        }
        assert_eq!(hint(&other.join("b.ibd")), Hint::Extreme, "{mode}");
        assert_eq!(labeller.end(), Some(0));
    }
}

#[test]
fn the_last_of_several_mounts_at_a_directory_is_labelled() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    for name in ["sub", "lower", "upper", "work"] {
        fs::create_dir(disk.join(name)).unwrap();
    }
    let options = ["lower", "upper", "work"].map(|it| format!("{it}dir={}", text(&disk.join(it))));
    let other = site.disk("xfs");
    fs::create_dir(other.join("sub")).unwrap();
    let check = |site: &mut Site, name: &str| {
        let dir = site.path(name);
        let words = ["check", text(&dir), "--rules", "mysql", "--any-route"];
        said(&mut site.streams(&words)).stdout
    };
    site.mount_as("tmpfs", "size=1m", "ext4/sub");
    let shown = check(&mut site, "ext4/sub");
    assert!(shown.contains("/ext4/sub (tmpfs, "), "{shown}");
    // Hides the whole disk, and the mounts on it.
    site.bind(&other, &disk);
    let shown = check(&mut site, "ext4/sub");
    assert!(shown.contains("/ext4/sub (xfs on "), "{shown}");
    run("umount", &[text(&disk)]);
    site.mount_as("overlay", &options.join(","), "xfs");
    let words = ["run", text(&other), "--rules", "mysql", "--once"];
    let refused = said(&mut site.streams(&words));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("upper directory"), "{refused:?}");
}
