//! [`Job`]: the engine's [`Workload`] for an experiment file.
//!
//! In: a parsed file, the path of this tool, the library and a [`Machine`]. Out: arms, cells, plan,
//! fingerprint and caveats for the engine, and a [`JobTarget`] per run. Files with a topology of
//! Redis servers delegate runs to `saiga-redis`; all others run the steps of `step`.

use std::cell::{self, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::file::{Arm, Experiment, How, Kind, Launch, Point, Server};
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::result::{self, Metric, Warning};
use saiga_experiment::workload::{Failure, Load, Workload};
use saiga_process::cores::{Hog, Placement};
use saiga_process::interrupt::Interrupt;
use saiga_process::network;
use saiga_process::numbers::ranges;
use saiga_process::secret;
use saiga_redis::{RedisLoad, RedisWorkload};
use saiga_tpcc::props::Props;
use serde_json::Value;

use crate::execution::{Context, Execution, run_hook};
use crate::loads::{self, JobLoad};
use crate::machine::{self, Machine};
use crate::reach::check_reach;
use crate::setup::SetupError;
use crate::step::{Side, Step, Steps, steps};
use crate::tables::DatabaseCheck;
use crate::target::{JobTarget, OwnTarget};
use crate::{client, fingerprint, hosts, line, settings, snapshots, tables};

/// The workload of an experiment file, to be executed or shown by [`dry_run`](crate::dry_run()).
pub struct Job {
    pub(crate) core: Rc<Core>,
    /// The workload that starts the servers of a Redis topology; `None` for files with
    /// `[[server]]`.
    pub(crate) private: Option<RedisWorkload>,
    /// Saiga's library, if it is installed.
    pub(crate) library: Option<PathBuf>,
}

/// State that all runs of a job share.
pub(crate) struct Core {
    pub(crate) file: Experiment,
    /// The path of this program, for `saiga run` and `saiga bench tpcc` in command lines.
    pub(crate) tool: PathBuf,
    /// The parsed props files of TPC-C.
    pub(crate) props: Vec<Props>,
    /// The databases whose tables are checked before and after each run.
    pub(crate) checked: Vec<DatabaseCheck>,
    pub(crate) probe: Option<Rc<dyn AccelerationProbe>>,
    /// The folder for the results of TPC-C, with a subfolder per run.
    pub(crate) results: Option<PathBuf>,
    /// Settings that the servers reported, by arm; an arm has none before its first run.
    pub(crate) settings: RefCell<BTreeMap<usize, BTreeMap<String, String>>>,
    /// Settings by arm from an earlier process of the same campaign.
    recalled: RefCell<BTreeMap<usize, BTreeMap<String, String>>>,
    /// Errors of hooks with `failure = "ignore"`.
    ignored: RefCell<Vec<String>>,
    /// Whether each process generates the data and their snapshot from a seed and removes them.
    pub(crate) generates_data: cell::Cell<bool>,
    /// Whether redis-benchmark has `--seed`; unset before the first run.
    pub(crate) redis_takes_seed: OnceCell<bool>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("file", &self.core.file)
            .finish_non_exhaustive()
    }
}

impl Job {
    /// A job for dry runs, which checks nothing on this machine. `library` is the path of Saiga's
    /// library, if it is installed.
    ///
    /// # Errors
    /// Returns [`SetupError::Props`] or [`SetupError::NoRun`] for an unusable props file.
    pub fn described(
        file: Experiment,
        tool: PathBuf,
        library: Option<&Path>,
    ) -> Result<Self, SetupError> {
        Self::with(file, tool, library, None, None)
    }

