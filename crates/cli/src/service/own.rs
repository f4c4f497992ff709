//! Whole units of Saiga's own: written, and replaced and removed only where their first line says whose they are.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::file::{self, Like, Rights};
use super::systemd::Manager;
use super::unit;
use crate::exit;

fn place(root: &Path, name: &str) -> PathBuf {
    root.join("etc/systemd/system").join(name)
}

/// Whether a unit is there, and is ours.
fn is_ours(path: &Path, mark: &str) -> anyhow::Result<bool> {
    match fs::read_to_string(path) {
        Ok(text) if text.lines().next() == Some(mark) => Ok(true),
        Ok(_) => bail!(
            "{} is not Saiga's: its first line is not `{mark}`; give another --name",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Puts the unit `name` there; systemd reads it, and starts nothing.
///
/// # Errors
/// When a unit of somebody else's is there, or it cannot be written.
pub(crate) fn install(root: &Path, name: &str, mark: &str, text: &str) -> anyhow::Result<ExitCode> {
    let path = place(root, name);
    if !is_ours(&path, mark)? && unit::exists(root, name) {
        bail!("there is a unit {name} already, which this one would hide; give another --name");
    }
    let failed = || format!("cannot write {}; are you root?", path.display());
    let folder = path.parent().context("a unit is in a folder")?;
    fs::create_dir_all(folder).with_context(failed)?;
    let like = Like {
        mode: 0o644,
        owner: None,
    };
    file::replace(&path, text.as_bytes(), like, Rights::Caller).with_context(failed)?;
    let next = format!("systemctl enable --now {name}");
    say(&[
        format!("wrote {}", path.display()),
        reload(root, &format!("to start it now and at each boot: {next}"))?,
    ])
}

/// Takes the unit `name` away, and what enables it.
///
/// # Errors
/// When it is somebody else's, or cannot be removed.
pub(crate) fn remove(root: &Path, name: &str, mark: &str) -> anyhow::Result<ExitCode> {
    let path = place(root, name);
    if !is_ours(&path, mark)? {
        exit::say(&format!("there is no {}", path.display()));
        return Ok(ExitCode::from(exit::NO));
    }
    let failed = |path: &Path| format!("cannot remove {}; are you root?", path.display());
    let mut said = Vec::new();
    for link in wanting(root, name) {
        fs::remove_file(&link).with_context(|| failed(&link))?;
        said.push(format!("removed {}", link.display()));
    }
    fs::remove_file(&path).with_context(|| failed(&path))?;
    said.push(format!("removed {}", path.display()));
    said.push(reload(
        root,
        &format!("if it runs, end it: systemctl stop {name}"),
    )?);
    say(&said)
}

/// The links by which it is enabled.
fn wanting(root: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("etc/systemd/system")) else {
        return Vec::new();
    };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wants = folders.filter(|path| path.extension().is_some_and(|it| it == "wants"));
    let links = wants.map(|folder| folder.join(name));
    links.filter(|link| link.is_symlink()).collect()
}

/// Makes a running systemd read units again; what is left to the user.
fn reload(root: &Path, next: &str) -> anyhow::Result<String> {
    match Manager::of(root) {
        None => Ok("systemd is not running here; it reads this when it does".to_owned()),
        Some(manager) => {
            manager.reload()?;
            Ok(next.to_owned())
        }
    }
}

fn say(lines: &[String]) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all((lines.join("\n") + "\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
