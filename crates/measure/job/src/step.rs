//! The steps of one run, in order.
//!
//! Servers are down from the first step until the data are in place and checked. Hooks lie
//! inside each other: those of all arms outside those of one, arm outside start outside run.
//! What stands behind the load happens however it went, as far as its counterpart began.
//! The checks of TPC-C's tables lie outside the hooks of the run, between which there is only the
//! load.

use saiga_experiment::file::{Arm, Experiment, Hook, How, Kind, Point};

use crate::tables::Checked;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody listens on the port of this server or runs in its directories.
    Free(usize),
    /// A command of the operator.
    Hook {
        /// Around what.
        point: Point,
        /// Before it or after it.
        side: Side,
        /// The command.
        hook: Hook,
    },
    /// The data become those of the snapshot.
    Restore,
    /// And are compared with it.
    Verify,
    /// The kernel forgets what it read.
    DropCaches,
    /// A server is started.
    Start(usize),
    /// And waited for.
    Ready(usize),
    /// The data are restored through the servers.
    Logical(Hook),
    /// Every key is removed.
    Flush,
    /// The keys are made that GETs will ask for.
    Fill {
        /// How many; 0 is the one key without `-r`.
        keys: u32,
        /// And how long their values are.
        value_bytes: u32,
    },
    /// The tables of a database are looked at.
    Check {
        /// Before the load, or after it.
        side: Side,
        /// Which database, and what of it.
        checked: Checked,
    },
    /// The load runs.
    Load,
    /// A server is asked to end.
    Stop(usize),
    /// And has ended; nobody listens on its port.
    Gone(usize),
}

/// Before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before.
    Before,
    /// After.
    After,
}

/// What happens before the load, and what after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) before: Vec<Step>,
    pub(crate) after: Vec<Step>,
}

/// The steps of a run of `arm`; `test` is what redis-benchmark does in it, and `checked` are the
/// databases whose tables are looked at.
pub(crate) fn steps(
    file: &Experiment,
    arm: &Arm,
    test: Option<&str>,
    checked: &[Checked],
) -> Steps {
    let checks = |side| {
        let step = move |&checked: &Checked| Step::Check { side, checked };
        checked.iter().map(step)
    };
    let servers = 0..arm.servers.len();
    let mut before: Vec<Step> = servers.clone().map(Step::Free).collect();
    before.extend(hooks(file, arm, Point::Arm, Side::Before));
    if let How::Snapshot { .. } = file.restore.how {
        before.extend([Step::Restore, Step::Verify]);
    }
    if file.restore.drop_caches {
        before.push(Step::DropCaches);
    }
    before.extend(hooks(file, arm, Point::Start, Side::Before));
    before.extend(
        servers
            .clone()
            .flat_map(|i| [Step::Start(i), Step::Ready(i)]),
    );
    before.extend(through_servers(file, test));
    before.extend(checks(Side::Before));
    before.extend(hooks(file, arm, Point::Run, Side::Before));
    let mut after = hooks(file, arm, Point::Run, Side::After);
    after.extend(checks(Side::After));
    after.extend(servers.rev().flat_map(|i| [Step::Stop(i), Step::Gone(i)]));
    after.extend(hooks(file, arm, Point::Start, Side::After));
    after.extend(hooks(file, arm, Point::Arm, Side::After));
    Steps { before, after }
}

/// What restores data while the servers run.
fn through_servers(file: &Experiment, test: Option<&str>) -> Vec<Step> {
    match &file.restore.how {
        How::None | How::Snapshot { .. } => Vec::new(),
        How::Logical(hooks) => hooks.iter().cloned().map(Step::Logical).collect(),
        How::FlushAll => {
            let mut steps = vec![Step::Flush];
            if let (Kind::Redis { flags, .. }, Some("get")) = (&file.workload.kind, test) {
                steps.push(Step::Fill {
                    keys: flags.keys,
                    value_bytes: flags.value_bytes,
                });
            }
            steps
        }
    }
}

/// The hooks of one point and side: those of all arms are the outer ones.
fn hooks(file: &Experiment, arm: &Arm, point: Point, side: Side) -> Vec<Step> {
    let (all, own) = (file.hooks.at(point), arm.hooks.at(point));
    let hooks = match side {
        Side::Before => all.before.iter().chain(&own.before),
        Side::After => own.after.iter().chain(&all.after),
    };
    let step = |hook: &Hook| Step::Hook {
        point,
        side,
        hook: hook.clone(),
    };
    hooks.map(step).collect()
}
