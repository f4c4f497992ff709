//! `[metrics] waf` of an experiment file, with drives whose counters change during the load.

use std::fs;

use saiga_experiment::result::ExperimentResult;

use crate::drive::{Drive, MIB_4K};
use crate::support::{Installation, said, text};

/// Two arms whose load changes the drive's counters from `from` to one of two pages.
const FILE: &str = r#"
headline = "waf"
[plan]
pairs = 6
seed = 1
max_foreign_cores = 100
[[server]]
name = "sleeper"
command = "sleep 1000"
ready = { command = "true" }
stop = { signal = "KILL" }
[[arm]]
name = "plain"
client = { env = { PAGE = "plain.bin" } }
[[arm]]
name = "streams"
client = { env = { PAGE = "streams.bin" } }
[workload]
kind = "command"
command = "sh -c 'cd ${DRIVE} && cp $PAGE new && mv new log-c0.bin && echo rate 12.5'"
[[workload.metric]]
name = "rate_per_s"
regex = 'rate ([0-9.]+)'
unit = "1/s"
better = "higher"
[hooks]
before_run = "cp ${DRIVE}/from.bin ${DRIVE}/new && mv ${DRIVE}/new ${DRIVE}/log-c0.bin"
[metrics]
waf = "${DRIVE}"
[[expect]]
metric = "waf"
ratio_below = 0.9
"#;

/// A drive with its counters before a run, and after a run with and without streams.
fn drive(saiga: &Installation, written: u64) -> Drive {
    let drive = Drive::new(saiga, "drive", "SN1");
    for (name, moved) in [
        ("plain.bin", written),
        ("streams.bin", written / 2),
        ("from.bin", 0),
    ] {
        let host = if name == "from.bin" { 0 } else { written };
        drive.counts(1000 + host, 500 + moved);
        fs::copy(drive.folder.join("log-c0.bin"), drive.folder.join(name)).unwrap();
    }
    drive
}

fn compared(saiga: &Installation, drive: &Drive) -> (Option<i32>, String, ExperimentResult) {
    compared_by(saiga, drive, FILE)
}

fn compared_by(
    saiga: &Installation,
    drive: &Drive,
    text_of_file: &str,
) -> (Option<i32>, String, ExperimentResult) {
    let file = saiga.path("e.toml");
    fs::write(&file, text_of_file).unwrap();
    let out = saiga.path("out");
    let set = format!("DRIVE={}", text(&drive.folder));
    let words = ["compare", text(&file), "--set", &set, "--out", text(&out)];
    let said = said(&mut saiga.saiga(&words));
    let result = fs::read(out.join("result.json")).unwrap();
    (
        said.code,
        said.stderr,
        serde_json::from_slice(&result).unwrap(),
    )
}

#[test]
fn the_write_amplification_of_each_run_is_compared() {
    let saiga = Installation::bare();
    let drive = drive(&saiga, 1000 * MIB_4K);
    let (code, stderr, result) = compared(&saiga, &drive);
    assert_eq!(code, Some(0), "{stderr}");
    let of = |arm: &str, name: &str| -> Vec<f64> {
        let runs = result.runs.iter().filter(|run| run.arm == arm);
        runs.map(|run| run.metrics[name]).collect()
    };
    assert_eq!(of("plain", "waf"), [2.0; 6]);
    assert_eq!(of("streams", "waf"), [1.5; 6]);
    assert_eq!(of("streams", "host_written_mib"), [1000.0; 6]);
    assert_eq!(of("streams", "flash_written_mib"), [1500.0; 6]);
    assert!(
        result.headline[0].contains("write amplification") || result.headline[0].contains("waf"),
        "{:?}",
        result.headline
    );
    let detail = result.runs[0].detail.as_ref().unwrap();
    let course = detail.series.iter().find(|one| one.name == "waf").unwrap();
    assert_eq!(course.mean, [Some(result.runs[0].metrics["waf"])]);
}

/// The counters change at the start of a load of three seconds, and in its middle.
#[test]
fn a_time_series_has_a_point_for_each_interval() {
    let saiga = Installation::bare();
    let drive = drive(&saiga, 1000 * MIB_4K);
    drive.counts(1000 + 2000 * MIB_4K, 500 + 3000 * MIB_4K);
    fs::rename(
        drive.folder.join("log-c0.bin"),
        drive.folder.join("last.bin"),
    )
    .unwrap();
    fs::copy(
        drive.folder.join("from.bin"),
        drive.folder.join("log-c0.bin"),
    )
    .unwrap();
    let once = "cp $PAGE new && mv new log-c0.bin";
    let twice = format!("{once} && sleep 1.5 && cp last.bin new && mv new log-c0.bin && sleep 1.5");
    let text = FILE
        .replace(once, &twice)
        .replace("pairs = 6", "pairs = 1")
        .replace(
            "waf = \"${DRIVE}\"",
            "waf = \"${DRIVE}\"\nwaf_every = \"1s\"",
        );
    let (_, stderr, result) = compared_by(&saiga, &drive, &text);
    let run = result.runs.iter().find(|run| run.arm == "plain").unwrap();
    assert_eq!(run.metrics["waf"], 2.5, "{stderr}");
    let detail = run.detail.as_ref().unwrap();
    let course = detail.series.iter().find(|one| one.name == "waf").unwrap();
    assert!(course.at_s.len() >= 2, "{course:?}");
    assert!(course.is_even() && course.at_s.is_sorted(), "{course:?}");
}

#[test]
fn coarse_counters_give_no_write_amplification() {
    // Each step is 4 KiB.
    let saiga = Installation::bare();
    let few = drive(&saiga, 3);
    let (_, stderr, result) = compared(&saiga, &few);
    let rejected = result.runs.iter().filter_map(|run| run.rejected.as_deref());
    let reasons: Vec<&str> = rejected.collect();
    let wanted = "fewer than 50 of their units";
    assert!(
        reasons.iter().any(|one| one.contains(wanted)),
        "{reasons:?} {stderr}"
    );

    // An idle drive has no write amplification, and its runs are valid.
    let saiga = Installation::bare();
    let idle = drive(&saiga, 0);
    let (code, stderr, result) = compared(&saiga, &idle);
    let told = "no comparison is possible: 6 of 6 pairs have no ratio: waf is missing in plain and \
                streams.";
    assert!(code == Some(2) && stderr.contains(told), "{stderr}");
    let mut runs = result.runs.iter();
    assert!(
        runs.all(|run| run.rejected.is_none() && !run.metrics.contains_key("waf")),
        "{stderr}"
    );
}

#[test]
fn an_unreadable_drive_is_named_before_the_first_run() {
    let saiga = Installation::bare();
    let drive = drive(&saiga, 0);
    fs::remove_dir_all(&drive.folder).unwrap();
    let file = saiga.path("e.toml");
    fs::write(&file, FILE).unwrap();
    let set = format!("DRIVE={}", text(&drive.folder));
    let out = saiga.path("out");
    let words = ["compare", text(&file), "--set", &set, "--out", text(&out)];
    let said = said(&mut saiga.saiga(&words));
    assert_eq!(said.code, Some(2), "{said:?}");
    let wanted = format!("not on this machine: drive {}", drive.folder.display());
    assert!(said.stderr.contains(&wanted), "{}", said.stderr);
}
