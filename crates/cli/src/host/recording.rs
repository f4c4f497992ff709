//! The host beside one run: its rows in `host.csv`, and from them what a result keeps.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use saiga_experiment::result::detail;
use saiga_sampler::series::Series;
use saiga_sampler::summary::Summary;
use saiga_sampler::{BenchmarkSqlSink, Config, Device, Sampler, Sink};

use super::{Host, Watching, series};

/// The name of the file.
const FILE: &str = "host.csv";
/// Shorter runs have too few rows to draw.
const DRAWN: Duration = Duration::from_secs(5);

/// A run that is watched.
#[derive(Debug)]
pub(crate) struct Recording<'a> {
    host: &'a Host,
    file: PathBuf,
    /// Whose courses are kept one by one.
    devices: Vec<Device>,
    began: Instant,
    /// Where the file is when nobody wants to keep it.
    private: Option<tempfile::TempDir>,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The courses that a result keeps; none of a short run.
    pub(crate) series: Vec<detail::Series>,
    /// Everything in a few numbers.
    pub(crate) summary: Summary,
}

impl<'a> Recording<'a> {
    /// Begins to watch; `folder` gets the file, and must be there; `benchmarksql` gets the files of
    /// its collector.
    ///
    /// # Errors
    /// There is no `/proc`, no thread, or the file cannot be made.
    pub(crate) fn begin(
        host: &'a Host,
        config: Config,
        folder: Option<&Path>,
        benchmarksql: Option<BenchmarkSqlSink>,
    ) -> anyhow::Result<Self> {
        let private = match folder {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("cannot make a folder for temporary files")?),
        };
        let folder = folder.or(private.as_ref().map(tempfile::TempDir::path));
        let file = folder.unwrap_or(Path::new(".")).join(FILE);
        let sink = Sink {
            series: Some(file.clone()),
            benchmarksql,
        };
        let devices = config.devices.clone();
        let mut watching = host.watching();
        // What looked until now ends first.
        *watching = Watching::Nothing;
        let began = Instant::now();
        *watching = Watching::Run(Sampler::start(config, &sink)?);
        drop(watching);
        Ok(Self {
            host,
            file,
            devices,
            began,
            private,
        })
    }

    /// Ends it. Times count from `zero`; what came before is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn end(self, zero: Instant) -> anyhow::Result<Seen> {
        let Self {
            host,
            file,
            devices,
            began,
            private,
        } = self;
        let watched = std::mem::take(&mut *host.watching());
        let Watching::Run(sampler) = watched else {
            anyhow::bail!("another run is watched")
        };
        let summary = sampler.stop();
        let shift_s = match zero.checked_duration_since(began) {
            Some(later) => -later.as_secs_f64(),
            None => began.duration_since(zero).as_secs_f64(),
        };
        let lasted_s = summary.cost.wall_s + shift_s;
        let series = if lasted_s < DRAWN.as_secs_f64() {
            Vec::new()
        } else {
            let is_wanted = |name: &str| series::is_wanted(name, &devices);
            series::of(&Series::read_columns(&file, is_wanted)?, &devices, shift_s)
        };
        drop(private);
        Ok(Seen { series, summary })
    }
}
