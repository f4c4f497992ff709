//! `liblstack.so`: the library under Gazelle's name accelerates only the program that
//! `GAZELLE_BIND_PROCNAME` names, by its file or by the name it was started by.

use saiga_status::Flags;
use saiga_trials::{census::Census, library};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether `cat`, started as `program`, may upgrade connections.
fn accelerates(folder: &Path, program: &Path, bound: Option<&str>) -> bool {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", folder.join("liblstack.so"))
        .env_remove("GAZELLE_BIND_PROCNAME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(name) = bound {
        command.env("GAZELLE_BIND_PROCNAME", name);
    }
    let mut child = command.spawn().expect("cat");
    let mut echo = [0; 3];
    child
        .stdin
        .as_mut()
        .expect("a pipe")
        .write_all(b"up\n")
        .expect("cat reads");
    child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut echo)
        .expect("cat answers");
    let shown = Census::shown(child.id());
    drop(child.stdin.take());
    assert!(child.wait().expect("cat ends").success());
    assert!(shown.flags.contains(Flags::LSTACK));
    shown.flags.contains(Flags::ENABLED)
}

#[test]
fn only_the_named_program_is_accelerated() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let folder = folder.path();
    std::fs::copy(library::path(), folder.join("liblstack.so")).expect("a copy");
    let cat = Path::new("/bin/cat");
    let other_name = folder.join("redis-server");
    symlink(cat, &other_name).expect("a link");
    for (program, bound, expected) in [
        (cat, Some("cat"), true),
        (cat, Some("redis-server"), false),
        (cat, None, false),
        (other_name.as_path(), Some("redis-server"), true),
        (other_name.as_path(), Some("cat"), true),
        (other_name.as_path(), Some("mysqld"), false),
    ] {
        let got = accelerates(folder, program, bound);
        assert_eq!(got, expected, "{} bound to {bound:?}", program.display());
    }
}
