//! What is recorded, for how long and how: the options of every verb that records.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_blocktrace::Via;
use saiga_record::Options;

use super::target::Target;
use super::volume;

/// What is asked for.
#[derive(Debug, clap::Args)]
pub(in crate::streams) struct Wanted {
    /// Data directories; what links in them lead to is recorded, too
    #[arg(value_name = "DIR")]
    pub(in crate::streams) dirs: Vec<PathBuf>,
    /// Records until this process ends; without DIR, its working directory
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Records for so long
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Take events by this way only
    #[arg(long, value_enum)]
    via: Option<ViaName>,
    /// Room in the kernel for events that wait: a power of two
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = volume::size)]
    buffer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ViaName {
    /// A program in the kernel
    Bpf,
    /// Lines of text, where BPF is refused
    Tracefs,
}

impl Wanted {
    /// How long it lasts: as long as a program, if there is one.
    pub(in crate::streams) fn target(&self, command: &[String]) -> anyhow::Result<Target> {
        Target::of(command, self.pid, self.time)
    }

    /// The recording into a file.
    pub(in crate::streams) fn options(
        &self,
        target: &Target,
        out: PathBuf,
    ) -> anyhow::Result<Options> {
        let dirs = target.directories(&self.dirs)?;
        let buffer_bytes = u32::try_from(self.buffer)
            .ok()
            .filter(|bytes| bytes.is_power_of_two() && *bytes >= 4096);
        Ok(Options {
            dirs,
            out,
            buffer_bytes: buffer_bytes.context("--buffer: use a power of two from 4KiB to 2GiB")?,
            via: self.via.map(|via| match via {
                ViaName::Bpf => Via::Bpf,
                ViaName::Tracefs => Via::Tracefs,
            }),
        })
    }
}
