//! Somebody who looks at the host beside runs: what is told, and what becomes of what was seen.

use super::*;
use crate::beside::Begun;
use crate::result::Detail;

/// Notes every call, and has something to tell of each run.
#[derive(Default)]
struct Noting {
    begun: Vec<(String, Vec<u32>, Option<Duration>)>,
    ended: usize,
}

impl Beside for Noting {
    fn begin(&mut self, begun: &Begun<'_>) {
        assert_eq!(self.begun.len(), self.ended, "one run at a time");
        let Begun {
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

    fn stand_back(&mut self) {
        panic!("the load does not look at the host itself");
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
        beside: Some(&mut noting),
        ..Extras::default()
    };
    let plan = plan(1, size);
    let done = execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {});
    (noting, done.unwrap())
}

#[test]
fn each_run_is_looked_at_but_no_calibration() {
    let length = Duration::from_millis(300);
    let (noting, outcome) = noted(Fake::new(|_, _| run_with(0.0)), RunSize::Lasting(length));
    assert_eq!(outcome.runs.len(), 2);
    assert_eq!((noting.begun.len(), noting.ended), (2, 2));
    for (run, (arm, servers, planned)) in outcome.runs.iter().zip(&noting.begun) {
        // Its loads last twice as long as others.
        assert_eq!((&run.arm, *planned), (arm, Some(2 * length)));
        assert_eq!(*servers, [4711]);
    }
    let folders = outcome.runs.iter().map(|run| run.detail.as_ref().unwrap());
    let folders: Vec<_> = folders.map(|detail| detail.folder.as_deref()).collect();
    assert_eq!(folders, [Some("runs/1"), Some("runs/2")]);
}

#[test]
fn a_run_that_fails_is_looked_at_to_its_end() {
    let failing = Fake::new(|_, _| Err(Failure::run("no")));
    let (noting, outcome) = noted(failing, RunSize::Operations(1));
    assert_eq!(noting.begun.len(), outcome.runs.len());
    assert_eq!(noting.ended, noting.begun.len());
    assert!(noting.begun.iter().all(|(_, _, planned)| planned.is_none()));
    assert!(outcome.runs.iter().all(|run| run.detail.is_none()));
}
