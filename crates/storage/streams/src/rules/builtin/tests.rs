//! The hints of the built-in sets for file names of each database.

use super::*;
use crate::hint::Hint;
use crate::rules::FilePaths;

const SHORT: Option<Hint> = Some(Hint::Short);
const MEDIUM: Option<Hint> = Some(Hint::Medium);
const LONG: Option<Hint> = Some(Hint::Long);
const EXTREME: Option<Hint> = Some(Hint::Extreme);

#[rustfmt::skip]
const NAMES: &[(&str, &str, Option<Hint>)] = &[
    ("mysql", "#ib_16384_0.dblwr", SHORT),
    ("mysql", "#ib_16384_1.bdblwr", SHORT),
    ("mysql", "#innodb_redo/#ib_redo7", MEDIUM),
    ("mysql", "#innodb_redo/#ib_redo8_tmp", MEDIUM),
    ("mysql", "ib_logfile1", MEDIUM),
    ("mysql", "ibtmp1", MEDIUM),
    ("mysql", "#innodb_temp/temp_3.ibt", MEDIUM),
    ("mysql", "#sql1a2b_3_0", MEDIUM),
    ("mysql", "shop/#sql-ib1067-42.ibd", EXTREME),
    ("mysql", "host-relay-bin.000003", MEDIUM),
    ("mysql", "relay-bin.000003", MEDIUM),
    ("mysql", "host-relay-bin-channel_2.000003", MEDIUM),
    ("mysql", "relay-bin-group@0020replication.000003", MEDIUM),
    ("mysql", "binlog.000012", MEDIUM),
    ("mysql", "mysql-bin.000012", MEDIUM),
    ("mysql", "binlog.1000000", MEDIUM),
    ("mysql", "prod.000001", MEDIUM),
    ("mysql", "logs/prod.000001", MEDIUM),
    ("mysql", "notes.123456.txt", None),
    ("mysql", "binlog.index", None),
    ("mysql", "host.err", MEDIUM),
    ("mysql", "host.err.00.json", MEDIUM),
    ("mysql", "host.log", MEDIUM),
    ("mysql", "host-slow.log", MEDIUM),
    ("mysql", "host-slow.log.1", MEDIUM),
    ("mysql", "audit.log", MEDIUM),
    ("mysql", "logs/host-slow.log.1", MEDIUM),
    ("mysql", "log/mysql/error.err", MEDIUM),
    ("mysql", "audit.20261124T010203-1.log", MEDIUM),
    ("mysql", "mysql/slow_log.CSV", MEDIUM),
    ("mysql", "shop/orders.CSV", None),
    ("mysql", ".rocksdb/000012.log", MEDIUM),
    ("mysql", ".rocksdb/MANIFEST-000005", MEDIUM),
    ("mysql", ".rocksdb/LOG.old.1764000000000000", MEDIUM),
    ("mysql", ".rocksdb/000014.sst", None),
    ("mysql", "shop.mrn.0000100", EXTREME),
    ("mysql", "undo_001", LONG),
    ("mysql", "innodb/undo_002", LONG),
    ("mysql", "shop/undo_001.ibd", EXTREME),
    ("mysql", "my.ibu", LONG),
    ("mysql", "ibdata1", LONG),
    ("mysql", "shop/orders.ibd", EXTREME),
    ("mysql", "shop/orders#p#p0.ibd", EXTREME),
    ("mysql", "mysql.ibd", EXTREME),
    ("mysql", "ib_buffer_pool", EXTREME),
    ("mysql", "auto.cnf", None),
    ("mariadb", "ibdata1", SHORT),
    ("mariadb", "ib_logfile0", MEDIUM),
    ("mariadb", "aria_log.00000001", MEDIUM),
    ("mariadb", "aria_log_control", MEDIUM),
    ("mariadb", "undo001", LONG),
    ("mariadb", "innodb/undo127", LONG),
    ("mariadb", "shop/undo001.ibd", EXTREME),
    ("mariadb", "host-bin.000001", LONG),
    ("mariadb", "prod.000001", LONG),
    ("mariadb", "prod.index", None),
    ("mariadb", "host.err", LONG),
    ("mariadb", "host-slow.log", LONG),
    ("mariadb", "server_audit.log", LONG),
    ("mariadb", "logs/general.log", LONG),
    ("mariadb", "#rocksdb/LOG.old.1", LONG),
    ("mariadb", "server_audit.log.1", LONG),
    ("mariadb", "ddl_recovery.log", LONG),
    ("mariadb", "#rocksdb/000012.log", MEDIUM),
    ("mariadb", "#rocksdb/CURRENT", LONG),
    ("mariadb", "#rocksdb/000014.sst", None),
    ("mariadb", "shop.mrn.0000100", EXTREME),
    ("mariadb", "host-relay-bin-east.000001", LONG),
    ("mariadb", "shop/orders.ibd", EXTREME),
    ("mariadb", "mysql/db.MAD", EXTREME),
    ("mariadb", "shop/#sql-alter-1f-3.ibd", EXTREME),
    ("mariadb", "#sql-temptable-1f-3-0.MAI", MEDIUM),
    ("mariadb", "shop/orders.frm", EXTREME),
    ("mariadb", "shop/#sql-alter-1f-3.frm", EXTREME),
    ("mariadb", "shop/view.frm~", EXTREME),
    ("postgres", "pg_wal/0000000100000000000000A7", SHORT),
    ("postgres", "pg_wal/xlogtemp.4711", SHORT),
    ("postgres", "pg_wal/00000002.history", None),
    ("postgres", "pg_xlog/000000010000000000000001", SHORT),
    ("postgres", "base/pgsql_tmp/pgsql_tmp99.0", SHORT),
    ("postgres", "base/pgsql_tmp/pgsql_tmp9.0.fileset/0.0", SHORT),
    ("postgres", "base/5/t3_16390", SHORT),
    ("postgres", "base/5/t12_16390.1", SHORT),
    ("postgres", "base/5/t3_16390_fsm", SHORT),
    ("postgres", "pg_tblspc/17000/PG_15_202209061/5/t3_17001_vm", SHORT),
    ("postgres", "pg_replslot/s/xid-1.spill", SHORT),
    ("postgres", "pg_xact/0000", SHORT),
    ("postgres", "pg_multixact/members/0000", SHORT),
    ("postgres", "global/pg_control", SHORT),
    ("postgres", "global/1262", LONG),
    ("postgres", "base/5/16384", LONG),
    ("postgres", "base/5/16384.1", LONG),
    ("postgres", "base/5/16384_vm", MEDIUM),
    ("postgres", "base/5/16384_fsm", MEDIUM),
    ("postgres", "pg_tblspc/17000/PG_15_202209061/5/17001", LONG),
    ("postgres", "pg_tblspc/17000/PG_15_202209061/pgsql_tmp/pgsql_tmp1.0", SHORT),
    ("postgres", "postgresql.conf", None),
    ("opengauss", "pg_xlog/000000010000000000000001", MEDIUM),
    ("opengauss", "global/pg_dw_0", SHORT),
    ("opengauss", "pg_clog/000000000000", MEDIUM),
    ("opengauss", "undo/permanent/00000.0000A", LONG),
    ("opengauss", "base/5/16384", EXTREME),
    ("opengauss", "base/5/t3_16390", MEDIUM),
    ("opengauss", "base/5/16384_fsm", LONG),
    ("redis", "appendonlydir/appendonly.aof.2.incr.aof", MEDIUM),
    ("redis", "appendonlydir/appendonly.aof.2.base.rdb", MEDIUM),
    ("redis", "temp-rewriteaof-bg-4711.aof", MEDIUM),
    ("redis", "appendonly.aof", MEDIUM),
    ("redis", "temp-4711.rdb", SHORT),
    ("redis", "dump.rdb", SHORT),
    ("rocksdb", "000012.log", SHORT),
    ("rocksdb", "MANIFEST-000005", MEDIUM),
    ("rocksdb", "LOG.old.1", MEDIUM),
    ("rocksdb", "000013.blob", LONG),
    ("rocksdb", "000014.sst", None),
];

