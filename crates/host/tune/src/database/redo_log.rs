//! The size of InnoDB's redo log, which servers set in different ways.
//!
//! MySQL 8.0.30 and later: `innodb_redo_log_capacity` is the size of all files; the older variables
//! still exist and are ignored. Earlier versions: `innodb_log_file_size` is the size of each of
//! `innodb_log_files_in_group` files. MariaDB 10.5 and later has one file.

use super::diff::Settings;
use super::{Wanted, size, value};

pub(super) const CAPACITY: &str = "innodb_redo_log_capacity";
pub(super) const FILE_SIZE: &str = "innodb_log_file_size";
const FILES: &str = "innodb_log_files_in_group";

/// Replaces the size and the number of files by their product, unless the server uses both.
pub(super) fn of_server(running: &Settings, wanted: &[Wanted]) -> Vec<Wanted> {
    let named = |name| wanted.iter().find(|wanted| wanted.name == name);
    let uses_files = !running.contains_key(CAPACITY) && has_group(running);
    let mut all = wanted.to_vec();
    let Some(file) = named(FILE_SIZE).filter(|_| !uses_files) else {
        return all;
    };
    let files = named(FILES).map_or(1, |files| value::number(&files.value).unwrap_or(1));
    let Some(bytes) = value::number(&file.value) else {
        return all;
    };
    let capacity = size(bytes.saturating_mul(files), ["M", "G"]);
    all.retain(|wanted| wanted.name != FILES);
    for wanted in all.iter_mut().filter(|wanted| wanted.name == FILE_SIZE) {
        (wanted.name, wanted.value) = (CAPACITY.to_owned(), capacity.clone());
    }
    all
}

/// The size of each file that gives a capacity.
pub(super) fn file_size(running: &Settings, capacity: &str) -> Option<String> {
    let files = running.get(FILES).filter(|_| has_group(running));
    match files.map_or(Some(1), |files| value::number(&files.value))? {
        0 | 1 => Some(capacity.to_owned()),
        files => Some(size(value::number(capacity)? / files, ["M", "G"])),
    }
}

/// Whether the log has as many files as the variable says. MariaDB 10.5 has the variable and
/// ignores it.
fn has_group(running: &Settings) -> bool {
    let version = running.get("version").map_or("", |version| &version.value);
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let is_at_least_10_5 = parts.next().flatten() > Some(10)
        || version.starts_with("10.") && parts.next().flatten() >= Some(5);
    let is_single = version.to_ascii_lowercase().contains("mariadb") && is_at_least_10_5;
    running.contains_key(FILES) && !is_single
}

#[cfg(test)]
mod tests {
    use super::super::diff::{Running, diff};
    use super::super::procedures::like;
    use super::super::{Engine, GIB, minimum};
    use super::*;

    /// What the server should set about its redo log.
    fn shown(server: &[(&str, &str)], wanted: &[Wanted]) -> Vec<String> {
        let running = |(name, value): &(&str, &str)| {
            let running = Running {
                value: (*value).to_owned(),
                unit: None,
                from: None,
                needs_restart: true,
            };
            ((*name).to_owned(), running)
        };
        let server: Settings = server.iter().map(running).collect();
        let found = diff(Engine::MySql, &server, wanted, &[], 512 * GIB);
        let line = |name: &str, value: &str| format!("{name}={value}");
        let changes = found.changes.iter();
        changes
            .map(|change| line(&change.wanted.name, &change.wanted.value))
            .filter(|line| line.contains("log"))
            .chain(found.same.iter().map(|name| format!("{name} stays")))
            .collect()
    }

    const MYSQL_8_0_30: [(&str, &str); 4] = [
        ("innodb_log_file_size", "50331648"),
        ("innodb_log_files_in_group", "2"),
        ("innodb_redo_log_capacity", "104857600"),
        ("version", "8.0.36"),
    ];
    const MYSQL_5_7: [(&str, &str); 3] = [
        ("innodb_log_file_size", "50331648"),
        ("innodb_log_files_in_group", "4"),
        ("version", "5.7.44-log"),
    ];
    const MARIADB_10_5: [(&str, &str); 3] = [
        ("innodb_log_file_size", "100663296"),
        ("innodb_log_files_in_group", "4"),
        ("version", "10.5.29-MariaDB"),
    ];
    const MARIADB_11: [(&str, &str); 2] = [
        ("innodb_log_file_size", "100663296"),
        ("version", "11.4.2-MariaDB-log"),
    ];

    #[test]
    fn a_capacity_is_divided_between_the_files_of_the_server() {
        let wanted = [minimum(CAPACITY, "16G", "")];
        for (server, expected) in [
            (&MYSQL_8_0_30[..], "innodb_redo_log_capacity=16G"),
            (&MYSQL_5_7, "innodb_log_file_size=4G"),
            (&MARIADB_10_5, "innodb_log_file_size=16G"),
            (&MARIADB_11, "innodb_log_file_size=16G"),
        ] {
            assert_eq!(shown(server, &wanted), [expected], "{server:?}");
        }
        let set = [
            ("innodb_log_file_size", "4294967296"),
            ("innodb_log_files_in_group", "4"),
        ];
        assert_eq!(shown(&set, &wanted), ["innodb_log_file_size stays"]);
        let mariadb_10_4 = [("version", "10.4.34-MariaDB"), MYSQL_5_7[0], MYSQL_5_7[1]];
        assert_eq!(shown(&mariadb_10_4, &wanted), ["innodb_log_file_size=4G"]);
    }

    /// Procedure 001 has 32 files of 2 GiB.
    #[test]
    fn the_files_of_a_procedure_are_one_capacity_where_the_server_has_one() {
        let wanted = like("procedure-001").unwrap();
        for (server, expected) in [
            (&MYSQL_8_0_30[..], &["innodb_redo_log_capacity=64G"][..]),
            (
                &MYSQL_5_7,
                &["innodb_log_file_size=2048M", "innodb_log_files_in_group=32"],
            ),
            (&MARIADB_10_5, &["innodb_log_file_size=64G"]),
            (&MARIADB_11, &["innodb_log_file_size=64G"]),
        ] {
            assert_eq!(shown(server, &wanted), expected, "{server:?}");
        }
    }
}
