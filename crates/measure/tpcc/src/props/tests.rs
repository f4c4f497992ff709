//! Tests with props files like those in use.

use super::*;
use crate::spec::deck::Kind;

/// A file with the keys and the layout of BenchmarkSQL 5.0's sample for PostgreSQL.
const POSTGRES: &str = "\
db=postgres
driver=org.postgresql.Driver
conn=jdbc:postgresql://localhost:5432/benchmarksql
user=benchmarksql
password=PWbmsql

warehouses=1
loadWorkers=4

terminals=1
//To run specified transactions per terminal- runMins must equal zero
runTxnsPerTerminal=10
//To run for specified minutes- runTxnsPerTerminal must equal zero
runMins=0
//Number of total transactions per minute
limitTxnsPerMin=300

//Set to true to run in 4.x compatible mode. Set to false to use the
//entire configured database evenly.
terminalWarehouseFixed=true

//The following five values must add up to 100
newOrderWeight=45
paymentWeight=43
orderStatusWeight=4
deliveryWeight=4
stockLevelWeight=4

resultDirectory=my_result_%tY-%tm-%td_%tH%tM%tS
osCollectorScript=./misc/os_collector_linux.py
osCollectorInterval=1
//osCollectorSSHAddr=user@dbhost
osCollectorDevices=net_eth0 blk_sda
";

/// From operators' documentation: MySQL with 300 terminals, with its trailing blanks.
const MYSQL: &str = "db=mysql\r\ndriver=com.mysql.cj.jdbc.Driver\r\n\
conn=jdbc:mysql://192.168.1.2:3306/tpcc?useSSL=false&useServerPrepStmts=true&rewriteBatchedStatements=true\r\n\
user=root\r\npassword=123456\r\nprofile=/etc/my.cnf\r\ndata=/data/mysql/data\r\nbackup=/data/mysql/backup\r\n\
warehouses=1000\r\nterminals=300 \r\nrunMins=10\r\nrunTxnsPerTerminal=0\r\nloadWorkers=100\r\n\
limitTxnsPerMin=1000000000\r\nterminalWarehouseFixed=true\r\nnewOrderWeight=45\r\npaymentWeight=43\r\n\
orderStatusWeight=4\r\ndeliveryWeight=4\r\nstockLevelWeight=4\r\n";

fn parse(text: &str) -> Result<Props, PropsError> {
    Props::parse(PathBuf::from("props.conf"), text)
}

