//! Simulated devices that need more memory than this host has.

use std::fs;
use std::process::Command;

use crate::support::{Installation, said, text};

/// One line of a trace can require more memory than is available, beside a running database.
#[test]
fn devices_that_need_too_much_memory_are_refused() {
    let saiga = Installation::bare();
    let head = "# saiga block trace 1\nt_ns,lba,len,op,file\n";
    let rows = [
        ("W", "1,0,8796093022208,W,0=/db/t.ibd\n"),
        ("P", "0,0,8796093022208,P,0=/db/t.ibd\n1,0,16384,W,0\n"),
    ];
    let mut calls = vec![["simulate", "--uniform", "--pages", "3000000000"].map(str::to_owned)];
    for (name, row) in rows {
        let path = saiga.path(name);
        fs::write(&path, format!("{head}{row}")).unwrap();
        for verb in ["simulate", "suggest"] {
            calls.push([verb, "--trace", text(&path), "--seed=1"].map(str::to_owned));
        }
    }
    for words in calls {
        let mut command = Command::new("prlimit");
        command.arg("--as=2147483648").arg(saiga.path("bin/saiga"));
        let out = said(command.arg("streams").args(&words));
        assert_eq!(out.code, Some(2), "{words:?}: {out:?}");
        let expected = "GiB are available; simulate larger pages (--page-bytes)";
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
    }
}
