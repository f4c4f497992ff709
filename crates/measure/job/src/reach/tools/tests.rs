//! Command lines and variables that lead to the server of an arm, and those that lead elsewhere.

use std::path::Path;

use saiga_experiment::file::Experiment;

use super::super::check_from;
use crate::machine::ThisMachine;

/// What is said of a load of two arms, whose server has port 7000; `more` is more of the file.
fn said(
    kind: &str,
    command: &str,
    more: &str,
    variables: &[(&'static str, &'static str)],
) -> Result<(), String> {
    let text = format!(
        "[[server]]\nname = \"db\"\ncommand = \"x\"\nport = 7000\n\
         [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n{more}\n\
         [workload]\nkind = \"{kind}\"\ncommand = '''{command}'''\n\
         [[workload.metric]]\nname = \"x\"\nregex = '(x)'\nunit = \"x\"\nbetter = \"higher\""
    );
    let file = Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap();
    let inherited = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    check_from(&file, &[], &ThisMachine, &inherited).map_err(|told| told.to_string())
}

/// The load is refused with words that begin so, or not at all.
fn check(
    kind: &str,
    command: &str,
    more: &str,
    variables: &[(&'static str, &'static str)],
    wanted: Option<&str>,
) {
    let said = said(kind, command, more, variables);
    match (wanted, &said) {
        (None, Ok(())) => {}
        (Some(wanted), Err(told)) if told.starts_with(wanted) => {}
        _ => panic!("{command:?} {more:?} {variables:?}: {said:?}, not {wanted:?}"),
    }
}

#[test]
fn sysbench_must_name_host_and_port_of_a_server() {
    let good = "sysbench --mysql-host=127.0.0.1 --mysql-port=7000";
    let here = "workload.command: --mysql-host leads to the Unix socket of the MySQL client";
    let port =
        |port: &str| format!("workload.command: --mysql-port leads to port {port}, on which");
    for (command, wanted) in [
        (format!("{good} x run"), None),
        ("sysbench cpu run".to_owned(), None),
        (
            "sysbench x run".to_owned(),
            Some("workload.command without --mysql-host leads to the Unix socket of the MySQL"),
        ),
        (
            "sysbench --mysql-host=127.0.0.1 x run".to_owned(),
            Some("workload.command without --mysql-port leads to port 3306, on which arm \"a\""),
        ),
        (
            "sysbench --mysql-host=localhost --mysql-port=7000 x run".to_owned(),
            Some(here),
        ),
        (
            format!("{good} --mysql-socket=/run/s x run"),
            Some("workload.command: --mysql-socket leads to the Unix socket /run/s, which may be"),
        ),
        (
            "nice sysbench --mysql-host=127.0.0.1,192.0.2.10 --mysql-port=7000 x run".to_owned(),
            Some("workload.command: --mysql-host leads to 192.0.2.10 ("),
        ),
        (
            "sysbench --mysql_host=127.0.0.1 --mysql_port=7000,7001 x run".to_owned(),
            Some(&port("7001")),
        ),
        (
            "sysbench --db-driver=pgsql x run".to_owned(),
            Some("workload.command without --pgsql-port leads to port 5432"),
        ),
        (
            "sysbench --db-driver=pgsql --pgsql-port=7000 x run".to_owned(),
            None,
        ),
        (
            "sysbench --db-driver=pgsql --pgsql-host=/run/postgresql --pgsql-port=7000 x run"
                .to_owned(),
            Some("workload.command: --pgsql-host leads to the Unix socket /run/postgresql"),
        ),
    ] {
        check("sysbench", &command, "", &[], wanted);
    }
    let addressed = [("PGHOSTADDR", "192.0.2.10")];
    let by_libpq = "sysbench --db-driver=pgsql --pgsql-port=7000 x run";
    let wanted = "the variable PGHOSTADDR of this shell leads to 192.0.2.10 (";
    check("sysbench", by_libpq, "", &addressed, Some(wanted));
    check("sysbench", &format!("{good} x run"), "", &addressed, None);
}

#[test]
fn the_configuration_file_of_sysbench_is_a_part_of_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sb.cfg");
    std::fs::write(
        &file,
        "mysql-host=127.0.0.1\nmysql_port = 7001\nthreads=4\n",
    )
    .unwrap();
    let client = format!(
        "[client]\ndirectory = {:?}",
        folder.path().to_str().unwrap()
    );
    let command = "sysbench --config-file=sb.cfg x run";
    let wanted = "workload.command: --mysql-port leads to port 7001";
    check("sysbench", command, &client, &[], Some(wanted));
    std::fs::write(&file, "mysql-host=127.0.0.1\nmysql-port=7000\n").unwrap();
    check("sysbench", command, &client, &[], None);
}

