//! Block writes as lines of text, from a tracefs instance of our own, for kernels that refuse BPF.
//!
//! The instance is removed when the tap is dropped. The next tap removes the instances that killed
//! processes left. The lines have no hints, and their times are in microseconds. Kernel:
//! Documentation/trace/ftrace.rst.

mod line;

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::device::Device;
use crate::event::Event;
use line::Line;

/// An error of following writes by tracefs.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    #[error("tracefs is not mounted, and mounting it failed ({0}); run as root outside containers")]
    Missing(rustix::io::Errno),
    #[error(
        "cannot {action} in tracefs: {error} (this needs root, and a kernel with \
         CONFIG_BLK_DEV_IO_TRACE that is not locked down)"
    )]
    Refused {
        action: String,
        error: std::io::Error,
    },
}

/// The names of this crate's instances begin with this prefix.
const PREFIX: &str = "saiga-blocktrace-";
/// Reads of `trace_pipe` per call; the kernel returns at most one page per read.
const READS: usize = 16 << 10;
const EVENT: &str = "events/block/block_bio_queue";

/// Every write and discard, from lines of text.
#[derive(Debug)]
pub(crate) struct TracefsTap {
    // Dropped first: an instance with an open pipe cannot be removed.
    pipe: File,
    instance: Instance,
    /// The start of a line whose end was not read yet.
    partial_line: Vec<u8>,
    invalid_lines: u64,
}

/// A directory in tracefs with buffers and events of its own.
#[derive(Debug)]
struct Instance {
    path: PathBuf,
    /// The mount of tracefs if this process made it.
    _mount: Option<OwnedFd>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If this fails, the next tap removes the instance.
        let _ = fs::remove_dir(&self.path);
    }
}

fn refused(action: &str) -> impl FnOnce(std::io::Error) -> TracefsError {
    let action = action.to_owned();
    |error| TracefsError::Refused { action, error }
}

impl TracefsTap {
    /// Follows writes to `devices`; to all devices if `devices` is empty.
    pub(crate) fn open(devices: &[Device], buffer_bytes: u32) -> Result<Self, TracefsError> {
        let (root, mount) = find()?;
        let instances = root.join("instances");
        // The lock keeps other processes from removing the new instance as a stale one before its
        // pipe is open.
        let lock = File::open(&instances).map_err(refused("open instances"))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| refused("lock instances")(error.into()))?;
        let instance = Instance::new(&instances, mount)?;
        instance.write("trace_clock", "mono")?;
        let cpus = fs::read_dir(instance.path.join("per_cpu")).map_or(1, Iterator::count);
        let share = u64::from(buffer_bytes) / 1024 / cpus.max(1) as u64;
        instance.write("buffer_size_kb", &share.max(4).to_string())?;
        instance.write(&format!("{EVENT}/filter"), &filter(devices))?;
        // The kernel does not remove an instance whose pipe is open.
        let pipe = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(instance.path.join("trace_pipe"))
            .map_err(refused("open trace_pipe"))?;
        drop(lock);
        instance.write(&format!("{EVENT}/enable"), "1")?;
        Ok(Self {
            pipe,
            instance,
            partial_line: Vec::new(),
            invalid_lines: 0,
        })
    }

    /// Passes each event since the last call to `on_event`.
    pub(crate) fn read(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), TracefsError> {
        let mut buffer = vec![0; 8 << 10];
        // The limit makes this call return even while other processes write.
        for _ in 0..READS {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.parse(buffer.get(..bytes).unwrap_or_default(), on_event),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(refused("read trace_pipe")(error)),
            }
        }
        Ok(())
    }

    fn parse(&mut self, bytes: &[u8], on_event: &mut dyn FnMut(Event)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial_line.extend_from_slice(part);
            let Some(line) = self.partial_line.strip_suffix(b"\n") else {
                continue;
            };
            match line::read(&String::from_utf8_lossy(line)) {
                Line::Event(event) => on_event(event),
                Line::Other => {}
                Line::Invalid => self.invalid_lines += 1,
            }
            self.partial_line.clear();
        }
    }

    /// Returns the number of events that the kernel overwrote before they were read, plus that of
    /// invalid lines.
    pub(crate) fn lost(&self) -> Result<u64, TracefsError> {
        let folder = self.instance.path.join("per_cpu");
        let cpus = fs::read_dir(folder).map_err(refused("read per_cpu"))?;
        let mut lost = self.invalid_lines;
        for cpu in cpus.flatten() {
            let text = fs::read_to_string(cpu.path().join("stats"));
            lost += lost_of(&text.map_err(refused("read the counters of a CPU"))?);
        }
        Ok(lost)
    }
}

/// Sums the counters of lost events in the `stats` file of one CPU.
fn lost_of(stats: &str) -> u64 {
    let pairs = stats.lines().filter_map(|line| line.split_once(": "));
    let lost =
        pairs.filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// Returns the event filter for operations with data on `devices`; on all devices if empty.
fn filter(devices: &[Device]) -> String {
    let devices: Vec<String> = devices
        .iter()
        .filter_map(|device| Some(format!("dev == {}", device.kernel()?)))
        .collect();
    if devices.is_empty() {
        return "nr_sector > 0".to_owned();
    }
    format!("nr_sector > 0 && ({})", devices.join(" || "))
}

impl Instance {
    fn new(instances: &Path, mount: Option<OwnedFd>) -> Result<Self, TracefsError> {
        remove_stale(instances);
        // The number distinguishes instances of one process.
        let path = (0..)
            .map(|number| instances.join(format!("{PREFIX}{}-{number}", std::process::id())))
            .find(|path| !path.exists())
            .unwrap_or_default();
        fs::create_dir(&path).map_err(refused("create an instance"))?;
        Ok(Self {
            path,
            _mount: mount,
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TracefsError> {
        fs::write(self.path.join(name), text).map_err(refused(&format!("write {name}")))
    }
}

/// Returns the root of tracefs. If tracefs is not mounted, this function mounts it where only this
/// process sees the mount, and returns the mount too.
fn find() -> Result<(PathBuf, Option<OwnedFd>), TracefsError> {
    for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if Path::new(root).join("instances").is_dir() {
            return Ok((PathBuf::from(root), None));
        }
    }
    let mount = mount().map_err(TracefsError::Missing)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    Ok((path, Some(mount)))
}

fn mount() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// Removes instances that killed processes left. The kernel refuses to remove an instance whose
/// pipe is open.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_has_devices_in_the_kernels_numbers() {
        assert_eq!(filter(&[]), "nr_sector > 0");
        let devices = [(7, 0), (8, 1)].map(|(major, minor)| Device { major, minor });
        let expected = "nr_sector > 0 && (dev == 7340032 || dev == 8388609)";
        assert_eq!(filter(&devices), expected);
    }

    #[test]
    fn counters_of_losses_are_added() {
        let stats = "entries: 0\noverrun: 17\ncommit overrun: 2\nbytes: 52\n\
                     oldest event ts:  1.0\ndropped events: 4\n";
        assert_eq!(lost_of(stats), 23);
    }
}
