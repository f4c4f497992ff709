//! Rules and routes that other programs take are put back.
//!
//! `systemctl restart systemd-networkd` and `ip route flush` are such programs. Without rules and
//! routes, the replies of all servers leave by the kernel's own routes, and their connections hang.
//! The work is bounded: a program that removes rules in a loop causes four repairs in a second and
//! a few lines.

use std::time::{Duration, Instant};

use saiga_anchor::{Routes, RoutesError, Watch};

use super::{ServiceError, system};

/// Rules and routes are compared with the kernel's at most this often.
const PAUSE: Duration = Duration::from_millis(250);
/// The same after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Without a repair for so long, the next one is reported again.
const QUIET: Duration = Duration::from_secs(60);
/// Repairs that are reported, before they are too many.
const REPORTED: u32 = 3;
/// Rules and routes that a line names.
const NAMED: usize = 4;

const TOO_MANY: &str = "another program takes rules or routes again and again: they are put back \
                        each time, without a line until there was a minute of quiet";

/// Watches rules and routes of the gateway.
pub(super) struct Guard {
    watch: Watch,
    must_compare: bool,
    compared_at: Instant,
    pause: Duration,
    reports: Reports,
}

/// Which repairs are reported.
#[derive(Default)]
struct Reports {
    last: Option<Instant>,
    /// Repairs with less than [`QUIET`] between them.
    repairs: u32,
}

impl Guard {
    pub(super) fn open(routes: &Routes) -> Result<Self, ServiceError> {
        Ok(Self {
            watch: routes.watch().map_err(system("netlink"))?,
            // What changed while the gateway was put together.
            must_compare: true,
            compared_at: Instant::now(),
            pause: PAUSE,
            reports: Reports::default(),
        })
    }

    /// Readable when [`Self::read`] has something to read.
    pub(super) const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Reads what has changed, without waiting; returns whether there may be more.
    pub(super) fn read(&mut self) -> Result<bool, ServiceError> {
        let news = self.watch.read().map_err(system("netlink"))?;
        self.must_compare |= news.is_concerned;
        Ok(news.has_more)
    }

    /// How long [`Self::repair`] has nothing to do, if it has something to do.
    pub(super) fn rest(&self) -> Option<Duration> {
        let rest = self.pause.saturating_sub(self.compared_at.elapsed());
        self.must_compare.then_some(rest)
    }

    /// Puts back what is missing, if something may be missing. Adds what is to be told to `lines`.
    ///
    /// # Errors
    /// Those of [`Routes::repair`], which is called again after a second.
    pub(super) fn repair(
        &mut self,
        routes: &mut Routes,
        lines: &mut Vec<String>,
    ) -> Result<(), RoutesError> {
        if self.rest().is_none_or(|rest| !rest.is_zero()) {
            return Ok(());
        }
        let now = Instant::now();
        let mut missing = Vec::new();
        let repaired = routes.repair(&mut missing);
        self.compared_at = now;
        self.must_compare = repaired.is_err();
        self.pause = if repaired.is_err() { RETRY } else { PAUSE };
        let remover = self.watch.remover();
        if !missing.is_empty() {
            lines.extend(self.reports.line(&missing, remover, now));
        }
        repaired
    }
}

impl Reports {
    /// What is to be told about a repair.
    fn line(&mut self, missing: &[String], by: Option<String>, now: Instant) -> Option<String> {
        let last = self.last.replace(now);
        if last.is_none_or(|last| now.duration_since(last) >= QUIET) {
            self.repairs = 0;
        }
        self.repairs = self.repairs.saturating_add(1);
        if self.repairs > REPORTED {
            let is_first = self.repairs == REPORTED + 1;
            return is_first.then(|| TOO_MANY.to_owned());
        }
        let by = by.map(|by| format!(" ({by})")).unwrap_or_default();
        let named = missing.get(..NAMED).unwrap_or(missing).join(", ");
        let more = match missing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "another program{by} has removed or changed {named}{more}: put back"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_repairs_are_reported_until_it_is_quiet() {
        let (mut reports, start) = (Reports::default(), Instant::now());
        let rule = ["rule pref 100".to_owned()];
        let by = "\"networkd\", process 7".to_owned();
        let first = reports.line(&rule, Some(by), start).unwrap();
        let expected = "another program (\"networkd\", process 7) has removed or changed rule pref \
                        100: put back";
        assert_eq!(first, expected);
        let at = |seconds| start + Duration::from_secs(seconds);
        let told = (1..1000).filter_map(|second| reports.line(&rule, None, at(second)));
        assert_eq!(told.collect::<Vec<_>>()[2..], [TOO_MANY]);
        let six = [const { String::new() }; 6];
        let line = reports.line(&six, None, at(1059)).unwrap();
        assert!(line.contains(" and 2 more: put back"), "{line}");
    }
}
