//! The options of every verb that records: directories, duration and method.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_blocktrace::Via;
use saiga_ftl::trace::Sampling;
use saiga_record::Options;

use super::target::Target;
use super::volume;

/// Options that `record` and `suggest` share.
#[derive(Debug, clap::Args)]
pub(in crate::streams) struct RecordOptions {
    /// Data directories; targets of symbolic links in them are recorded, too
    #[arg(value_name = "DIR")]
    pub(in crate::streams) dirs: Vec<PathBuf>,
    /// Record until this process ends; without DIR, its working directory
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Record for this time
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Use only this method to receive events
    #[arg(long, value_enum)]
    via: Option<ViaName>,
    /// Buffer in the kernel for events that were not read yet: a power of two
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = volume::size)]
    buffer: u64,
    /// For long recordings: record only this share of the pages, such as 1/10, selected in
    /// granules of 16 KiB
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sample: Option<Sampling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ViaName {
    /// A program in the kernel
    Bpf,
    /// Lines of text, where BPF is refused
    Tracefs,
}

impl RecordOptions {
    /// The end of the recording: that of the program, if one is given.
    pub(in crate::streams) fn target(&self, command: &[String]) -> anyhow::Result<Target> {
        Target::of(command, self.pid, self.time)
    }

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
            buffer_bytes: buffer_bytes
                .context("--buffer: give a power of two from 4KiB to 2GiB")?,
            via: self.via.map(|via| match via {
                ViaName::Bpf => Via::Bpf,
                ViaName::Tracefs => Via::Tracefs,
            }),
            sampling: self.sample,
        })
    }
}

/// Parses `1/10` or `0.1`.
fn share(text: &str) -> Result<Sampling, String> {
    let one_in = match text.split_once('/') {
        Some(("1", digits)) => digits.parse().ok(),
        Some(_) => None,
        None => text.parse().ok().and_then(one_in),
    };
    one_in.and_then(Sampling::new).ok_or_else(|| {
        let most = Sampling::MOST;
        format!("give one part of a whole number, such as 1/10 or 0.1, at least 1/{most}")
    })
}

/// The whole number N for a share of 1/N, within half a percent.
fn one_in(share: f64) -> Option<u32> {
    let number = (1.0 / share).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, which is rejected as too large"
    )]
    let one_in = number as u32;
    ((share * number - 1.0).abs() < 0.005).then_some(one_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_part_of_a_whole_number() {
        for (text, expected) in [
            ("1/10", Some(10)),
            ("0.1", Some(10)),
            ("0.333", Some(3)),
            ("1", Some(1)),
            ("1/1024", Some(1024)),
            ("1/1025", None),
            ("1/0", None),
            ("2/10", None),
            ("0.3", None),
            ("0", None),
            ("-0.5", None),
            ("nan", None),
            ("1e-9", None),
            ("10", None),
            ("1/x", None),
        ] {
            let found = share(text).ok().map(Sampling::one_in);
            assert_eq!(found, expected, "{text}");
        }
        assert!(share("0.3").unwrap_err().contains("as 1/10 or 0.1"));
    }
}
