//! `saiga streams unit`: systemd accepts the unit, its capabilities suffice, and it is installed
//! and removed completely.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use saiga_streams::hint::Hint;

use crate::site::{Labeller, Site, hint, metric};
use crate::support::{Said, said, text};

fn unit(site: &Site, words: &[&str]) -> Said {
    said(&mut site.streams(&[&["unit"], words].concat()))
}

/// The value of a line of a unit.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {key} in {text}"))
}

#[test]
fn systemd_accepts_the_unit() {
    let site = Site::new();
    for words in [
        "/srv/data /srv/50%$x --rules mysql",
        "/srv/data --rules redis --mode gate --before redis-server --name hints",
        "/srv/data --rules redis --metrics /srv/50%$metrics/saiga.prom",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let out = unit(&site, &words);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{words:?}");
        let first = out.stdout.lines().next().unwrap();
        let file = site.path(first.rsplit('/').next().unwrap());
        fs::write(&file, &out.stdout).unwrap();
        let said = said(Command::new("systemd-analyze").args(["verify", text(&file)]));
        assert_eq!(
            (said.code, said.stderr.as_str()),
            (Some(0), ""),
            "{words:?}"
        );
    }
}

#[test]
fn the_unit_has_the_values_of_the_options() {
    let site = Site::new();
    // A service has a private /tmp.
    let folder = tempfile::tempdir_in("/var").unwrap();
    let rules = folder.path().join("my rules.toml");
    let rule = "[[rule]]\npath = \"a\"\nhint = \"long\"\nwhy = \"w\"\n";
    fs::write(&rules, rule).unwrap();
    let dirs = ["/srv/my data", "/srv/50%$x"];
    let words = ["--rules", "mysql", text(&rules), "--before", "mariadb"];
    let out = unit(&site, &[&dirs[..], &words].concat()).stdout;
    let command = format!(
        "{} streams run \"/srv/my data\" \"/srv/50%%$$x\" --rules mysql \"{}\" --lock-dir \
         /run/saiga/saiga-streams",
        text(&site.saiga.path("bin/saiga")),
        text(&rules)
    );
    for (key, expected) in [
        ("ExecStart", command.as_str()),
        ("RequiresMountsFor", "\"/srv/my data\" \"/srv/50%%$x\""),
        ("Before", "mariadb.service"),
        ("Type", "notify"),
        ("TimeoutStartSec", "1h"),
        ("DynamicUser", "yes"),
        ("RuntimeDirectory", "saiga/saiga-streams"),
        ("FileDescriptorStoreMax", "1"),
        (
            "AmbientCapabilities",
            "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_FOWNER",
        ),
    ] {
        assert_eq!(value(&out, key), expected);
    }
}

/// Runs the labeller as the unit does: as another user, with the unit's capabilities and no others,
/// on file systems that are mounted read-only.
fn as_the_unit(site: &Site, data: &Path, words: &[&str]) -> Labeller {
    let text_of_unit = unit(site, &["/srv/data", "--rules", "mysql"]).stdout;
    let granted = value(&text_of_unit, "AmbientCapabilities").to_lowercase();
    let granted: Vec<String> = granted
        .split(' ')
        .map(|name| format!("+{}", name.trim_start_matches("cap_")))
        .collect();
    let only = format!("-all,{}", granted.join(","));
    let script = "mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, text(data), "setpriv"]);
    command.args([
        "--reuid",
        "61184",
        "--regid",
        "61184",
        "--clear-groups",
        "--no-new-privs",
    ]);
    for option in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
        command.arg(format!("{option}={only}"));
    }
    let run = site.streams(words);
    command.arg(run.get_program()).args(run.get_args());
    Labeller::warning(&mut command)
}

#[test]
fn the_capabilities_suffice_without_root_on_read_only_mounts() {
    for (kind, mode) in [
        ("ext4", "notify"),
        ("xfs", "notify"),
        ("ext4", "gate"),
        ("xfs", "gate"),
    ] {
        let mut site = Site::new();
        let disk = site.disk(kind);
        let (data, locks, metrics) = (disk.join("data"), site.path("own"), site.path("metrics"));
        fs::create_dir_all(data.join("shop")).unwrap();
        fs::write(data.join("ibdata1"), "").unwrap();
        // The files of a database that no other user may read.
        for path in [&data, &data.join("shop"), &data.join("ibdata1")] {
            chown(path, Some(4321), Some(4321)).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(path, private).unwrap();
        }
        for place in [&locks, &metrics] {
            fs::create_dir(place).unwrap();
            chown(place, Some(61184), Some(61184)).unwrap();
        }
        let prom = metrics.join("saiga.prom");
        let words = [
            "run",
            text(&data),
            "--rules",
            "mysql",
            "--mode",
            mode,
            "-v",
            "--lock-dir",
            text(&locks),
            "--metrics",
            text(&prom),
        ];
        let mut labeller = as_the_unit(&site, &disk, &words);
        labeller.wait_for("; labelling files ");
        assert_eq!(hint(&data.join("ibdata1")), Hint::Long);
        fs::write(data.join("shop/t.ibd"), "").unwrap();
        if mode == "notify" {
            labeller.wait_for("shop/t.ibd extreme");
        }
        assert_eq!(
            hint(&data.join("shop/t.ibd")),
            Hint::Extreme,
            "{kind} {mode}"
        );
        let out = said(&mut site.streams(&["stop", "--lock-dir", text(&locks), text(&data)]));
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(labeller.child.wait().unwrap().code(), Some(0));
        assert_eq!(metric(&prom, "labels_refused_total"), 0);
        let gated = if mode == "gate" { 1 } else { 0 };
        assert_eq!(metric(&prom, "labels_gated_total"), gated, "{kind} {mode}");
    }
}

