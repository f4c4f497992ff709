//! `saiga topology collect`: the machine as an archive.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use saiga_document::number;
use saiga_process::root::Root;
use saiga_topology::collect::collect;
use saiga_topology::unpack::Sysroot;

/// Options of `saiga topology collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The archive contains the files that `saiga topology` reads, and no others. Serial numbers and MAC \
addresses are not read; UUIDs, addresses, secrets on the kernel's command line and the name of the \
host are replaced. Directories of file systems are kept. Look at the files before you pass the \
archive on.")]
pub(super) struct Args {
    /// Write the archive to this new file, such as machine.tar.gz
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Record the machine in this directory or archive instead of this machine
    #[arg(long, value_name = "PATH")]
    sysroot: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let other = args.sysroot.as_deref().map(Sysroot::open).transpose()?;
    let host = Root::host();
    let root = other.as_ref().map_or(&host, Sysroot::root);
    let collected = collect(root, &args.out)?;
    writeln!(
        std::io::stdout(),
        "wrote {}: {} in {}; show it with: saiga topology --sysroot {}",
        args.out.display(),
        number::counted(collected.files as u64, "file"),
        number::bytes(collected.bytes as u64),
        args.out.display()
    )?;
    Ok(ExitCode::SUCCESS)
}
