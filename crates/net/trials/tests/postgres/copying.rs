//! Bulk data in both directions: COPY, and a whole database by pg_dump.

use std::{fmt::Write as _, fs};

use saiga_trials::{
    bounded,
    parity::Arm,
    postgres::{Account, Server},
    scale::{Rng, by_scale, seed},
};

use crate::{PAIRS, is_joined, joined_pairs, some_pairs};

/// A dump without the lines that protect a restore by a random word.
fn dump_of(server: &Server, arm: Arm, database: &str) -> String {
    let dump = server.must("pg_dump", arm, &[database]);
    let guard = |line: &&str| line.starts_with("\\restrict") || line.starts_with("\\unrestrict");
    dump.lines()
        .filter(|line| !guard(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Lines of a number and a text of random length, `bytes` in total or a little more.
fn table_of(bytes: usize) -> String {
    let mut rng = Rng::new(seed(21));
    let mut text = String::with_capacity(bytes + 1000);
    let mut i = 0;
    while text.len() < bytes {
        let fill = usize::try_from(rng.below(700)).expect("small");
        writeln!(text, "{i}\t{:016x}{}", rng.next_u64(), "z".repeat(fill)).expect("memory");
        i += 1;
    }
    text
}

#[test]
fn copy_carries_every_byte_both_ways() {
    let table = table_of(by_scale(12, 128) << 20);
    for (server_arm, arm) in PAIRS {
        let server = Server::start(server_arm, &[]);
        let (from, to) = (server.folder().join("from"), server.folder().join("to"));
        fs::write(&from, &table).expect("space for the table");
        let mut client = server.client(arm);
        client.warm();
        client.ask("create unlogged table bulk (i int, t text);");
        client.ask(&format!("\\copy bulk from '{}'", from.display()));
        assert_eq!(
            client.ask("select count(*), sum(length(t)) from bulk;"),
            format!("{}|{}", table.lines().count(), sum_of_lengths(&table))
        );
        client.ask(&format!(
            "\\copy (select * from bulk order by i) to '{}'",
            to.display()
        ));
        let back = fs::read(&to).expect("the copy");
        assert!(
            back == table.as_bytes(),
            "{} bytes came back, not the same",
            back.len()
        );
        client.ask(&format!(
            "\\copy bulk to '{}' (format binary)",
            to.display()
        ));
        client.ask("create unlogged table again (i int, t text);");
        client.ask(&format!(
            "\\copy again from '{}' (format binary)",
            to.display()
        ));
        assert_eq!(client.ask("table bulk except table again;"), "");
        if is_joined((server_arm, arm)) {
            client.assert_upgraded();
        }
    }
}

fn sum_of_lengths(table: &str) -> usize {
    let texts = table.lines().filter_map(|line| line.split_once('\t'));
    texts.map(|(_, text)| text.len()).sum()
}

/// A failing COPY: the server stops reading and reports the error while the client still sends.
#[test]
fn a_copy_that_fails_half_way_leaves_the_session_alive() {
    crate::same_story(some_pairs(), |server_arm, arm| {
        let server = Server::start(server_arm, &[]);
        let mut table = table_of(4 << 20);
        let middle = table[..2 << 20].rfind('\n').expect("many lines");
        table.insert_str(middle, "\nthis is not a number\tx");
        let from = server.folder().join("from");
        fs::write(&from, &table).expect("space for the table");
        let mut client = server.client(arm);
        client.warm();
        client.ask("create table bulk (i int, t text);");
        let complaint = client.ask(&format!("\\copy bulk from '{}'", from.display()));
        complaint + "\n" + &client.ask("select count(*) from bulk;")
    });
}

#[test]
fn a_dump_fills_another_database() {
    for &(server_arm, arm) in joined_pairs() {
        let server = Server::start(server_arm, &[]);
        server.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
        server.query("create database copy;");
        let mut command = server.command("psql", Account::Ours, arm);
        let psql = command.get_program().to_owned();
        let dump = server.command("pg_dump", Account::Ours, arm);
        command = std::process::Command::new("sh");
        server.set_environment(&mut command, Account::Ours, arm);
        command
            .args(["-c", "\"$0\" postgres | \"$1\" -Xq -v ON_ERROR_STOP=1 copy"])
            .arg(dump.get_program())
            .arg(psql);
        let outcome = bounded::run(command, std::time::Duration::from_secs(60));
        assert!(outcome.is_success(), "{outcome:?}");
        let (first, second) = (
            dump_of(&server, arm, "postgres"),
            dump_of(&server, arm, "copy"),
        );
        assert!(
            first.len() > 5 << 20,
            "only {} bytes were dumped",
            first.len()
        );
        assert!(first == second, "the copy differs");
    }
}
