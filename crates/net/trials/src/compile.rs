//! Compiles the C programs, each variant once per change of its source.
//!
//! Results are in the crate's own build folder, where other users cannot write.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, OnceLock},
};

use crate::program::{self, Program, Variant};

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-result"];

/// The executable of `program` in `variant`.
///
/// # Panics
/// If the compiler fails; its message is in the panic.
pub fn program(program: &Program, variant: Variant) -> PathBuf {
    let (suffix, define) = match variant {
        Variant::Plain => ("plain", "-U_FORTIFY_SOURCE"),
        Variant::Fortified => ("fortified", "-D_FORTIFY_SOURCE=2"),
    };
    let mut flags = vec!["-O1", "-g", "-pthread", define];
    flags.extend(program.flags.iter().map(String::as_str));
    let stem = program
        .source
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("program");
    compile(&program.source, &format!("{stem}-{suffix}"), &flags)
}

/// The executable of the tool `programs/tools/NAME.c`.
///
/// # Panics
/// If the compiler fails.
pub fn tool(name: &str) -> PathBuf {
    let source = program::folder().join("tools").join(format!("{name}.c"));
    compile(
        &source,
        &format!("tool-{name}"),
        &["-O1", "-g", "-pthread", "-D_FORTIFY_SOURCE=2"],
    )
}

/// The shared object that Python programs use for direct system calls.
///
/// # Panics
/// If the compiler fails.
pub fn helper() -> PathBuf {
    let source = program::folder().join("tools").join("witness.c");
    compile(&source, "witness.so", &["-O1", "-shared", "-fPIC"])
}

/// Compiles `source` unless the result is newer. One lock per result: tests of a process share
/// results.
fn compile(source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    static LOCKS: OnceLock<Mutex<HashMap<String, Arc<Mutex<()>>>>> = OnceLock::new();
    let lock = {
        let mut locks = LOCKS
            .get_or_init(Mutex::default)
            .lock()
            .expect("no holder panics");
        Arc::clone(locks.entry(name.to_owned()).or_default())
    };
    // A compiler error under this lock is reported by the first caller.
    let _held = lock
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = Path::new(env!("OUT_DIR")).join("programs");
    fs::create_dir_all(&folder).expect("the build folder is writable");
    let result = folder.join(name);
    if is_fresh(&result, source) {
        return result;
    }
    let fresh = folder.join(format!("{name}.{}", std::process::id()));
    let include = program::folder().join("c");
    let output = Command::new("cc")
        .args(WARNINGS)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(&fresh)
        .arg(source)
        .args(flags)
        .output()
        .unwrap_or_else(|error| panic!("cannot start cc ({error}); apt-get install gcc"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cc failed on {}:\n{message}",
        source.display()
    );
    fs::rename(&fresh, &result).expect("the build folder is writable");
    result
}

fn is_fresh(result: &Path, source: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(built) = changed(result) else {
        return false;
    };
    headers()
        .iter()
        .map(PathBuf::as_path)
        .chain([source])
        .all(|input| changed(input).is_some_and(|at| at < built))
}

/// The headers that programs may include; any of them may have changed.
fn headers() -> Vec<PathBuf> {
    let folder = fs::read_dir(program::folder().join("c")).expect("programs/ is in the crate");
    folder
        .map(|entry| entry.expect("programs/ is readable").path())
        .filter(|path| path.extension().is_some_and(|found| found == "h"))
        .collect()
}
