//! A module that brings liburing with it, loaded for itself: our hooks stand before liburing's
//! functions, which are not behind us in the program's own list of libraries.

use std::{fs, path::Path, process::Command};

use saiga_trials::{
    bounded::{self, Ending},
    parity::{self, Arm},
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
        parity::dress(&mut command, arm);
        command.current_dir(folder.path());
        let outcome = bounded::run(command, std::time::Duration::from_secs(30));
        assert_eq!(outcome.ending, Ending::Exited(0), "{arm:?}: {outcome:?}");
    }
}