#[test]
fn pgbench_must_name_host_and_port_of_a_server() {
    for (command, wanted) in [
        ("pgbench -h 127.0.0.1 -p 7000 db", None),
        (
            "pgbench --host=localhost --port 7000 -D x=1 -D host=1 db",
            None,
        ),
        (
            "pgbench -p 7000 db",
            Some("workload.command without -h leads to the Unix socket in PostgreSQL's default"),
        ),
        (
            "pgbench -h /run/postgresql -p 7000 db",
            Some("workload.command: -h leads to the Unix socket /run/postgresql, which may be"),
        ),
        (
            "pgbench -h localhost db",
            Some("workload.command without -p leads to port 5432, on which arm \"a\" starts"),
        ),
        (
            "pgbench -h192.0.2.10 -p7000 db",
            Some("workload.command: -h leads to 192.0.2.10 ("),
        ),
        (
            "pgbench -h localhost --port=5433 db",
            Some("workload.command: --port leads to port 5433"),
        ),
    ] {
        check("pgbench", command, "", &[], wanted);
    }
    for name in [
        "postgresql://127.0.0.1:5433/db",
        "postgres:///db?host=/run/postgresql",
        "'dbname=db port=5433'",
        "'service=prod dbname=db'",
        "--dbname='host=192.0.2.10'",
    ] {
        let command = format!("pgbench -h localhost -p 7000 {name}");
        let wanted = "workload.command: the name of the database says where the load goes, which";
        check("pgbench", &command, "", &[], Some(wanted));
    }
    check(
        "pgbench",
        "pgbench -h localhost -p 7000 'dbname=db'",
        "",
        &[],
        None,
    );
}

#[test]
fn variables_count_where_the_line_is_silent() {
    let line = "pgbench db";
    let whole = "pgbench -h localhost -p 7000 db";
    let env = |env: &str| format!("[client]\nenv = {{ {env} }}");
    let here = env("PGHOST = \"127.0.0.1\", PGPORT = \"7000\"");
    check("pgbench", line, &here, &[], None);
    check(
        "pgbench",
        line,
        &here,
        &[("PGPORT", "1"), ("PGHOST", "192.0.2.10")],
        None,
    );
    check(
        "pgbench",
        line,
        "",
        &[("PGHOST", "localhost"), ("PGPORT", "7000")],
        None,
    );
    check(
        "pgbench",
        "env PGHOST=localhost PGPORT=7000 pgbench db",
        "",
        &[],
        None,
    );
    check(
        "pgbench",
        whole,
        "",
        &[("PGHOST", "192.0.2.10"), ("PGPORT", "1")],
        None,
    );
    let shell = "the variable PGPORT of this shell leads to port 1, on which";
    check(
        "pgbench",
        "pgbench -h localhost db",
        "",
        &[("PGPORT", "1")],
        Some(shell),
    );
    let file = "client.env: PGHOST leads to 192.0.2.10 (";
    check(
        "pgbench",
        line,
        &env("PGHOST = \"192.0.2.10\""),
        &[],
        Some(file),
    );
}

#[test]
fn libpq_has_variables_that_outrank_the_line() {
    let whole = "pgbench -h localhost -p 7000 db";
    for (name, value, wanted) in [
        // libpq takes the address, whatever the host.
        (
            "PGHOSTADDR",
            "192.0.2.10",
            "the variable PGHOSTADDR of this shell leads to 192.0.2.10",
        ),
        (
            "PGSERVICE",
            "prod",
            "the variable PGSERVICE of this shell says where the load goes",
        ),
        (
            "PGDATABASE",
            "host=192.0.2.10 dbname=x",
            "the variable PGDATABASE of this shell says where the load goes",
        ),
    ] {
        check("pgbench", whole, "", &[(name, value)], Some(wanted));
    }
    check(
        "pgbench",
        "pgbench -p 7000 db",
        "",
        &[("PGHOSTADDR", "127.0.0.1")],
        None,
    );
}

#[test]
fn other_programs_are_not_looked_at() {
    check(
        "command",
        "psql -h 192.0.2.10 db",
        "",
        &[("PGHOSTADDR", "192.0.2.10")],
        None,
    );
}
