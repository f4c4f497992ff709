//! Write amplification during a run: the drives' own counters before the load, at intervals, and
//! after it.
//!
//! In: drives, as `saiga waf watch` takes them. Out: one factor for all of them with the bytes of
//! which it was made, and its course. The samples are kept in the folder of the run and are deleted
//! with it. A look at the drives never ends a load: one that fails between the first and the last
//! makes an interval of the course longer, and a last one that fails makes the run invalid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_experiment::file::{HostMetrics, WAF};
use saiga_experiment::result::detail::Series;
use saiga_experiment::workload::Failure;
use saiga_waf::series::{self, Start};
use saiga_waf::{Sample, WatchError, Watcher, Written};

/// Between two looks where the file does not say.
const USUAL_EVERY: Duration = Duration::from_secs(3600);
const MIB: f64 = 1_048_576.0;

/// The reason for which a run has no factor.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmplificationError {
    /// A drive gives no sample.
    #[error("cannot measure write amplification ([metrics] waf): {0}")]
    NoSample(#[from] WatchError),
    /// Its counters do not continue.
    #[error("write amplification of {drive}: {why} during the run")]
    Broken { drive: String, why: Start },
    /// The counters' steps are larger than what was written.
    #[error(
        "write amplification: the counters moved by fewer than fifty of their steps, too few for a \
         factor; make the run longer"
    )]
    Coarse,
}

/// Drives that are asked again and again.
#[derive(Debug)]
pub(crate) struct Amplification {
    drives: Vec<PathBuf>,
    every: Duration,
    watcher: Watcher,
    began: Instant,
    /// When they are asked next, since the start.
    next: Duration,
    /// Seconds since the start, and a sample of each drive.
    rounds: Vec<(f64, Vec<Sample>)>,
}

/// What was found in a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) course: Series,
}

impl Amplification {
    /// Looks for the first time; samples are kept in `dir`. `None` where `metrics` has no drives.
    ///
    /// # Errors
    /// [`Failure::Impossible`] for a drive that gives no sample.
    pub(crate) fn begin(metrics: &HostMetrics, dir: &Path) -> Result<Option<Self>, Failure> {
        if metrics.waf.is_empty() {
            return Ok(None);
        }
        let every = metrics.waf_every.unwrap_or(USUAL_EVERY);
        let mut new = Self {
            drives: metrics.waf.clone(),
            every,
            next: every,
            watcher: Watcher::new(&dir.join("waf.db"), None),
            began: Instant::now(),
            rounds: Vec::new(),
        };
        new.round().map_err(Failure::impossible)?;
        Ok(Some(new))
    }

    /// Looks again when it is time. A drive that gives no sample is asked again an interval later.
    pub(crate) fn look(&mut self) {
        if self.began.elapsed() < self.next {
            return;
        }
        self.next = self.began.elapsed() + self.every;
        // A load of hours must not end because of one point of its course.
        let _ = self.round();
    }

    /// Looks for the last time.
    ///
    /// # Errors
    /// [`AmplificationError`]: a drive gave no sample, its counters were reset, or they say too
    /// little.
    pub(crate) fn end(mut self) -> Result<Found, AmplificationError> {
        self.round()?;
        found(&self.rounds)
    }

    fn round(&mut self) -> Result<(), AmplificationError> {
        let kept = self.watcher.round(&self.drives, &|| false);
        let samples = kept.into_iter().map(|kept| kept.map(|kept| kept.sample));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        self.rounds
            .push((self.began.elapsed().as_secs_f64(), samples));
        Ok(())
    }
}

/// All drives together from the first round to the last, and from each to the next.
fn found(rounds: &[(f64, Vec<Sample>)]) -> Result<Found, AmplificationError> {
    let mut course = Series {
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
        course.at_s.push(f64::midpoint(*start, *end));
        course.mean.push(written.waf().map(|waf| waf.value));
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
    Ok(Found { metrics, course })
}

/// What all drives wrote between two rounds.
fn between(before: &[Sample], after: &[Sample]) -> Result<Written, AmplificationError> {
    let mut each = before.iter().zip(after);
    each.try_fold(Written::default(), |sum, (before, after)| {
        let interval =
            series::between(before, after).map_err(|why| AmplificationError::Broken {
                drive: after.path.clone(),
                why,
            })?;
        Ok(sum.and(interval.written))
    })
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(bytes: u128) -> f64 {
    bytes as f64 / MIB
}
