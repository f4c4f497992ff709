//! A user who is not root: every verb names what is missing, and does what needs no privileges.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::Command;

use saiga_streams::hint::Hint;

use crate::site::{Site, hint};
use crate::support::{Said, said, text};

const NOBODY: u32 = 65534;

/// A directory of a database that the user `nobody` may not read, and a directory of `nobody`.
fn folders(site: &Site) -> (PathBuf, PathBuf) {
    let top = site.path("");
    fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
    let (others, own) = (site.path("others"), site.path("own"));
    for (dir, owner) in [(&others, 4321), (&own, NOBODY)] {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("ibdata1"), "").unwrap();
        for path in [dir.clone(), dir.join("ibdata1")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
    }
    (others, own)
}

/// Runs `saiga WORDS` as the user `nobody`.
fn nobody(site: &Site, words: &[&str]) -> Said {
    let saiga = site.saiga.saiga(words);
    let mut command = Command::new("setpriv");
    let user = NOBODY.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    command.arg(saiga.get_program()).args(saiga.get_args());
    said(command.env_clear().env("HOME", "/nonexistent"))
}

#[test]
fn each_verb_names_missing_privileges() {
    let site = Site::new();
    let (others, own) = folders(&site);
    let (others, own, root) = (text(&others), text(&own), site.path("root"));
    fs::create_dir_all(root.join("etc/systemd/system")).unwrap();
    for (words, expected) in [
        (
            &["run", own, "--rules", "mysql"][..],
            "this process lacks CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH",
        ),
        (
            &["run", own, "--rules", "mysql", "--mode", "gate"],
            "needs root, or CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH",
        ),
        (
            &[
                "run",
                own,
                "--rules",
                "mysql",
                "--once",
                "--lock-dir",
                "/proc/locks-of-nobody",
            ],
            "give another place with --lock-dir",
        ),
        (
            &[
                "run",
                others,
                "--rules",
                "mysql",
                "--once",
                "--lock-dir",
                own,
            ],
            "Permission denied (os error 13); run this as root",
        ),
        (
            &["check", others, "--rules", "mysql"],
            "Permission denied (os error 13); run this as root",
        ),
        (
            &[
                "unit",
                "/srv/data",
                "--rules",
                "mysql",
                "--install",
                "--root",
                text(&root),
            ],
            "are you root?",
        ),
    ] {
        let out = nobody(&site, &[&["streams"], words].concat());
        assert_eq!(out.code, Some(2), "{words:?}: {out:?}");
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
    }
    assert!(!site.path("locks").exists());
}

#[test]
fn files_that_cannot_be_read_are_counted() {
    let site = Site::new();
    let (_, own) = folders(&site);
    chown(own.join("ibdata1"), Some(4321), Some(4321)).unwrap();
    let out = nobody(
        &site,
        &[
            "streams",
            "check",
            text(&own),
            "--rules",
            "mysql",
            "--any-route",
        ],
    );
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.contains("unseen: Permission denied"), "{out:?}");
    assert!(
        out.stderr
            .contains("1 files cannot be read by this user; run this as root"),
        "{out:?}"
    );
}

/// Files that could not be read have no label, so the run has failed.
#[test]
fn an_unreadable_directory_is_a_failure() {
    let site = Site::new();
    let (others, own) = folders(&site);
    fs::rename(&others, own.join("others")).unwrap();
    let locks = own.join("locks");
    let run = ["run", text(&own), "--rules", "mysql", "--once"];
    let more = ["--any-route", "--lock-dir", text(&locks)];
    let out = nobody(&site, &[&["streams"], &run[..], &more].concat());
    assert_eq!(out.code, Some(1), "{out:?}");
    let expected = format!(
        "cannot read {}: Permission denied",
        own.join("others").display()
    );
    assert!(out.stderr.contains(&expected), "{out:?}");
    assert!(out.stderr.contains("1 files labelled"), "{out:?}");
    assert!(out.stderr.contains("1 refused"), "{out:?}");
}

/// Labels do not need root: a user who can read a file can label it (from Linux 7.2 on, only its
/// owner).
#[test]
fn users_can_label_their_own_files_with_once() {
    let site = Site::new();
    let (_, own) = folders(&site);
    let locks = own.join("locks");
    let words = [
        "streams",
        "run",
        text(&own),
        "--rules",
        "mysql",
        "--once",
        "--any-route",
        "--lock-dir",
        text(&locks),
    ];
    let out = nobody(&site, &words);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(hint(&own.join("ibdata1")), Hint::Long);
}

#[test]
fn nobody_cannot_stop_a_labeller_of_root() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    fs::set_permissions(site.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut labeller = site.labeller(&data, &["--rules", "mysql"]);
    let locks = site.path("locks");
    for words in [&["--all"][..], &[text(&data)]] {
        let out = nobody(
            &site,
            &[&["streams", "stop", "--lock-dir", text(&locks)], words].concat(),
        );
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(
            out.stderr.contains("cannot look for locks in ")
                && out.stderr.contains("run this as root"),
            "{out:?}"
        );
    }
    assert_eq!(labeller.end(), Some(0));
}
