//! `saiga topology` on this machine, on a tree and on an archive.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Installation, Said, said};

fn topology(saiga: &Installation, arguments: &[&str]) -> Said {
    said(&mut saiga.saiga(&[["topology"].as_slice(), arguments].concat()))
}

/// A machine of two CPUs and two nodes below `machine`.
fn tree(saiga: &Installation) -> String {
    for (name, text) in [
        ("sys/devices/system/cpu/present", "0-1"),
        ("sys/devices/system/cpu/online", "0-1"),
        ("sys/devices/system/node/node0/cpulist", "0"),
        ("sys/devices/system/node/node0/distance", "10 21"),
        ("sys/devices/system/node/node1/cpulist", "1"),
        ("sys/devices/system/node/node1/distance", "21 10"),
        ("sys/class/dmi/id/product_name", "Some Server"),
        ("proc/cmdline", "quiet admin.password=hunter2"),
    ] {
        let path = saiga.path("machine").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    saiga.path("machine").to_str().unwrap().to_owned()
}

#[test]
fn this_machine_and_this_process_are_shown() {
    let saiga = Installation::bare();
    let page = saiga.path("machine.html");
    let pid = std::process::id().to_string();
    let out = topology(&saiga, &["--pid", &pid, "--out", page.to_str().unwrap()]);
    assert_eq!(out.code, Some(0), "{out:?}");
    for expected in [
        "  Node 0   CPUs 0",
        "Limits of this process\n",
        &format!("\nProcess {pid} ("),
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {}", out.stdout);
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("class=\"square ") && !html.contains("<script"));

    let out = topology(&saiga, &["--pid", &pid, "--json"]);
    let json: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["process"]["pid"], std::process::id());
    assert!(
        json["machine"]["cpus"]
            .as_array()
            .is_some_and(|cpus| !cpus.is_empty())
    );
    assert!(json.get("latency").is_none());
}

#[test]
fn an_archive_is_shown_like_its_machine() {
    let saiga = Installation::bare();
    let tree = tree(&saiga);
    let shown = topology(&saiga, &["--sysroot", &tree]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    assert!(
        shown.stdout.starts_with("Some Server\n"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("from node 1  21  10"),
        "{}",
        shown.stdout
    );

    let archive = saiga.path("machine.tar.gz");
    let archive = archive.to_str().unwrap();
    let out = topology(&saiga, &["collect", "-o", archive, "--sysroot", &tree]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(
        out.stdout
            .starts_with(&format!("wrote {archive}: 8 files in ")),
        "{out:?}"
    );
    assert_eq!(
        fs::metadata(archive).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        topology(&saiga, &["--sysroot", archive]).stdout,
        shown.stdout
    );
    let json = topology(&saiga, &["--sysroot", archive, "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        json["machine"]["system"]["command_line"],
        "quiet admin.password=removed"
    );

    let out = topology(&saiga, &["collect", "--out", archive]);
    assert_eq!(out.code, Some(2));
    assert_eq!(
        out.stderr,
        format!("saiga: {archive} exists; give another name\n")
    );
}

#[test]
fn bad_input_is_named() {
    let saiga = Installation::bare();
    let empty = saiga.path("lib");
    let empty = empty.to_str().unwrap();
    let file = saiga.path("text.tar.gz");
    fs::write(&file, "text").unwrap();
    let file = file.to_str().unwrap();
    let no_folder = saiga.path("no/page.html");
    for (arguments, message) in [
        (vec!["--pid", "4194305"], "process 4194305 does not exist"),
        (vec!["--pid", "0"], "0 is not in 1.."),
        (
            vec!["--sysroot", empty],
            "/sys/devices/system/cpu is missing: not the root of a machine",
        ),
        (
            vec!["--sysroot", "/no/such"],
            "saiga: /no/such: No such file or directory (os error 2)\n",
        ),
        (
            vec!["--sysroot", file],
            "is not an archive of saiga topology collect",
        ),
        (
            vec!["--sysroot", empty, "--latency"],
            "cannot be used with '--latency'",
        ),
        (
            vec!["--out", no_folder.to_str().unwrap()],
            "is not a directory",
        ),
        (vec!["collect"], "--out <FILE>"),
        (
            vec!["collect", "-o", "/no/such/file"],
            "cannot write /no/such/file",
        ),
    ] {
        let out = topology(&saiga, &arguments);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(out.stderr.contains(message), "{message}: {}", out.stderr);
    }
}
