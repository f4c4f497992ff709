//! Tests of the engine with a fake workload: order, repeats, interruption.

mod after_load;
mod observer;
mod resume;
mod units;

use std::cell::RefCell;
use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::campaign::{Begin, Campaign, Identity, recorded};
use crate::host;
use crate::result::{Arm, Warning};
use crate::workload::{Conditions, Figures, Load, Measured, Target};
use saiga_process::cores::{Hog, Placement};
use saiga_process::interrupt::Interrupt;

/// The result of a run of the fake workload, given the arm and the number of its earlier runs.
type Script = fn(arm: usize, nth: u32) -> Result<Measured, Failure>;

struct Fake {
    script: Script,
    /// The arm that the second one varies.
    varies: Option<&'static str>,
    ran: RefCell<BTreeMap<usize, u32>>,
    /// The record with the runs of other processes.
    record: Option<PathBuf>,
    /// Number of runs after which the user stops the experiment.
    runs_until_stop: usize,
    /// Whether the servers fail to stop.
    stubborn: bool,
    /// The result of the steps after the load of an arm.
    after: fn(arm: usize) -> Result<(), Failure>,
    /// Figures of hooks.
    around: BTreeMap<String, f64>,
    /// Units of these figures, by the number of runs so far.
    units: fn(runs: usize) -> BTreeMap<String, String>,
    /// Arms and settings that the engine passed on from the record.
    passed_settings: RefCell<Vec<(usize, BTreeMap<String, String>)>>,
    /// Arm and operations of every run, in order.
    log: RefCell<Vec<(usize, u64)>>,
    /// Seed of every run, in order.
    seeds: RefCell<Vec<u64>>,
}

struct FakeTarget<'a> {
    fake: &'a Fake,
    arm: usize,
}

impl Fake {
    fn new(script: Script) -> &'static Self {
        Self::varying(None, script)
    }

    fn varying(varies: Option<&'static str>, script: Script) -> &'static Self {
        let fake = Self::plain(script);
        Box::leak(Box::new(Self { varies, ..fake }))
    }

    fn plain(script: Script) -> Self {
        Self {
            script,
            varies: None,
            record: None,
            runs_until_stop: usize::MAX,
            stubborn: false,
            after: |_| Ok(()),
            around: BTreeMap::new(),
            units: |_| BTreeMap::new(),
            passed_settings: RefCell::default(),
            ran: RefCell::default(),
            log: RefCell::default(),
            seeds: RefCell::default(),
        }
    }
}

impl Fake {
    /// Number of earlier runs of an arm without void runs.
    fn runs_of(&self, arm: usize) -> u32 {
        let Some(dir) = &self.record else {
            let mut ran = self.ran.borrow_mut();
            let nth = ran.entry(arm).or_insert(0);
            *nth += 1;
            return *nth - 1;
        };
        let name = ["a", "b"][arm];
        let runs = recorded(dir).unwrap().unwrap().runs;
        let ran = runs.iter().filter(|run| run.arm == name).count();
        u32::try_from(ran).unwrap()
    }
}

/// A load whose calibration begins with a hundred operations.
#[derive(Clone)]
struct Hundred;

impl Load for Hundred {
    fn slug(&self) -> String {
        "load".into()
    }
    fn params(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }
    fn length_factor(&self) -> f64 {
        2.0
    }
    fn first_guess(&self) -> u64 {
        100
    }
    fn least_operations(&self) -> u64 {
        150
    }
}

