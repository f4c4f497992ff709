//! The samples of the host during one run: rows in `host.csv`, and time series for the result.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use saiga_experiment::result::detail;
use saiga_sampler::series::Series;
use saiga_sampler::summary::Summary;
use saiga_sampler::{BenchmarkSqlSink, Config, Device, Sampler, Sink};

use super::{Host, SamplerState, series};

const FILE: &str = "host.csv";
/// Shorter runs have too few rows to draw.
const DRAWN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Recording<'a> {
    host: &'a Host,
    file: PathBuf,
    /// Devices whose time series are kept individually.
    devices: Vec<Device>,
    began: Instant,
    /// Directory of the file if it is not kept.
    private: Option<tempfile::TempDir>,
}

#[derive(Debug)]
pub(crate) struct HostSamples {
    /// The time series for the result; empty for a short run.
    pub(crate) series: Vec<detail::Series>,
    /// Mean and quantiles of all metrics.
    pub(crate) summary: Summary,
}

impl<'a> Recording<'a> {
    /// Starts sampling. The file is written to `folder`, which must exist; `benchmarksql` gets the
    /// files of BenchmarkSQL's collector.
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
            None => Some(tempfile::tempdir().context("cannot create a temporary directory")?),
        };
        let folder = folder.or(private.as_ref().map(tempfile::TempDir::path));
        let file = folder.unwrap_or(Path::new(".")).join(FILE);
        let sink = Sink {
            series: Some(file.clone()),
            benchmarksql,
        };
        let devices = config.devices.clone();
        let mut sampler = host.sampler_state();
        // Stops the previous sampler first.
        *sampler = SamplerState::Nothing;
        let began = Instant::now();
        *sampler = SamplerState::Run(Sampler::start(config, &sink)?);
        drop(sampler);
        Ok(Self {
            host,
            file,
            devices,
            began,
            private,
        })
    }

    /// Stops sampling. Times count from `zero`; earlier rows are left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn end(self, zero: Instant) -> anyhow::Result<HostSamples> {
        let Self {
            host,
            file,
            devices,
            began,
            private,
        } = self;
        let watched = std::mem::take(&mut *host.sampler_state());
        let SamplerState::Run(sampler) = watched else {
            anyhow::bail!("another run is being sampled")
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
        Ok(HostSamples { series, summary })
    }
}
