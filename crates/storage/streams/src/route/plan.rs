//! Prints the plan that divides a drive with FDP into one namespace for each kind of files that the
//! server can keep apart: commands and settings for the administrator, and those that undo them.
//!
//! Nothing here changes a drive. nvme-cli's options: `nvme help create-ns`, `nvme help fdp`.

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

/// A data directory with its mount, disk and files.
#[derive(Debug)]
pub struct Data<'a> {
    /// Absolute path without links.
    pub dir: &'a Path,
    pub mount: &'a Mount,
    /// The kernel's name of the disk below.
    pub disk: &'a str,
    /// Every file in it and each target of its links ([`outside`]), with sizes in bytes.
    pub files: Vec<(PathBuf, u64)>,
}

/// A reason against a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The server is unknown or cannot be divided.
    #[error("no plan for {}: {why}", dir.display())]
    Engine { dir: PathBuf, why: &'static str },
    /// The drive holds other data, or sysfs lacks an attribute of it.
    #[error("no plan for {disk}: {why}")]
    Drive { disk: String, why: String },
    /// A link in the data directory leads outside.
    #[error(
        "no plan for {}: {} belongs to it by a link and would not be in the backup",
        dir.display(),
        file.display()
    )]
    Outside { dir: PathBuf, file: PathBuf },
    /// MariaDB stores the path of a table outside the data directory (`DATA DIRECTORY`) in `file`.
    #[error(
        "no plan for {}: the table of {} is in another directory and would not be in the backup",
        dir.display(),
        file.display()
    )]
    LinkFile { dir: PathBuf, file: PathBuf },
    /// A mount point of the plan is in use.
    #[error(
        "no plan for {}: it would mount a file system at {place}, and that {why}; a plan needs \
         this name for itself",
        dir.display()
    )]
    Place {
        dir: PathBuf,
        place: String,
        why: String,
    },
    /// A shell would not read the path literally.
    #[error("no plan for {}: its path has characters with a meaning to a shell", .0.display())]
    Path(PathBuf),
    /// The namespaces leave too little space for the tables. `sizes` lists the other namespaces;
    /// the numbers are in GiB.
    #[error(
        "the namespaces do not fit {disk}: {sizes} leave {left} GiB of {all} GiB for the tables, \
         which take {needed} GiB with their file system"
    )]
    Capacity {
        disk: String,
        sizes: String,
        left: u64,
        all: u64,
        needed: u64,
    },
}

const GIB: u64 = 1 << 30;
/// Size in bytes of the logical blocks of the new namespaces.
const BLOCK: u64 = 4096;
/// A part that grows with the load gets at least this fraction of the drive (a 32nd).
const GROWING: u64 = 32;

/// A namespace of the plan: its part, mount point and size.
struct Share {
    part: Part,
    place: String,
    gib: u64,
}

/// Returns the commands and settings that give each kind of files a namespace of its own, and those
/// that undo this.
///
/// # Errors
/// The plan would be wrong or unsafe; the error says why.
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
    let shares = divide(dir, &drive, engine, &files)?;
    for share in shares.iter().filter(|share| share.part.name != "data") {
        if let Some(why) = places::taken(system, dir, Path::new(&share.place)) {
            return Err(PlanError::Place {
                dir: dir.to_owned(),
                place: share.place.clone(),
                why,
            });
        }
    }
    let text = Text {
        dir: dir.display().to_string(),
        mount: data.mount,
        engine,
        drive: &drive,
        shares: &shares,
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

/// Computes the sizes of the namespaces: twice the size of their files, at least 1 GiB, and for
/// parts that grow at least a 32nd of the drive. The last namespace is that of the tables and gets
/// the rest, of which the file system needs a 16th and 1 GiB for its log and reserves.
fn divide(
    dir: &Path,
    drive: &Drive,
    engine: Engine,
    files: &[(PathBuf, u64)],
) -> Result<Vec<Share>, PlanError> {
    let mut shares = Vec::new();
    let all = drive.bytes / GIB;
    let (mut left, mut needed) = (all, files.iter().map(|(_, bytes)| bytes).sum::<u64>());
    for part in engine.parts(files) {
        let bytes = part.bytes(files);
        let least = if part.grows { all / GROWING } else { 0 };
        let gib = bytes.saturating_mul(2).div_ceil(GIB).max(least).max(1);
        left = left.saturating_sub(gib);
        needed = needed.saturating_sub(bytes);
        let place = format!("/mnt/{}", part.name);
        shares.push(Share { part, place, gib });
    }
    let needed = needed.div_ceil(GIB);
    let needed = needed.saturating_add(needed / 16).saturating_add(1);
    if left < needed {
        let sizes = shares
            .iter()
            .map(|share| format!("{} {} GiB", share.part.name, share.gib));
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
        created: None,
    };
    shares.push(Share {
        part,
        place: dir.display().to_string(),
        gib: left,
    });
    Ok(shares)
}

/// Formats the steps of the plan.
struct Text<'a> {
    dir: String,
    mount: &'a Mount,
    engine: Engine,
    drive: &'a Drive,
    /// The last share is that of the data directory.
    shares: &'a [Share],
}

