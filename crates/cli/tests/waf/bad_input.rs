//! Errors in a command line, a drive or a file are named, and the exit status is 2.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;

use crate::calls::refused;
use crate::drive::Drive;
use crate::support::{Installation, said, text};

/// Each command line must fail with this message.
fn all_refused(saiga: &Installation, cases: &[(&[&str], &str)]) {
    for (words, expected) in cases {
        let complaint = refused(saiga, words);
        assert!(complaint.contains(expected), "{words:?}: {complaint}");
    }
}

#[test]
fn invalid_drives() {
    let saiga = Installation::bare();
    let (file, empty, link) = (saiga.path("f"), saiga.path("empty"), saiga.path("link"));
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(1, 1);
    fs::create_dir(&empty).unwrap();
    symlink(&drive.folder, &link).unwrap();
    let nonsense = Drive::new(&saiga, "nonsense", "X");
    nonsense.page("new", "identify-controller.bin", &[0xff; 4096]);
    let short = Drive::new(&saiga, "short", "X");
    short.page("new", "identify-controller.bin", &[1; 100]);
    let once = ["watch", "--once", "--file", text(&file)];
    let folder = text(&drive.folder);
    for (words, expected) in [
        (&["nvme99"][..], "there is no /dev/nvme99"),
        (&["/dev/null"], "/dev/null is not an NVMe drive"),
        (&[text(&empty)], "it has no identify-controller.bin"),
        (&[text(&nonsense.folder)], "no model or no serial number"),
        (&[text(&short.folder)], "has 100 bytes, 342 are needed"),
        (&[folder, text(&link)], "are one drive: name it once"),
        (&["--source", "guess", folder], "unknown source"),
        (&["--source", "ocp", folder], "log page C0h is not OCP's"),
        (
            &["--every", "1ms", folder],
            "the interval must be at least 1s",
        ),
    ] {
        all_refused(&saiga, &[(&[&once[..], words].concat(), expected)]);
    }
}

#[test]
fn invalid_files_and_times() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(1, 1);
    let folder = text(&drive.folder);
    let other = saiga.path("text.db");
    let words = "not a database at all, but long enough to be one\n".repeat(9);
    fs::write(&other, &words).unwrap();
    let (other, nowhere) = (text(&other), "/nowhere/waf.db");
    all_refused(
        &saiga,
        &[
            (
                &["watch", "--once", "--file", other, folder],
                "is not a file of samples",
            ),
            (&["report", "--file", other], "is not a file of samples"),
            (
                &["watch", "--once", "--file", nowhere, folder],
                "/nowhere/waf.db",
            ),
            (
                &["report", "--file", nowhere],
                "there is no /nowhere/waf.db",
            ),
            (&["report", "--json", "--csv"], "cannot be used with"),
            (&["report", "--since", "yesterday"], "give a time such as"),
            (&["timer", "relative/drive"], "is not an absolute path"),
            (
                &["timer", "--file", "waf.db", "nvme0"],
                "is not an absolute path",
            ),
        ],
    );
    assert_eq!(fs::read_to_string(other).unwrap(), words);
}

/// A user who may not read the directory is not told that the file is missing.
#[test]
fn samples_of_another_user() {
    let saiga = Installation::bare();
    let folder = saiga.path("private");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let file = folder.join("waf.db");
    let mut command = saiga.saiga(&["waf", "report", "--file", text(&file)]);
    let out = said(command.uid(65534).gid(65534));
    assert_eq!(out.code, Some(2), "{out:?}");
    let expected = format!("cannot read {}: Permission denied", text(&file));
    assert!(out.stderr.contains(&expected), "{out:?}");
    fs::write(&file, "").unwrap();
    let empty = refused(&saiga, &["report", "--file", text(&file)]);
    assert!(
        empty.contains("is empty; `saiga waf watch` stores"),
        "{empty}"
    );
}
