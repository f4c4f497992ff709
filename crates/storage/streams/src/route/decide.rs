//! Decides the route of hints from the kernel's version, the file system and the disk.
//!
//! Each constant names the first or last kernel with a behaviour; docs/streams.md has the
//! measurements.

use std::path::PathBuf;

use super::disk::{Bus, Disk, Stack};
use super::{Kernel, Mount, Reach, Report, Route, System};

/// The last kernel with the streams directive.
const LAST_DIRECTIVE: Kernel = Kernel(5, 17);
/// The first kernel with write-lifetime hints.
const FIRST_HINTS: Kernel = Kernel(4, 13);
/// The first kernel whose block layer has hints again, for SCSI.
const SCSI: Kernel = Kernel(6, 9);
/// The first kernel whose zoned XFS places files by hint.
const ZONED_XFS: Kernel = Kernel(6, 15);
/// The first kernel with write streams for writes to a block device itself.
const WRITE_STREAMS: Kernel = Kernel(6, 16);
/// The first tested kernel whose ext4 passes on hints of buffered writes; 6.12 does not.
const EXT4_BUFFERED: Kernel = Kernel(6, 18);
/// The first kernel whose F2FS maps hints to write streams.
const F2FS: Kernel = Kernel(7, 2);

/// The route, whether it has an effect, and why.
type Decision = (Route, Reach, String);

/// Reports how hints on a mounted file system are used.
pub(super) fn mounted(
    system: &System,
    dir: PathBuf,
    mount: Mount,
    kernel: Kernel,
    disk: Option<Disk>,
    zoned: bool,
) -> Report {
    let (route, reach, why) = match &disk {
        None => (Route::Nowhere, Reach::No, diskless(&mount.kind)),
        Some(disk) => on_disk(system, &mount, kernel, disk, zoned),
    };
    let mut notes = Vec::new();
    if let Some(disk) = disk.as_ref().filter(|_| reach == Reach::No) {
        notes = alternatives(kernel, disk);
    }
    let is_late_ext4 = mount.kind == "ext4" && (SCSI..EXT4_BUFFERED).contains(&kernel);
    if reach != Reach::No && is_late_ext4 {
        notes.push(
            "ext4 passes hints of direct writes on; those of buffered writes only in later kernels \
             (6.18 does, 6.12 does not)"
                .to_owned(),
        );
    }
    Report {
        dir,
        mount,
        kernel,
        disk,
        route,
        reach,
        why,
        notes,
    }
}

fn nowhere(why: &str) -> Decision {
    (Route::Nowhere, Reach::No, why.to_owned())
}

fn diskless(kind: &str) -> String {
    match kind {
        "tmpfs" | "ramfs" | "devtmpfs" => format!("{kind} keeps files in memory, not on a drive"),
        "overlay" => "overlayfs does not pass hints to the file system below".to_owned(),
        kind if kind.starts_with("nfs")
            || matches!(kind, "cifs" | "smb3" | "ceph" | "9p" | "virtiofs") =>
        {
            format!("{kind} keeps files on another host and does not send hints there")
        }
        kind if kind.starts_with("fuse") => format!("{kind} does not support hints"),
        kind => format!("no disk was found under this {kind}"),
    }
}

fn on_disk(system: &System, mount: &Mount, kernel: Kernel, disk: &Disk, zoned: bool) -> Decision {
    // Zoned XFS places by hint itself; the device need not support hints.
    if zoned && kernel >= ZONED_XFS {
        return if mount.has("nolifetime") {
            nowhere("this zoned XFS is mounted with nolifetime; mount it with lifetime")
        } else {
            let why = "files of one class share zones (long and extreme are one class)";
            (Route::ZonedXfs, Reach::Yes, why.to_owned())
        };
    }
    match &disk.bus {
        Bus::Loop(file) => {
            let file = file.as_ref().map_or_else(String::new, |file| {
                format!(
                    "; the hint of the file behind it ({}) is what counts",
                    file.display()
                )
            });
            nowhere(&format!("a loop device drops hints{file}"))
        }
        Bus::Stacked(stack) => stacked(system, mount, kernel, disk, stack),
        Bus::Nvme => nvme(system, mount, kernel, disk),
        Bus::Scsi | Bus::Ufs => scsi(kernel, disk),
        Bus::Other => nowhere(&format!(
            "the driver of {} does not support hints",
            disk.name
        )),
    }
}

