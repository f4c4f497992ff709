//! Recognises the database of a trace by the names of its files.

use saiga_ftl::trace::Trace;

/// Parts of names that only one database has. A leading `/` means the start of a directory or file
/// name.
const MARKS: [(&str, &[&str]); 6] = [
    ("mysql", &[".dblwr", "/#innodb_redo/", "/mysql.ibd"]),
    ("mariadb", &["/aria_log"]),
    ("opengauss", &["/pg_csnlog/", "/global/pg_dw"]),
    ("postgres", &["/pg_wal/", "/pg_xact/"]),
    (
        "redis",
        &[
            "/appendonlydir/",
            "/dump.rdb",
            "/temp-rewriteaof",
            "/appendonly.aof",
        ],
    ),
    ("rocksdb", &[".sst", "/MANIFEST-"]),
];

/// Returns the built-in rule set of the database that wrote the trace; `None` if it is unknown or
/// there are several.
#[must_use]
pub fn database_of(trace: &Trace) -> Option<&'static str> {
    let names: Vec<String> = trace
        .files
        .iter()
        .map(|name| format!("/{}", trace.place(name)))
        .collect();
    let has = |marks: &&[&str]| {
        marks
            .iter()
            .any(|mark| names.iter().any(|name| name.contains(mark)))
    };
    let mut found = MARKS.iter().filter(|(_, marks)| has(marks));
    let (database, _) = found.next()?;
    found.next().is_none().then_some(*database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_recognised_by_their_names() {
        for (names, expected) in [
            (&["ib_logfile0", "ibdata1"][..], None),
            (&["ib_logfile0", "#ib_16384_0.dblwr"], Some("mysql")),
            (&["/db/aria_log_control", "/db/ibdata1"], Some("mariadb")),
            (&["pg_wal/000000010000000000000001"], Some("postgres")),
            (
                &["pg_xlog/000000010000000000000001", "pg_csnlog/0"],
                Some("opengauss"),
            ),
            (&["/r/dump.rdb"], Some("redis")),
            (&["000012.sst"], Some("rocksdb")),
            (&["a/000012.sst", "b/dump.rdb"], None),
            (&[], None),
        ] {
            let files = names.iter().map(|name| (*name).to_owned()).collect();
            let trace = Trace {
                files,
                ..Trace::default()
            };
            assert_eq!(database_of(&trace), expected, "{names:?}");
        }
    }
}