impl Text<'_> {
    fn parts(&self) -> impl Iterator<Item = &Share> {
        self.shares.iter().filter(|share| share.part.name != "data")
    }

    fn head(&self) -> String {
        let (dir, point, count) = (&self.dir, self.mount.point.display(), self.shares.len());
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
             # and go on only if the line before succeeded. {disk} has {all} GiB; `nvme id-ctrl {device}` shows capacity\n\
             # that belongs to no namespace (tnvmcap, unvmcap).\n\n\
             # 1. The drive must have FDP (CTRATT bit 19), namespace management (OACS bit 3), {count} handles (NRUH) or more, and\n\
             #    an LBA format of {BLOCK} bytes. list-ns must list namespace {namespace} only: the backup does not include others.\n\
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
                "#    First find out which files are in other directories already: this plan does not include them.\n\
                 # mysql -e \"SELECT @@datadir, @@innodb_data_home_dir, @@innodb_log_group_home_dir, @@innodb_undo_directory\"\n\
                 # mysql -e \"SELECT @@tmpdir, @@log_bin_basename, @@log_bin_index, @@relay_log_basename\"\n",
            );
            out.push_str(self.engine.tablespaces());
            if let Some(stem) = self.log_stem() {
                let _ = writeln!(
                    out,
                    "#    @@log_bin_basename must be {dir}/{stem}; otherwise leave out everything about the log below."
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
             #    First remove {} from /etc/fstab. Without daemon-reload, systemd uses the old fstab and may unmount.\n\
             systemctl daemon-reload\n\
             umount {0}\n\
             nvme delete-ns {device} --namespace-id={namespace}\n\
             nvme fdp feature {device} --endgrp-id=1 --enable-conf-idx=0\n\n\
             # 5. One namespace for each kind of files, in blocks of {BLOCK}. create-ns must print nsid:1, nsid:2, and so on.\n\
             #    Drives round sizes up: if the last namespace does not fit, make it smaller.\n",
            self.mount.point.display()
        );
        for (handle, share) in self.shares.iter().enumerate() {
            let (blocks, number) = (share.gib.saturating_mul(GIB / BLOCK), handle + 1);
            let _ = write!(
                out,
                "# {}: {} GiB\n\
                 nvme create-ns {device} --nsze={blocks} --ncap={blocks} --block-size={BLOCK} --endg-id=1 --nphndls=1 --phndls={handle}\n\
                 nvme attach-ns {device} --namespace-id={number} --controllers={id}\n",
                share.part.name, share.gib
            );
        }
        let _ = writeln!(out, "nvme ns-rescan {device}");
        out
    }

    /// Returns a shell function `disk N` that prints the device of namespace N: disks are numbered
    /// in the order of their detection.
    fn finder(&self) -> String {
        format!(
            "disk() {{ for it in /sys/class/block/{}n*; do [ \"$(cat \"$it/nsid\" 2>/dev/null)\" = \"$1\" ] && \
             echo \"/dev/${{it##*/}}\"; done; }}\n",
            self.drive.stem()
        )
    }

    fn file_systems(&self) -> String {
        let mut out = format!(
            "\n# 6. A file system on each. The kernel numbers disks as it detects them: `disk N` is the disk of namespace N.\n{}",
            self.finder()
        );
        for (number, share) in (1..).zip(self.shares) {
            let (name, place) = (share.part.name, &share.place);
            let _ = write!(
                out,
                "mkfs.xfs -L {name} \"$(disk {number})\"\n\
                 mkdir -p {place}\n\
                 echo \"UUID=$(blkid -s UUID -o value \"$(disk {number})\") {place} xfs discard 0 0\" >>/etc/fstab\n"
            );
        }
        out.push_str("systemctl daemon-reload\n");
        for Share { place, .. } in self.shares {
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
            "\n# 7. The files, if everything is mounted: findmnt must name `disk N`.\n".to_owned();
        for (number, share) in (1..).zip(self.shares) {
            let place = &share.place;
            let _ = writeln!(
                out,
                "findmnt -n -o SOURCE {place}  # must name `disk {number}`"
            );
        }
        let quoted = |entry: &String| format!("-name '{entry}'");
        for share in self.parts().filter(|share| !share.part.entries.is_empty()) {
            let names: Vec<String> = share.part.entries.iter().map(quoted).collect();
            let _ = writeln!(
                out,
                "find \"$BACKUP\" -mindepth 1 -maxdepth 1 \\( {} \\) -exec cp -a -t {} {{}} +",
                names.join(" -o "),
                share.place
            );
        }
        let all = self.parts().flat_map(|share| &share.part.entries);
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
        let log = self.parts().find(|share| share.part.name == "log")?;
        log.part
            .entries
            .iter()
            .find_map(|entry| entry.strip_suffix(".index"))
    }

    fn start(&self) -> String {
        let mut out = String::new();
        if self.engine != Engine::Postgres {
            out.push_str(
                "\n# 8. Put these lines below [mysqld] in the server's configuration, in place of any others with these names.\n\
                 #    Relay, error and slow logs stay in the data directory. AppArmor or SELinux must allow the server to use /mnt.\n",
            );
            if self.log_stem().is_some() {
                out.push_str(
                    "#    Remove log_bin_index: it names the old path of the index of the binary logs.\n",
                );
            }
            for setting in self.parts().flat_map(|share| &share.part.settings) {
                let _ = writeln!(out, "# {setting}");
            }
        } else {
            out.push_str(
                "\n# 8. postgresql.conf stays as it is: the link leads to the write-ahead log. SELinux must allow the server to use /mnt.\n",
            );
        }
        let (dir, rules) = (&self.dir, self.engine.rules());
        let _ = write!(
            out,
            "\n# 9. Start the server, and check its log and the data. Keep the backup until everything is right.\n\
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
            "\n# The way back: one namespace as before, with the data of that time. It begins with a backup, on a drive with\n\
             # room for all data: findmnt must not name {} or another disk of that drive, and diff must print nothing.\n\
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

    /// Returns the names and mount points of the parts whose files were moved.
    fn kept(&self) -> impl Iterator<Item = (&str, &String)> {
        let parts = self.parts().filter(|share| !share.part.entries.is_empty());
        parts.map(|share| (share.part.name, &share.place))
    }

    /// Returns the commands that restore the drive and its file system.
    fn one_namespace(&self) -> String {
        let (dir, drive) = (&self.dir, self.drive);
        let (device, id) = (drive.device(), drive.controller.id);
        let (kind, point) = (&self.mount.kind, self.mount.point.display());
        let blocks = drive.bytes / drive.block;
        let places: Vec<&str> = self.parts().map(|share| share.place.as_str()).collect();
        let mut out = format!(
            "# FROM HERE ON THE DATA ARE IN THE BACKUP ONLY. Remove the lines of step 6 from /etc/fstab, and those of step 8 from\n\
             # the server's configuration; restore those that they replaced.\n\
             systemctl daemon-reload\n\
             umount {} {dir}\n",
            places.join(" ")
        );
        for number in 1..=self.shares.len() {
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
             # Add {point} to /etc/fstab again, with this UUID.\n\
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
