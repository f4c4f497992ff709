//! The plan for a drive with FDP that is cut into one namespace for each kind of files that the
//! server can keep apart: commands and settings, to be read before they are run, and the way back.
//!
//! Nothing here touches a drive. nvme-cli's options: `nvme help create-ns`, `nvme help fdp`.

mod drive;
mod engine;
mod layout;
mod places;
mod verdict;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{ControllerError, Mount, System};
use drive::Drive;
use engine::{Engine, Part};
pub use layout::{Layout, Namespace, layout};
pub use places::outside;
pub use verdict::{Answer, Answers};

/// A data directory, where it lies and what is in it.
#[derive(Debug)]
pub struct Data<'a> {
    /// Its path, without links.
    pub dir: &'a Path,
    /// Its mount.
    pub mount: &'a Mount,
    /// The disk below, as the kernel calls it.
    pub disk: &'a str,
    /// Every file and its size, and what links in it lead to ([`outside`]).
    pub files: Vec<(PathBuf, u64)>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The controller.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The server cannot have one.
    #[error("no plan for {}: {why}", dir.display())]
    Engine {
        /// The data directory.
        dir: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// Something else is on the drive, or the drive is not known well enough.
    #[error("no plan for {disk}: {why}")]
    Drive {
        /// The disk.
        disk: String,
        /// Why.
        why: String,
    },
    /// The database is in several places.
    #[error(
        "no plan for {}: {} belongs to it by a link and would not be in the backup",
        dir.display(),
        file.display()
    )]
    Outside {
        /// The data directory.
        dir: PathBuf,
        /// A file that is not in it.
        file: PathBuf,
    },
    /// MariaDB keeps the path of a table that lies elsewhere (`DATA DIRECTORY`) in such a file.
    #[error(
        "no plan for {}: its table lies elsewhere, where {} says, and would not be in the backup",
        dir.display(),
        file.display()
    )]
    LinkFile {
        /// The data directory.
        dir: PathBuf,
        /// The file that names the place.
        file: PathBuf,
    },
    /// Another file system or other files are where a new one would be mounted.
    #[error(
        "no plan for {}: it would mount a file system at {place}, and that {why}; a plan needs \
         this name for itself",
        dir.display()
    )]
    Place {
        /// The data directory.
        dir: PathBuf,
        /// Where.
        place: String,
        /// Why not there.
        why: String,
    },
    /// A shell would read the path as something else.
    #[error("no plan for {}: its path has characters that a shell reads as something else", .0.display())]
    Path(PathBuf),
    /// The namespaces take more than there is.
    #[error(
        "the namespaces do not fit {disk}: {sizes} leave {left} GiB of {all} GiB for the tables, which take {needed} GiB with their file system"
    )]
    Capacity {
        /// The disk.
        disk: String,
        /// The namespaces beside that of the tables, with their sizes.
        sizes: String,
        /// What is left.
        left: u64,
        /// The whole.
        all: u64,
        /// What the tables and their file system take.
        needed: u64,
    },
}

const GIB: u64 = 1 << 30;
const BLOCK: u64 = 4096;
/// Of the drive, for what grows with what clients do.
const GROWING: u64 = 32;

/// A namespace, its place and its size.
struct Cut {
    part: Part,
    place: String,
    gib: u64,
}

