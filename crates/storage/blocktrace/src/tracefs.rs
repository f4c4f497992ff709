//! Block writes as lines of text, from a tracefs instance of our own: what is left where BPF is refused.
//!
//! The instance goes when the tap is dropped; what a killed process has left goes with the next one. Hints are not
//! told, and times are to the microsecond.

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

/// Why writes cannot be followed by tracefs.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// There is none, and it cannot be mounted.
    #[error("tracefs is not mounted and cannot be ({0}); it takes root outside of containers")]
    Missing(rustix::io::Errno),
    /// Something in it did not work.
    #[error(
        "cannot {what} in tracefs: {error} (it takes root, and a kernel with CONFIG_BLK_DEV_IO_TRACE that is not \
             locked down)"
    )]
    Refused {
        /// What was tried.
        what: String,
        /// What the kernel said.
        error: std::io::Error,
    },
}

/// Names of our instances begin so.
const PREFIX: &str = "saiga-blocktrace-";
/// The kernel gives a page at a time.
const READS: usize = 16 << 10;
const EVENT: &str = "events/block/block_bio_queue";

/// Every write and discard, from lines of text.
#[derive(Debug)]
pub(crate) struct TracefsTap {
    // Closed before the instance goes, which it keeps in use.
    pipe: File,
    instance: Instance,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
    nonsense: u64,
}

/// A directory in tracefs with buffers and events of its own.
#[derive(Debug)]
struct Instance {
    path: PathBuf,
    /// The file system, where it is mounted for us alone.
    _mount: Option<OwnedFd>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one.
        let _ = fs::remove_dir(&self.path);
    }
}

fn refused(what: &str) -> impl FnOnce(std::io::Error) -> TracefsError {
    let what = what.to_owned();
    |error| TracefsError::Refused { what, error }
}

impl TracefsTap {
    /// Follows writes to `devices`, or to all.
    pub(crate) fn open(devices: &[Device], buffer_bytes: u32) -> Result<Self, TracefsError> {
        let (root, mount) = find()?;
        let instances = root.join("instances");
        // One process at a time: what nobody reads yet is swept away as what somebody killed has left.
        let turn = File::open(&instances).map_err(refused("open instances"))?;
        rustix::fs::flock(&turn, FlockOperation::LockExclusive)
            .map_err(|error| refused("lock instances")(error.into()))?;
        let instance = Instance::new(&instances, mount)?;
        instance.write("trace_clock", "mono")?;
        let cpus = fs::read_dir(instance.path.join("per_cpu")).map_or(1, Iterator::count);
        let share = u64::from(buffer_bytes) / 1024 / cpus.max(1) as u64;
        instance.write("buffer_size_kb", &share.max(4).to_string())?;
        instance.write(&format!("{EVENT}/filter"), &filter(devices))?;
        // Opened before events come: nobody removes an instance that is being read.
        let pipe = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(instance.path.join("trace_pipe"))
            .map_err(refused("open trace_pipe"))?;
        drop(turn);
        instance.write(&format!("{EVENT}/enable"), "1")?;
        Ok(Self {
            pipe,
            instance,
            rest: Vec::new(),
            nonsense: 0,
        })
    }

    /// Tells what has come since the last call.
    pub(crate) fn read(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), TracefsError> {
        let mut buffer = vec![0; 8 << 10];
        // Not for ever, if somebody writes without end.
        for _ in 0..READS {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.take(buffer.get(..bytes).unwrap_or_default(), tell),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(refused("read trace_pipe")(error)),
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Event)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            let Some(whole) = self.rest.strip_suffix(b"\n") else {
                continue;
            };
            match line::read(&String::from_utf8_lossy(whole)) {
                Line::Event(event) => tell(event),
                Line::Other => {}
                Line::Nonsense => self.nonsense += 1,
            }
            self.rest.clear();
        }
    }

    /// How many were overwritten before anybody read them, or were lines that made no sense.
    pub(crate) fn lost(&self) -> Result<u64, TracefsError> {
        let folder = self.instance.path.join("per_cpu");
        let cpus = fs::read_dir(folder).map_err(refused("read per_cpu"))?;
        let mut lost = self.nonsense;
        for cpu in cpus.flatten() {
            let text = fs::read_to_string(cpu.path().join("stats"));
            lost += lost_of(&text.map_err(refused("read the counters of a CPU"))?);
        }
        Ok(lost)
    }
}

/// The sum of the counters of one CPU that are about losses.
fn lost_of(stats: &str) -> u64 {
    let pairs = stats.lines().filter_map(|line| line.split_once(": "));
    let lost =
        pairs.filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// Only writes to these devices with any data.
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
        sweep(instances);
        // Several may be open in one process.
        let path = (0..)
            .map(|number| instances.join(format!("{PREFIX}{}-{number}", std::process::id())))
            .find(|path| !path.exists())
            .unwrap_or_default();
        fs::create_dir(&path).map_err(refused("make an instance"))?;
        Ok(Self {
            path,
            _mount: mount,
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TracefsError> {
        fs::write(self.path.join(name), text).map_err(refused(&format!("write {name}")))
    }
}

/// Where tracefs is; mounted for this process alone, where it is mounted nowhere.
fn find() -> Result<(PathBuf, Option<OwnedFd>), TracefsError> {
    for place in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if Path::new(place).join("instances").is_dir() {
            return Ok((PathBuf::from(place), None));
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

/// Removes what killed processes have left; the kernel keeps what somebody reads.
fn sweep(instances: &Path) {
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
    fn the_filter_names_devices_as_the_kernel_numbers_them() {
        assert_eq!(filter(&[]), "nr_sector > 0");
        let devices = [(7, 0), (8, 1)].map(|(major, minor)| Device { major, minor });
        let expected = "nr_sector > 0 && (dev == 7340032 || dev == 8388609)";
        assert_eq!(filter(&devices), expected);
    }

    #[test]
    fn counters_of_losses_are_added() {
        let stats = "entries: 0\noverrun: 17\ncommit overrun: 2\nbytes: 52\noldest event ts:  1.0\ndropped events: 4\n";
        assert_eq!(lost_of(stats), 23);
    }
}
