//! An installation of `saiga` in a temporary directory, with a library.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) mod program;

/// A directory with `bin/saiga` and optionally `lib/saiga/libsaiga.so`.
pub(crate) struct Installation {
    root: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Said {
    /// The exit status; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Installation {
    /// An installation without a library.
    pub(crate) fn bare() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let installation = Self { root };
        for folder in ["bin", "lib/saiga"] {
            fs::create_dir_all(installation.path(folder)).unwrap();
        }
        let binary = installation.path("bin/saiga");
        install(Path::new(env!("CARGO_BIN_EXE_saiga")), &binary);
        installation
    }

    /// An installation with a shared object that does nothing in place of the library.
    pub(crate) fn with_library() -> Self {
        let installation = Self::bare();
        installation.compile(
            "int saiga_stand_in;",
            &["-shared", "-fPIC"],
            "lib/saiga/libsaiga.so",
        );
        installation
    }

    /// An installation with the real library.
    pub(crate) fn with_real_library() -> Self {
        let installation = Self::bare();
        install(
            saiga_trials::library::path(),
            &installation.path("lib/saiga/libsaiga.so"),
        );
        installation
    }

    /// Installs the plug-in for DPDK, which `tools/setup test` makes possible.
    pub(crate) fn install_plugin(&self) {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libsaiga_dpdk.so");
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/dpdk");
        assert!(Command::new(tool).arg(&file).status().unwrap().success());
        install(&file, &self.path("lib/saiga/libsaiga_dpdk.so"));
    }

    /// A path below the installation.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes an executable text file.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        self.executable(name, text.as_bytes())
    }

    /// Writes an executable file.
    pub(crate) fn executable(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        write_executable(&path, bytes);
        path
    }

    /// Compiles a C program.
    pub(crate) fn compile(&self, source: &str, flags: &[&str], name: &str) -> PathBuf {
        let (code, path) = (self.path("source.c"), self.path(name));
        fs::write(&code, source).unwrap();
        let output = Command::new("gcc")
            .args(flags)
            .arg(&code)
            .arg("-o")
            .arg(&path)
            .output();
        let output = output.expect("gcc is installed by tools/setup");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        path
    }

    /// `saiga` with these arguments, in a clean environment; terminated when the thread of the test
    /// ends.
    pub(crate) fn saiga(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/saiga"));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.root.path());
        saiga_trials::reaper::end_with_parent(&mut command, saiga_trials::Signal::TERM);
        command
    }
}

/// Writes an executable file that can be executed immediately.
pub(crate) fn write_executable(path: &Path, bytes: &[u8]) {
    let source = path.with_extension("new");
    fs::write(&source, bytes).unwrap();
    install(&source, path);
    fs::remove_file(source).unwrap();
}

/// Copies an executable in a separate process. A writable descriptor of this process could be
/// inherited by the child of another test, and executing the file would fail with ETXTBSY.
fn install(source: &Path, target: &Path) {
    let status = Command::new("install")
        .arg("-m755")
        .args([source, target])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs a command and returns its output.
pub(crate) fn said(command: &mut Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
