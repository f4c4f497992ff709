//! An installation of `saiga` in a temporary folder, with a library of its own.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with `bin/saiga` and, if wanted, `lib/saiga/libsaiga.so`.
pub(crate) struct Installation {
    root: tempfile::TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
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

    /// An installation with the library itself.
    pub(crate) fn with_real_library() -> Self {
        let installation = Self::bare();
        install(
            saiga_trials::library::path(),
            &installation.path("lib/saiga/libsaiga.so"),
        );
        installation
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

    /// `saiga` with these arguments, in a clean environment; asked to end with the thread that
    /// runs the test.
    pub(crate) fn saiga(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/saiga"));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.root.path());
        saiga_trials::reaper::end_with_parent(&mut command, saiga_trials::Signal::Terminate);
        command
    }
}

/// Writes an executable file that may be executed at once.
pub(crate) fn write_executable(path: &Path, bytes: &[u8]) {
    let source = path.with_extension("new");
    fs::write(&source, bytes).unwrap();
    install(&source, path);
    fs::remove_file(source).unwrap();
}

/// Copies an executable in a process of its own. A descriptor of ours that is open for writing
/// could be inherited by a child of another test just then, and executing the file would fail.
fn install(source: &Path, target: &Path) {
    let status = Command::new("install")
        .arg("-m755")
        .args([source, target])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs a command to its end.
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
