//! `saiga redis-holder`, hidden: a process that holds idle connections to a server.
//!
//! `compare` and `bench` start it, dressed as the servers of the arm are, and read the two
//! lines that it prints. Nobody else needs it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;

use saiga_redis::holder::hold;

/// Options of the holder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the server listens
    #[arg(long, value_name = "ADDRESS")]
    address: Ipv4Addr,
    /// Its port
    #[arg(long, value_name = "PORT")]
    port: u16,
    /// Connections to hold
    #[arg(long, value_name = "N")]
    connections: u32,
}

/// Opens and uses the connections, then rests until the server goes.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let place = SocketAddrV4::new(args.address, args.port);
    hold(place, args.connections, std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
