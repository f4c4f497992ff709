//! Write amplification during a run, from the drives' own counters.
//!
//! In: drives, as `saiga waf watch` takes them, sampled before the load, at intervals, and after
//! it. Out: one factor (WAF) for all drives, the bytes from which it is computed, and its time
//! series. The samples are stored in the folder of the run and deleted with it. A failed sample
//! never ends a load: if it is neither the first nor the last, the interval of the series becomes
//! longer; a failed last sample rejects the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_experiment::file::{HostMetrics, WAF};
use saiga_experiment::result::detail::Series;
use saiga_experiment::workload::Failure;
use saiga_waf::series::{self, Start};
use saiga_waf::{Sample, WatchError, Watcher, Written};

/// Interval between samples if the file has no `waf_every`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(3600);
const MIB: f64 = 1_048_576.0;

/// The write amplification of a run is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmplificationError {
    #[error("cannot measure write amplification ([metrics] waf): {0}")]
    NoSample(#[from] WatchError),
    /// The counters of a drive were reset, or the drive was replaced.
    #[error("write amplification of {drive}: {reason} during the run")]
    Discontinuous { drive: String, reason: Start },
    /// Too little was written for the resolution of the counters.
    #[error(
        "write amplification: the counters of the drives advanced by fewer than 50 of their units, \
         too few for a factor; make the run longer"
    )]
    Coarse,
}

/// Samples drives at intervals.
#[derive(Debug)]
pub(crate) struct Amplification {
    drives: Vec<PathBuf>,
    every: Duration,
    watcher: Watcher,
    began: Instant,
    /// Time of the next sample since `began`.
    next: Duration,
    /// Seconds since `began`, and a sample of each drive.
    rounds: Vec<(f64, Vec<Sample>)>,
}

/// The written bytes and the factor of a run, and the factor over time.
#[derive(Debug, PartialEq)]
pub(crate) struct WriteFigures {
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) series: Series,
}

impl Amplification {
    /// Takes the first sample; samples are stored in `dir`. Returns `None` if `metrics` names no
    /// drives.
    ///
    /// # Errors
    /// Returns [`Failure::Impossible`] if a drive cannot be sampled.
    pub(crate) fn begin(metrics: &HostMetrics, dir: &Path) -> Result<Option<Self>, Failure> {
        if metrics.waf.is_empty() {
            return Ok(None);
        }
        let every = metrics.waf_every.unwrap_or(DEFAULT_INTERVAL);
        let mut new = Self {
            drives: metrics.waf.clone(),
            every,
            next: every,
            watcher: Watcher::new(&dir.join("waf.db"), None),
            began: Instant::now(),
            rounds: Vec::new(),
        };
        new.sample().map_err(Failure::impossible)?;
        Ok(Some(new))
    }

    /// Takes a sample if the interval has passed. A failed sample is left out.
    pub(crate) fn sample_if_due(&mut self) {
        if self.began.elapsed() < self.next {
            return;
        }
        self.next = self.began.elapsed() + self.every;
        // A load of hours must not end because of one point of the time series.
        let _ = self.sample();
    }

    /// Takes the last sample and computes the factor.
    pub(crate) fn end(mut self) -> Result<WriteFigures, AmplificationError> {
        self.sample()?;
        figures(&self.rounds)
    }

    fn sample(&mut self) -> Result<(), AmplificationError> {
        let kept = self.watcher.round(&self.drives, &|| false);
        let samples = kept.into_iter().map(|kept| kept.map(|kept| kept.sample));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        self.rounds
            .push((self.began.elapsed().as_secs_f64(), samples));
        Ok(())
    }
}

/// The figures of all drives together, from the first sample to the last, and a point of the series
/// from each sample to the next.
fn figures(rounds: &[(f64, Vec<Sample>)]) -> Result<WriteFigures, AmplificationError> {
    let mut over_time = Series {
        name: WAF.to_owned(),
        at_s: Vec::new(),
        mean: Vec::new(),
        low: Vec::new(),
        high: Vec::new(),
    };
    let mut all = Written::default();
    for (index, (end, after)) in rounds.iter().enumerate().skip(1) {
        let (start, before) = &rounds[index - 1];
        let written = between(before, after)?;
        all = all.then(written);
        over_time.at_s.push(f64::midpoint(*start, *end));
        over_time.mean.push(written.waf().map(|waf| waf.value));
    }
    let mut metrics = BTreeMap::from([
        ("host_written_mib".to_owned(), mib(all.host)),
        ("flash_written_mib".to_owned(), mib(all.media)),
    ]);
    // An idle drive has no factor.
    match all.waf() {
        Some(waf) if waf.is_coarse => return Err(AmplificationError::Coarse),
        Some(waf) => drop(metrics.insert(WAF.to_owned(), waf.value)),
        None => {}
    }
    Ok(WriteFigures {
        metrics,
        series: over_time,
    })
}

/// The bytes that all drives wrote between two samples.
fn between(before: &[Sample], after: &[Sample]) -> Result<Written, AmplificationError> {
    let mut each = before.iter().zip(after);
    each.try_fold(Written::default(), |sum, (before, after)| {
        let interval =
            series::between(before, after).map_err(|reason| AmplificationError::Discontinuous {
                drive: after.path.clone(),
                reason,
            })?;
        Ok(sum.and(interval.written))
    })
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(bytes: u128) -> f64 {
    bytes as f64 / MIB
}
