//! Whoever looks at the host while a load runs.
//!
//! Deliberately absent: how (the sampler knows no engine, and the engine no sampler).

use std::time::Duration;

use crate::result::Detail;

/// A load that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun<'a> {
    /// Its arm.
    pub arm: &'a str,
    /// The processes that serve it, as far as they are ours.
    pub servers: Vec<u32>,
    /// Busy processes of ours beside it.
    pub hogs: Vec<u32>,
    /// Disks and network interfaces that are of interest one by one.
    pub devices: Vec<String>,
    /// How long it is to run; `None` when the load decides.
    pub planned: Option<Duration>,
}

/// Looks on. What goes wrong with it is its own affair: no run fails by it.
pub trait Beside {
    /// A load begins, with its servers ready.
    fn begin(&mut self, begun: &Begun<'_>);
    /// A load begins that looks at the host itself: whoever else does would only cost.
    fn stand_back(&mut self);
    /// It is over, however it ended: what was seen, if that is worth keeping.
    fn end(&mut self) -> Option<Detail>;
}

/// What a run tells itself comes first: its courses count from its own start.
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
    fn what_a_run_tells_itself_stays() {
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
