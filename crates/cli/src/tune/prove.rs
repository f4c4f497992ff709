//! `saiga tune prove`: an experiment with one arm for each group of a plan's changes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_document::table::Table;
use saiga_experiment::file::Experiment;
use saiga_experiment::result::{Comparison, ExperimentResult, Verdict};
use saiga_process::child::quoted;
use saiga_process::lock::{FlockOperation, try_lock};
use saiga_process::replace::replace;
use saiga_process::root::Root;
use saiga_tune::history::history;
use saiga_tune::host::LiveHost;
use saiga_tune::plan::Plan;
use saiga_tune::prove::{ALL, Effect, Group, Hooks, experiment, groups, proven};
use saiga_tune::store::Directory;
use saiga_tune::undo::{Conflicts, undo};

use super::read_plan;
use crate::compare::{self, Common};
use crate::exit;
use crate::print::print_text;

/// Time for which an arm may hold a change that needs a confirmation.
const LONGEST_RUN: &str = "24h";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The first arm of the experiment file is the host as it is. Each other arm applies one group of \
changes before its servers start, and undoes it after they have ended, so that every change is \
measured by itself; the arm `all` has all of them. Writes the groups that gain to \
OUT/proven.toml.\n\
The changes are in a history of their own (saiga tune history --journal OUT/tune/journal). After an \
interruption, the same command undoes what is left and goes on.\n\
Exit status: 1 when no group is shown to gain.")]
pub(super) struct Args {
    /// The plan, as written by `saiga tune plan`
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The experiment file (docs/experiments.md); only its first arm is used
    #[arg(long, value_name = "FILE.toml")]
    experiment: PathBuf,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = read_plan(&args.plan)?;
    let groups = groups(&plan);
    let text = fs::read_to_string(&args.experiment)
        .with_context(|| format!("cannot read {}", args.experiment.display()))?;
    let out = args.common.out.clone();
    let out = out.context("give a directory for the results (--out)")?;
    let out = std::path::absolute(&out)?;
    let folder = Folder(out.join("tune"));
    let tool = std::env::current_exe().context("cannot find this program")?;
    let text = experiment(&text, &groups, &|group| folder.hooks(&tool, group))?;
    // `${HERE}` is the folder of the user's file.
    let file = Experiment::parse(&args.experiment, &text, &[])?;
    if args.common.dry_run {
        return compare::campaign(file, args.common);
    }
    // Held to the end: a second command would undo what an arm of this one has applied.
    let _lock = folder.lock()?;
    folder.write(&groups, &text)?;
    folder.undo_interrupted()?;
    exit::say(&format!(
        "the history of these changes: saiga tune history --journal {}",
        quoted(&folder.journal().display().to_string())
    ));
    compare::campaign(file, args.common)?;
    judge(&plan, &groups, &out)
}

/// `OUT/tune`: the plans of the groups, and a journal of their own.
struct Folder(PathBuf);

impl Folder {
    fn plan(&self, group: &Group) -> PathBuf {
        self.0
            .join(format!("{}.toml", group.name.replace('/', "-")))
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }

    fn hooks(&self, tool: &Path, group: &Group) -> Hooks {
        let word = |path: &Path| quoted(&path.display().to_string());
        let (tool, journal) = (word(tool), word(&self.journal()));
        let plan = word(&self.plan(group));
        Hooks {
            apply: format!(
                "{tool} tune apply {plan} --confirm-within {LONGEST_RUN} --journal {journal}"
            ),
            undo: format!("{tool} tune undo {} --journal {journal}", group.plan.id),
        }
    }

    /// Creates the folder and takes its lock, which ends with the process.
    fn lock(&self) -> anyhow::Result<File> {
        let folder = &self.0;
        for dir in [folder.parent().unwrap_or(folder), folder] {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            check_owner(dir)?;
        }
        let path = folder.join("lock");
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
        anyhow::ensure!(
            try_lock(&lock, FlockOperation::NonBlockingLockExclusive)?,
            "another `saiga tune prove` uses {}; wait for its end, or give another --out",
            folder.display()
        );
        Ok(lock)
    }

