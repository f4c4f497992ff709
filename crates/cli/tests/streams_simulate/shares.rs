//! Shares of the writes by file and directory, traces without some of their writes, and sampled
//! traces.

use std::fs;

use serde_json::Value;

use crate::support::{Installation, said, text};
use crate::{json, must, trace};

const HEAD: &str = "# saiga block trace 1\nt_ns,lba,len,op,file\n";

fn waf(case: &Value) -> f64 {
    case["result"]["waf"].as_f64().unwrap()
}

fn cases(found: &Value) -> &[Value] {
    found["cases"].as_array().unwrap()
}

/// The log has half of the writes.
#[test]
fn a_trace_without_some_files_is_compared_with_the_whole_trace() {
    let saiga = Installation::bare();
    let (file, page) = (saiga.path("t.csv"), saiga.path("page.html"));
    fs::write(&file, trace()).unwrap();
    let start = ["--trace", text(&file), "--by", "stream", "--rules"];
    let report = ["--report", text(&page)];
    let words = [&start[..], &["mysql", "--without", "redo"], &report].concat();
    let out = must(&saiga, &words);
    let said = "without redo (1 file), 78.1 MiB (50.0 %) less is written; changes are relative to the whole trace in one stream";
    assert!(out.stdout.contains(said), "{out:?}");
    let found = json(&saiga, &words);
    assert_eq!(found["trace"]["without"]["written_bytes"], 20_000 * 4096);
    let all = cases(&found);
    let names = all.iter().map(|case| {
        let of = |key: &str| case[key].as_str();
        (of("rules").unwrap(), of("without"))
    });
    let sets = |without| ["none", "mysql", "mysql"].map(|name| (name, without));
    let expected = [&sets(None)[..], &[("(oracle)", None)], &sets(Some("redo"))].concat();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    // Half of the host's writes, at another write amplification on the same drive.
    let ratio = all[4]["flash_writes_ratio"].as_f64().unwrap();
    let expected = waf(&all[4]) * 0.5 / waf(&all[0]);
    assert!(
        (ratio - expected).abs() < 1e-9 && ratio < 0.9,
        "{ratio} {expected}"
    );
    let mut lines = out.stdout.lines();
    let line = lines.find(|line| line.starts_with("none, without redo "));
    let change = format!("{:+.1} %", (ratio - 1.0) * 100.0);
    assert!(line.unwrap().contains(&change), "{out:?}");
    let html = fs::read_to_string(&page).unwrap();
    let sentence = "Without redo (78.1 MiB less from the host), one stream writes";
    assert!(html.contains("none, without redo") && html.contains(sentence));

    // A glob selects the same file.
    let words = [&start[..], &["none", "--without", "ib_logfile*"]].concat();
    let globbed = json(&saiga, &words);
    let found = &cases(&globbed)[2]["flash_writes_ratio"];
    assert_eq!(found, &all[4]["flash_writes_ratio"]);
}

#[test]
fn spare_space_of_several_sizes_is_several_devices() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    fs::write(&file, trace()).unwrap();
    let words = [
        "--trace",
        text(&file),
        "--rules",
        "none",
        "--op",
        "0.07,0.28",
    ];
    let out = must(&saiga, &words);
    for spare in ["7 %", "28 %"] {
        let title = format!("\n90 % live, {spare} spare, greedy\n");
        assert!(out.stdout.contains(&title), "{title}: {out:?}");
    }
    let found = json(&saiga, &words);
    let all = cases(&found);
    let spare = [0, 2].map(|case| all[case]["over_provisioning"].as_f64().unwrap());
    assert_eq!((all.len(), spare), (4, [0.07, 0.28]));
    assert!(waf(&all[2]) < waf(&all[0]), "{found}");
}

/// A trace of two servers, one of which has the log.
fn two_directories(saiga: &Installation) -> std::path::PathBuf {
    let file = saiga.path("two.csv");
    let remarks = "# directory /a\n# directory /b\n";
    let named = trace()
        .replace(HEAD, &format!("{HEAD}{remarks}"))
        .replace("0=cold.ibd", "0=/a/cold.ibd")
        .replace("1=db/slow.ibd", "1=/a/db/slow.ibd")
        .replace("2=ib_logfile0", "2=/b/ib_logfile0");
    fs::write(&file, named).unwrap();
    file
}

