//! `saiga waf`: recorded drives whose pages change, killed watchers, full disks.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use saiga_trials::Signal;
use serde_json::Value;

mod bad_input;
mod calls;
mod drive;
mod experiment;
mod no_room;
#[path = "../support/mod.rs"]
mod support;

use calls::{Watch, json, must, refused, waf};
use drive::{Drive, MIB_4K};
use support::{Installation, said, text};

/// Samples of a drive before and after 10 MiB, an idle hour, a reset, and 3 MiB.
fn history(saiga: &Installation) -> (Drive, String) {
    let drive = Drive::new(saiga, "drive", "SN1");
    let file = text(&saiga.path("waf.db")).to_owned();
    for (host, moved, expected) in [
        (1000, 500, "first sample, source Huawei ES3000 (log C0h)"),
        (1000 + 10 * MIB_4K, 500 + 5 * MIB_4K, "WAF 1.500"),
        (
            1000 + 10 * MIB_4K,
            500 + 6 * MIB_4K,
            "no host writes counted",
        ),
        (0, 0, "the host counter fell"),
        (3 * MIB_4K, 3 * MIB_4K, "WAF 2.000"),
    ] {
        drive.counts(host, moved);
        let words = ["watch", "--once", "--file", &file, text(&drive.folder)];
        let said = must(saiga, &words);
        assert!(said.contains(expected), "{said}");
    }
    (drive, file)
}

#[test]
fn samples_of_a_timer_become_a_report() {
    let saiga = Installation::bare();
    let (_drive, file) = history(&saiga);
    let (compat, page) = (saiga.path("result_WA.txt"), saiga.path("report.html"));
    let files = ["--compat", text(&compat), "--html", text(&page)];
    must(&saiga, &[&["report", "--file", &file][..], &files].concat());
    let compat = fs::read_to_string(&compat).unwrap();
    assert_eq!(compat, "15 10 1.50000\n6 3 2.00000\n");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("HWE52P431T6M002N SN1") && page.contains("<polyline"));

    let report = must(&saiga, &["report", "--file", &file]);
    for expected in [
        "Write amplification of HWE52P431T6M002N SN1",
        "1.500",
        "2.000",
        "idle",
    ] {
        assert!(report.contains(expected), "{expected}:\n{report}");
    }
    assert!(!report.contains("coarse: under"), "{report}");
    let value = json(&saiga, &file);
    let segments = value["drives"][0]["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 2);
    assert_eq!(value["drives"][0]["total"]["host_bytes"], 13 << 20);
    let rows = must(&saiga, &["report", "--csv", "--file", &file]);
    assert_eq!(rows.lines().count(), 4, "{rows}");
    let metrics = must(&saiga, &["report", "--prometheus", "--file", &file]);
    let counter = "# TYPE saiga_waf_host_written_bytes_total counter\n";
    assert!(metrics.contains(counter), "{metrics}");
}

#[test]
fn a_report_can_select_drive_and_time() {
    let saiga = Installation::bare();
    let (drive, file) = history(&saiga);
    let report = |option, value| ["report", "--file", file.as_str(), option, value];
    for name in [text(&drive.folder), "SN1", "HWE52P431T6M002N"] {
        must(&saiga, &report("--device", name));
    }
    must(&saiga, &report("--since", "1h"));
    let unknown = refused(&saiga, &report("--device", "nvme7"));
    assert!(
        unknown.contains("it has samples of HWE52P431T6M002N SN1"),
        "{unknown}"
    );
    let early = refused(&saiga, &report("--until", "2001-01-01 00:00:00"));
    assert!(early.contains("between --since and --until"), "{early}");
}

#[test]
fn a_killed_watcher_loses_nothing_and_another_continues() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    let (file, folder) = (saiga.path("waf.db"), drive.folder.clone());
    let words = ["--file", text(&file), text(&folder)];
    drive.counts(0, 0);
    let mut first = Watch::start(&saiga, &words);
    first.next_line("first sample");
    drive.counts(10 * MIB_4K, 20 * MIB_4K);
    first.next_line("WAF 3.000");

    let second = refused(&saiga, &[&["watch", "--once"][..], &words].concat());
    assert!(
        second.contains("HWE52P431T6M002N SN1 is watched already"),
        "{second}"
    );
    let second = refused(&saiga, &[&["watch"][..], &words].concat());
    assert!(second.contains("name another --file"), "{second}");
    // The same file can also hold samples of another drive.
    let other = Drive::new(&saiga, "other", "SN2");
    other.counts(5, 5);
    must(
        &saiga,
        &[
            "watch",
            "--once",
            "--file",
            text(&file),
            text(&other.folder),
        ],
    );

    assert_eq!(first.end(Signal::KILL), None);
    drive.counts(20 * MIB_4K, 30 * MIB_4K);
    let mut third = Watch::start(&saiga, &words);
    third.next_line("WAF");
    assert_eq!(third.end(Signal::TERM), Some(0));
    let value = json(&saiga, text(&file));
    let drives = value["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 2);
    assert_eq!(drives[0]["segments"].as_array().unwrap().len(), 1);
    assert_eq!(drives[0]["total"]["host_bytes"], 20 << 20);
    assert_eq!(drives[0]["total"]["media_bytes"], 50 << 20);
}