    fn with(
        file: Experiment,
        tool: PathBuf,
        library: Option<&Path>,
        probe: Option<Rc<dyn AccelerationProbe>>,
        results: Option<PathBuf>,
    ) -> Result<Self, SetupError> {
        let props: Vec<Props> = match &file.workload.kind {
            Kind::Tpcc { props, .. } => props.iter().map(|path| Props::read(path)).collect(),
            Kind::Redis { .. } | Kind::Command { .. } => Ok(Vec::new()),
        }?;
        if let Some(without_run) = props.iter().find(|props| props.run.is_none()) {
            let path = without_run.path.clone();
            return Err(SetupError::NoRun { path });
        }
        let private = loads::topology(&file).map(|topology| {
            let library = library.unwrap_or(Path::new("libsaiga.so"));
            let arms = file.arms.iter().map(|arm| loads::private_arm(arm, library));
            RedisWorkload::without_programs(arms.collect(), topology, None, tool.clone())
        });
        let core = Core {
            checked: tables::checked(&file.workload.kind, &props),
            file,
            tool,
            props,
            probe,
            results,
            settings: RefCell::default(),
            recalled: RefCell::default(),
            ignored: RefCell::default(),
            generates_data: cell::Cell::new(false),
            redis_takes_seed: OnceCell::new(),
        };
        let core = Rc::new(core);
        Ok(Self {
            core,
            private,
            library: library.map(Path::to_owned),
        })
    }

    /// Marks the data and their snapshot as generated by this process, which removes them at its
    /// end. The snapshot is then left out of the fingerprint, because a server never writes exactly
    /// the same bytes twice, and a partial restore is not reported.
    #[must_use]
    pub fn with_generated_data(self) -> Self {
        self.core.generates_data.set(true);
        self
    }

    /// A job that can run on `machine`. TPC-C writes its results into subfolders of `results`.
    ///
    /// # Errors
    /// Returns a [`SetupError`] if a props file is unusable, if the load would connect to other
    /// servers, or if a requirement is missing on `machine`.
    pub fn new(
        file: Experiment,
        tool: PathBuf,
        library: Option<&Path>,
        machine: &dyn Machine,
        probe: Rc<dyn AccelerationProbe>,
        results: PathBuf,
    ) -> Result<Self, SetupError> {
        let mut job = Self::with(file, tool, library, Some(Rc::clone(&probe)), Some(results))?;
        check_reach(&job.core.file, &job.core.props, machine)?;
        let missing = job.blocking(machine);
        if !missing.is_empty() {
            return Err(SetupError::Missing(missing));
        }
        let file = &job.core.file;
        if let Some(topology) = loads::topology(file) {
            let needs = file.arms.iter().find(|arm| arm.client.saiga);
            if let (Some(arm), None) = (needs, library) {
                let arm = arm.name.clone();
                return Err(SetupError::NoLibrary { arm });
            }
            let library = library.unwrap_or(Path::new(""));
            let arms = file.arms.iter().map(|arm| loads::private_arm(arm, library));
            let (arms, tool) = (arms.collect(), job.core.tool.clone());
            job.private = Some(RedisWorkload::new(arms, topology, None, tool, Some(probe))?);
        }
        Ok(job)
    }

    /// The file into which the running load writes its progress; `None` for loads other than TPC-C.
    #[must_use]
    pub fn load_file(&self) -> Option<PathBuf> {
        let has_progress = matches!(self.core.file.workload.kind, Kind::Tpcc { .. });
        let results = self.core.results.as_ref().filter(|_| has_progress)?;
        Some(client::load_file(results))
    }

    #[must_use]
    pub fn file(&self) -> &Experiment {
        &self.core.file
    }

    /// The plan with a cell per load, `pairs` pairs each; `seed` determines the order of the arms.
    #[must_use]
    pub fn plan(&self, pairs: u32, seed: u64) -> Plan<JobLoad> {
        let pace = &self.core.file.plan;
        let cell = |load: JobLoad| Cell {
            id: load.slug(),
            load,
            placement: Placement::OfFile,
            hog: Hog::None,
            cpus: [vec![], vec![]],
            hogged: vec![],
        };
        Plan {
            cells: self.loads().into_iter().map(cell).collect(),
            pairs,
            seed,
            // The file's command or props determine the length of a run.
            size: RunSize::Operations(1),
            max_foreign_cores: pace
                .max_foreign_cores
                .unwrap_or_else(saiga_process::cpu::default_foreign_cores),
        }
    }