#[test]
fn each_directory_has_its_share() {
    let saiga = Installation::bare();
    let (file, page) = (two_directories(&saiga), saiga.path("page.html"));
    let words = [
        "--trace",
        text(&file),
        "--rules",
        "mysql",
        "--report",
        text(&page),
    ];
    let out = must(&saiga, &words);
    let title = "\nnone, one stream, by directory:\ndirectory ";
    assert!(out.stdout.contains(title), "{out:?}");
    let found = json(&saiga, &words);
    let parts = cases(&found)[0]["by_directory"].as_array().unwrap();
    let names: Vec<_> = parts.iter().map(|part| &part["directory"]).collect();
    assert_eq!(names, ["/a", "/b", "(no directory)"]);
    let count = |part: &Value, key: &str| part[key].as_u64().unwrap();
    let result = &cases(&found)[0]["result"];
    for key in ["moved_pages", "host_pages"] {
        let sum: u64 = parts.iter().map(|part| count(part, key)).sum();
        assert_eq!(sum, count(result, key), "{key}");
    }
    for part in &parts[..2] {
        assert_eq!(part["written_bytes"], 20_000 * 4096);
    }
    // Pages of the log die, and pages of tables are moved because of that.
    let [a, b] = [0, 1].map(|at| count(&parts[at], "moved_pages"));
    let share = parts[1]["share_of_moved"].as_f64().unwrap();
    assert!(a > 10 * b && share > 0.4, "{parts:?}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("By directory") && html.contains("/a/db/slow.ibd"));
    let one = saiga.path("one.csv");
    fs::write(&one, trace()).unwrap();
    let one = must(&saiga, &["--trace", text(&one), "--rules", "none"]);
    assert!(!one.stdout.contains("by directory"), "{one:?}");
}

#[test]
fn a_sample_represents_the_whole_trace() {
    let saiga = Installation::bare();
    let (file, page) = (saiga.path("t.csv"), saiga.path("page.html"));
    let remark = "# sampled 1/10, granules of 16384 bytes\n";
    fs::write(&file, trace().replace(HEAD, &format!("{HEAD}{remark}"))).unwrap();
    let words = ["--trace", text(&file), "--rules", "mysql"];
    let out = must(&saiga, &[&words[..], &["--report", text(&page)]].concat());
    let line = "a sample: 1/10 of the pages, in granules of 16.0 KiB; byte counts are estimates for all pages";
    for expected in [
        line,
        "40000 writes of 1.52 GiB",
        "mysql: rules match 1.52 GiB of the 1.52 GiB written",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
    assert!(fs::read_to_string(&page).unwrap().contains(line));
    let found = json(&saiga, &words);
    assert_eq!(found["trace"]["written_bytes"], 400_000_u64 * 4096);
    assert_eq!(found["trace"]["sampled"]["one_in"], 10);
    let suggest = [
        "streams",
        "suggest",
        "--simulations",
        "0",
        "--trace",
        text(&file),
    ];
    let suggested = said(&mut saiga.saiga(&suggest));
    for expected in [
        "sampled 1/10",
        "1.52 GiB written in 3 files",
        "781 MiB written",
    ] {
        assert!(
            suggested.stdout.contains(expected),
            "{expected}: {suggested:?}"
        );
    }
    let out = saiga.path("own.toml");
    let seen = said(&mut saiga.saiga(&[&suggest[..], &["--out", text(&out)]].concat()));
    assert!(seen.stdout.contains(line), "{seen:?}");
    let large = [&words[..], &["--page-bytes", "32768"]].concat();
    let large = crate::simulate(&saiga, &large);
    let expected = "the trace is a sample in granules of 16384 bytes";
    assert_eq!(large.code, Some(2), "{large:?}");
    assert!(large.stderr.contains(expected), "{large:?}");
}

/// 3000 pages are about 100 units of the smallest size.
#[test]
fn a_device_with_few_units_is_reported() {
    let saiga = Installation::bare();
    let (file, page) = (saiga.path("t.csv"), saiga.path("page.html"));
    let mut rows = HEAD.to_owned();
    for i in 0..30_000_u64 {
        let name = if i == 0 { "0=a" } else { "0" };
        rows.push_str(&format!("{i},{},4096,W,{name}\n", i * 7919 % 3000 * 4096));
    }
    fs::write(&file, rows).unwrap();
    let words = ["--trace", text(&file), "--rules", "none"];
    let out = must(&saiga, &[&words[..], &["--report", text(&page)]].concat());
    let note =
        "the simulated device has 111 reclaim units of 32 pages; real drives have more than 512";
    assert!(out.stdout.contains(&format!("\nnote: {note}")), "{out:?}");
    assert!(fs::read_to_string(&page).unwrap().contains(note));
    let found = json(&saiga, &words);
    let said_first = found["notes"][0].as_str().unwrap();
    assert!(said_first.starts_with(note), "{found}");
    let suggest = [
        "streams",
        "suggest",
        "--simulations",
        "0",
        "--trace",
        text(&file),
    ];
    let suggested = said(&mut saiga.saiga(&suggest));
    assert!(
        suggested.stderr.contains(&format!("note: {note}")),
        "{suggested:?}"
    );
    let many = saiga.path("many.csv");
    fs::write(&many, trace()).unwrap();
    let many = must(&saiga, &["--trace", text(&many), "--rules", "none"]);
    assert!(!many.stdout.contains("real drives have more"), "{many:?}");
}

/// `suggest` checks every given device and says so.
#[test]
fn suggested_rules_are_compared_on_every_device() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    let named = trace().replace("1=db/slow.ibd", "1=mysql.ibd");
    fs::write(&file, named).unwrap();
    let words = [
        "streams",
        "suggest",
        "--simulations",
        "9",
        "--json",
        "--trace",
        text(&file),
    ];
    let devices = [
        "--utilisation",
        "0.7,0.9",
        "--policy",
        "greedy,cost-benefit",
        "--op",
        "0.07,0.28",
    ];
    let out = said(&mut saiga.saiga(&[&words[..], &devices].concat()));
    assert_eq!(out.code, Some(0), "{out:?}");
    let found: Value = serde_json::from_str(&out.stdout).unwrap();
    // Eight devices, by streams and by hints, in two placements.
    assert_eq!(found["whole_trace"]["compared"], 32);
    let line = "comparing with the built-in sets: simulation 1 of ";
    assert!(out.stderr.contains(line), "{out:?}");
}
