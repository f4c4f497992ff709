//! The sources of settings, and a cheap check for changes of their files.
//!
//! A running process calls [`Watch::reload_if_changed`] before it upgrades a connection, at most
//! once a second by its own clock. An unchanged file costs one stat(2) and no allocation. The
//! environment is read only once, because other threads of the application may change it later.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SettingsError;
use crate::layer::{Layer, is_absent};
use crate::settings::{Origin, Settings};

/// The settings file for the whole machine.
pub const SYSTEM_FILE: &str = "/etc/saiga/saiga.toml";

/// The sources of settings.
pub struct Sources<'a> {
    /// [`SYSTEM_FILE`] except in tests.
    pub system_file: &'a Path,
    /// Looks up one environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The sources after a read, which can be checked for changes.
#[derive(Debug)]
pub struct Watch {
    files: Vec<Watched>,
    variables: Layer,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    role: Role,
    stamp: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// May be absent, but must be readable.
    System,
    /// May be absent or unreadable: `HOME` may be that of another user (sudo).
    Home,
    /// Must exist, because `SAIGA_CONFIG` names the file.
    Named,
}

/// Attributes of a file that change with its content; all zero if the file does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        // The change time, not the modification time, which utimensat(2) can set back.
        fs::metadata(path).map_or_else(
            |_| Self::default(),
            |metadata| Self {
                device: metadata.dev(),
                inode: metadata.ino(),
                bytes: metadata.size(),
                changed_s: metadata.ctime(),
                changed_ns: metadata.ctime_nsec(),
            },
        )
    }
}

impl Sources<'_> {
    /// Reads every layer, and returns the merged settings and a watch of the files.
    ///
    /// # Errors
    /// Returns the error of the first bad variable or, without a bad variable, of the first bad
    /// file. After a bad file the [`Watch`] finds when the file is corrected; after a bad
    /// variable it never finds a change.
    pub fn read(&self) -> (Result<Settings, SettingsError>, Watch) {
        let files = self.files();
        let variables = Layer::from_variables(self.variable);
        match variables {
            Ok(variables) => {
                let mut watch = Watch { files, variables };
                (watch.read(), watch)
            }
            // A bad variable stays bad for the life of the process: no file can correct it.
            Err(error) => (
                Err(error),
                Watch {
                    files: Vec::new(),
                    variables: Layer::default(),
                },
            ),
        }
    }

    fn files(&self) -> Vec<Watched> {
        let set = |name| {
            (self.variable)(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let mut files = vec![Watched::new(self.system_file.to_owned(), Role::System)];
        if let Some(path) = set("SAIGA_CONFIG") {
            files.push(Watched::new(path, Role::Named));
        } else {
            let home =
                set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
            let home = home.filter(|home| home.is_absolute());
            files.extend(home.map(|home| Watched::new(home.join("saiga/saiga.toml"), Role::Home)));
        }
        files
    }
}

impl Watched {
    fn new(path: PathBuf, role: Role) -> Self {
        Self {
            path,
            role,
            stamp: Stamp::default(),
        }
    }

    fn read(&mut self) -> Result<Option<Layer>, SettingsError> {
        // The stamp is read first, so that the next check finds a change between the two reads.
        self.stamp = Stamp::of(&self.path);
        match (Layer::from_file(&self.path), self.role) {
            (Ok(None), Role::Named) => Err(SettingsError::NamedFileMissing {
                path: self.path.clone(),
            }),
            (Err(SettingsError::Read { source, .. }), Role::Home)
                if is_absent(&source) || source.kind() == ErrorKind::PermissionDenied =>
            {
                Ok(None)
            }
            (result, _) => result,
        }
    }
}

impl Watch {
    /// Reads the settings again if a file was changed, created or deleted since the last read;
    /// `None` otherwise.
    ///
    /// # Errors
    /// Inside the `Some`: the error of the first bad file.
    pub fn reload_if_changed(&mut self) -> Option<Result<Settings, SettingsError>> {
        let changed = self
            .files
            .iter()
            .any(|file| Stamp::of(&file.path) != file.stamp);
        changed.then(|| self.read())
    }

    fn read(&mut self) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        let mut first_error = None;
        // All files are read even after an error, so that each has a stamp to compare with.
        for file in &mut self.files {
            match file.read() {
                Ok(Some(layer)) => settings.apply(layer, |_| Origin::File(file.path.clone())),
                Ok(None) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        settings.apply(self.variables.clone(), Origin::Variable);
        first_error.map_or(Ok(settings), Err)
    }
}
