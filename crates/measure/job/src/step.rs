//! The steps of one run, in order.
//!
//! In: a file, an arm, a test. Out: the steps before and after the load. No server runs until the
//! data are restored and verified. Hooks are nested: those of all arms enclose those of one arm,
//! arm encloses start, start encloses run. Steps after the load run even if the load failed, but
//! only those whose counterpart before the load was reached. The checks of TPC-C's tables are
//! outside the hooks of the run, so that only the load is between these hooks.

use saiga_experiment::file::{Arm, Experiment, Hook, How, Kind, Point};

use crate::tables::DatabaseCheck;

/// A step of a run. Servers are given by their index in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Checks that no process listens on the port of the server or uses its directories.
    CheckFree(usize),
    Hook {
        point: Point,
        side: Side,
        hook: Hook,
    },
    /// Restores the data from the snapshot.
    Restore,
    /// Compares the restored data with the snapshot.
    Verify,
    /// Drops the page cache of the kernel.
    DropCaches,
    /// Makes the hosts of server and client, and waits until the gateway serves if there is one.
    MakeHosts,
    Start(usize),
    /// Waits until the server's readiness probe succeeds.
    AwaitReady(usize),
    /// Restores the data through the servers, by a command.
    Logical(Hook),
    /// Removes all keys of the first server, by FLUSHALL.
    Flush,
    /// Sets the keys that GETs will read.
    Fill {
        /// Number of keys; 0 means the one key that redis-benchmark uses without `-r`.
        keys: u32,
        value_bytes: u32,
    },
    /// Checks the tables of a TPC-C database.
    Check {
        /// Before or after the load.
        side: Side,
        check: DatabaseCheck,
    },
    Load,
    Stop(usize),
    /// Waits until no process listens on the port of the stopped server.
    AwaitPortClosed(usize),
    /// Stops the gateway and removes the hosts.
    RemoveHosts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// The steps before and after the load, each list in order of execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) before: Vec<Step>,
    pub(crate) after: Vec<Step>,
}

/// The steps of a run of `arm`. `test` is the test of redis-benchmark; `checked` are the databases
/// whose tables are checked before and after the load.
pub(crate) fn steps(
    file: &Experiment,
    arm: &Arm,
    test: Option<&str>,
    checked: &[DatabaseCheck],
) -> Steps {
    let checks = |side| {
        let step = move |&check: &DatabaseCheck| Step::Check { side, check };
        checked.iter().map(step)
    };
    let servers = 0..arm.servers.len();
    let mut before: Vec<Step> = servers.clone().map(Step::CheckFree).collect();
    before.extend(hooks(file, arm, Point::Arm, Side::Before));
    if let How::Snapshot { .. } = file.restore.how {
        before.extend([Step::Restore, Step::Verify]);
    }
    if file.restore.drop_caches {
        before.push(Step::DropCaches);
    }
    before.extend(hooks(file, arm, Point::Start, Side::Before));
    before.extend(file.wire.map(|_| Step::MakeHosts));
    before.extend(
        servers
            .clone()
            .flat_map(|i| [Step::Start(i), Step::AwaitReady(i)]),
    );
    before.extend(through_servers(file, test));
    before.extend(checks(Side::Before));
    before.extend(hooks(file, arm, Point::Run, Side::Before));
    let mut after = hooks(file, arm, Point::Run, Side::After);
    after.extend(checks(Side::After));
    after.extend(
        servers
            .rev()
            .flat_map(|i| [Step::Stop(i), Step::AwaitPortClosed(i)]),
    );
    if file.wire.is_some() {
        // The ports of a server end with its host.
        after.retain(|step| !matches!(step, Step::AwaitPortClosed(_)));
        after.push(Step::RemoveHosts);
    }
    after.extend(hooks(file, arm, Point::Start, Side::After));
    after.extend(hooks(file, arm, Point::Arm, Side::After));
    Steps { before, after }
}

/// The steps that restore data through running servers.
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

/// The hooks of a point and side. Hooks of all arms run before those of the arm before the point,
/// and after them after the point.
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
