//! `saiga redis-writer`, hidden: the client of a fail-over, as a separate process.
//!
//! `compare` and `bench` start it with the same library and CPU mask as the servers of the arm,
//! and read the one line that it prints.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use saiga_redis::writer::{WriterOptions, write};

/// Options of the writer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port of a sentinel on 127.0.0.1
    #[arg(long = "sentinel", value_name = "PORT", required = true)]
    sentinels: Vec<u16>,
    /// Connections that write
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: u32,
    /// Size of a value in bytes
    #[arg(long, value_name = "N", default_value_t = 3)]
    value_bytes: usize,
    /// Maximum time of writing, in seconds
    #[arg(long, value_name = "S", default_value_t = 20)]
    limit_s: u64,
}

/// Writes during a fail-over and prints a JSON record of the writes.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let account = write(&WriterOptions {
        sentinels: args.sentinels,
        connections: args.connections,
        value_bytes: args.value_bytes,
        limit: Duration::from_secs(args.limit_s),
    })?;
    writeln!(std::io::stdout().lock(), "{}", account.to_json())?;
    Ok(ExitCode::SUCCESS)
}