#[test]
fn systemd_is_notified_once_all_files_are_labelled() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    fs::write(data.join("ibdata1"), "").unwrap();
    let place = site.path("notify");
    let socket = UnixDatagram::bind(&place).unwrap();
    let locks = site.path("locks");
    let mut command = site.streams(&[
        "run",
        text(&data),
        "--rules",
        "mysql",
        "--lock-dir",
        text(&locks),
    ]);
    let mut labeller = Labeller::warning(command.env("NOTIFY_SOCKET", &place));
    let mut received = [0; 64];
    for expected in ["FDSTORE=1\nFDNAME=labels", "READY=1"] {
        let len = socket.recv(&mut received).unwrap();
        assert_eq!(String::from_utf8_lossy(&received[..len]), expected);
    }
    assert_eq!(hint(&data.join("ibdata1")), Hint::Long);
    assert_eq!(labeller.end(), Some(0));
}

#[test]
fn it_is_installed_and_removed_and_other_units_are_not_touched() {
    let site = Site::new();
    let root = site.path("system");
    fs::create_dir_all(root.join("etc/systemd/system/multi-user.target.wants")).unwrap();
    let words = ["/srv/data", "--rules", "mysql", "--root", text(&root)];
    let install = [&words[..], &["--install"]].concat();
    let out = unit(&site, &install);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let file = root.join("etc/systemd/system/saiga-streams.service");
    assert!(
        out.stdout
            .starts_with(&format!("wrote {}\n", file.display())),
        "{out:?}"
    );
    let printed = unit(&site, &words).stdout;
    let printed = printed.split_once('\n').unwrap().1;
    assert_eq!(fs::read_to_string(&file).unwrap(), printed);
    // A second installation replaces the unit.
    assert_eq!(
        unit(&site, &[&install[..], &["--mode", "gate"]].concat()).code,
        Some(0)
    );
    assert!(fs::read_to_string(&file).unwrap().contains(" --mode gate "));

    let link = root.join("etc/systemd/system/multi-user.target.wants/saiga-streams.service");
    symlink(&file, &link).unwrap();
    let remove = ["--remove", "--root", text(&root)];
    let out = unit(&site, &remove);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    assert!(!file.exists() && !link.is_symlink());
    assert_eq!(unit(&site, &remove).code, Some(1));

    fs::write(&file, "[Service]\nExecStart=/bin/true\n").unwrap();
    for words in [&install[..], &remove] {
        let out = unit(&site, words);
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(
            out.stderr.contains("saiga-streams.service is not Saiga's"),
            "{out:?}"
        );
    }
    assert!(file.exists());

    // A unit in /etc would hide a package's unit of the same name.
    let packaged = root.join("usr/lib/systemd/system");
    fs::create_dir_all(&packaged).unwrap();
    fs::write(
        packaged.join("mariadb.service"),
        "[Service]\nExecStart=/bin/true\n",
    )
    .unwrap();
    let out = unit(&site, &[&install[..], &["--name", "mariadb"]].concat());
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(
        out.stderr
            .contains("there is a unit mariadb.service already"),
        "{out:?}"
    );
    assert!(!root.join("etc/systemd/system/mariadb.service").exists());
}

#[test]
fn options_that_cannot_become_a_unit_are_named() {
    let site = Site::new();
    for (words, expected) in [
        (
            &["data", "--rules", "mysql"][..],
            "data is not an absolute path",
        ),
        (
            &["/tmp/data", "--rules", "mysql"],
            "/tmp/data is below a directory for temporary files",
        ),
        (&["/data"], "--rules"),
        (
            &["/data", "--rules", "oracle"],
            "there is no rule set `oracle`",
        ),
        (
            &["/data", "--rules", "mysql", "--name", "../x"],
            "is not the name of a unit",
        ),
        (
            &["/data", "--rules", "mysql", "--name", "a:b"],
            "cannot also be the name of a directory for locks",
        ),
        (
            &["/data", "--rules", "mysql", "--metrics", "/tmp/m.prom"],
            "put the metrics elsewhere",
        ),
        (
            &["/data", "--rules", "mysql", "--metrics", "/run/x/m.prom"],
            "emptied at each boot",
        ),
        (
            &[
                "/data",
                "--rules",
                "mysql",
                "--metrics",
                "/no/such/m.prom",
                "--install",
            ],
            "/no/such is not a directory",
        ),
        (
            &["/data", "--rules", "mysql", "--before", "a.mount"],
            "a.mount is not a service",
        ),
        (
            &["/data", "--rules", "mysql", "--metrics", "m.prom"],
            "m.prom is not an absolute path",
        ),
        (
            &["/data\n", "--rules", "mysql"],
            "cannot be written in a unit",
        ),
        (&["--remove", "/data"], "cannot be used with"),
    ] {
        let out = unit(&site, words);
        assert_eq!(out.code, Some(2), "{words:?}: {out:?}");
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
        assert_eq!(out.stdout, "");
    }
}