impl Workload for &'static Fake {
    type Load = Hundred;
    type Target = FakeTarget<'static>;

    fn name(&self) -> &'static str {
        "fake"
    }
    fn arms(&self) -> Vec<Arm> {
        let arm = |name: &str| Arm {
            name: name.into(),
            server: String::new(),
            client: String::new(),
            env: BTreeMap::new(),
            description: None,
            varies: None,
            configuration: BTreeMap::new(),
        };
        let b = Arm {
            varies: self.varies.map(str::to_owned),
            configuration: BTreeMap::new(),
            ..arm("b")
        };
        vec![arm("a"), b]
    }
    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    fn settings(&self, arm: usize) -> Option<BTreeMap<String, String>> {
        let settings = BTreeMap::from([("buffer".to_owned(), arm.to_string())]);
        self.ran.borrow().contains_key(&arm).then_some(settings)
    }
    fn recall(&self, arm: usize, settings: &BTreeMap<String, String>) {
        self.passed_settings
            .borrow_mut()
            .push((arm, settings.clone()));
    }
    fn caveats(&self) -> Vec<Warning> {
        vec![]
    }
    fn steps(&self, _: usize, _: &Cell<Hundred>, _: u64) -> Vec<String> {
        vec![]
    }
    fn prepare(
        &self,
        arm: usize,
        _: &Cell<Hundred>,
        _: &Interrupt,
    ) -> Result<Self::Target, Failure> {
        Ok(FakeTarget { fake: self, arm })
    }
}

impl Target for FakeTarget<'_> {
    fn run(&mut self, operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        if self.fake.log.borrow().len() == self.fake.runs_until_stop {
            return Err(Failure::Interrupted);
        }
        let nth = self.fake.runs_of(self.arm);
        self.fake.log.borrow_mut().push((self.arm, operations));
        self.fake.seeds.borrow_mut().push(conditions.seed);
        let measured = (self.fake.script)(self.arm, nth)?;
        let seconds = measured.seconds * f64::from(u32::try_from(operations).unwrap());
        Ok(Measured {
            seconds,
            ..measured
        })
    }
    fn servers(&self) -> Vec<u32> {
        vec![4711]
    }
    fn devices(&self) -> Vec<String> {
        vec!["nvme7n1".into()]
    }
    fn teardown(self) -> (Figures, Result<(), Failure>) {
        let after = match self.fake.stubborn {
            true => Err(Failure::run("the server does not stop")),
            false => (self.fake.after)(self.arm),
        };
        let nth = self.fake.log.borrow().len();
        let figures = Figures {
            values: self.fake.around.clone(),
            units: (self.fake.units)(nth),
        };
        (figures, after)
    }
}

/// A run with a millisecond per operation and the given CPU time of foreign processes.
fn run_with(foreign_cpu_s: f64) -> Result<Measured, Failure> {
    Ok(Measured {
        seconds: 0.001,
        metrics: BTreeMap::from([("throughput_ops_s".to_owned(), 1000.0)]),
        foreign_cpu_s,
        window_s: 1.0,
        invalid: None,
        detail: None,
    })
}

fn plan(pairs: u32, size: RunSize) -> Plan<Hundred> {
    let cell = Cell {
        id: "cell".into(),
        load: Hundred,
        placement: Placement::Unpinned,
        hog: Hog::None,
        cpus: [vec![], vec![]],
        hogged: vec![],
    };
    Plan {
        cells: vec![cell],
        pairs,
        seed: 1,
        size,
        // More than a hypervisor can take from the machine that runs the tests.
        max_foreign_cores: 100.0,
    }
}

fn outcome(fake: &'static Fake, plan: &Plan<Hundred>) -> Result<Outcome, Failure> {
    execute(&fake, plan, &Interrupt::never(), &mut |_| {})
}

fn counted(outcome: &Outcome) -> usize {
    outcome
        .runs
        .iter()
        .filter(|run| run.rejected.is_none())
        .count()
}

#[test]
fn calibration_gives_each_arm_the_planned_length() {
    // The second arm is ten times as fast.
    let fake = Fake::new(|arm, _| {
        let seconds = if arm == 0 { 0.001 } else { 0.0001 };
        run_with(0.0).map(|measured| Measured {
            seconds,
            ..measured
        })
    });
    let outcome = outcome(fake, &plan(6, RunSize::Lasting(Duration::from_millis(100)))).unwrap();
    assert_eq!(counted(&outcome), 12);
    let last: BTreeMap<usize, u64> = fake.log.borrow().iter().copied().collect();
    assert_eq!(last, BTreeMap::from([(0, 200), (1, 2000)]));
    assert!(
        outcome
            .runs
            .iter()
            .all(|run| (run.seconds - 0.2).abs() < 1e-9)
    );
}

