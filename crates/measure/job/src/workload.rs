//! [`Job`]: an experiment file as the engine sees it.

use std::cell::{self, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::cores::{Hog, Placement};
use saiga_experiment::file::{Arm, Dress, Experiment, How, Kind, Point, Server};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::numbers::ranges;
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::result::{self, Metric, Warning};
use saiga_experiment::secret;
use saiga_experiment::workload::{Failure, Load, Workload};
use saiga_redis::{RedisLoad, RedisWorkload};
use saiga_tpcc::props::Props;
use serde_json::Value;

use crate::loads::{self, JobLoad};
use crate::machine::{self, Machine};
use crate::reach::check_reach;
use crate::setup::SetupError;
use crate::site::{Campaign, Site, run_hook};
use crate::step::{Side, Step, Steps, steps};
use crate::tables::Checked;
use crate::target::{JobTarget, OwnTarget};
use crate::{client, facts, line, settings, snapshots, tables};

/// An experiment that can be run, or shown.
pub struct Job {
    pub(crate) core: Rc<Core>,
    /// The private servers of a topology.
    pub(crate) private: Option<RedisWorkload>,
    /// Saiga's, if it is there.
    pub(crate) library: Option<PathBuf>,
}

/// What all runs have in common.
pub(crate) struct Core {
    pub(crate) file: Experiment,
    /// This tool, which is `saiga run` and `saiga bench tpcc`, too.
    pub(crate) tool: PathBuf,
    /// What the props files of TPC-C say.
    pub(crate) props: Vec<Props>,
    /// The databases whose tables are looked at before each run and after it.
    pub(crate) checked: Vec<Checked>,
    pub(crate) probe: Option<Rc<dyn AccelerationProbe>>,
    /// Where TPC-C leaves what each run measured, a folder for each.
    pub(crate) results: Option<PathBuf>,
    /// What the servers of each arm say of their settings, once they have run.
    pub(crate) settings: RefCell<BTreeMap<usize, BTreeMap<String, String>>>,
    /// What they said in an earlier process of the same campaign.
    recalled: RefCell<BTreeMap<usize, BTreeMap<String, String>>>,
    ignored: RefCell<Vec<String>>,
    /// Whether every process makes the data and their snapshot, from a seed, and removes them.
    pub(crate) makes_data_anew: cell::Cell<bool>,
    /// Whether redis-benchmark can be given a seed, once it was asked.
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
    /// One that can say what it would run; `library` is Saiga's, if it is there.
    ///
    /// # Errors
    /// [`SetupError::Props`] or [`SetupError::NoRun`].
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
        if let Some(mute) = props.iter().find(|props| props.run.is_none()) {
            let path = mute.path.clone();
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
            makes_data_anew: cell::Cell::new(false),
            redis_takes_seed: OnceCell::new(),
        };
        let core = Rc::new(core);
        Ok(Self {
            core,
            private,
            library: library.map(Path::to_owned),
        })
    }

    /// The same where every process makes the data and their snapshot anew, alike but for what a
    /// server writes by itself, and removes them: their fingerprint does not tell one campaign from
    /// another, and nobody is told of what a restore has left half done.
    #[must_use]
    pub fn on_data_made_anew(self) -> Self {
        self.core.makes_data_anew.set(true);
        self
    }

    /// One that can be run on `machine`; TPC-C leaves what it measured in folders of `results`.
    ///
    /// # Errors
    /// [`SetupError`].
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

    /// Where the load says how it fares while it runs, for loads that do.
    #[must_use]
    pub fn load_file(&self) -> Option<PathBuf> {
        let is_told = matches!(self.core.file.workload.kind, Kind::Tpcc { .. });
        let results = self.core.results.as_ref().filter(|_| is_told)?;
        Some(client::load_file(results))
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Experiment {
        &self.core.file
    }

    /// What runs when.
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
            // The load itself knows how long it is.
            size: RunSize::Operations(1),
            max_foreign_cores: pace
                .max_foreign_cores
                .unwrap_or_else(saiga_experiment::cpu::usual_foreign_cores),
        }
    }

    fn around(&self, side: Side, interrupt: &Interrupt) -> Result<(), Failure> {
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

    /// Requests in a run of redis-benchmark.
    pub(crate) fn requests(&self) -> u64 {
        match &self.core.file.workload.kind {
            Kind::Redis { flags, .. } => flags.requests,
            Kind::Tpcc { .. } | Kind::Command { .. } => 1,
        }
    }

    /// What is missing without which a run cannot even begin, each once.
    fn blocking(&self, machine: &dyn Machine) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for arm in &self.core.file.arms {
            let Steps { before, after } = steps(&self.core.file, arm, None, &self.core.checked);
            for step in before.iter().chain([&Step::Load]).chain(&after) {
                let missing = machine::missing(&self.core.file, arm, step, machine).into_iter();
                all.extend(missing.filter(|one| one.blocks).map(|one| one.what));
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

impl Core {
    /// Asks the servers of an arm for their settings, the first time that they run.
    pub(crate) fn ask_settings(&self, arm: usize) -> Result<(), Failure> {
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
                    add(name, settings::of_database(props).map_err(Failure::run)?);
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
            settings::same_versions(before, &all).map_err(Failure::impossible)?;
        }
        self.settings.borrow_mut().insert(arm, all);
        Ok(())
    }

    pub(crate) fn campaign(&self) -> Campaign<'_> {
        Campaign {
            file: &self.file,
            tool: &self.tool,
            ignored: &self.ignored,
            makes_data_anew: self.makes_data_anew.get(),
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

    fn facts(&self) -> BTreeMap<String, Value> {
        facts::of(self)
    }

    fn settings(&self, arm: usize) -> Option<BTreeMap<String, String>> {
        let asked = self.core.settings.borrow().get(&arm).cloned();
        asked.or_else(|| self.core.recalled.borrow().get(&arm).cloned())
    }

    fn recall(&self, arm: usize, settings: &BTreeMap<String, String>) {
        let mut recalled = self.core.recalled.borrow_mut();
        recalled.insert(arm, settings.clone());
    }

    fn remedy(&self) -> String {
        match &self.core.file.workload.kind {
            Kind::Tpcc { .. } => "longer runs (runMins of the props file)",
            Kind::Redis { .. } => "longer runs (requests of the workload)",
            Kind::Command { .. } => "longer runs (what the workload's command says)",
        }
        .to_owned()
    }

    fn caveats(&self) -> Vec<Warning> {
        let mut caveats = self
            .private
            .as_ref()
            .map(Workload::caveats)
            .unwrap_or_default();
        if self.core.file.restore.how == How::None && self.private.is_none() {
            caveats.push(Warning::caveat(
                "The data were not restored between runs: each run began with what the one \
                 before it left.",
                "Say in [restore] how the data become what they were.",
            ));
        }
        let ignored = self.core.ignored.borrow();
        if let Some(first) = ignored.first() {
            let text = format!(
                "{} times a hook failed and was ignored; the first: {first}",
                ignored.len()
            );
            caveats.push(Warning::caveat(
                &text,
                "See whether the runs were what they should be.",
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
        self.around(Side::Before, interrupt)?;
        match &self.core.file.restore.how {
            // One that is not there yet is made, or mounted, by a hook of an arm.
            How::Snapshot { snapshot, .. } if snapshot.exists() => {
                snapshots::check(snapshot, interrupt)
            }
            How::Snapshot { .. } | How::None | How::Logical(_) | How::FlushAll => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Failure> {
        self.around(Side::After, &Interrupt::never())
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
        let site = Site::open(
            self.core.campaign(),
            &self.core.file.arms[arm],
            steps,
            interrupt,
        )?;
        Ok(JobTarget::Own(Box::new(OwnTarget {
            core: Rc::clone(&self.core),
            arm,
            site,
            test: cell.load.test.clone(),
            after: Ok(()),
        })))
    }
}

impl Job {
    /// The same cell for private servers, with the CPUs of this arm.
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
            line::dressed(&server.dress, &server.command, Path::new("saiga")).to_string()
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
            client: client.to_string(),
            env: arm
                .servers
                .first()
                .map(|one| one.dress.env.iter().map(shown).collect())
                .unwrap_or_default(),
            description: arm.description.clone(),
            varies: None,
            configuration,
        }
    }
}

/// A variable as results have it, which others can read.
fn shown((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), secret::value(name, value))
}

/// What a file says of a server, for the list of what differs between arms.
fn settings(server: &Server) -> BTreeMap<String, String> {
    let Dress {
        env,
        cpus,
        memory,
        saiga,
        user,
        directory,
    } = &server.dress;
    let mut all = vec![
        ("command", secret::words(&server.command).join(" ")),
        ("saiga", saiga.to_string()),
    ];
    let mut said = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
    said("cpus", (!cpus.is_empty()).then(|| ranges(cpus)));
    said("memory", memory.as_ref().map(ToString::to_string));
    said("user", user.clone());
    said(
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
