//! The figures of the host and the database in the record of a run, with a real server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;

use marked::Marked;
use saiga_experiment::result::Run;
use saiga_experiment::result::detail::Series;
use saiga_trials::mariadb::{Kind, Server};
use saiga_trials::parity::Arm;
use serde_json::Value;

fn series<'a>(run: &'a Run, name: &str) -> &'a Series {
    let all = &run.detail.as_ref().unwrap().series;
    all.iter().find(|one| one.name == name).unwrap_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        panic!("no {name}: {names:?}")
    })
}

fn greatest(course: &Series) -> f64 {
    course.mean.iter().flatten().copied().fold(0.0, f64::max)
}

/// Given devices have time series of their own, and BenchmarkSQL's files; all are summed up.
fn devices_and_summary_are_recorded(test: &Marked, run: &Run, stdout: &str) {
    assert!(greatest(series(run, "net_lo_rx_packets_s")) > 0.0);
    for (name, header) in [
        ("sys_info", "run,elapsed,cpu_user,"),
        ("net_lo", "run,elapsed,device,"),
    ] {
        let text = fs::read_to_string(test.path(&format!("out/data/{name}.csv"))).unwrap();
        assert!(
            text.starts_with(header) && text.lines().count() > 5,
            "{text}"
        );
    }
    for name in [
        "host_server_cpu_s",
        "host_client_cpu_s",
        "host_cpu_system_mean_percent",
        "host_cpu_system_p95_percent",
    ] {
        assert!(run.metrics[name] > 0.0, "{name} in {:?}", run.metrics);
    }
    assert!(
        stdout.contains("\nCPU seconds during the measurement: client ")
            && stdout.contains(", server "),
        "{}",
        stdout
    );
}

#[test]
fn a_run_of_tpcc_records_the_host_and_the_database() {
    let test = Marked::new();
    let mut server = Server::start(Kind::MariaDb, Arm::Kernel, &[]);
    for sql in [
        "CREATE USER 'tpcc'@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON trial.* TO 'tpcc'@'%'",
    ] {
        server.must(Arm::Kernel, sql);
    }
    let (props, out) = (test.text("props"), test.text("out"));
    let (port, data) = (server.port, server.folder().join("data"));
    let data = data.display();
    let text = format!(
        "db=mysql\nconn=jdbc:mysql://127.0.0.1:{port}/trial\nuser=tpcc\npassword=secret\n\
         warehouses=1\nterminals=4\nlimitTxnsPerMin=0\nrunMins=1\ndata={data}\n\
         osCollectorDevices=net_lo\n"
    );
    fs::write(test.path("props"), text).unwrap();
    let built = test.said(&mut test.saiga(&["bench", "tpcc", "build", "--props", &props]));
    assert_eq!(built.code, Some(0), "{built:?}");
    let run = ["bench", "tpcc", "run", "--props", &props, "--for", "6s"];
    let mut command = test.saiga(&run);
    let said = test.said(command.args(["--no-check", "--out", &out]));
    // A short run may miss its share of a transaction type; another test checks that.
    assert!(matches!(said.code, Some(0 | 1)), "{said:?}");

    let record = fs::read_to_string(test.path("out/result.json")).unwrap();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    let run: Run = serde_json::from_value(record["run"].take()).unwrap();
    for name in [
        "server_cpu_percent",
        "client_cpu_percent",
        "cpu_user_percent",
        "context_switches_s",
        "db_mysql_Innodb_log_writes_s",
    ] {
        assert!(greatest(series(&run, name)) > 0.0, "{name}");
    }
    devices_and_summary_are_recorded(&test, &run, &said.stdout);
    let user = series(&run, "cpu_user_percent");
    assert!((5..=8).contains(&user.mean.len()), "{user:?}");
    for when in ["before", "after"] {
        let end = format!("_data_{when}_percent");
        let fill = run.metrics.iter().find(|(name, _)| name.ends_with(&end));
        assert!(fill.is_some_and(|(_, fill)| (0.0..=100.0).contains(fill)));
    }
    let host = fs::read_to_string(test.path("out/host.csv")).unwrap();
    assert!(host.contains("db_mysql_Innodb_row_lock_waits_s"), "{host}");
    assert!(host.contains(" measured\n"), "{host}");
    server.kill();
    test.assert_nothing_left();
}

/// Runs of Redis are not checked here, because their length varies.
#[test]
fn long_runs_record_the_host_and_have_it_in_the_report() {
    let test = Marked::new();
    let only = "postgres-select-c16-one-core";
    let mut command = test.saiga(&["compare", "sql", "--engine", "postgres", "--only", only]);
    command.args(["--seconds", "6", "--pairs", "1", "--max-foreign", "100"]);
    command.args(["--arms", "kernel,unix", "--out", &test.text("out")]);
    let said = test.said(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    assert_eq!(result.runs.len(), 2);
    for run in &result.runs {
        let folder = run.detail.as_ref().unwrap().folder.as_ref().unwrap();
        let file = test.path("out").join(folder).join("host.csv");
        assert!(file.exists(), "{}", file.display());
        for name in ["server_cpu_percent", "client_cpu_percent"] {
            assert!(greatest(series(run, name)) > 0.0, "{name}");
        }
    }
    let page = fs::read_to_string(test.path("out/report.html")).unwrap();
    assert!(page.contains("server CPU, % of one core"));
    test.assert_nothing_left();
}
