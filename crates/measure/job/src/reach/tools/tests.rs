//! Command lines and variables with the address of an arm's server, and with other addresses.

use std::path::Path;

use saiga_experiment::file::Experiment;

use super::super::check_with_environment;
use crate::machine::ThisMachine;

/// Checks a load whose server has port 7000; `more` is added to the experiment file.
fn checked(
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
    check_with_environment(&file, &[], &ThisMachine, &inherited).map_err(|error| error.to_string())
}

/// Asserts that the load is accepted, or refused with a message that begins with `wanted`.
fn check(
    kind: &str,
    command: &str,
    more: &str,
    variables: &[(&'static str, &'static str)],
    wanted: Option<&str>,
) {
    let result = checked(kind, command, more, variables);
    match (wanted, &result) {
        (None, Ok(())) => {}
        (Some(wanted), Err(error)) if error.starts_with(wanted) => {}
        _ => panic!("{command:?} {more:?} {variables:?}: {result:?}, not {wanted:?}"),
    }
}

#[test]
fn sysbench_must_name_host_and_port_of_a_server() {
    let good = "sysbench --mysql-host=127.0.0.1 --mysql-port=7000";
    let here = "workload.command: --mysql-host points to the Unix socket of the MySQL client";
    let port =
        |port: &str| format!("workload.command: --mysql-port points to port {port}, on which");
    for (command, wanted) in [
        (format!("{good} x run"), None),
        ("sysbench cpu run".to_owned(), None),
        (
            "sysbench x run".to_owned(),
            Some("workload.command without --mysql-host points to the Unix socket of the MySQL"),
        ),
        (
            "sysbench --mysql-host=127.0.0.1 x run".to_owned(),
            Some("workload.command without --mysql-port points to port 3306, on which arm \"a\""),
        ),
        (
            "sysbench --mysql-host=localhost --mysql-port=7000 x run".to_owned(),
            Some(here),
        ),
        (
            format!("{good} --mysql-socket=/run/s x run"),
            Some(
                "workload.command: --mysql-socket points to the Unix socket /run/s, which may belong",
            ),
        ),
        (
            "nice sysbench --mysql-host=127.0.0.1,192.0.2.10 --mysql-port=7000 x run".to_owned(),
            Some("workload.command: --mysql-host points to 192.0.2.10 ("),
        ),
        (
            "sysbench --mysql_host=127.0.0.1 --mysql_port=7000,7001 x run".to_owned(),
            Some(&port("7001")),
        ),
        (
            "sysbench --db-driver=pgsql x run".to_owned(),
            Some("workload.command without --pgsql-port points to port 5432"),
        ),
        (
            "sysbench --db-driver=pgsql --pgsql-port=7000 x run".to_owned(),
            None,
        ),
        (
            "sysbench --db-driver=pgsql --pgsql-host=/run/postgresql --pgsql-port=7000 x run"
                .to_owned(),
            Some("workload.command: --pgsql-host points to the Unix socket /run/postgresql"),
        ),
    ] {
        check("sysbench", &command, "", &[], wanted);
    }
    let addressed = [("PGHOSTADDR", "192.0.2.10")];
    let by_libpq = "sysbench --db-driver=pgsql --pgsql-port=7000 x run";
    let wanted = "the variable PGHOSTADDR of this shell points to 192.0.2.10 (";
    check("sysbench", by_libpq, "", &addressed, Some(wanted));
    check("sysbench", &format!("{good} x run"), "", &addressed, None);
}

#[test]
fn options_in_the_configuration_file_of_sysbench_count() {
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
    let wanted = "workload.command: --mysql-port points to port 7001";
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
            Some("workload.command without -h points to the Unix socket in PostgreSQL's default"),
        ),
        (
            "pgbench -h /run/postgresql -p 7000 db",
            Some(
                "workload.command: -h points to the Unix socket /run/postgresql, which may belong",
            ),
        ),
        (
            "pgbench -h localhost db",
            Some("workload.command without -p points to port 5432, on which arm \"a\" starts"),
        ),
        (
            "pgbench -h192.0.2.10 -p7000 db",
            Some("workload.command: -h points to 192.0.2.10 ("),
        ),
        (
            "pgbench -h localhost --port=5433 db",
            Some("workload.command: --port points to port 5433"),
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
        let wanted = "workload.command: the name of the database names a server in a form that";
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
fn variables_apply_where_the_line_has_no_address() {
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
    let shell = "the variable PGPORT of this shell points to port 1, on which";
    check(
        "pgbench",
        "pgbench -h localhost db",
        "",
        &[("PGPORT", "1")],
        Some(shell),
    );
    let file = "client.env: PGHOST points to 192.0.2.10 (";
    check(
        "pgbench",
        line,
        &env("PGHOST = \"192.0.2.10\""),
        &[],
        Some(file),
    );
}

#[test]
fn variables_of_libpq_that_apply_despite_the_line() {
    let whole = "pgbench -h localhost -p 7000 db";
    for (name, value, wanted) in [
        // libpq prefers PGHOSTADDR to any host.
        (
            "PGHOSTADDR",
            "192.0.2.10",
            "the variable PGHOSTADDR of this shell points to 192.0.2.10",
        ),
        (
            "PGSERVICE",
            "prod",
            "the variable PGSERVICE of this shell names a server in a form",
        ),
        (
            "PGDATABASE",
            "host=192.0.2.10 dbname=x",
            "the variable PGDATABASE of this shell names a server in a form",
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
fn other_programs_are_not_checked() {
    check(
        "command",
        "psql -h 192.0.2.10 db",
        "",
        &[("PGHOSTADDR", "192.0.2.10")],
        None,
    );
}