fn problems(text: &str) -> Vec<String> {
    match parse(text) {
        Err(PropsError::Invalid { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

/// The sample with some lines replaced.
fn changed(lines: &[&str]) -> String {
    let key = |line: &str| line.split('=').next().unwrap().to_owned();
    let replaced: Vec<String> = lines.iter().map(|line| key(line)).collect();
    let kept = POSTGRES
        .lines()
        .filter(|line| !replaced.contains(&key(line)));
    kept.chain(lines.iter().copied())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_sample_for_postgres_is_parsed() {
    let props = parse(POSTGRES).unwrap();
    assert_eq!((props.url.engine, props.url.port), (Engine::Postgres, 5432));
    assert_eq!(
        (props.user.as_str(), props.password.reveal()),
        ("benchmarksql", "PWbmsql")
    );
    assert_eq!((props.warehouses, props.load_workers), (1, 4));
    let run = props.run.unwrap();
    assert_eq!((run.terminals, run.length), (1, Length::PerTerminal(10)));
    assert_eq!((run.limit_per_min, run.fixed_warehouse), (Some(300), true));
    assert_eq!(
        run.result_directory.as_deref(),
        Some("my_result_%tY-%tm-%td_%tH%tM%tS")
    );
    assert_eq!(run.devices, ["net_eth0", "blk_sda"]);
    let shares = Kind::ALL.map(|kind| run.mix.share(kind));
    assert_eq!(shares, [45.0, 43.0, 4.0, 4.0, 4.0]);
    assert_eq!(props.entries.len(), 21);
}

#[test]
fn a_password_is_masked_in_debug_output() {
    let props = parse(POSTGRES).unwrap();
    let shown = format!("{props:?}");
    assert!(
        shown.contains("benchmarksql") && !shown.contains("PWbmsql"),
        "{shown}"
    );
}

#[test]
fn keys_of_forks_blanks_and_line_ends_are_parsed() {
    let props = parse(MYSQL).unwrap();
    assert_eq!(props.url.param("rewriteBatchedStatements"), Some("true"));
    let run = props.run.unwrap();
    assert_eq!((run.terminals, run.length), (300, Length::Minutes(10)));
    assert_eq!(
        props.hints.data.as_deref(),
        Some(Path::new("/data/mysql/data"))
    );
    assert_eq!(
        props.hints.backup.as_deref(),
        Some(Path::new("/data/mysql/backup"))
    );
    assert_eq!(
        props.hints.profile.as_deref(),
        Some(Path::new("/etc/my.cnf"))
    );
}

#[test]
fn a_file_for_a_load_needs_no_run() {
    let text = "conn=jdbc:sqlite:tpcc.db\nwarehouses=2\nfileLocation=/tmp/csv/\nloadidbegin=2\nloadidend=2\n";
    let props = parse(text).unwrap();
    assert_eq!(props.run, None);
    assert_eq!(
        (props.db.as_str(), props.load_range),
        ("sqlite", Some((2, 2)))
    );
    let csv = props.csv.unwrap();
    assert_eq!(
        (csv.prefix.as_str(), csv.null.as_str()),
        ("/tmp/csv/", "NULL")
    );
}

#[test]
fn without_weights_the_mix_is_the_deck_of_the_specification() {
    let text = "conn=jdbc:sqlite:t\nwarehouses=2\nterminals=3\nrunMins=1\n";
    let run = parse(text).unwrap().run.unwrap();
    assert_eq!((run.mix, run.limit_per_min), (Mix::SPECIFIED, None));
    assert_eq!((run.fixed_warehouse, run.result_directory), (true, None));
}

#[test]
fn contradictions_are_reported_with_their_lines() {
    let over = problems(&changed(&["paymentWeight=90", "newOrderWeight=0"]));
    assert_eq!(over.len(), 1);
    assert!(
        over[0].ends_with(
            "newOrderWeight and the other weights add up to 102; reduce them to at most 100"
        ),
        "{over:?}"
    );
    let over = problems(&changed(&["newOrderWeight=46"]));
    assert!(over[0].contains("add up to 101"), "{over:?}");
    let both = problems(&changed(&["runMins=5"]));
    assert!(
        both[0].contains("runMins and runTxnsPerTerminal are both given"),
        "{both:?}"
    );
    let neither = problems(&changed(&["runTxnsPerTerminal=0"]));
    assert!(neither[0].contains("both zero or missing"), "{neither:?}");
    let many = problems(&changed(&["terminals=11"]));
    assert!(
        many[0]
            .contains("11 terminals are too many: the limit is ten for each warehouse, 10 in all"),
        "{many:?}"
    );
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_lines() {
    let text = "warehouses=x\nterminal=3\nconn=jdbc:mysql://h:1/t\npaymentweight=3\nfoo=1\nterminalWarehouseFixed=ja\n\
                terminals=1\nrunMins=1\n";
    assert_eq!(
        problems(text),
        [
            "line 1: warehouses is \"x\", not a whole number from 1",
            "line 2: unknown key terminal (did you mean terminals?)",
            "line 4: unknown key paymentweight (did you mean paymentWeight?)",
            "line 5: unknown key foo",
            "line 6: terminalWarehouseFixed is \"ja\", but must be true or false",
        ]
    );
    assert_eq!(
        problems("user=a\n"),
        ["conn is missing", "warehouses is missing"]
    );
    let escape = "line 1: \\u12 is not a character; four hexadecimal digits follow \\u";
    assert_eq!(problems("conn=\\u12\n"), [escape]);
}

#[test]
fn a_missing_file_is_named() {
    let error = Props::read(Path::new("/no/such/props")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read /no/such/props: "),
        "{error}"
    );
}

#[test]
fn a_password_in_the_url_is_used_and_masked() {
    let text = "conn=jdbc:mysql://h/t?user=me&password=secret\nwarehouses=1\n";
    let props = parse(text).unwrap();
    assert_eq!(
        (props.user.as_str(), props.password.reveal()),
        ("me", "secret")
    );
    assert!(!format!("{props:?}").contains("secret"), "{props:?}");
    let both = parse(&format!("{text}user=you\npassword=other\n")).unwrap();
    assert_eq!(
        (both.user.as_str(), both.password.reveal()),
        ("you", "other")
    );
}

#[test]
fn a_toml_file_is_equivalent() {
    let text = "[database]\nurl = \"jdbc:sqlite:t.db\"\nwarehouses = 3\n[load]\nworkers = 2\n\
                [run]\nterminals = 8\nfor = \"90s\"\n";
    let props = Props::parse(PathBuf::from("t.toml"), text).unwrap();
    assert_eq!((props.warehouses, props.load_workers), (3, 2));
    assert_eq!(props.run.unwrap().terminals, 8);
    assert_eq!(props.options, ["--for=90s"]);
    // The copy does not contain the placeholder `runMins`.
    let keys: Vec<&str> = props.entries.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["conn", "loadWorkers", "terminals", "warehouses"]);
}

#[test]
fn problems_of_a_toml_file_have_its_key_names() {
    let text = "[database]\nwarehouses = 1\n[run]\nterminals = 11\n";
    let said = Props::parse(PathBuf::from("t.toml"), text)
        .unwrap_err()
        .to_string();
    assert!(said.contains("database.url is missing"), "{said}");
    assert!(
        said.contains("line 4: run.terminals 11 terminals are too many"),
        "{said}"
    );
    assert!(
        said.contains("run.minutes and runTxnsPerTerminal are both zero"),
        "{said}"
    );
}
