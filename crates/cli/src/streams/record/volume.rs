//! `--loop`: a file system for one recording, with the commands that run before and after it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_process::child::{CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_record::{FileSystem, Options, Volume, VolumeOptions, leftovers};

use super::both;
use super::ending::Ending;
use super::target::{End, ending, start};
use crate::exit;
use saiga_document::number;

/// Time between two checks whether a shell has ended.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Xfs,
    Ext4,
}

/// A mounted file system; [`Self::leave`] removes it.
pub(super) struct BackingVolume {
    volume: Volume,
    dir: PathBuf,
}

impl BackingVolume {
    pub(super) fn make(
        args: &super::Args,
        bytes: u64,
        options: &Options,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let [dir] = &options.dirs[..] else {
            anyhow::bail!(
                "--loop is mounted at one directory, but {} are given",
                options.dirs.len()
            );
        };
        // Checked before the volume is made, not after the data are loaded.
        anyhow::ensure!(
            options.out.symlink_metadata().is_err(),
            "{} already exists; give another file, or remove it",
            options.out.display()
        );
        // By its real path, like the path of the trace.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        let would_go = || {
            anyhow::anyhow!(
                "{} would be deleted with the file system at {}; give another file",
                options.out.display(),
                dir.display()
            )
        };
        anyhow::ensure!(!options.out.starts_with(&dir), would_go());
        for left in leftovers(&args.image_dir) {
            exit::say(&format!(
                "warning: {}; remove it with: {}",
                left.description, left.remedy
            ));
        }
        warn_of_room(&args.image_dir, bytes);
        let wanted = VolumeOptions {
            bytes,
            file_system: match args.fs {
                Kind::Xfs => FileSystem::Xfs,
                Kind::Ext4 => FileSystem::Ext4,
            },
            image_dir: args.image_dir.clone(),
            dir: dir.clone(),
        };
        let volume = Volume::make(&wanted, &|| interrupt.raised())?;
        // With shared mounts, the volume may appear at other places, too.
        let folder = options.out.parent().unwrap_or(&dir);
        anyhow::ensure!(!volume.holds(folder), would_go());
        Ok(Self { volume, dir })
    }

    /// Runs the --prepare command.
    pub(super) fn prepare(&self, text: Option<&str>, interrupt: &Interrupt) -> anyhow::Result<()> {
        let Some(text) = text else {
            return Ok(());
        };
        match self.shell(text, interrupt).context("--prepare")? {
            End::Success => Ok(()),
            End::Failed(how) => anyhow::bail!("--prepare: {how}; nothing was recorded"),
        }
    }

    /// Runs the --after command and removes the volume; returns whether the command succeeded.
    pub(super) fn leave(self, after: Option<&str>, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let is_well = self.after(after, interrupt);
        both(is_well, self.remove()).map(|(is_well, ())| is_well)
    }

    fn after(&self, text: Option<&str>, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let Some(text) = text else {
            return Ok(true);
        };
        if interrupt.raised() {
            exit::say("warning: interrupted; --after is not run");
            return Ok(true);
        }
        match self.shell(text, interrupt).context("--after")? {
            End::Success => Ok(true),
            End::Failed(how) => {
                exit::say(&format!("--after: {how}"));
                Ok(false)
            }
        }
    }

    fn remove(self) -> anyhow::Result<()> {
        if let Some(users) = self.volume.remove()? {
            exit::say(&format!(
                "warning: {} is still used by {users}; the file system is removed when they end",
                self.dir.display()
            ));
        }
        Ok(())
    }

    /// Runs a shell command in the directory of the volume.
    fn shell(&self, text: &str, interrupt: &Interrupt) -> anyhow::Result<End> {
        let mut command = CommandLine::new("sh", ["-c", text]);
        command.directory = Some(self.dir.clone());
        let mut child = start(&command)?;
        loop {
            match child.wait(PAUSE, interrupt)? {
                Waited::Ended(ended) => return Ok(ending(ended.status)),
                Waited::TimeOver => {}
                Waited::Interrupted => {
                    Ending::ask(child).finish(interrupt)?;
                    anyhow::bail!("interrupted");
                }
            }
        }
    }
}

/// Warns if the image can outgrow its disk. The image file is sparse: a write that finds no space
/// fails with an I/O error that only the database sees.
fn warn_of_room(image_dir: &Path, bytes: u64) {
    // `Volume::make` reports a missing directory.
    let room = rustix::fs::statvfs(image_dir).map(|it| it.f_bavail.saturating_mul(it.f_frsize));
    if let Ok(room) = room
        && room < bytes
    {
        exit::say(&format!(
            "warning: {} has {} free, less than the {} of --loop; writes beyond that fail with I/O \
             errors (--image-dir selects another directory)",
            image_dir.display(),
            number::bytes(room),
            number::bytes(bytes)
        ));
    }
}

/// Parses a size such as `8GiB` or `512 MiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; use a number with a unit, such as 8GiB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start() {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0 && *bytes <= 1 << 50)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_units() {
        for (text, expected) in [
            ("8GiB", Some(8 << 30)),
            ("512 MiB", Some(512 << 20)),
            ("4KiB", Some(4096)),
            ("1TiB", Some(1 << 40)),
            ("0GiB", None),
            ("8", None),
            ("8GB", None),
            ("-8GiB", None),
            ("", None),
            ("99999999TiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