#[test]
fn an_unplugged_drive_and_its_return_are_reported() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    let (file, folder, away) = (
        saiga.path("waf.db"),
        drive.folder.clone(),
        saiga.path("away"),
    );
    drive.counts(0, 0);
    let mut watch = Watch::start(&saiga, &["--file", text(&file), text(&folder)]);
    watch.next_line("first sample");
    fs::rename(&folder, &away).unwrap();
    let gone = watch.next_warning("there is no");
    assert!(gone.contains("trying again at each interval"), "{gone}");
    fs::rename(&away, &folder).unwrap();
    watch.next_warning("again");
    // Another drive in the same slot starts a new series.
    drive.identity("SN2");
    watch.next_line("SN2: first sample");
    // Pages filled with ones are rejected.
    drive.page("ones", "log-c0.bin", &[0xff; 512]);
    watch.next_warning("log page C0h contains only FFh");
    drive.counts(9, 9);
    watch.next_warning("again");
    assert_eq!(watch.end(Signal::INT), Some(0));
    let value = json(&saiga, text(&file));
    let reason = value["drives"][1]["segments"][0]["begins_because"]
        .as_str()
        .unwrap();
    assert!(
        reason.contains("was another drive before (HWE52P431T6M002N SN1)"),
        "{reason}"
    );
}

/// A small disk in a mount namespace; both end with the shell.
#[test]
fn a_full_disk_only_costs_samples() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(0, 0);
    let disk = saiga.path("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"
        set -eu
        mount -t tmpfs -o size=256k tmpfs "$DISK"
        once() { "$SAIGA" waf watch --once --file "$DISK/waf.db" "$DRIVE"; }
        once
        head -c 300000 /dev/zero >"$DISK/ballast" || true
        for _ in 1 2 3; do
            if once; then echo "it fits"; else echo "status $?"; fi
        done
        "$SAIGA" waf report --file "$DISK/waf.db" | head -n 4
        rm "$DISK/ballast"
        once
        rm "$DISK"/waf.db*
        head -c 300000 /dev/zero >"$DISK/ballast" || true
        if once; then echo "it fits"; else echo "status $?"; fi
        rm "$DISK/ballast"
        once
        "$SAIGA" waf report --json --file "$DISK/waf.db" | grep samples
    "#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("DISK", &disk).env("DRIVE", &drive.folder);
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        said.stderr.matches("its disk is full").count(),
        4,
        "{said:?}"
    );
    assert_eq!(said.stdout.matches("status 2").count(), 4, "{said:?}");
    assert!(said.stdout.contains("One sample so far"), "{said:?}");
    assert!(said.stdout.contains("no writes counted"), "{said:?}");
    assert!(
        said.stdout.trim_end().ends_with("\"samples\": 1,"),
        "{said:?}"
    );
}

/// A watcher reports the full disk once, and its end once. The disk may be full at its first
/// sample.
#[test]
fn a_watcher_survives_a_full_disk() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(0, 0);
    let disk = saiga.path("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"
        set -eu
        mount -t tmpfs -o size=256k tmpfs "$DISK"
        head -c 300000 /dev/zero >"$DISK/ballast" 2>/dev/null || true
        "$SAIGA" waf watch --every 1s --file "$DISK/waf.db" "$DRIVE" >"$SAID" 2>"$SAID.err" &
        watch=$!
        trap 'kill $watch' EXIT
        until grep -q "its disk is full; trying again at each interval" "$SAID.err"; do :; done
        rm "$DISK/ballast"
        until grep -q "first sample" "$SAID"; do :; done
        until grep -q "again$" "$SAID.err"; do :; done
        head -c 300000 /dev/zero >"$DISK/ballast" 2>/dev/null || true
        until [ "$(grep -c "its disk is full" "$SAID.err")" = 2 ]; do :; done
        rm "$DISK/ballast"
        until [ "$(grep -c "again$" "$SAID.err")" = 2 ]; do :; done
        trap - EXIT
        kill $watch
        wait $watch
        cat "$SAID.err"
    "#;
    let mut command = Command::new("unshare");
    command.args(["-m", "timeout", "60", "sh", "-c", script]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("SAID", saiga.path("said"));
    command.env("DISK", &disk).env("DRIVE", &drive.folder);
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 4, "{said:?}");
}