    /// Runs the hooks before or after the experiment. Hooks after it all run, whichever fails; the
    /// first failure is returned.
    fn run_experiment_hooks(&self, side: Side, interrupt: &Interrupt) -> Result<(), Failure> {
        let around = self.core.file.hooks.at(Point::Experiment);
        let hooks = match side {
            Side::Before => &around.before,
            Side::After => &around.after,
        };
        let dir = tempfile::tempdir().map_err(Failure::impossible)?;
        let at = format!("{} {}", side.name(), Point::Experiment.name());
        let log = dir.path().join("hook.log");
        let mut first = Ok(());
        for hook in hooks {
            let done = run_hook(hook, &at, &log, &[], &self.core.ignored, interrupt).map(drop);
            if side == Side::Before {
                done?;
            } else {
                first = first.and(done);
            }
        }
        first
    }

    pub(crate) fn steps_of(&self, arm: usize, load: &JobLoad) -> Steps {
        steps(
            &self.core.file,
            &self.core.file.arms[arm],
            load.test.as_deref(),
            &self.core.checked,
        )
    }

    pub(crate) fn loads(&self) -> Vec<JobLoad> {
        match &self.core.file.workload.kind {
            Kind::Redis {
                flags, failover, ..
            } => {
                let topology = loads::topology(&self.core.file);
                loads::redis_loads(flags, topology, *failover)
            }
            Kind::Tpcc { options, .. } => vec![loads::tpcc_load(&self.core.props, options)],
            Kind::Command { name, line, .. } => vec![loads::command_load(name, line)],
        }
    }

    /// Requests per run of redis-benchmark; 1 for other loads.
    pub(crate) fn requests(&self) -> u64 {
        match &self.core.file.workload.kind {
            Kind::Redis { flags, .. } => flags.requests,
            Kind::Tpcc { .. } | Kind::Command { .. } => 1,
        }
    }