/// The commands and settings that give each kind of files a namespace of its own, and those that
/// undo it.
///
/// # Errors
/// Why that would not be right or not be safe.
pub fn plan(system: &System, data: &Data<'_>) -> Result<String, PlanError> {
    let dir = data.dir;
    for path in [dir, &data.mount.point] {
        if !path.to_str().is_some_and(engine::is_plain) {
            return Err(PlanError::Path(path.to_owned()));
        }
    }
    let drive = drive::drive(system, data)?;
    let mut files = Vec::new();
    for (file, bytes) in &data.files {
        let inside = file.strip_prefix(dir).map_err(|_| PlanError::Outside {
            dir: dir.to_owned(),
            file: file.clone(),
        })?;
        if file.extension().is_some_and(|end| end == "isl") {
            return Err(PlanError::LinkFile {
                dir: dir.to_owned(),
                file: file.clone(),
            });
        }
        files.push((inside.to_owned(), *bytes));
    }
    let engine = Engine::of(&files).map_err(|why| PlanError::Engine {
        dir: dir.to_owned(),
        why,
    })?;
    let cuts = cut(dir, &drive, engine, &files)?;
    for cut in cuts.iter().filter(|cut| cut.part.name != "data") {
        if let Some(why) = places::taken(system, dir, Path::new(&cut.place)) {
            return Err(PlanError::Place {
                dir: dir.to_owned(),
                place: cut.place.clone(),
                why,
            });
        }
    }
    let text = Text {
        dir: dir.display().to_string(),
        mount: data.mount,
        engine,
        drive: &drive,
        cuts: &cuts,
    };
    Ok([
        text.head(),
        text.backup(),
        text.namespaces(),
        text.file_systems(),
        text.moves(),
        text.start(),
        text.way_back(),
    ]
    .concat())
}

/// The namespaces: each twice what its files take, at least 1 GiB, and what grows at least a 32nd
/// of the drive; the last is that of the tables, with the rest, of which a 16th and 1 GiB are for
/// the log and the reserves of the file system.
fn cut(
    dir: &Path,
    drive: &Drive,
    engine: Engine,
    files: &[(PathBuf, u64)],
) -> Result<Vec<Cut>, PlanError> {
    let mut cuts = Vec::new();
    let all = drive.bytes / GIB;
    let (mut left, mut needed) = (all, files.iter().map(|(_, bytes)| bytes).sum::<u64>());
    for part in engine.parts(files) {
        let bytes = part.bytes(files);
        let least = if part.grows { all / GROWING } else { 0 };
        let gib = bytes.saturating_mul(2).div_ceil(GIB).max(least).max(1);
        left = left.saturating_sub(gib);
        needed = needed.saturating_sub(bytes);
        let place = format!("/mnt/{}", part.name);
        cuts.push(Cut { part, place, gib });
    }
    let needed = needed.div_ceil(GIB);
    let needed = needed.saturating_add(needed / 16).saturating_add(1);
    if left < needed {
        let sizes = cuts
            .iter()
            .map(|cut| format!("{} {} GiB", cut.part.name, cut.gib));
        return Err(PlanError::Capacity {
            disk: drive.disk.clone(),
            sizes: sizes.collect::<Vec<_>>().join(", "),
            left,
            all,
            needed,
        });
    }
    let part = Part {
        name: "data",
        entries: Vec::new(),
        settings: Vec::new(),
        grows: true,
        made: None,
    };
    cuts.push(Cut {
        part,
        place: dir.display().to_string(),
        gib: left,
    });
    Ok(cuts)
}

/// The parts of the plan, in their order.
struct Text<'a> {
    dir: String,
    mount: &'a Mount,
    engine: Engine,
    drive: &'a Drive,
    /// The last one is that of the data directory.
    cuts: &'a [Cut],
}