/// Decides for a stacked device: the worst decision for a disk below. Cloned requests keep their
/// hints, but not the write streams that NVMe drives need.
fn stacked(system: &System, mount: &Mount, kernel: Kernel, disk: &Disk, stack: &Stack) -> Decision {
    let (name, below) = (&disk.name, &stack.below);
    let names: Vec<&str> = below.iter().map(|disk| disk.name.as_str()).collect();
    let names = names.join(", ");
    if stack.makes_requests {
        return nowhere(&format!(
            "{name} writes to {names} by requests of its own, which have no hints"
        ));
    }
    let decisions = below.iter().map(|disk| match &disk.bus {
        Bus::Nvme if kernel >= SCSI => nowhere(&format!(
            "device mapper and md pass no write streams on to {}",
            disk.name
        )),
        Bus::Nvme | Bus::Scsi | Bus::Ufs | Bus::Loop(_) | Bus::Stacked(_) | Bus::Other => {
            on_disk(system, mount, kernel, disk, false)
        }
    });
    let worst = decisions.min_by_key(|(_, reach, _)| match reach {
        Reach::No => 0,
        Reach::Unproven => 1,
        Reach::Yes => 2,
    });
    match worst {
        None => nowhere(&format!("sysfs does not list the disks below {name}")),
        Some((route, Reach::No, why)) => (route, Reach::No, why),
        Some((route, reach, why)) => (
            route,
            reach,
            format!("{name} passes hints on to {names}; {why}"),
        ),
    }
}

fn nvme(system: &System, mount: &Mount, kernel: Kernel, disk: &Disk) -> Decision {
    if kernel < FIRST_HINTS {
        return nowhere("Linux has hints from 4.13 on");
    }
    if kernel <= LAST_DIRECTIVE {
        if !disk.has_directive {
            let is_rebased = system
                .read("proc/sys/kernel/osrelease")
                .is_ok_and(|release| release.contains(".el9"));
            return nowhere(if is_rebased {
                "this kernel's NVMe driver is that of a later kernel, without the streams directive"
            } else {
                "the NVMe driver does not use streams; load nvme_core with streams=1 (on the \
                 kernel's command line: nvme_core.streams=1)"
            });
        }
        let why = format!(
            "streams=1 is set; the drive must have 4 free streams: NSSA in `nvme dir-receive /dev/{} \
             -D 1 -O 1 -H`",
            disk.name
        );
        return (Route::Directive, Reach::Unproven, why);
    }
    if kernel < SCSI {
        return nowhere("Linux 5.18 to 6.8 accept hints but do not pass them on to drives");
    }
    let streams = disk.max_write_streams.unwrap_or(0);
    if streams == 0 {
        return nowhere(if kernel < WRITE_STREAMS {
            "the NVMe driver uses hints from Linux 6.16 on"
        } else {
            "the drive has no write streams (queue/max_write_streams is 0 or missing: FDP is not \
             supported or disabled)"
        });
    }
    if mount.kind != "f2fs" {
        return nowhere(&format!(
            "the drive has {streams} write streams, but {} does not map hints to them",
            mount.kind
        ));
    }
    if kernel < F2FS {
        return nowhere("F2FS maps hints to write streams from Linux 7.2 on");
    }
    let why =
        format!("short, extreme and all others are three of the drive's {streams} write streams");
    (Route::F2fs, Reach::Yes, why)
}

fn scsi(kernel: Kernel, disk: &Disk) -> Decision {
    let route = if disk.bus == Bus::Ufs {
        Route::Ufs
    } else {
        Route::Scsi
    };
    if kernel < SCSI {
        return nowhere("the SCSI and UFS drivers use hints from Linux 6.9 on");
    }
    let why = "hints are sent as group numbers; the drive must have permanent streams \
               (`sg_stream_ctl --get` counts them)";
    (route, Reach::Unproven, why.to_owned())
}

/// Returns alternatives that work on this kernel and disk.
fn alternatives(kernel: Kernel, disk: &Disk) -> Vec<String> {
    let mut notes = Vec::new();
    if disk.bus == Bus::Nvme {
        notes.push(
            "works on any kernel: a drive with FDP, divided into one namespace for each class; \
             `saiga streams check DIR --rules RULES --plan` prints the commands"
                .to_owned(),
        );
        if kernel >= F2FS && disk.max_write_streams.is_some_and(|streams| streams > 0) {
            notes.push("works on this kernel and drive: F2FS, which has three classes".to_owned());
        }
    }
    if kernel >= ZONED_XFS && !matches!(disk.bus, Bus::Loop(_)) {
        notes.push(
            "works on this kernel with any SSD: XFS created with `mkfs.xfs -r zoned=1` (xfsprogs \
             6.15), which puts files of one class into one zone; measure it with your database \
             first"
                .to_owned(),
        );
    }
    notes
}