    /// Missing requirements without which no run can begin, sorted and without duplicates.
    fn blocking(&self, machine: &dyn Machine) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for arm in &self.core.file.arms {
            let Steps { before, after } = steps(&self.core.file, arm, None, &self.core.checked);
            for step in before.iter().chain([&Step::Load]).chain(&after) {
                let missing = machine::missing(&self.core.file, arm, step, machine).into_iter();
                all.extend(missing.filter(|one| one.blocks).map(|one| one.name));
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

impl Core {
    /// Reads the settings of an arm's servers in the arm's first run; later calls do nothing.
    /// `network` is the file of the client's network namespace; `None` for that of this process.
    ///
    /// # Errors
    /// Fails if a server does not report its settings, or if its version differs from that in
    /// earlier runs of the campaign.
    pub(crate) fn read_settings(&self, arm: usize, network: Option<&Path>) -> Result<(), Failure> {
        if self.settings.borrow().contains_key(&arm) {
            return Ok(());
        }
        let servers = &self.file.arms[arm].servers;
        let mut all = BTreeMap::new();
        let mut add = |name: &str, settings: BTreeMap<String, String>| {
            let named = settings.into_iter();
            all.extend(named.map(|(setting, value)| (format!("{name}.{setting}"), value)));
        };
        match &self.file.workload.kind {
            Kind::Tpcc { .. } => {
                for (index, props) in self.props.iter().enumerate() {
                    let number = format!("database {}", index + 1);
                    let by_port = servers.iter().find(|one| one.port == Some(props.url.port));
                    let name = by_port.map_or(&number, |server| &server.name);
                    let read = network::within(network, || Ok(settings::of_database(props)));
                    let read = read.map_err(Failure::impossible)?;
                    add(name, read.map_err(Failure::run)?);
                }
            }
            Kind::Redis { .. } => {
                for server in servers {
                    if let Some(port) = server.port {
                        add(
                            &server.name,
                            settings::of_redis(port).map_err(Failure::run)?,
                        );
                    }
                }
            }
            Kind::Command { .. } => {}
        }
        if let Some(before) = self.recalled.borrow().get(&arm) {
            settings::check_versions(before, &all).map_err(Failure::impossible)?;
        }
        self.settings.borrow_mut().insert(arm, all);
        Ok(())
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            file: &self.file,
            tool: &self.tool,
            ignored: &self.ignored,
            generates_data: self.generates_data.get(),
        }
    }
}

impl Workload for Job {
    type Load = JobLoad;
    type Target = JobTarget;

    fn name(&self) -> &'static str {
        "file"
    }

    fn arms(&self) -> Vec<result::Arm> {
        if let Some(private) = &self.private {
            return private.arms();
        }
        self.core
            .file
            .arms
            .iter()
            .enumerate()
            .map(|(index, arm)| self.described_arm(index, arm))
            .collect()
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.private
            .as_ref()
            .map(Workload::versions)
            .unwrap_or_default()
    }

    fn fingerprint(&self) -> BTreeMap<String, Value> {
        fingerprint::of(self)
    }

    fn settings(&self, arm: usize) -> Option<BTreeMap<String, String>> {
        let current = self.core.settings.borrow().get(&arm).cloned();
        current.or_else(|| self.core.recalled.borrow().get(&arm).cloned())
    }

    fn recall(&self, arm: usize, settings: &BTreeMap<String, String>) {
        let mut recalled = self.core.recalled.borrow_mut();
        recalled.insert(arm, settings.clone());
    }

    fn advice_for_longer_runs(&self) -> String {
        match &self.core.file.workload.kind {
            Kind::Tpcc { .. } => "longer runs (runMins of the props file)",
            Kind::Redis { .. } => "longer runs (requests of the workload)",
            Kind::Command { .. } => "longer runs (an option of the workload's command)",
        }
        .to_owned()
    }

    fn caveats(&self) -> Vec<Warning> {
        let mut caveats = self
            .private
            .as_ref()
            .map(Workload::caveats)
            .unwrap_or_default();
        caveats.extend(self.core.file.wire.iter().flat_map(|wire| wire.caveats()));
        if self.core.file.restore.how == How::None && self.private.is_none() {
            caveats.push(Warning::caveat(
                "The data were not restored between runs: each run began with the data that the \
                 previous run left.",
                "Set kind in [restore] to restore the data before each run.",
            ));
        }
        let ignored = self.core.ignored.borrow();
        if let Some(first) = ignored.first() {
            let text = format!(
                "{} failures of hooks were ignored; the first: {first}",
                ignored.len()
            );
            caveats.push(Warning::caveat(
                &text,
                "Check whether the runs are valid without these hooks.",
            ));
        }
        caveats
    }

    fn metrics(&self) -> Vec<Metric> {
        let of_props = self
            .core
            .props
            .iter()
            .flat_map(|props| props.options.clone());
        let of_props: Vec<String> = of_props.collect();
        self.core.file.own_metrics(&of_props)
    }

    fn begin(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        self.run_experiment_hooks(Side::Before, interrupt)?;
        match &self.core.file.restore.how {
            // A snapshot that does not exist yet may be created or mounted by a hook of an arm.
            How::Snapshot { snapshot, .. } if snapshot.exists() => {
                snapshots::check(snapshot, interrupt)
            }
            How::Snapshot { .. } | How::None | How::Logical(_) | How::FlushAll => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Failure> {
        self.run_experiment_hooks(Side::After, &Interrupt::never())
    }

    fn steps(&self, arm: usize, cell: &Cell<JobLoad>, _operations: u64) -> Vec<String> {
        crate::dry_run::shell_lines(self, arm, &cell.load)
    }

    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<JobLoad>,
        interrupt: &Interrupt,
    ) -> Result<JobTarget, Failure> {
        if let (Some(private), Some(cell)) = (&self.private, self.private_cell(arm, cell)) {
            let target = Box::new(private.prepare(arm, &cell, interrupt)?);
            let requests = self.requests();
            return Ok(JobTarget::Private {
                target,
                requests,
                limit: self.core.file.workload.limit(),
            });
        }
        let steps = self.steps_of(arm, &cell.load);
        let execution = Execution::open(
            self.core.context(),
            &self.core.file.arms[arm],
            steps,
            interrupt,
        )?;
        Ok(JobTarget::Own(Box::new(OwnTarget {
            core: Rc::clone(&self.core),
            arm,
            execution,
            test: cell.load.test.clone(),
            after: Ok(()),
        })))
    }
}

impl Job {
    /// `cell` for the workload of a Redis topology, with the CPUs of `arm`; `None` if the file has
    /// no topology.
    pub(crate) fn private_cell(&self, arm: usize, cell: &Cell<JobLoad>) -> Option<Cell<RedisLoad>> {
        let cpus = self.core.file.arms[arm].client.cpus.clone();
        Some(Cell {
            id: cell.id.clone(),
            load: cell.load.redis.clone()?,
            placement: cell.placement,
            hog: cell.hog,
            cpus: [cpus.clone(), cpus],
            hogged: vec![],
        })
    }

    fn described_arm(&self, index: usize, arm: &Arm) -> result::Arm {
        let line = |server: &Server| {
            line::with_launch(&server.launch, &server.command, Path::new("saiga"))
        };
        let layout = hosts::layout(&self.core.file, arm, Path::new("saiga"));
        let line = |server: &Server| match &layout {
            Some(layout) => layout.shown_server(line(server)),
            None => line(server).to_string(),
        };
        let servers: Vec<String> = arm.servers.iter().map(line).collect();
        let load = self.loads().into_iter().next();
        let test = load.as_ref().and_then(|load| load.test.as_deref());
        let client = client::line(&self.core.file, arm, test, Path::new("saiga"), None, None);
        let mut configuration: BTreeMap<String, String> =
            arm.servers.iter().flat_map(settings).collect();
        configuration.extend(Workload::settings(self, index).unwrap_or_default());
        result::Arm {
            name: arm.name.clone(),
            server: servers.join("\n"),
            client: match &layout {
                Some(layout) => layout.shown_client(client),
                None => client.to_string(),
            },
            env: arm
                .servers
                .first()
                .map(|one| one.launch.env.iter().map(shown).collect())
                .unwrap_or_default(),
            description: arm.description.clone(),
            varies: None,
            configuration,
        }
    }
}

/// An environment variable with a masked value if it is a secret, because others can read results.
fn shown((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), secret::value(name, value))
}

/// The options of a server in the file, for the report's table of differences between arms.
fn settings(server: &Server) -> BTreeMap<String, String> {
    let Launch {
        env,
        cpus,
        memory,
        saiga,
        user,
        directory,
    } = &server.launch;
    let mut all = vec![
        ("command", secret::words(&server.command).join(" ")),
        ("saiga", saiga.to_string()),
    ];
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
    add("cpus", (!cpus.is_empty()).then(|| ranges(cpus)));
    add("memory", memory.as_ref().map(ToString::to_string));
    add("user", user.clone());
    add(
        "directory",
        directory.as_ref().map(|dir| dir.display().to_string()),
    );
    let own = all
        .into_iter()
        .map(|(name, value)| (format!("{}.{name}", server.name), value));
    let env = env
        .iter()
        .map(shown)
        .map(|(name, value)| (format!("{}.env.{name}", server.name), value));
    own.chain(env).collect()
}
