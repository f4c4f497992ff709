//! Disks of `/sys/class/block`, with the directories of their file systems.

use crate::machine::Disk;
use crate::read::ReadError;
use crate::read::device::Device;
use crate::read::mounts::Mount;
use crate::read::nics::amount;
use crate::source::Source;

const BLOCK: &str = "/sys/class/block";
/// Levels of holders, such as LVM on RAID on a partition.
const MAX_LEVELS: u32 = 8;
const SECTOR_BYTES: u64 = 512;
const SKIPPED: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];

/// Devices without hardware (loop, ram, zram, dm, md) have no link `device` and are left out, as
/// are optical and floppy drives, the hidden paths of multipath NVMe, and empty card readers.
pub(super) fn read(source: &Source, mounts: &[Mount]) -> Result<Vec<Disk>, ReadError> {
    let mut disks = Vec::new();
    let names = source.names(BLOCK)?;
    for name in &names {
        if SKIPPED.iter().any(|kind| is_of(name, kind)) || is_partition(source, name, &names)? {
            continue;
        }
        let is_hidden = source.number::<u32>(&format!("{BLOCK}/{name}/hidden"))? == Some(1);
        let sectors: Option<u64> = source.number(&format!("{BLOCK}/{name}/size"))?;
        let (Some(sectors), false) = (sectors.filter(|sectors| *sectors > 0), is_hidden) else {
            continue;
        };
        if let Some(device) = behind(source, name)? {
            disks.push(disk(source, name.clone(), sectors, device, mounts)?);
        }
    }
    Ok(disks)
}

/// Whether a name is a kind and a number: `loop0`, `dm-3`.
fn is_of(name: &str, kind: &str) -> bool {
    let rest = name.strip_prefix(kind);
    rest.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()))
}

/// Whether a block device is in the directory of another one.
fn is_partition(source: &Source, name: &str, names: &[String]) -> Result<bool, ReadError> {
    let real = source.real(&format!("{BLOCK}/{name}"))?;
    let parent = real.as_deref().and_then(|real| real.parent()?.file_name());
    let parent = parent.map(|parent| parent.to_string_lossy().into_owned());
    Ok(parent.is_some_and(|parent| names.contains(&parent)))
}

/// The hardware of a disk. A multipath NVMe namespace belongs to a subsystem, which lists its
/// controllers; the first one is taken.
fn behind(source: &Source, name: &str) -> Result<Option<Device>, ReadError> {
    let link = format!("{BLOCK}/{name}/device");
    let is_subsystem = source.real(&link)?.is_some_and(|real| {
        let last = real
            .file_name()
            .map(|last| last.to_string_lossy().into_owned());
        last.is_some_and(|last| last.starts_with("nvme-subsys"))
    });
    if is_subsystem && let Some(first) = source.numbered(&link, "nvme")?.first() {
        return Device::at(source, &format!("{link}/nvme{first}"));
    }
    Device::at(source, &link)
}

fn disk(
    source: &Source,
    name: String,
    sectors: u64,
    device: Device,
    mounts: &[Mount],
) -> Result<Disk, ReadError> {
    let file = |file: &str| format!("{BLOCK}/{name}/{file}");
    let queues = source.numbered(&file("mq"), "")?.len();
    Ok(Disk {
        model: source.word(&file("device/model"))?,
        bytes: sectors.saturating_mul(SECTOR_BYTES),
        is_rotational: source.number::<u32>(&file("queue/rotational"))? == Some(1),
        queues: amount(queues.max(1)),
        scheduler: source
            .word(&file("queue/scheduler"))?
            .map(|text| selected(&text)),
        requests: source.number(&file("queue/nr_requests"))?,
        mounts: directories(source, &name, mounts)?,
        driver: device.driver,
        device: device.name,
        node: device.node,
        irqs: device.irqs,
        name,
    })
}

/// The word in brackets of `[none] mq-deadline`, or the only word.
pub(super) fn selected(text: &str) -> String {
    bracketed(text).unwrap_or(text).to_owned()
}

/// The word in brackets, with which the kernel marks the selected one of a list.
#[must_use]
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// Where the file systems of a disk, its partitions and the devices on top of these are mounted.
fn directories(source: &Source, disk: &str, mounts: &[Mount]) -> Result<Vec<String>, ReadError> {
    let mut directories = Vec::new();
    let place = format!("{BLOCK}/{disk}");
    mounted(source, disk, &place, mounts, 0, &mut directories)?;
    for name in source.names_that(&place, |name| name.starts_with(disk))? {
        let place = format!("{place}/{name}");
        mounted(source, &name, &place, mounts, 0, &mut directories)?;
    }
    directories.sort();
    directories.dedup();
    Ok(directories)
}

fn mounted(
    source: &Source,
    name: &str,
    place: &str,
    mounts: &[Mount],
    level: u32,
    directories: &mut Vec<String>,
) -> Result<(), ReadError> {
    let number = source.word(&format!("{place}/dev"))?;
    let file = format!("/dev/{name}");
    let is_on = |mount: &&Mount| {
        // Btrfs gives its file systems device numbers of their own.
        (mount.device.is_some() && mount.device == number) || mount.from == file
    };
    directories.extend(
        mounts
            .iter()
            .filter(is_on)
            .map(|mount| mount.directory.clone()),
    );
    if level < MAX_LEVELS {
        for holder in source.names(&format!("{place}/holders"))? {
            let place = format!("{BLOCK}/{holder}");
            mounted(source, &holder, &place, mounts, level + 1, directories)?;
        }
    }
    Ok(())
}