#[test]
fn the_wear_of_a_drive_is_shown() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(MIB_4K, MIB_4K);
    let (folder, file) = (text(&drive.folder), saiga.path("waf.db"));
    let file = text(&file);
    let probed = must(&saiga, &["probe", folder]);
    assert!(probed.contains("life: unknown: "), "{probed}");
    drive.health(7, 1_000_000);
    let probed = must(&saiga, &["probe", folder]);
    assert!(
        probed
            .contains("life: 7 % used, 98 % of the spare blocks left (the drive warns below 10 %)"),
        "{probed}"
    );
    must(&saiga, &["watch", "--once", "--file", file, folder]);
    let report = must(&saiga, &["report", "--file", file]);
    // One million times 512,000 bytes are 7 % of the drive's life.
    assert!(
        report.contains("0.5 TB") && report.contains("about 7.3 TB"),
        "{report}"
    );
    let exported = must(&saiga, &["report", "--prometheus", "--file", file]);
    assert!(
        exported.contains("saiga_waf_life_used_ratio{"),
        "{exported}"
    );
    let alerts = must(&saiga, &["alerts"]);
    assert!(
        alerts.contains("saiga_waf_life_used_ratio >= 0.9"),
        "{alerts}"
    );
}

#[test]
fn a_probe_gives_reasons_and_a_recording_replaces_the_drive() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    let folder = text(&drive.folder).to_owned();
    let none = waf(&saiga, &["probe", &folder]);
    assert_eq!(none.code, Some(1), "{none:?}");
    for expected in [
        "fdp        unusable: the drive does not report Flexible Data Placement",
        "huawei     unusable: the recording has no log-c0.bin",
        "endurance  unusable: the drive reports no endurance group",
    ] {
        assert!(none.stdout.contains(expected), "{none:?}");
    }
    let watched = refused(
        &saiga,
        &["watch", "--file", text(&saiga.path("waf.db")), &folder],
    );
    assert!(
        watched.contains("no source of counters is usable: fdp:"),
        "{watched}"
    );

    drive.counts(MIB_4K, MIB_4K);
    let found = must(&saiga, &["probe", &folder]);
    assert!(
        found.contains("huawei     used: host 1.00 MiB, flash 2.00 MiB so far"),
        "{found}"
    );
    let value: Value = serde_json::from_str(&must(&saiga, &["probe", "--json", &folder])).unwrap();
    assert_eq!(value["sources"][2]["media_bytes"], 2 << 20);

    let copy = saiga.path("copy");
    let listed = must(&saiga, &["record", "--hide-serial", &folder, text(&copy)]);
    assert!(listed.contains("log-c0.bin: 512 bytes"), "{listed}");
    assert!(listed.contains("log-ca.bin: none"), "{listed}");
    let found = must(&saiga, &["probe", text(&copy)]);
    assert!(
        found.starts_with("HWE52P431T6M002N XXXXXXXXXXXXXXXXXXXX,"),
        "{found}"
    );
    assert!(found.contains("host 1.00 MiB, flash 2.00 MiB"), "{found}");
    let again = refused(&saiga, &["record", &folder, text(&copy)]);
    assert!(again.contains("is not empty"), "{again}");
}

#[test]
fn timer_units_are_printed() {
    let saiga = Installation::bare();
    let units = must(
        &saiga,
        &[
            "timer",
            "--every",
            "10min",
            "nvme0",
            "/dev/disk/by-id/nvme-A B%1",
        ],
    );
    let program = saiga.path("bin/saiga");
    let command = format!(
        "ExecStart={} waf watch --once --file /var/lib/saiga/waf.db /dev/nvme0 \
         \"/dev/disk/by-id/nvme-A B%%1\"\n",
        text(&program)
    );
    assert!(units.contains(&command), "{units}");
    assert!(units.contains("OnUnitActiveSec=600s\n"), "{units}");
    assert!(units.contains("StateDirectory=saiga\n"), "{units}");
    // systemd accepts both units.
    let (service, timer) = units
        .split_once("# /etc/systemd/system/saiga-waf.timer\n")
        .unwrap();
    for (name, text) in [("service", service), ("timer", timer)] {
        fs::write(saiga.path(&format!("saiga-waf.{name}")), text).unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    verify
        .arg("verify")
        .arg(saiga.path("saiga-waf.service"))
        .arg(saiga.path("saiga-waf.timer"));
    let verified = said(&mut verify);
    assert_eq!(
        (verified.code, verified.stderr.as_str()),
        (Some(0), ""),
        "{units}"
    );
    // The page of the documentation has the same text.
    let page = include_str!("../../../../docs/waf.md");
    let (_, block) = page.split_once("```ini\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let printed = must(&saiga, &["timer", "nvme0", "--every", "1h"]);
    assert_eq!(
        printed.replace(text(&program), "/usr/local/bin/saiga"),
        block
    );
    let own = must(&saiga, &["timer", "--file", "/srv/my waf/waf.db", "nvme0"]);
    assert!(own.contains("ReadWritePaths=\"/srv/my waf\"\n"), "{own}");
    assert!(!Path::new("/etc/systemd/system/saiga-waf.timer").exists());
}
