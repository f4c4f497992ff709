//! `saiga redis-holder`, hidden: a process that holds idle connections to a server.
//!
//! `compare` and `bench` start it, dressed as the servers of the arm are, and read the two
//! lines that it prints. Nobody else needs it.

use std::process::ExitCode;

use saiga_redis::holder::hold;

/// Options of the holder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port of the server on 127.0.0.1
    #[arg(long, value_name = "PORT")]
    port: u16,
    /// Connections to hold
    #[arg(long, value_name = "N")]
    connections: u32,
}

/// Opens and uses the connections, then rests until the server goes.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    hold(args.port, args.connections, std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
