//! Snapshots of the panel at several widths, reviewed by a person.

use super::*;

fn snapshot(cells: &[(String, Option<f64>)]) -> Arc<Snapshot> {
    let names: Vec<String> = cells.iter().map(|(name, _)| name.clone()).collect();
    Arc::new(Snapshot {
        row: 7,
        time_s: 7.0,
        phase: "measured".into(),
        names: names.into(),
        cells: cells.iter().map(|(_, value)| *value).collect(),
    })
}

fn core(prefix: &str, shares: Option<[f64; 4]>) -> Vec<(String, Option<f64>)> {
    let [user, system, softirq, iowait] = shares.map_or([None; 4], |shares| shares.map(Some));
    let zero = shares.map(|_| 0.0);
    let kinds = [
        ("user", user),
        ("nice", zero),
        ("system", system),
        ("irq", zero),
        ("softirq", softirq),
        ("iowait", iowait),
        ("steal", zero),
    ];
    let name = |kind: &str| match (prefix, kind) {
        ("cpu", "steal") => "steal_percent".to_owned(),
        _ => format!("{prefix}_{kind}_percent"),
    };
    kinds.map(|(kind, share)| (name(kind), share)).into()
}

fn two_cores() -> Vec<(String, Option<f64>)> {
    let mut cells = core("cpu", Some([40.0, 20.0, 10.0, 5.0]));
    cells.extend(core("cpu0", Some([60.0, 30.0, 10.0, 0.0])));
    cells.extend(core("cpu1", None));
    for (name, value) in [
        ("server_cpu_percent", Some(123.4)),
        ("client_cpu_percent", None),
        ("db_mysql_cpu_percent", Some(1.0)),
        ("disk_vda_read_kb_s", Some(0.0)),
        ("disk_vda_write_kb_s", Some(12_345.6)),
        ("disk_vda_write_wait_ms", Some(0.42)),
        ("disk_vda_util_percent", Some(34.5)),
        ("disk_vda_queue_requests", Some(1.2)),
        ("net_lo_rx_packets_s", Some(54_321.0)),
        ("net_lo_rx_kb_s", Some(4567.0)),
        ("net_lo_tx_packets_s", Some(54_321.0)),
        ("net_lo_tx_kb_s", Some(4567.0)),
    ] {
        cells.push((name.into(), value));
    }
    cells
}

fn dashboard(cells: &[(String, Option<f64>)]) -> Dashboard {
    let mut dashboard = Dashboard::default();
    for throughput in [
        0.0, 1000.0, 5000.0, 9000.0, 12_345.0, 12_000.0, 300.0, 11_500.0,
    ] {
        dashboard.on_load(LoadNow {
            phase: "measured".into(),
            throughput,
            unit: "tpmC".into(),
            p50_ms: Some(1.23),
            p95_ms: Some(4.5),
            p99_ms: None,
            errors: 2,
            left: Some(Duration::from_secs(754)),
        });
    }
    dashboard.on_snapshot(snapshot(cells));
    dashboard
}

fn draw(dashboard: &Dashboard, columns: usize, rows: usize) -> String {
    let panel = dashboard.draw(Size { columns, rows });
    for line in panel.lines() {
        assert!(format::length(line) <= columns, "{line}");
    }
    assert!(panel.lines().count() <= rows);
    panel
}

fn check(panel: &str, expected: &str) {
    assert_eq!(format!("{panel}\n"), expected, "drawn:\n{panel}\n");
}

#[test]
fn a_wide_terminal_shows_everything() {
    let panel = draw(&dashboard(&two_cores()), 120, 40);
    check(&panel, include_str!("snapshots/two-cores-120.txt"));
}

#[test]
fn a_terminal_of_80_columns_omits_the_last_items() {
    let panel = draw(&dashboard(&two_cores()), 80, 24);
    check(&panel, include_str!("snapshots/two-cores-80.txt"));
}

#[test]
fn a_narrow_terminal_shows_the_first_items() {
    let panel = draw(&dashboard(&two_cores()), 40, 24);
    check(&panel, include_str!("snapshots/two-cores-40.txt"));
}

/// The cores have rising percentages; core 200 is offline.
#[test]
fn many_cores_are_blocks() {
    let mut cells = core("cpu", Some([50.0, 0.0, 0.0, 0.0]));
    for number in 0..256_u32 {
        let busy = f64::from(number % 64) / 63.0 * 100.0;
        let shares = (number != 200).then_some([busy, 0.0, 0.0, 0.0]);
        cells.extend(core(&format!("cpu{number}"), shares));
    }
    let panel = draw(&dashboard(&cells), 100, 24);
    check(&panel, include_str!("snapshots/many-cores-100.txt"));
}

#[test]
fn sixteen_cores_are_two_bars_per_line() {
    let mut cells = core("cpu", Some([30.0, 10.0, 0.0, 10.0]));
    for number in 0..16 {
        let shares = [f64::from(number) * 5.0, 10.0, 5.0, 5.0];
        cells.extend(core(&format!("cpu{number}"), Some(shares)));
    }
    let panel = draw(&dashboard(&cells), 100, 24);
    check(&panel, include_str!("snapshots/sixteen-cores-100.txt"));
}

fn campaign() -> Campaign {
    let parts = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
    Campaign {
        done: 12,
        planned: 54,
        whole: parts(&["12 of 54 runs", "3 min 20 s left"]),
        now: parts(&["set-c50-one-core", "saiga", "pair 3"]),
        last: vec![
            parts(&["kernel", "123456 ops/s", "p50 0.2 ms"]),
            parts(&["saiga", "250000 ops/s", "p50 0.1 ms"]),
        ],
    }
}

/// The load reports nothing before its end; the database reports counters.
#[test]
fn a_campaign_shows_its_progress_and_the_last_runs() {
    let mut cells = two_cores();
    for (name, value) in [
        ("db_mysql_Innodb_log_writes_s", Some(412.0)),
        ("db_mysql_Innodb_row_lock_waits_s", Some(3.5)),
        ("db_pg_wal.wal_write_s", Some(9.0)),
        ("db_mysql_Uptime_s", Some(1.0)),
    ] {
        cells.push((name.into(), value));
    }
    let mut dashboard = Dashboard::default();
    dashboard.on_campaign(campaign());
    dashboard.on_snapshot(snapshot(&cells));
    let panel = draw(&dashboard, 80, 40);
    check(&panel, include_str!("snapshots/campaign-80.txt"));
    let narrow = draw(&dashboard, 30, 5);
    assert_eq!(narrow.lines().next(), Some("12 of 54 runs"));
}

#[test]
fn no_size_makes_the_panel_panic() {
    let full = dashboard(&two_cores());
    for columns in 0..130 {
        for rows in [0, 1, 2, 5, 50] {
            draw(&Dashboard::default(), columns, rows);
            let mut early = Dashboard::default();
            early.on_campaign(Campaign::default());
            draw(&early, columns, rows);
            draw(&full, columns, rows);
        }
    }
    let size = Size {
        columns: 80,
        rows: 24,
    };
    assert_eq!(Dashboard::default().draw(size), "no load yet");
}

#[test]
fn history_has_a_limit() {
    let mut dashboard = Dashboard::default();
    for second in 0..2 * HISTORY_MAX {
        dashboard.on_load(LoadNow {
            throughput: second as f64,
            ..LoadNow::default()
        });
    }
    assert_eq!(dashboard.history.len(), HISTORY_MAX);
}