/// A calibration of its own would need the set-up of its variation, which may take long.
#[test]
fn an_arm_that_varies_another_uses_the_calibration_of_that_arm() {
    // The second arm is half as fast.
    let fake = Fake::varying(Some("a"), |arm, _| {
        let seconds = if arm == 0 { 0.001 } else { 0.002 };
        run_with(0.0).map(|measured| Measured {
            seconds,
            ..measured
        })
    });
    let outcome = outcome(fake, &plan(2, RunSize::Lasting(Duration::from_millis(100)))).unwrap();
    assert_eq!(counted(&outcome), 4);
    let log = fake.log.borrow();
    let of_second: Vec<u64> = log
        .iter()
        .filter(|(arm, _)| *arm == 1)
        .map(|ran| ran.1)
        .collect();
    assert_eq!(of_second, [200, 200]);
    assert_eq!(
        log[0],
        (0, 150),
        "the first arm is calibrated, whatever the order"
    );
}

#[test]
fn a_disturbed_visit_is_repeated_as_a_whole_after_the_others() {
    let fake = Fake::new(|arm, nth| run_with(if (arm, nth) == (1, 0) { 500.0 } else { 0.0 }));
    let outcome = outcome(fake, &plan(3, RunSize::Operations(10))).unwrap();
    let pairs: Vec<(u32, bool)> = outcome
        .runs
        .iter()
        .map(|run| (run.pair, run.rejected.is_none()))
        .collect();
    let (no, yes) = (false, true);
    assert_eq!(
        pairs,
        [
            (0, no),
            (0, no),
            (1, yes),
            (1, yes),
            (2, yes),
            (2, yes),
            (0, yes),
            (0, yes)
        ]
    );
    let reasons: Vec<&str> = outcome
        .runs
        .iter()
        .filter_map(|run| run.rejected.as_deref())
        .collect();
    assert!(
        reasons
            .iter()
            .any(|r| r.starts_with("other processes used 500.00 s")),
        "{reasons:?}"
    );
    assert!(
        reasons.contains(&"repeated because the run of b was rejected"),
        "{reasons:?}"
    );
}

#[test]
fn repeats_are_bounded_under_permanent_noise() {
    let fake = Fake::new(|_, _| run_with(500.0));
    let outcome = outcome(fake, &plan(8, RunSize::Operations(10))).unwrap();
    // Eight visits and at most half as many repeats, two runs each.
    assert_eq!((outcome.runs.len(), counted(&outcome)), (24, 0));
    assert!(
        outcome.given_up.is_empty(),
        "noise is not a failure of an arm"
    );
}

#[test]
fn an_arm_that_keeps_failing_is_given_up_and_the_other_continues() {
    let fake = Fake::new(|arm, _| match arm {
        0 => run_with(0.0),
        _ => Err(Failure::run("connection reset")),
    });
    let outcome = outcome(fake, &plan(8, RunSize::Operations(10))).unwrap();
    let failed = outcome.runs.iter().filter(|run| run.arm == "b").count();
    assert_eq!(failed, 3);
    let expected = (
        "cell".to_owned(),
        "b".to_owned(),
        "connection reset".to_owned(),
    );
    assert_eq!(outcome.given_up, [expected]);
    assert!(counted(&outcome) >= 8, "{}", counted(&outcome));
}

#[test]
fn an_interrupt_keeps_earlier_runs() {
    let fake = Fake::new(|arm, nth| match (arm, nth) {
        (_, 2) => Err(Failure::Interrupted),
        _ => run_with(0.0),
    });
    let outcome = outcome(fake, &plan(6, RunSize::Operations(10))).unwrap();
    assert_eq!(outcome.stopped.as_deref(), Some("interrupted"));
    assert_eq!(counted(&outcome), 4);
}

