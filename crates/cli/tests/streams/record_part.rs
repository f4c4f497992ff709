//! Samples of the pages, and the shares of several directories.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use saiga_ftl::trace::{Op, Sampling};

use crate::record::{bytes, read};
use crate::site::Site;
use crate::support::{Said, said, text};

const MIB: u64 = 1 << 20;

fn write(path: &Path, mib: usize) {
    let mut file = File::create(path).unwrap();
    for _ in 0..mib {
        file.write_all(&[7; 1 << 20]).unwrap();
    }
    file.sync_all().unwrap();
}

/// Records a shell command.
fn record(site: &Site, out: &Path, words: &[&str], script: &str) -> Said {
    let words = [
        &["record", "--out", text(out)],
        words,
        &["--", "sh", "-c", script],
    ]
    .concat();
    let said = said(&mut site.streams(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    said
}

/// 32 MiB existed before, and 64 MiB are written: the trace has a quarter of both, with at most as
/// many rows as the whole trace.
#[test]
fn a_sample_has_its_share_of_each_file() {
    let mut site = Site::new();
    let disk = site.disk("xfs");
    let (old, new) = (disk.join("old"), disk.join("new"));
    write(&old, 32);
    let script = format!(
        "dd if=/dev/zero of={} bs=1M count=64 conv=fsync status=none",
        text(&new)
    );
    let [whole, sample] = ["whole.csv", "sample.csv"].map(|name| site.path(name));
    record(&site, &whole, &[text(&disk)], &script);
    fs::remove_file(&new).unwrap();
    let out = record(&site, &sample, &["--sample", "1/4", text(&disk)], &script);
    let line = "the rows are a sample: 1/4 of the pages, in granules of 16.0 KiB; the figures below are for all pages";
    assert!(out.stdout.contains(line), "{out:?}");
    assert!(out.stdout.contains("32.0 MiB existed before"), "{out:?}");
    let [whole, part] = [read(&whole), read(&sample)];
    assert_eq!((whole.sampled, part.sampled), (None, Sampling::new(4)));
    for (op, path, mib) in [(Op::Present, &old, 32), (Op::Write, &new, 64)] {
        let found = bytes(&part, op, path) as f64;
        let expected = (mib * MIB / 4) as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{op:?}: {found} {expected}"
        );
        assert_eq!(bytes(&whole, op, path), mib * MIB, "{op:?}");
    }
    assert!(
        part.rows.len() <= whole.rows.len() + 64,
        "{}",
        part.rows.len()
    );
    let found = said(&mut site.streams(&[
        "simulate",
        "--json",
        "--rules",
        "none",
        "--trace",
        text(&sample),
    ]));
    let found: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let bytes = found["trace"]["written_bytes"].as_u64().unwrap();
    assert!((60 * MIB..72 * MIB).contains(&bytes), "{bytes}");
}

#[test]
fn invalid_shares_are_refused() {
    let site = Site::new();
    for share in ["0", "2", "1/0", "0.3", "x"] {
        let words = [
            "record", "--out", "/x", "/y", "--for", "1s", "--sample", share,
        ];
        let out = said(&mut site.streams(&words));
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains("as 1/10 or 0.1"), "{out:?}");
    }
}

/// Two servers on one drive, the second of which writes three times as much.
#[test]
fn each_directory_has_its_bytes() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let [a, b] = ["a", "b"].map(|name| disk.join(name));
    fs::create_dir(&a).unwrap();
    fs::create_dir(&b).unwrap();
    let out = site.path("trace.csv");
    let dd = |dir: &Path, mib| {
        format!(
            "dd if=/dev/zero of={}/t bs=1M count={mib} conv=fsync status=none",
            text(dir)
        )
    };
    let script = format!("{} && {}", dd(&a, 8), dd(&b, 24));
    let said = record(&site, &out, &[text(&a), text(&b)], &script);
    let row = |dir: &Path| {
        let mut lines = said.stdout.lines();
        let line = lines.find(|line| line.ends_with(text(dir)));
        line.unwrap_or_else(|| panic!("{said:?}")).to_owned()
    };
    assert!(
        row(&a).starts_with("8.00 MiB ") && row(&b).starts_with("24.0 MiB "),
        "{said:?}"
    );
    let mut simulate = site.streams(&[
        "simulate",
        "--json",
        "--rules",
        "none",
        "--trace",
        text(&out),
    ]);
    let found: serde_json::Value =
        serde_json::from_str(&crate::support::said(&mut simulate).stdout).unwrap();
    let parts = found["cases"][0]["by_directory"].as_array().unwrap();
    let written: Vec<_> = parts
        .iter()
        .map(|part| (&part["directory"], &part["written_bytes"]))
        .collect();
    assert_eq!(written[0], (&text(&a).into(), &(8 * MIB).into()));
    assert_eq!(written[1], (&text(&b).into(), &(24 * MIB).into()));
    // A single directory needs no table.
    let one = site.path("one.csv");
    let said = record(&site, &one, &[text(&a)], &dd(&a, 1));
    assert!(!said.stdout.contains("directory"), "{said:?}");
}
