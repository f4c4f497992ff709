//! Tests of the observer of the host: its calls, and the details that it returns.

use super::*;
use crate::observer::ObservedLoad;
use crate::result::Detail;

/// Records every call, and returns details for each run.
#[derive(Default)]
struct Noting {
    begun: Vec<(String, Vec<u32>, Option<Duration>)>,
    ended: usize,
}

impl HostObserver for Noting {
    fn begin(&mut self, begun: &ObservedLoad<'_>) {
        assert_eq!(self.begun.len(), self.ended, "one run at a time");
        let ObservedLoad {
            arm,
            servers,
            hogs,
            devices,
            planned,
        } = begun;
        assert_eq!(hogs.len(), 0);
        assert_eq!(*devices, ["nvme7n1"]);
        let arm = (*arm).to_owned();
        self.begun.push((arm, servers.clone(), *planned));
    }

    fn begin_self_observed(&mut self) {
        panic!("the load does not sample the host itself");
    }

    fn end(&mut self) -> Option<Detail> {
        self.ended += 1;
        Some(Detail {
            folder: Some(format!("runs/{}", self.ended)),
            ..Detail::default()
        })
    }
}

fn noted(fake: &'static Fake, size: RunSize) -> (Noting, Outcome) {
    let mut noting = Noting::default();
    let extras = Extras {
        observer: Some(&mut noting),
        ..Extras::default()
    };
    let plan = plan(1, size);
    let done = execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {});
    (noting, done.unwrap())
}

#[test]
fn runs_are_observed_and_calibrations_are_not() {
    let length = Duration::from_millis(300);
    let (noting, outcome) = noted(Fake::new(|_, _| run_with(0.0)), RunSize::Lasting(length));
    assert_eq!(outcome.runs.len(), 2);
    assert_eq!((noting.begun.len(), noting.ended), (2, 2));
    for (run, (arm, servers, planned)) in outcome.runs.iter().zip(&noting.begun) {
        // The length factor of this load is 2.
        assert_eq!((&run.arm, *planned), (arm, Some(2 * length)));
        assert_eq!(*servers, [4711]);
    }
    let folders = outcome.runs.iter().map(|run| run.detail.as_ref().unwrap());
    let folders: Vec<_> = folders.map(|detail| detail.folder.as_deref()).collect();
    assert_eq!(folders, [Some("runs/1"), Some("runs/2")]);
}

#[test]
fn a_failed_run_is_observed_to_its_end() {
    let failing = Fake::new(|_, _| Err(Failure::run("no")));
    let (noting, outcome) = noted(failing, RunSize::Operations(1));
    assert_eq!(noting.begun.len(), outcome.runs.len());
    assert_eq!(noting.ended, noting.begun.len());
    assert!(noting.begun.iter().all(|(_, _, planned)| planned.is_none()));
    assert!(outcome.runs.iter().all(|run| run.detail.is_none()));
}