#[test]
fn an_impossible_run_ends_the_experiment() {
    let at_once = Fake::new(|_, _| Err(Failure::impossible(std::io::Error::other("no disk"))));
    let error = outcome(at_once, &plan(6, RunSize::Operations(10))).unwrap_err();
    assert_eq!(error.to_string(), "no disk");

    let later = Fake::new(|_, nth| match nth {
        3 => Err(Failure::impossible(std::io::Error::other(
            "the disk is full",
        ))),
        _ => run_with(0.0),
    });
    let outcome = outcome(later, &plan(6, RunSize::Operations(10))).unwrap();
    assert_eq!(outcome.stopped.as_deref(), Some("the disk is full"));
    assert_eq!(counted(&outcome), 6, "earlier runs are kept");
}

/// The error of the load is the cause, and Ctrl-C is not a failure of an arm, even if the servers
/// then fail to stop.
#[test]
fn servers_that_fail_to_stop_do_not_hide_the_cause() {
    let stubborn = |script: Script, runs_until_stop| -> &'static Fake {
        Box::leak(Box::new(Fake {
            runs_until_stop,
            stubborn: true,
            ..Fake::plain(script)
        }))
    };
    let plan = plan(2, RunSize::Operations(1));
    let denied = stubborn(|_, _| Err(Failure::run("Access denied")), usize::MAX);
    let reasons = outcome(denied, &plan).unwrap().runs;
    let reasons: Vec<_> = reasons
        .iter()
        .filter_map(|run| run.rejected.clone())
        .collect();
    assert!(
        reasons.iter().all(|reason| reason == "Access denied"),
        "{reasons:?}"
    );
    let stopped = outcome(stubborn(|_, _| run_with(0.0), 0), &plan).unwrap();
    assert_eq!(stopped.stopped.as_deref(), Some("interrupted"));
    assert_eq!(stopped.runs, []);
    // Without another error it is the cause itself.
    let left = outcome(stubborn(|_, _| run_with(0.0), usize::MAX), &plan).unwrap();
    let reason = left.runs[0].rejected.as_deref();
    assert_eq!(reason, Some("the server does not stop"));
    assert_eq!(left.runs[0].metrics["throughput_ops_s"], 1000.0);
}

#[test]
fn figures_of_hooks_belong_to_their_run_and_cannot_replace_metrics() {
    for (name, wanted) in [
        ("moved_bytes", None),
        (
            "throughput_ops_s",
            Some("a hook printed throughput_ops_s, which is a metric of Saiga; use another name"),
        ),
    ] {
        let fake: &'static Fake = Box::leak(Box::new(Fake {
            around: BTreeMap::from([(name.to_owned(), 7.0)]),
            ..Fake::plain(|_, _| run_with(0.0))
        }));
        let outcome = outcome(fake, &plan(1, RunSize::Operations(1))).unwrap();
        let run = &outcome.runs[0];
        assert_eq!(
            run.metrics[name],
            if wanted.is_some() { 1000.0 } else { 7.0 }
        );
        assert_eq!(run.rejected.as_deref(), wanted);
    }
}

#[test]
fn the_arms_of_a_pair_share_a_seed_and_pairs_do_not() {
    let fake = Fake::new(|_, _| run_with(0.0));
    outcome(fake, &plan(3, RunSize::Operations(1))).unwrap();
    let seeds = fake.seeds.borrow();
    let of_pairs: Vec<&[u64]> = seeds.chunks(2).collect();
    assert_eq!(of_pairs.len(), 3);
    assert!(of_pairs.iter().all(|pair| pair[0] == pair[1]), "{seeds:?}");
    assert!(of_pairs[0][0] != of_pairs[1][0] && of_pairs[1][0] != of_pairs[2][0]);
}

#[test]
fn the_runs_before_a_fatal_failure_are_kept() {
    let fake = Fake::new(|arm, nth| match (arm, nth) {
        (1, _) => Err(Failure::Impossible("the disk is full".into())),
        _ => run_with(0.0),
    });
    // The seed determines the order of the first pair; with one of two seeds the other arm is
    // first.
    let ran: Vec<usize> = (1..9)
        .map(|seed| {
            let plan = Plan {
                seed,
                ..plan(2, RunSize::Operations(1))
            };
            match outcome(fake, &plan) {
                Ok(outcome) => {
                    assert_eq!(outcome.stopped.as_deref(), Some("the disk is full"));
                    outcome.runs.len()
                }
                Err(_) => 0,
            }
        })
        .collect();
    assert!(ran.contains(&1), "{ran:?}");
}

