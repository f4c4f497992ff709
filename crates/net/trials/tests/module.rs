//! liburing as on other distributions: loaded by a module (dlopen), so that its functions are not
//! behind ours in the program's own list of libraries; and built on `syscall(2)`.

use std::{fs, path::Path, process::Command};

use saiga_trials::{
    bounded::{self, Ending},
    parity::{self, Arm},
    program,
};

const MODULE: &str = r"
#include <liburing.h>
int use_a_ring(void)
{
    struct io_uring ring;
    int made = io_uring_queue_init(8, &ring, 0);
    if (made != 0)
        return made;
    io_uring_prep_nop(io_uring_get_sqe(&ring));
    int submitted = io_uring_submit(&ring);
    io_uring_queue_exit(&ring);
    return submitted;
}
";

const PROGRAM: &str = r#"
#include <dlfcn.h>
int main(void)
{
    void *module = dlopen("./module.so", RTLD_NOW | RTLD_LOCAL);
    int (*use_a_ring)(void) = module ? (int (*)(void))dlsym(module, "use_a_ring") : 0;
    return use_a_ring && use_a_ring() == 1 ? 0 : 1;
}
"#;

/// Makes rings like liburing before 2.2, or built with `--use-libc`.
const OLD: &str = r"
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <liburing.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    struct io_uring_params params = {.flags = flags};
    memset(ring, 0, sizeof *ring);
    ring->ring_fd = (int)syscall(SYS_io_uring_setup, entries, &params);
    return ring->ring_fd < 0 ? -1 : 0;
}
";

const WITH_OLD: &str = r#"
#include "trial.h"
#include <liburing.h>
int main(void)
{
    struct io_uring ring;
    if (io_uring_queue_init(8, &ring, 0) != 0)
        return 1;
    int listener = listen_at("127.0.0.1");
    int one = connect_at("127.0.0.1", port_of(listener)), other = accept_at(listener);
    prove_alone(one, other); /* enough for an upgrade */
    prove_alone(one, other);
    return 0;
}
"#;

fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) {
    let file = folder.join(name).with_extension("c");
    fs::write(&file, source).expect("room in the folder");
    let status = Command::new("cc")
        .arg("-o")
        .arg(folder.join(name))
        .arg(&file)
        .args(flags)
        .status();
    assert!(status.expect("tools/setup installs cc").success(), "{name}");
}

#[test]
fn a_module_s_own_liburing_is_found() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let flags = ["-shared", "-fPIC", "-luring"];
    compile(folder.path(), "module.so", MODULE, &flags);
    compile(folder.path(), "program", PROGRAM, &["-ldl"]);
    for arm in [Arm::Kernel, Arm::Library] {
        let mut command = Command::new(folder.path().join("program"));
        parity::set_environment(&mut command, arm);
        command.current_dir(folder.path());
        let outcome = bounded::run(command, std::time::Duration::from_secs(30));
        assert_eq!(outcome.ending, Ending::Exited(0), "{arm:?}: {outcome:?}");
    }
}

/// Requests to rings of liburing are seen however liburing makes the rings: the process keeps its
/// channels.
#[test]
fn a_ring_of_an_old_liburing_is_seen() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    compile(folder.path(), "old.so", OLD, &["-shared", "-fPIC"]);
    let headers = program::folder().join("c");
    let include = format!("-I{}", headers.display());
    let library = folder.path().join("old.so").display().to_string();
    compile(folder.path(), "program", WITH_OLD, &[&include, &library]);
    let mut command = Command::new(folder.path().join("program"));
    parity::set_environment(&mut command, Arm::Library);
    command.env("TRIAL_PROOF", folder.path().join("proof"));
    let outcome = bounded::run(command, std::time::Duration::from_secs(30));
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    let proofs = fs::read_to_string(folder.path().join("proof")).expect("two proofs");
    let last = proofs.lines().last().expect("two proofs");
    assert!(last.starts_with("moved"), "{proofs}");
}
