//! `saiga compare tpcc --engine`: a private server, its tables built once and restored for each
//! run.
//!
//! The server's files are in a temporary directory, which is removed when the command ends. The
//! directory's name is derived from `--out`, so that a resumed campaign has the same paths. The
//! rows are generated from a fixed seed.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use saiga_database::{Engine, Installation, Server};
use saiga_experiment::campaign::Claim;
use saiga_experiment::draft::Draft;
use saiga_experiment::file::Experiment;
use saiga_hosts::{Hosts, Layout};
use saiga_job::tpcc::PrivatePlan;
use saiga_process::child::{CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::port;
use saiga_program::library;
use saiga_snapshot::{Unseen, check_not_running};

use crate::exit;
use saiga_document::number::counted;

use super::super::file::Prepared;
use super::super::options::{ArmName, TpccArgs};
use super::super::over::{self, WireName};
use super::super::{file, out};
use super::{EXPERIMENT, check_goes_on, pace, parsed, preface, take_if_missing, this_tool};

const USUAL_WAREHOUSES: u32 = 2;
const USUAL_TERMINALS: u32 = 8;
const USUAL_SECONDS: f64 = 30.0;
/// Fixed, so that a resumed campaign has the same rows.
const BUILD_SEED: &str = "1";
/// Time limit of each step; building many warehouses takes hours.
const BUILD_LIMIT: Duration = Duration::from_secs(24 * 3600);
const PROPS: &str = "tpcc.props";

/// Creates the server and its tables, compares, and removes everything except the results. With
/// --dry-run, only prints the steps.
pub(super) fn run(args: TpccArgs) -> anyhow::Result<ExitCode> {
    let engine = engine(&args)?;
    if args.common.dry_run {
        return describe(engine, args);
    }
    if args.over.is_some() {
        over::check_rights()?;
    }
    let dir = out(&args.common)?;
    // Declared before `claim`, and thus dropped after it: an unused claim first removes its
    // campaign file. Only without this file does the draft remove its own files.
    let mut draft = Draft::in_folder(dir)?;
    let real = dir
        .canonicalize()
        .context("cannot find the path of --out")?;
    // Before the claim, no file is written or removed: another process may use the directory.
    let claim = Claim::take(&real, args.common.stopping.begin())?;
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let port = match args.over {
        Some(_) => engine.port(),
        None => chosen_port(&args, &claim, &real)?,
    };
    let folder = std::env::temp_dir().join(format!("saiga-tpcc-{:016x}", hash(&real)));
    let plan = plan(&args, engine, port, folder, real.join(PROPS));
    let private = plan.installation(saiga_database::find(engine, &[])?);
    let toml = plan.experiment_file(&private).toml();
    let experiment = parsed(&args, &toml)?;
    let props = plan.props_text();
    check_goes_on(&claim, &real, &[(PROPS, &props), (EXPERIMENT, &toml)])?;
    // Found before any file is created: without the library, there is no arm to compare.
    let library = library::find()?;
    let folder = Folder::make(&plan.folder)?;
    draft.write(PROPS, &props)?;
    draft.write(EXPERIMENT, &toml)?;
    let tool = tool_for(&private, &library, &folder.0, &interrupt)?;
    prepare(&plan, &private, &tool, &interrupt)?;
    let prepared = Prepared {
        claim: Some(claim),
        makes_data_anew: true,
    };
    let done = file::campaign_by(tool, experiment, args.common, prepared);
    drop(folder);
    done
}

/// Prints the steps. Creates only a temporary props file.
fn describe(engine: Engine, args: TpccArgs) -> anyhow::Result<ExitCode> {
    let dir = tempfile::tempdir().context("cannot create a temporary directory")?;
    let port = match args.port {
        _ if args.over.is_some() => engine.port(),
        Some(port) => port,
        None => port::choose(None)?,
    };
    let folder = std::env::temp_dir().join("saiga-tpcc-{hash of --out}");
    let plan = plan(&args, engine, port, folder, dir.path().join(PROPS));
    // The programs need not be installed.
    let private = plan.installation(saiga_database::find(engine, &[]).unwrap_or_default());
    fs::write(&plan.props, plan.props_text())?;
    preface(&format!(
        "# once: create the private server in {}, start it, load its tables, check them, stop it\n\
         saiga bench tpcc build --props {PROPS} --seed {BUILD_SEED}\n\
         saiga bench tpcc check --props {PROPS}\n\
         {}\n",
        plan.folder.display(),
        plan.restore_point(&private).line(),
    ))?;
    let toml = plan.experiment_file(&private).toml();
    let experiment = parsed(&args, &toml)?;
    file::campaign(experiment, args.common)
}

/// The plan that follows from the options.
fn plan(
    args: &TpccArgs,
    engine: Engine,
    port: u16,
    folder: PathBuf,
    props: PathBuf,
) -> PrivatePlan {
    let warehouses = args.tpcc.warehouses.unwrap_or(USUAL_WAREHOUSES);
    let most = warehouses.saturating_mul(10);
    PrivatePlan {
        engine,
        port,
        folder,
        props,
        warehouses,
        terminals: args.tpcc.terminals.unwrap_or(USUAL_TERMINALS.min(most)),
        wire: args.over.map(WireName::wire),
        under_saiga: match args.arms.as_slice() {
            [] => vec![false, true],
            given => given.iter().map(|arm| *arm != ArmName::Kernel).collect(),
        },
        length: Duration::from_secs_f64(args.seconds.unwrap_or(USUAL_SECONDS)),
        pace: pace(args),
    }
}

/// Creates the server, builds and checks the tables, and takes the snapshot.
fn prepare(
    plan: &PrivatePlan,
    private: &Installation,
    tool: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    exit::say(&format!(
        "creating a private {} with {} in {}",
        plan.engine.name(),
        counted(plan.warehouses, "warehouse"),
        plan.folder.display()
    ));
    private.create("tpcc", interrupt)?;
    // Declared before the server, and thus dropped after it.
    let hosts = plan.wire.map(|wire| {
        let gateway = None;
        Hosts::start(&Layout { wire, gateway }, interrupt)
    });
    let hosts = hosts.transpose()?;
    let places = hosts.as_ref().map(Hosts::places);
    let (sizes, of_server) = (
        plan.sizes(),
        places.as_ref().map(|places| places.server.clone()),
    );
    let loading = Server::start_to_load(private, plan.endpoint(), &sizes, of_server, interrupt)?;
    for step in [&["build", "--seed", BUILD_SEED][..], &["check"]] {
        let network = places.as_ref().map(|places| places.client.clone());
        bench(tool, step, &plan.props, network, interrupt)?;
    }
    loading.stop_in_order()?;
    take_if_missing(&plan.restore_point(private))
}

/// The database system of --engine.
fn engine(args: &TpccArgs) -> anyhow::Result<Engine> {
    let theirs = [
        ("--server", !args.tpcc.server.is_empty()),
        ("--arm-a", !args.tpcc.arm_a.is_empty()),
        ("--arm-b", !args.tpcc.arm_b.is_empty()),
        ("--snapshot", args.tpcc.snapshot.is_some()),
    ];
    if let Some((flag, _)) = theirs.iter().find(|(_, given)| *given) {
        bail!("{flag} needs --props FILE, which names the database of the server");
    }
    check_arms(args)?;
    let Some(name) = args.engine else {
        bail!(
            "give --engine mariadb or --engine postgres for a private server, or --props FILE with \
             --server 'COMMAND LINE' for your own"
        );
    };
    let (warehouses, terminals) = (args.tpcc.warehouses, args.tpcc.terminals);
    let most = warehouses.unwrap_or(USUAL_WAREHOUSES).saturating_mul(10);
    if let Some(terminals) = terminals.filter(|terminals| *terminals > most) {
        bail!("--terminals {terminals}: at most {most}, ten for each warehouse");
    }
    Ok(name.engine())
}

/// Checks that the arms are possible on this host, or on two hosts.
fn check_arms(args: &TpccArgs) -> anyhow::Result<()> {
    if args.over.is_some() {
        return over::kinds(over::arm_names(&args.arms)).map(drop);
    }
    let foreign = [ArmName::Unix, ArmName::Gateway];
    if args.arms.len() == 1 || args.arms.iter().any(|arm| foreign.contains(arm)) {
        bail!(
            "--arms: give at least two arms, each kernel or saiga, for TPC-C on a private server; \
             gateway needs --over"
        );
    }
    Ok(())
}

/// The given port. Without it, the port of the resumed campaign, or a free port.
fn chosen_port(args: &TpccArgs, claim: &Claim, dir: &Path) -> anyhow::Result<u16> {
    let before = claim.resumed_file().and_then(|_| {
        let file = Experiment::read(&dir.join(EXPERIMENT), &[]).ok()?;
        file.arms.first()?.servers.first()?.port
    });
    Ok(port::choose(args.port.or(before))?)
}

/// Runs a step of `saiga bench tpcc` in the network namespace with the file `network`. Its stdout
/// and stderr go to the stderr of this process.
fn bench(
    tool: &Path,
    step: &[&str],
    props: &Path,
    network: Option<PathBuf>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let stderr = || std::io::stderr().as_fd().try_clone_to_owned();
    let (out, err) = (stderr()?, stderr()?);
    let words = ["bench", "tpcc"]
        .iter()
        .chain(step)
        .copied()
        .map(str::to_owned);
    let words = words.chain(["--props".to_owned(), props.display().to_string()]);
    let line = CommandLine {
        network,
        ..CommandLine::new(&tool.to_string_lossy(), words)
    };
    let mut child = line.spawn("saiga", out.into(), err.into())?;
    match child.wait(BUILD_LIMIT, interrupt)? {
        Waited::Ended(ended) if ended.status.success() => Ok(()),
        Waited::Ended(ended) => bail!("`{line}` ended with {}", ended.status),
        Waited::Interrupted => {
            child.stop()?;
            bail!("interrupted while the tables were built")
        }
        Waited::TimeOver => bail!("`{line}` did not end within a day"),
    }
}

/// The path of this program. If the server's user cannot execute it or cannot read the library, as
/// in a private home directory, copies both and returns the path of the copy.
fn tool_for(
    private: &Installation,
    library: &Path,
    folder: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<PathBuf> {
    let tool = this_tool()?;
    if private.passes_test("-x", &tool, interrupt)?
        && private.passes_test("-r", library, interrupt)?
    {
        return Ok(tool);
    }
    let (bin, lib) = (folder.join("bin"), folder.join("lib/saiga"));
    let from_to = [
        (bin, tool.as_path(), "saiga"),
        (lib, library, library::LIBSAIGA),
    ];
    for (dir, from, name) in from_to {
        fs::create_dir_all(&dir)?;
        // Whatever the umask says, the server's user must reach both.
        for made in dir.ancestors().take_while(|made| *made != folder) {
            fs::set_permissions(made, PermissionsExt::from_mode(0o755))?;
        }
        let copy = dir.join(name);
        fs::copy(from, &copy).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::set_permissions(&copy, PermissionsExt::from_mode(0o755))?;
    }
    Ok(folder.join("bin/saiga"))
}

/// The directory of one comparison; removed with its contents on drop.
struct Folder(PathBuf);

impl Folder {
    /// Creates the directory. Replaces a directory that a killed comparison with this `--out` left.
    fn make(path: &Path) -> anyhow::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o711);
        let made = match builder.create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                remove_old(path)?;
                builder.create(path)
            }
            made => made,
        };
        made.with_context(|| {
            format!(
                "cannot create {}; set TMPDIR to another directory",
                path.display()
            )
        })?;
        // The umask must not count: the server runs as another user and needs access.
        let folder = Self(path.to_owned());
        fs::set_permissions(path, PermissionsExt::from_mode(0o711))?;
        Ok(folder)
    }
}

/// Removes an old directory if it belongs to this user and no server uses it.
fn remove_old(path: &Path) -> anyhow::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        bail!(
            "{} exists, but is not a directory of this user; remove it",
            path.display()
        );
    }
    check_not_running(&[path.to_owned()], Unseen::Refuse)?;
    fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            exit::say(&format!("cannot remove {}: {error}", self.0.display()));
        }
    }
}

/// FNV-1a. The hash names a directory; it is not used for security.
fn hash(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