fn place(path: &str) -> FilePaths<'_> {
    FilePaths {
        relative: Path::new(path),
        absolute: Path::new("/nowhere"),
    }
}

#[test]
fn files_of_each_database_have_their_class() {
    for (set, path, expected) in NAMES {
        let rules = find(set).unwrap_or_else(|| panic!("{set} cannot be read"));
        let found = rules.find(&place(path)).map(|(_, rule)| rule.hint);
        assert_eq!(found, *expected, "{set} {path}");
    }
}

/// `run` sets only hints: files with the hint of the doublewrite area share its reclaim units,
/// which loses most of the gain of a separate stream (docs/ftl.md).
#[test]
fn doublewrite_logs_undo_and_tables_never_share_a_hint() {
    for (set, kinds) in [
        (
            "mysql",
            [
                "#ib_16384_0.dblwr",
                "#innodb_redo/#ib_redo7",
                "undo_001",
                "shop/orders.ibd",
            ],
        ),
        (
            "mariadb",
            ["ibdata1", "ib_logfile0", "undo001", "shop/orders.ibd"],
        ),
        (
            "opengauss",
            [
                "global/pg_dw_0",
                "pg_xlog/000000010000000000000001",
                "undo/permanent/0",
                "base/5/16384",
            ],
        ),
    ] {
        let rules = find(set).unwrap();
        let hints = kinds.map(|path| Some(rules.find(&place(path)).unwrap().1.hint));
        assert_eq!(hints, [SHORT, MEDIUM, LONG, EXTREME], "{set}");
        for rule in &rules.rules {
            let is_doublewrite = rule.stream.as_deref() == Some("doublewrite");
            assert_eq!(
                rule.hint == Hint::Short,
                is_doublewrite,
                "{set} {}",
                rule.pattern
            );
        }
    }
}

/// As in the rules of astream's manual.
#[test]
fn the_system_tablespace_and_the_log_have_different_hints() {
    for set in ["mysql", "mariadb"] {
        let rules = find(set).unwrap();
        let hint = |path: &str| rules.find(&place(path)).unwrap().1.hint;
        assert_ne!(hint("ibdata1"), hint("ib_logfile0"), "{set}");
    }
}

/// Hints separate fewer kinds of files than streams, but never files of one stream.
#[test]
fn files_of_one_stream_have_one_hint() {
    for set in names() {
        let mut hints = std::collections::BTreeMap::new();
        for rule in find(set).unwrap().rules {
            let stream = rule.stream.clone().unwrap();
            let hint = *hints.entry(stream.clone()).or_insert(rule.hint);
            assert_eq!(rule.hint, hint, "{set} {stream}");
        }
    }
}

#[test]
fn every_set_has_a_description() {
    for name in names() {
        assert!(find(name).unwrap().about.is_some(), "{name}");
    }
}
