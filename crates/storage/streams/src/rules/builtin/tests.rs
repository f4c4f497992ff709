//! What the built-in sets say of files as the databases name them.

use super::*;
use crate::hint::Hint;
use crate::rules::Place;

const SHORT: Option<Hint> = Some(Hint::Short);
const MEDIUM: Option<Hint> = Some(Hint::Medium);
const LONG: Option<Hint> = Some(Hint::Long);
const EXTREME: Option<Hint> = Some(Hint::Extreme);

#[rustfmt::skip]
const NAMES: &[(&str, &str, Option<Hint>)] = &[
    ("mysql", "#ib_16384_0.dblwr", SHORT),
    ("mysql", "#ib_16384_1.bdblwr", SHORT),
    ("mysql", "#innodb_redo/#ib_redo7", SHORT),
    ("mysql", "#innodb_redo/#ib_redo8_tmp", SHORT),
    ("mysql", "ib_logfile1", SHORT),
    ("mysql", "ibtmp1", SHORT),
    ("mysql", "#innodb_temp/temp_3.ibt", SHORT),
    ("mysql", "#sql1a2b_3_0", SHORT),
    ("mysql", "shop/#sql-ib1067-42.ibd", LONG),
    ("mysql", "host-relay-bin.000003", SHORT),
    ("mysql", "relay-bin.000003", SHORT),
    ("mysql", "binlog.000012", MEDIUM),
    ("mysql", "mysql-bin.000012", MEDIUM),
    ("mysql", "binlog.index", None),
    ("mysql", "undo_001", MEDIUM),
    ("mysql", "my.ibu", MEDIUM),
    ("mysql", "ibdata1", LONG),
    ("mysql", "shop/orders.ibd", LONG),
    ("mysql", "shop/orders#p#p0.ibd", LONG),
    ("mysql", "mysql.ibd", EXTREME),
    ("mysql", "ib_buffer_pool", EXTREME),
    ("mysql", "auto.cnf", None),
    ("mariadb", "ibdata1", SHORT),
    ("mariadb", "ib_logfile0", SHORT),
    ("mariadb", "aria_log.00000001", SHORT),
    ("mariadb", "aria_log_control", SHORT),
    ("mariadb", "undo001", MEDIUM),
    ("mariadb", "host-bin.000001", MEDIUM),
    ("mariadb", "shop/orders.ibd", LONG),
    ("mariadb", "mysql/db.MAD", LONG),
    ("mariadb", "shop/#sql-alter-1f-3.ibd", LONG),
    ("mariadb", "#sql-temptable-1f-3-0.MAI", SHORT),
    ("mariadb", "shop/orders.frm", EXTREME),
    ("mariadb", "shop/#sql-alter-1f-3.frm", EXTREME),
    ("mariadb", "shop/view.frm~", EXTREME),
    ("postgres", "pg_wal/0000000100000000000000A7", SHORT),
    ("postgres", "pg_wal/xlogtemp.4711", SHORT),
    ("postgres", "pg_wal/00000002.history", None),
    ("postgres", "pg_xlog/000000010000000000000001", SHORT),
    ("postgres", "base/pgsql_tmp/pgsql_tmp99.0", SHORT),
    ("postgres", "base/pgsql_tmp/pgsql_tmp9.0.fileset/0.0", SHORT),
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
    ("opengauss", "pg_xlog/000000010000000000000001", SHORT),
    ("opengauss", "global/pg_dw_0", SHORT),
    ("opengauss", "pg_clog/000000000000", SHORT),
    ("opengauss", "undo/permanent/00000.0000A", MEDIUM),
    ("opengauss", "base/5/16384", LONG),
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

fn place(path: &str) -> Place<'_> {
    Place {
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

/// Sharing a reclaim unit with the log undoes most of what a stream of its own gains (docs/streams.md).
#[test]
fn doublewrite_never_shares_a_stream_with_the_log() {
    for (set, doublewrite, log) in [
        ("mysql", "#ib_16384_0.dblwr", "#innodb_redo/#ib_redo7"),
        ("mariadb", "ibdata1", "ib_logfile0"),
        (
            "opengauss",
            "global/pg_dw_0",
            "pg_xlog/000000010000000000000001",
        ),
    ] {
        let rules = find(set).unwrap();
        let stream = |path: &str| rules.find(&place(path)).unwrap().1.stream.clone().unwrap();
        assert_ne!(stream(doublewrite), stream(log), "{set}");
    }
}

#[test]
fn every_set_says_what_it_is_for() {
    for name in names() {
        assert!(find(name).unwrap().about.is_some(), "{name}");
    }
}
