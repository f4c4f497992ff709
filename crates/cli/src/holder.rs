//! `saiga redis-holder`, hidden: a process that holds idle connections to a server.
//!
//! `compare` and `bench` start it with the same library and CPU mask as the servers of the arm,
//! and read the two lines that it prints.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;

use saiga_redis::holder::hold;

/// Options of the holder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address of the server
    #[arg(long, value_name = "ADDRESS")]
    address: Ipv4Addr,
    /// Port of the server
    #[arg(long, value_name = "PORT")]
    port: u16,
    /// Connections to hold
    #[arg(long, value_name = "N")]
    connections: u32,
}

/// Opens the connections, uses each once, then keeps them idle until the server ends.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let place = SocketAddrV4::new(args.address, args.port);
    hold(place, args.connections, std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
