//! `saiga waf` with a real kernel: the ioctl, the log pages, the counted bytes.

use std::time::Duration;

use serde_json::Value;

use crate::machine::{self, Image, said};

/// The machine takes ten seconds on an idle host.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the machine; returns the output of its console.
fn run() -> String {
    let image = |name| Image {
        name,
        bytes: 256 << 20,
    };
    let devices = [
        "nvme-subsys,id=s0,fdp=on,fdp.runs=64M,fdp.nrg=1,fdp.nruh=8",
        "nvme,subsys=s0,serial=PLACED",
        "nvme-ns,drive=placed,nsid=1,fdp.ruhs=0;1;2;3",
        "nvme,drive=plain,serial=PLAIN",
    ];
    machine::run(
        &[("script.sh", include_str!("counters.sh"))],
        vec![image("placed"), image("plain")],
        &devices.map(str::to_owned),
        LIMIT,
    )
}

#[test]
fn bytes_written_to_a_drive_that_places_data_are_counted_exactly() {
    let console = run();
    let (probe, status) = said(&console, "probe", 0);
    assert_eq!(status, "0", "{console}");
    assert!(
        probe.contains("PLACED")
            && probe.contains("endurance group: 1; data placement (FDP): yes; streams: none"),
        "{probe}"
    );
    assert!(probe.contains("fdp        used: host"), "{probe}");
    let (value, _) = said(&console, "probe", 1);
    let value: Value = serde_json::from_str(value).expect(value);
    assert_eq!(value["endurance_groups"], serde_json::json!([1]));
    assert_eq!(value["vendor"], "1b36");

    // The drive without data placement refuses the pages with the status codes of the
    // specification.
    let (plain, status) = said(&console, "probe", 2);
    assert_eq!(status, "1", "{console}");
    for refusal in [
        "the drive does not report Flexible",
        "the drive refuses log page C0h: NVMe status",
    ] {
        assert!(plain.contains(refusal), "{plain}");
    }

    let (again, status) = said(&console, "watch", 1);
    assert_eq!(status, "0", "{console}");
    assert!(again.contains("host 24.0 MiB, flash 24.0 MiB"), "{again}");
    let (report, _) = said(&console, "report", 0);
    let report: Value = serde_json::from_str(report).expect(report);
    let drive = &report["drives"][0];
    // The namespace and the controller are one drive.
    assert_eq!(drive["samples"], 3, "{console}");
    assert_eq!(drive["total"]["host_bytes"], 24 << 20);
    assert_eq!(drive["segments"][0]["source"], "fdp");
    assert_eq!(drive["segments"][0]["intervals"][0]["waf"], 1.0);

    let (named, _) = said(&console, "record /dev/nvme", 1);
    for page in [
        "feature-1d-group-1.bin: 4 bytes",
        "log-20-group-1.bin: 4096 bytes",
        "log-21-group-1.bin: 4096 bytes",
        "handles-namespace-1.bin: 4096 bytes",
    ] {
        assert!(named.contains(page), "{named}");
    }
    let (copy, status) = said(&console, "probe /recording", 0);
    assert_eq!(status, "0", "{console}");
    assert!(copy.contains("fdp        used: host"), "{copy}");
}
