//! Where settings come from, and a cheap second look at those places.
//!
//! A running process calls [`Watch::look_again`] before it upgrades a connection
//! (at most once a second, by its own clock). Unchanged files cost one stat each
//! and no allocation. The environment is read once: other threads of the
//! application may be changing it later.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SettingsError;
use crate::layer::{Layer, is_absent};
use crate::settings::{Origin, Settings};

/// The file for the whole machine.
pub const SYSTEM_FILE: &str = "/etc/saiga/saiga.toml";

/// The places to read, before they are read.
pub struct Sources<'a> {
    /// The file for the whole machine, [`SYSTEM_FILE`] outside tests.
    pub system_file: &'a Path,
    /// Looks up one environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The places that were read, ready to be looked at again.
#[derive(Debug)]
pub struct Watch {
    files: Vec<Watched>,
    variables: Layer,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    role: Role,
    seen: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// May be absent; must be readable.
    System,
    /// May be absent, and unreadable too: the home may be that of another user (sudo).
    Home,
    /// Must be there: `SAIGA_CONFIG` names it.
    Named,
}

/// Identity of a file's content without reading it; all zero when there is none.
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
        // The change time, not the modification time: nobody can set it back.
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
    /// Reads every layer.
    ///
    /// # Errors
    /// The first file or variable at fault. The [`Watch`] is usable all the same (unless it was
    /// a variable): the file may be corrected while the process runs.
    pub fn read(&self) -> (Result<Settings, SettingsError>, Watch) {
        let files = self.files();
        let variables = Layer::from_variables(self.variable);
        match variables {
            Ok(variables) => {
                let mut watch = Watch { files, variables };
                (watch.read(), watch)
            }
            // A bad variable stays bad: nothing to look at again.
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
            seen: Stamp::default(),
        }
    }

    fn read(&mut self) -> Result<Option<Layer>, SettingsError> {
        // The stamp first: a change between the two is found at the next look.
        self.seen = Stamp::of(&self.path);
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
    /// Reads the settings again when a file changed, appeared or went away since the last read;
    /// `None` when none did.
    ///
    /// # Errors
    /// Inside the `Some`: what is wrong with the file that changed.
    pub fn look_again(&mut self) -> Option<Result<Settings, SettingsError>> {
        let changed = self
            .files
            .iter()
            .any(|file| Stamp::of(&file.path) != file.seen);
        changed.then(|| self.read())
    }

    fn read(&mut self) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        let mut fault = None;
        // All files are read even after a fault, so that each has a stamp to compare with.
        for file in &mut self.files {
            match file.read() {
                Ok(Some(layer)) => settings.apply(layer, |_| Origin::File(file.path.clone())),
                Ok(None) => {}
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        settings.apply(self.variables.clone(), Origin::Variable);
        fault.map_or(Ok(settings), Err)
    }
}