impl Text<'_> {
    fn parts(&self) -> impl Iterator<Item = &Cut> {
        self.cuts.iter().filter(|cut| cut.part.name != "data")
    }

    fn head(&self) -> String {
        let (dir, point, count) = (&self.dir, self.mount.point.display(), self.cuts.len());
        let (disk, device, all) = (
            &self.drive.disk,
            self.drive.device(),
            self.drive.bytes / GIB,
        );
        let (engine, namespace) = (self.engine.name(), self.drive.namespace);
        format!(
            "# {engine} in {dir}: {count} namespaces of {device}, each with a reclaim unit handle of its own.\n\
             # STEP 4 DELETES EVERYTHING ON {device}, that is all of {point} on {disk}; the backup of step 3 holds {dir} only.\n\
             # Nothing below has been run. Read all of it, change the sizes, then run it as root line by line in one shell,\n\
             # and go on only if the line before succeeded. {disk} has {all} GiB; capacity that no namespace has is not\n\
             # known here (`nvme id-ctrl {device}` says tnvmcap and unvmcap).\n\n\
             # 1. The drive must have FDP (CTRATT bit 19), namespace management (OACS bit 3), {count} handles (NRUH) or more, and\n\
             #    an LBA format of {BLOCK} bytes. list-ns must list namespace {namespace} only: others have data that nothing here saves.\n\
             nvme list-ns {device} --all\n\
             nvme id-ctrl {device} --human-readable\n\
             nvme fdp configs {device} --endgrp-id=1 --human-readable\n\
             nvme id-ns /dev/{disk} --human-readable\n\n"
        )
    }

    fn backup(&self) -> String {
        let (dir, disk) = (&self.dir, &self.drive.disk);
        let (debian, red_hat) = self.engine.service();
        let mut out = format!(
            "# 2. Stop the server, cleanly ({red_hat} is the unit on Red Hat; an instance may have another name).\n\
             SERVICE={debian}\n"
        );
        if self.engine != Engine::Postgres {
            out.push_str(
                "#    First look at what lies elsewhere already: such settings and files are not part of this plan.\n\
                 # mysql -e \"SELECT @@datadir, @@innodb_data_home_dir, @@innodb_log_group_home_dir, @@innodb_undo_directory\"\n\
                 # mysql -e \"SELECT @@tmpdir, @@log_bin_basename, @@log_bin_index, @@relay_log_basename\"\n",
            );
            out.push_str(self.engine.tablespaces());
            if let Some(stem) = self.log_stem() {
                let _ = writeln!(
                    out,
                    "#    @@log_bin_basename must be {dir}/{stem}; otherwise leave out what is said of the log below."
                );
            }
        }
        let _ = write!(
            out,
            "systemctl stop \"$SERVICE\"\n\n\
             # 3. The backup, on ANOTHER drive, with room for all of {dir}: findmnt must not name {disk}, and diff must print nothing.\n\
             BACKUP=/another-drive/before  # a new folder: change this\n\
             mkdir -p \"$BACKUP\"\n\
             findmnt --target \"$BACKUP\"\n\
             cp -a {dir}/. \"$BACKUP\"/\n\
             sync -f \"$BACKUP\"\n\
             diff -r --no-dereference {dir} \"$BACKUP\"\n"
        );
        if let Some(partition) = &self.drive.partition {
            let _ = writeln!(
                out,
                "# {partition} is a partition:\n\
                 sfdisk --dump /dev/{disk} >\"$BACKUP.partitions\""
            );
        }
        out
    }

    fn namespaces(&self) -> String {
        let (device, id) = (self.drive.device(), self.drive.controller.id);
        let namespace = self.drive.namespace;
        let mut out = format!(
            "\n# 4. FROM HERE ON THE DATA ARE IN THE BACKUP ONLY. FDP is switched on while there is no namespace.\n\
             #    First take {} out of /etc/fstab. Without daemon-reload, systemd acts on what stood there, and may unmount.\n\
             systemctl daemon-reload\n\
             umount {0}\n\
             nvme delete-ns {device} --namespace-id={namespace}\n\
             nvme fdp feature {device} --endgrp-id=1 --enable-conf-idx=0\n\n\
             # 5. One namespace for each kind of files, in blocks of {BLOCK}. create-ns must say nsid:1, nsid:2 and so on.\n\
             #    Drives round sizes up: if there is no room for the last one, make that smaller.\n",
            self.mount.point.display()
        );
        for (at, cut) in self.cuts.iter().enumerate() {
            let (blocks, number) = (cut.gib.saturating_mul(GIB / BLOCK), at + 1);
            let _ = write!(
                out,
                "# {}: {} GiB\n\
                 nvme create-ns {device} --nsze={blocks} --ncap={blocks} --block-size={BLOCK} --endg-id=1 --nphndls=1 --phndls={at}\n\
                 nvme attach-ns {device} --namespace-id={number} --controllers={id}\n",
                cut.part.name, cut.gib
            );
        }
        let _ = writeln!(out, "nvme ns-rescan {device}");
        out
    }

    /// Finds the disk with a namespace: the kernel numbers disks as it finds them.
    fn finder(&self) -> String {
        format!(
            "disk() {{ for it in /sys/class/block/{}n*; do [ \"$(cat \"$it/nsid\" 2>/dev/null)\" = \"$1\" ] && \
             echo \"/dev/${{it##*/}}\"; done; }}\n",
            self.drive.stem()
        )
    }

    fn file_systems(&self) -> String {
        let mut out = format!(
            "\n# 6. A file system on each. The kernel numbers disks as it finds them: `disk N` is the one with namespace N.\n{}",
            self.finder()
        );
        for (at, cut) in self.cuts.iter().enumerate() {
            let (number, name, place) = (at + 1, cut.part.name, &cut.place);
            let _ = write!(
                out,
                "mkfs.xfs -L {name} \"$(disk {number})\"\n\
                 mkdir -p {place}\n\
                 echo \"UUID=$(blkid -s UUID -o value \"$(disk {number})\") {place} xfs discard 0 0\" >>/etc/fstab\n"
            );
        }
        out.push_str("systemctl daemon-reload\n");
        for Cut { place, .. } in self.cuts {
            let _ = write!(
                out,
                "mount {place}\n\
                 chown --reference=\"$BACKUP\" {place}\n\
                 chmod --reference=\"$BACKUP\" {place}\n"
            );
        }
        out
    }

    fn moves(&self) -> String {
        let dir = &self.dir;
        let mut out =
            "\n# 7. The files, each where it belongs, if all is mounted: findmnt must name `disk N`.\n"
                .to_owned();
        for (at, cut) in self.cuts.iter().enumerate() {
            let (place, number) = (&cut.place, at + 1);
            let _ = writeln!(
                out,
                "findmnt -n -o SOURCE {place}  # must name `disk {number}`"
            );
        }
        let quoted = |entry: &String| format!("-name '{entry}'");
        for cut in self.parts().filter(|cut| !cut.part.entries.is_empty()) {
            let names: Vec<String> = cut.part.entries.iter().map(quoted).collect();
            let _ = writeln!(
                out,
                "find \"$BACKUP\" -mindepth 1 -maxdepth 1 \\( {} \\) -exec cp -a -t {} {{}} +",
                names.join(" -o "),
                cut.place
            );
        }
        let all = self.parts().flat_map(|cut| &cut.part.entries);
        let others: String = all.map(|entry| format!("! -name '{entry}' ")).collect();
        let _ = writeln!(
            out,
            "find \"$BACKUP\" -mindepth 1 -maxdepth 1 {others}-exec cp -a -t {dir} {{}} +"
        );
        if let Some(stem) = self.log_stem() {
            let _ = writeln!(out, "sed -i 's|^.*/|/mnt/log/|' /mnt/log/{stem}.index");
        }
        if self.engine == Engine::Postgres {
            let _ = write!(
                out,
                "ln -s /mnt/wal/pg_wal {dir}/pg_wal\n\
                 chown -h --reference=\"$BACKUP\" {dir}/pg_wal\n"
            );
        }
        out
    }

    fn log_stem(&self) -> Option<&str> {
        let log = self.parts().find(|cut| cut.part.name == "log")?;
        log.part
            .entries
            .iter()
            .find_map(|entry| entry.strip_suffix(".index"))
    }

    fn start(&self) -> String {
        let mut out = String::new();
        if self.engine != Engine::Postgres {
            out.push_str(
                "\n# 8. These lines belong below [mysqld] in the server's configuration, in place of any others with these names.\n\
                 #    Relay, error and slow logs stay in the data directory. AppArmor or SELinux must let the server into /mnt.\n",
            );
            if self.log_stem().is_some() {
                out.push_str(
                    "#    Remove log_bin_index: it names the old place of the list of binary logs.\n",
                );
            }
            for setting in self.parts().flat_map(|cut| &cut.part.settings) {
                let _ = writeln!(out, "# {setting}");
            }
        } else {
            out.push_str(
                "\n# 8. postgresql.conf stays as it is: the link leads to the write-ahead log. SELinux must let the server into /mnt.\n",
            );
        }
        let (dir, rules) = (&self.dir, self.engine.rules());
        let _ = write!(
            out,
            "\n# 9. Start the server, and look at its log and at the data. Keep the backup until all is well.\n\
             systemctl start \"$SERVICE\"\n\
             systemctl status \"$SERVICE\"\n\n\
             # 10. Proof, as root and under load: each part is written through a handle of its own.\n\
             saiga streams check {dir} --rules {rules} --for 1m\n"
        );
        out
    }

    fn way_back(&self) -> String {
        let dir = &self.dir;
        let (service, _) = self.engine.service();
        let mut out = format!(
            "\n# The way back: one namespace again, as before, with the data as they are by then. It too begins with a backup, with\n\
             # room for all of it: findmnt must not name {} nor another disk of that drive, and diff must print nothing.\n\
             SERVICE={service}\n\
             {}\
             systemctl stop \"$SERVICE\"\n\
             BACK=/another-drive/after  # a new folder on ANOTHER drive: change this\n\
             mkdir -p \"$BACK\"\n\
             findmnt --target \"$BACK\"\n",
            self.drive.disk,
            self.finder()
        );
        let data = ("data", dir);
        let kept: Vec<(&str, &String)> = self.kept().chain([data]).collect();
        for (name, place) in &kept {
            let _ = writeln!(out, "cp -a {place} \"$BACK\"/{name}");
        }
        out.push_str("sync -f \"$BACK\"\n");
        for (name, place) in &kept {
            let _ = writeln!(out, "diff -r --no-dereference {place} \"$BACK\"/{name}");
        }
        out.push_str(&self.one_namespace());
        let _ = writeln!(out, "mkdir -p {dir}\ncp -a \"$BACK\"/data/. {dir}/");
        if self.engine == Engine::Postgres {
            let _ = writeln!(out, "rm {dir}/pg_wal  # the link");
        }
        for (name, _) in self.kept() {
            let _ = writeln!(
                out,
                "find \"$BACK\"/{name} -mindepth 1 -maxdepth 1 -exec cp -a -t {dir} {{}} +"
            );
        }
        if let Some(stem) = self.log_stem() {
            let _ = writeln!(out, "sed -i 's|^.*/|./|' {dir}/{stem}.index");
        }
        out.push_str("systemctl start \"$SERVICE\"\n");
        out
    }

    /// The names and places of the files that were moved.
    fn kept(&self) -> impl Iterator<Item = (&str, &String)> {
        let parts = self.parts().filter(|cut| !cut.part.entries.is_empty());
        parts.map(|cut| (cut.part.name, &cut.place))
    }

    /// The drive and its file system as they were.
    fn one_namespace(&self) -> String {
        let (dir, drive) = (&self.dir, self.drive);
        let (device, id) = (drive.device(), drive.controller.id);
        let (kind, point) = (&self.mount.kind, self.mount.point.display());
        let blocks = drive.bytes / drive.block;
        let places: Vec<&str> = self.parts().map(|cut| cut.place.as_str()).collect();
        let mut out = format!(
            "# FROM HERE ON THE DATA ARE IN THE BACKUP ONLY. Take the lines of step 6 out of /etc/fstab, and those of step 8 out of\n\
             # the server's configuration; those that they replaced return.\n\
             systemctl daemon-reload\n\
             umount {} {dir}\n",
            places.join(" ")
        );
        for number in 1..=self.cuts.len() {
            let _ = writeln!(out, "nvme delete-ns {device} --namespace-id={number}");
        }
        let _ = write!(
            out,
            "nvme fdp feature {device} --endgrp-id=1 --disable\n\
             nvme create-ns {device} --nsze={blocks} --ncap={blocks} --block-size={}\n\
             nvme attach-ns {device} --namespace-id=1 --controllers={id}\n\
             nvme ns-rescan {device}\n",
            drive.block
        );
        let number = drive
            .partition
            .as_ref()
            .and_then(|it| it.strip_prefix(&drive.disk));
        let source = format!("\"$(disk 1)\"{}", number.unwrap_or_default());
        if number.is_some() {
            out.push_str("sfdisk \"$(disk 1)\" <\"$BACKUP.partitions\"  # that of step 3\n");
        }
        let _ = write!(
            out,
            "mkfs.{kind} {source}\n\
             # Put {point} into /etc/fstab again, with this number.\n\
             blkid -s UUID -o value {source}\n\
             systemctl daemon-reload\n\
             mount -t {kind} {source} {point}\n\
             findmnt -n -o SOURCE {point}  # must name `disk 1`\n"
        );
        out
    }
}

#[cfg(test)]
mod tests;
