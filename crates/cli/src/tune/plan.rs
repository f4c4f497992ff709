//! `saiga tune plan`: proposes changes, prints them, and writes the plan to a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_process::root::Root;
use saiga_topology::process::Process;
use saiga_tune::cores::faults::{self, Fault};
use saiga_tune::cores::starts;
use saiga_tune::goal::{Goal, Named};
use saiga_tune::history;
use saiga_tune::host::{Host as _, LiveHost};
use saiga_tune::persist::binding::targets;
use saiga_tune::plan::{Plan, plan};
use saiga_tune::readings::Readings;
use saiga_tune::render;
use serde_json::json;

use super::target::GoalArgs;
use super::{JournalDir, machine, units};
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Changes nothing. The plan shows the old and the new value of each setting with its risk, the \
reason, the expected effect and the source. Values that trade safety for speed are only proposed if --set names them; values that \
destroy data or open the host are refused. Apply the plan with `saiga tune apply FILE`.\n\
Exit status: 0 when there is something to change, 1 when nothing is to be changed.")]
pub(super) struct Args {
    #[command(flatten)]
    goal: GoalArgs,
    /// Set this knob to this value; KNOB@DEVICE=VALUE for one device, boot.NAME=VALUE for a
    /// parameter of the kernel (docs/tune.md). `saiga tune knobs` lists the knobs
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    named: Vec<Named>,
    /// Propose nothing for this knob
    #[arg(long, value_name = "KNOB")]
    without: Vec<String>,
    /// Also write files that set the values again after a restart of the host
    #[arg(long)]
    persistent: bool,
    /// Number of instances of the server whose start commands are printed
    #[arg(long, value_name = "N", default_value_t = 1)]
    instances: usize,
    /// Bind the services of the instances to their cores by systemd drop-ins; one for each instance
    #[arg(long = "unit", value_name = "UNIT")]
    units: Vec<String>,
    /// Also report the CPUs of this running server that the plan assigns to interrupts or to the
    /// client
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Write the plan to this file
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    out: PathBuf,
    /// Print JSON, and write no file
    #[arg(long, conflicts_with = "out")]
    json: bool,
    /// Plan for the machine whose proc and sys are below this directory
    #[arg(long, value_name = "DIR", default_value = "/")]
    sysroot: PathBuf,
    #[command(flatten)]
    journal: JournalDir,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Root::at(&args.sysroot);
    let machine = machine(&root)?;
    let host = LiveHost::new(root.clone());
    let boot = host.boot_id().unwrap_or_default();
    let store = args.journal.read_only();
    let unreadable = || format!("cannot read {}", args.journal.dir.display());
    let managed = history::managed(&store, &boot).with_context(unreadable)?;
    let mut readings =
        Readings::read(&host, &machine, managed).context("cannot read the settings")?;
    readings.before = history::before(&store, &boot).with_context(unreadable)?;
    let partition = args.goal.partition(&machine)?;
    let engine = args.goal.engine.engine();
    let starts = starts::starts(&machine, &partition, engine, args.instances)?;
    let bindings = units::bindings(&starts, &args.units)?;
    readings.add(&host, targets(bindings.keys()));
    let goal = Goal {
        engine,
        role: args.goal.role.role(),
        named: args.named.clone(),
        without: args.without.clone(),
        placement: args.goal.placement(&machine, &partition)?,
        is_persistent: args.persistent,
        bindings,
    };
    let plan = plan(&machine, &readings, &goal)?;
    let mut faults = faults::unbound(&machine, &partition.interrupts);
    if let Some(pid) = args.pid {
        let server = Process::read(&root, pid)?;
        let allowed = server.allowed().into_iter().collect();
        faults.extend(faults::of_server(&server.name, &allowed, &partition));
    }
    if args.json {
        print_json(&json!({
            "plan": plan,
            "partition": partition,
            "starts": starts,
            "faults": faults,
        }))?;
        return Ok(answer(&plan));
    }
    print_text(&render::text(&plan))?;
    print_text(&starts::text(&partition, &starts))?;
    print_text(&text_of(&faults))?;
    if plan.steps.is_empty() {
        return Ok(answer(&plan));
    }
    let text = plan.to_toml().context("cannot write the plan as TOML")?;
    saiga_process::replace::replace(&args.out, text.as_bytes(), 0o600)
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    exit::say(&format!("wrote {}", args.out.display()));
    Ok(answer(&plan))
}

/// Faults of the present division of CPUs.
fn text_of(faults: &[Fault]) -> String {
    let lines: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\nAt present\n{lines}")
    }
}

fn answer(plan: &Plan) -> ExitCode {
    if plan.steps.is_empty() {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    }
}
