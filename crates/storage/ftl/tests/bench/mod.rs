//! Runs devices with a given number of closed units to the steady state.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::fmt::Debug;
use std::ops::ControlFlow;

use saiga_ftl::steady::{self, Length, Outcome};
use saiga_ftl::workload::{Part, Workload};
use saiga_ftl::{Config, Device, GcFrontier, Isolation, Policy, Quota};

/// The configuration of a device.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) config: Config,
}

impl Bench {
    /// T is exactly `units` units, and U the part that over-provisioning leaves.
    pub(crate) fn new(over_provisioning: f64, unit_pages: u32, units: u32) -> Self {
        let pages = f64::from(unit_pages * units) / (1.0 + over_provisioning);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below T"
        )]
        let logical_pages = pages.round() as u32;
        Self {
            config: Config::plain(logical_pages, over_provisioning, unit_pages),
        }
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.config.policy = policy;
        self
    }

    pub(crate) fn quota(mut self, quota: Quota) -> Self {
        self.config.quota = quota;
        self
    }

    pub(crate) fn gc(mut self, gc: GcFrontier) -> Self {
        self.config.gc = gc;
        self
    }

    pub(crate) fn streams(mut self, count: usize, isolation: Isolation) -> Self {
        self.config = self.config.with_streams(count, isolation);
        self
    }

    /// Several classes in one stream.
    pub(crate) fn classes(mut self, count: usize) -> Self {
        self.config.classes = vec![0; count];
        self
    }

    pub(crate) fn hot_and_cold(&self, pages: f64, writes: f64, classes: [u8; 2]) -> [Part; 2] {
        let all = self.config.logical_pages;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of U"
        )]
        let hot = (f64::from(all) * pages).round() as u32;
        [
            (hot, writes, classes[0]),
            (all - hot, 1.0 - writes, classes[1]),
        ]
        .map(|(pages, writes, class)| Part {
            pages,
            writes,
            class,
        })
    }

    /// Runs to the steady state, and checks every invariant there.
    pub(crate) fn run(self, workload: &mut dyn Workload) -> Outcome {
        let mut device = Device::new(self.config).unwrap();
        let go_on = &mut |_| ControlFlow::Continue(());
        let outcome = steady::run(&mut device, workload, Length::default(), go_on).unwrap();
        device.check().unwrap();
        outcome
    }

    pub(crate) fn waf(self, workload: &mut dyn Workload) -> f64 {
        self.run(workload).waf()
    }
}

/// Asserts that `found` differs from `expected` by at most `tolerance`, as a share.
pub(crate) fn assert_near(found: f64, expected: f64, tolerance: f64, what: impl Debug) {
    let error = found / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what:?}: {found:.4}, expected {expected} ({:+.2} %)",
        error * 100.0
    );
}
