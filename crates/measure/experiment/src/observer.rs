//! [`HostObserver`]: an observer of the host while a load runs.
//!
//! Deliberately absent: the sampling itself. The crates of the engine and of the sampler do not
//! depend on each other.

use std::time::Duration;

use crate::result::Detail;

/// The run that the observer will see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLoad<'a> {
    pub arm: &'a str,
    /// PIDs of the servers that the experiment started.
    pub servers: Vec<u32>,
    /// PIDs of the CPU hogs.
    pub hogs: Vec<u32>,
    /// Disks and network interfaces to sample individually.
    pub devices: Vec<String>,
    /// Planned length; `None` if the load determines it.
    pub planned: Option<Duration>,
}

/// Observes the host during runs. An observer handles its own errors; they fail no run.
pub trait HostObserver {
    /// Called before the load starts, when its servers are ready.
    fn begin(&mut self, begun: &ObservedLoad<'_>);
    /// Called instead of [`begin`](Self::begin) before a load that samples the host itself. The
    /// observer should do nothing, to save CPU time.
    fn begin_self_observed(&mut self);
    /// Called after the load, whether it succeeded or not. Returns the samples to keep, if any.
    fn end(&mut self) -> Option<Detail>;
}

/// Combines the details of the run with those of the observer. The run's own time series take
/// precedence, because they count from the start of the run.
pub(crate) fn joined(own: Option<Box<Detail>>, seen: Option<Detail>) -> Option<Box<Detail>> {
    match (own, seen) {
        (own, None) => own,
        (None, Some(seen)) => Some(Box::new(seen)),
        (Some(mut own), Some(seen)) => {
            own.folder = own.folder.or(seen.folder);
            if own.series.is_empty() {
                own.series = seen.series;
            }
            Some(own)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::detail::Series;

    fn detail(folder: Option<&str>, series: &[&str]) -> Detail {
        let course = |name: &&str| Series {
            name: (*name).to_owned(),
            at_s: vec![0.5],
            mean: vec![Some(1.0)],
            low: Vec::new(),
            high: Vec::new(),
        };
        Detail {
            folder: folder.map(str::to_owned),
            series: series.iter().map(course).collect(),
            ..Detail::default()
        }
    }

    #[test]
    fn the_details_of_a_run_take_precedence() {
        let join = |own: Option<Detail>, seen: Option<Detail>| {
            joined(own.map(Box::new), seen).map(|joined| *joined)
        };
        let (host, own) = (
            detail(Some("runs/1"), &["steal_percent"]),
            detail(None, &["x_s"]),
        );
        assert_eq!(join(None, None), None);
        assert_eq!(join(None, Some(host.clone())), Some(host.clone()));
        assert_eq!(
            join(Some(own.clone()), Some(host.clone())),
            Some(detail(Some("runs/1"), &["x_s"]))
        );
        assert_eq!(
            join(Some(detail(None, &[])), Some(host.clone())),
            Some(host)
        );
        assert_eq!(join(Some(own.clone()), None), Some(own));
    }
}
