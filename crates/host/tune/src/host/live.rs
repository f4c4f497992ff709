//! A host behind a root directory: files, and for the running host also services and devices.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use saiga_process::root::Root;

use super::Host;
use super::ethtool::{Ethtool, Ioctl};
use super::own_file;
use super::services::{Services, Systemctl};
use crate::target::{Aspect, NicSetting, Target};

/// Files below a [`Root`]. A root other than `/` has neither services nor `ethtool` settings,
/// unless they are given.
#[derive(Debug)]
pub struct LiveHost<S = Systemctl, E = Ioctl> {
    root: Root,
    services: Option<S>,
    ethtool: Option<E>,
}

impl LiveHost {
    /// The host that runs, or the tree of another below `root`.
    #[must_use]
    pub fn new(root: Root) -> Self {
        let is_host = root.is_host();
        Self {
            services: is_host.then(Systemctl::running).flatten(),
            ethtool: is_host.then_some(Ioctl),
            root,
        }
    }
}

impl<S: Services, E: Ethtool> LiveHost<S, E> {
    /// A tree with other services and devices.
    #[must_use]
    pub fn with(root: Root, services: S, ethtool: E) -> Self {
        Self {
            root,
            services: Some(services),
            ethtool: Some(ethtool),
        }
    }

    fn services(&mut self) -> io::Result<&mut S> {
        let absent = || io::Error::new(io::ErrorKind::Unsupported, "systemd is not running");
        self.services.as_mut().ok_or_else(absent)
    }

    fn ethtool(&mut self) -> io::Result<&mut E> {
        let absent = || io::Error::new(io::ErrorKind::Unsupported, "this tree has no devices");
        self.ethtool.as_mut().ok_or_else(absent)
    }

    /// Where a name is written. A link of another tree may not lead out of the tree.
    fn place(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.root.path(name);
        if self.root.is_host() {
            return Ok(path);
        }
        let exists = |path: &&std::path::Path| path.symlink_metadata().is_ok();
        let existing = path.ancestors().find(exists).unwrap_or(&path);
        if existing
            .canonicalize()?
            .starts_with(self.root.path("/").canonicalize()?)
        {
            return Ok(path);
        }
        let text = format!("a link in {} leads out of the tree", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    fn write_own_file(&mut self, path: &str, text: Option<&str>) -> io::Result<()> {
        own_file::write(&self.place(path)?, text)?;
        match &mut self.services {
            Some(services) if path.starts_with("/etc/systemd/") => services.reload(),
            _ => Ok(()),
        }
    }
}

impl<S: Services, E: Ethtool> Host for LiveHost<S, E> {
    fn read(&self, target: &Target) -> io::Result<Option<String>> {
        match target {
            Target::File { path, .. } | Target::OwnFile { path } => self.fact(path),
            Target::Service { unit, aspect } => match (&self.services, aspect) {
                (None, _) => Ok(None),
                (Some(services), Aspect::Active) => services.active(unit),
                (Some(services), Aspect::Enabled) => services.enabled(unit),
            },
            Target::Nic { nic, setting } => match &self.ethtool {
                None => Ok(None),
                Some(ethtool) => ethtool.read(nic, setting),
            },
        }
    }

    fn write(&mut self, target: &Target, text: Option<&str>) -> io::Result<()> {
        let needed = || io::Error::new(io::ErrorKind::InvalidInput, "there is no value to write");
        match target {
            Target::OwnFile { path } => self.write_own_file(path, text),
            Target::File { path, .. } => {
                let text = text.ok_or_else(needed)?;
                // One write(2), and never a new file where the kernel has none.
                let path = self.place(path)?;
                let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
                file.write_all(format!("{text}\n").as_bytes())
            }
            Target::Service { unit, aspect } => {
                let text = text.ok_or_else(needed)?;
                match aspect {
                    Aspect::Active => self.services()?.set_active(unit, text == "active"),
                    Aspect::Enabled => self.services()?.set_enabled(unit, text),
                }
            }
            Target::Nic { nic, setting } => {
                let text = text.ok_or_else(needed)?;
                let (nic, setting): (&str, &NicSetting) = (nic, setting);
                self.ethtool()?.write(nic, setting, text)
            }
        }
    }

    fn fact(&self, path: &str) -> io::Result<Option<String>> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(self.root.bytes(path)?.map(text))
    }

    fn names(&self, dir: &str) -> io::Result<Vec<String>> {
        self.root.names(dir)
    }

    fn boot_id(&self) -> io::Result<String> {
        let id = self.fact("/proc/sys/kernel/random/boot_id")?;
        // An empty ID would be the same after every restart.
        let id = id.filter(|id| !id.trim().is_empty());
        let id = id.ok_or(io::ErrorKind::NotFound)?;
        Ok(id.trim().to_owned())
    }

    fn uptime(&self) -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        // The kernel returns neither a negative time nor a second of more nanoseconds.
        Duration::try_from(now).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn facts_of_a_tree_are_not_read_outside_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path().join("root"));
        std::fs::create_dir_all(root.path("/proc/sys/vm")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        let name = "/proc/sys/vm/swappiness";
        symlink(dir.path().join("secret"), root.path(name)).unwrap();
        assert_eq!(LiveHost::new(root).fact(name).unwrap(), None);
    }

    #[test]
    fn nothing_outside_the_tree_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path().join("root"));
        std::fs::create_dir_all(root.path("/proc/sys/vm")).unwrap();
        std::fs::write(dir.path().join("value"), "60\n").unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let name = "/proc/sys/vm/swappiness";
        symlink(dir.path().join("value"), root.path(name)).unwrap();
        symlink("../etc", root.path("/etc")).unwrap();
        let path = "/etc/sysctl.d/99-zz-saiga.conf".to_owned();
        let mut host = LiveHost::new(root);
        for target in [
            Target::file(name, crate::form::Form::Words),
            Target::OwnFile { path },
        ] {
            let error = host.write(&target, Some("1")).unwrap_err().to_string();
            assert!(error.ends_with("leads out of the tree"), "{error}");
        }
        let value = std::fs::read_to_string(dir.path().join("value")).unwrap();
        assert_eq!(value, "60\n");
        assert!(!dir.path().join("etc/sysctl.d").exists());
    }
}