/// JSON cannot represent such a value, so it must not get into the record.
#[test]
fn a_run_with_a_non_finite_value_is_rejected_and_the_others_are_kept() {
    let fake = Fake::new(|arm, nth| match (arm, nth) {
        (1, 1) => run_with(0.0).map(|measured| Measured {
            metrics: BTreeMap::from([
                ("throughput_ops_s".to_owned(), f64::NAN),
                ("latency_p50_us".to_owned(), 7.0),
            ]),
            ..measured
        }),
        (0, 2) => run_with(f64::INFINITY),
        _ => run_with(0.0),
    });
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(6, RunSize::Operations(1));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir.path(), &identity, Begin::Fresh).unwrap();
    let extras = Extras {
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    let done = execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap();
    assert_eq!(counted(&done), 12, "both visits are repeated");
    let reasons: Vec<_> = done
        .runs
        .iter()
        .filter_map(|run| run.rejected.clone())
        .filter(|reason| !reason.starts_with(REPEATED))
        .collect();
    assert_eq!(
        reasons,
        [
            "throughput_ops_s is not a number",
            "the CPU time of other processes is not a number"
        ]
    );
    let kept = recorded(dir.path()).unwrap().unwrap();
    assert_eq!(kept.runs.len(), done.runs.len());
}

/// The runs of a complete plan may be overwritten only when the result is on disk.
#[test]
fn a_campaign_is_finished_only_after_its_result_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new(|_, _| run_with(0.0));
    let plan = plan(6, RunSize::Operations(1));
    let identity = Identity::of(&fake, &plan, None, &host::describe(1));
    let mut campaign = Campaign::open(dir.path(), &identity, Begin::Fresh).unwrap();
    let extras = Extras {
        campaign: Some(&mut campaign),
        ..Extras::default()
    };
    execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap();
    drop(campaign);
    let again = || Campaign::open(dir.path(), &identity, Begin::Fresh);
    let refused = again().unwrap_err().to_string();
    assert!(
        refused.contains("an unfinished campaign of 12 runs"),
        "{refused}"
    );
    let mut campaign = Campaign::open(dir.path(), &identity, Begin::Resume).unwrap();
    campaign.finish(now()).unwrap();
    drop(campaign);
    assert!(again().is_ok());
}

/// Settings are read from running servers; a process that only resumes a finished campaign starts
/// none.
#[test]
fn settings_of_servers_are_recorded_for_later_processes() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(2, RunSize::Operations(1));
    let process = |begin| {
        let fake = Fake::new(|_, _| run_with(0.0));
        let identity = Identity::of(&fake, &plan, None, &host::describe(1));
        let mut campaign = Campaign::open(dir.path(), &identity, begin).unwrap();
        let extras = Extras {
            campaign: Some(&mut campaign),
            ..Extras::default()
        };
        execute_with(&fake, &plan, extras, &Interrupt::never(), &mut |_| {}).unwrap();
        (
            fake.log.borrow().len(),
            fake.passed_settings.borrow().clone(),
        )
    };
    assert_eq!(process(Begin::Fresh), (4, vec![]));
    let text = std::fs::read_to_string(dir.path().join(crate::campaign::FILE)).unwrap();
    let kept = text
        .lines()
        .filter(|line| line.contains("\"settings\":{\"arm\""));
    assert_eq!(kept.count(), 2, "once for each arm: {text}");
    let passed = |arm: usize| {
        (
            arm,
            BTreeMap::from([("buffer".to_owned(), arm.to_string())]),
        )
    };
    assert_eq!(process(Begin::Resume), (0, vec![passed(0), passed(1)]));
}