    fn write(&self, groups: &[Group], experiment: &str) -> anyhow::Result<()> {
        let folder = &self.0;
        for group in groups {
            let text = group
                .plan
                .to_toml()
                .context("cannot write a plan as TOML")?;
            let path = self.plan(group);
            replace(&path, text.as_bytes(), 0o600)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let path = folder.join("experiment.toml");
        replace(&path, experiment.as_bytes(), 0o600)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Undoes the changes of a run that was killed, before the experiment goes on.
    fn undo_interrupted(&self) -> anyhow::Result<()> {
        let mut host = LiveHost::new(Root::host());
        let mut store = Directory::lock(&self.journal())?;
        let entries = history(&store).context("cannot read the journals")?;
        for entry in entries.into_iter().rev().filter(|entry| entry.open > 0) {
            let report = undo(&entry.id, &mut host, &mut store, Conflicts::Report)?;
            anyhow::ensure!(
                report.is_complete,
                "an earlier run left changes; see `saiga tune undo {} --journal {}`",
                entry.id,
                self.journal().display()
            );
            exit::say(&format!(
                "undid {}, which an earlier run had left",
                entry.id
            ));
        }
        Ok(())
    }
}

/// The arms apply the plans in this directory: only the user who runs them may change it.
fn check_owner(dir: &Path) -> anyhow::Result<()> {
    let metadata = fs::metadata(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    anyhow::ensure!(
        metadata.uid() == rustix::process::geteuid().as_raw(),
        "{} belongs to another user, who could change the plans in it: give another --out",
        dir.display()
    );
    anyhow::ensure!(
        metadata.mode() & 0o022 == 0,
        "other users may write to {} and could change the plans in it: give another --out, or \
         change its mode to 0755",
        dir.display()
    );
    Ok(())
}

/// Prints what the experiment shows of each group, and writes the plan that is left.
fn judge(plan: &Plan, groups: &[Group], out: &Path) -> anyhow::Result<ExitCode> {
    let path = out.join("result.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let result = ExperimentResult::from_json(&text).with_context(|| path.display().to_string())?;
    let metric = result.headline_comparison.as_ref();
    let metric = metric
        .map(|headline| headline.metric.clone())
        .unwrap_or_default();
    let mut effects = BTreeMap::new();
    let mut table = Table::new([
        "change",
        "effect",
        metric.as_str(),
        "95 % interval",
        "pairs",
    ]);
    for group in groups {
        let found = result.comparisons.iter();
        let mut found = found.filter(|one| one.b == group.name && one.metric == metric);
        let comparison = found.next();
        let effect = comparison.map_or(Effect::NotShown, effect);
        effects.insert(group.name.clone(), effect);
        table.row(row(group, effect, comparison));
    }
    print_text(&table.to_string())?;
    let all = effects.remove(ALL);
    let proven = proven(plan, &effects);
    if proven.steps.is_empty() {
        exit::say("no change is shown to gain by itself");
        let is_gain = all == Some(Effect::Gain);
        return Ok(if is_gain {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(exit::NO)
        });
    }
    let path = out.join("proven.toml");
    let text = proven.to_toml().context("cannot write the plan as TOML")?;
    replace(&path, text.as_bytes(), 0o600)
        .with_context(|| format!("cannot write {}", path.display()))?;
    exit::say(&format!("wrote {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// A gain or harm must also hold for all comparisons of the experiment together.
fn effect(comparison: &Comparison) -> Effect {
    if comparison.holds_corrected == Some(false) {
        return Effect::NotShown;
    }
    match comparison.verdict {
        Verdict::Faster => Effect::Gain,
        Verdict::Slower => Effect::Harm,
        Verdict::NoDifferenceShown => Effect::NotShown,
    }
}

fn row(group: &Group, effect: Effect, comparison: Option<&Comparison>) -> [String; 5] {
    let ratio = comparison.map(|one| &one.ratio);
    let unknown = || "-".to_owned();
    [
        group.name.clone(),
        effect.name().to_owned(),
        ratio.map_or_else(unknown, |ratio| format!("{:.3}x", ratio.median)),
        ratio
            .and_then(|ratio| ratio.ci95)
            .map_or_else(unknown, |[low, high]| format!("{low:.3} to {high:.3}")),
        ratio.map_or_else(unknown, |ratio| ratio.n_pairs.to_string()),
    ]
}
