//! The idle connections of a run: opens them, waits until they are idle, measures their memory.
//!
//! Processes of this program (`holder`) open and use the connections before the load begins. Once
//! idle, they must use no CPU time. Any CPU time would count as that of foreign processes and the
//! run would be rejected, which is intended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::workload::Failure;
use saiga_process::child::{Child, CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::log::last_line;

use crate::arm::{Endpoint, RedisArm};
use crate::holder::{BEGAN, RESTS};
use crate::resident;
use crate::server::{PACKAGE, Server};

/// Connections per holder process, similar to the pool of an application.
const HOLDER_CONNECTIONS: u32 = 5_000;
/// Maximum number of addresses of a server: that of redis-server (CONFIG_BINDADDR_MAX in
/// `server.h`).
const MAX_ADDRESSES: usize = 16;
/// Timeout for opening and using all connections of a holder.
const OPEN_LIMIT: Duration = Duration::from_secs(180);
/// Memory is settled if it has not decreased for this long; idle rings are released within two
/// seconds.
const SETTLED: Duration = Duration::from_millis(2500);
/// Timeout for memory to settle.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// Interval between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// Open idle connections and their memory.
#[derive(Debug)]
pub(crate) struct IdleConnections {
    holders: Vec<Child>,
    metrics: BTreeMap<String, f64>,
}

/// A holder process that is opening connections.
struct Holder {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Number of connections of each holder.
fn shares(idle: u32) -> Vec<u32> {
    let holders = idle.div_ceil(HOLDER_CONNECTIONS);
    let (each, left) = (
        idle.checked_div(holders).unwrap_or(0),
        idle.checked_rem(holders).unwrap_or(0),
    );
    (0..holders).map(|i| each + u32::from(i < left)).collect()
}

/// The addresses on which a server of `idle` connections listens: one per holder, up to
/// [`MAX_ADDRESSES`]. connect(2) searches ports in sequence, and takes a millisecond if more than
/// half of the 28,000 local ports are in use towards one address.
pub(crate) fn addresses(idle: u32) -> Vec<String> {
    let holders = shares(idle).len().clamp(1, MAX_ADDRESSES);
    (1..=holders).map(|n| format!("127.0.0.{n}")).collect()
}

/// The command lines of the holders; `tool` is the path of this program.
pub(crate) fn holder_lines(
    arm: &RedisArm,
    tool: &Path,
    port: &str,
    cpus: &[usize],
) -> Vec<CommandLine> {
    let line = |(share, address): (u32, &String)| {
        let args = ["redis-holder", "--address", address, "--port", port];
        let share = ["--connections".to_owned(), share.to_string()];
        let args = args.map(str::to_owned).into_iter().chain(share);
        let mut line = arm.command(&tool.display().to_string(), args);
        line.cpus = cpus.to_vec();
        line
    };
    let addresses = addresses(arm.idle);
    let shares = shares(arm.idle).into_iter();
    shares.zip(addresses.iter().cycle()).map(line).collect()
}

impl IdleConnections {
    /// Opens the idle connections of `arm` to `server`, and waits until they are idle.
    ///
    /// # Errors
    /// On failure no holder is left.
    pub(crate) fn open(
        server: &Server,
        arm: &RedisArm,
        tool: &Path,
        cpus: &[usize],
        probe: Option<&dyn AccelerationProbe>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let Endpoint::Tcp(port) = &server.endpoint else {
            return Err(Failure::run("idle connections need TCP"));
        };
        let server_before = of([server.process.child.pid()]).map_err(Failure::impossible)?;
        let mut holders = Vec::new();
        for (number, line) in holder_lines(arm, tool, port, cpus).iter().enumerate() {
            holders.push(start(line, server.dir.path(), number)?);
        }
        for holder in &mut holders {
            await_idle(holder, interrupt)?;
        }
        let clients_before = holders
            .iter()
            .map(Holder::initial_bytes)
            .sum::<io::Result<u64>>();
        let clients_before = clients_before.map_err(Failure::impossible)?;
        let mut holders: Vec<Child> = holders.into_iter().map(|holder| holder.child).collect();
        settle(server, &mut holders, interrupt)?;
        if let Some(probe) = probe {
            all_upgraded(probe, server, arm.idle)?;
        }
        let server_now = of([server.process.child.pid()]).map_err(Failure::impossible)?;
        let clients_now = of(holders.iter().map(Child::pid)).map_err(Failure::impossible)?;
        let metrics = BTreeMap::from([
            ("idle_connections".to_owned(), f64::from(arm.idle)),
            (
                "server_rss_per_idle_bytes".to_owned(),
                each(server_before, server_now, arm.idle),
            ),
            (
                "client_rss_per_idle_bytes".to_owned(),
                each(clients_before, clients_now, arm.idle),
            ),
        ]);
        Ok(Self { holders, metrics })
    }

    /// Number of connections, and resident memory per connection on each side.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        self.metrics.clone()
    }

    /// The exit report of a holder that has ended.
    pub(crate) fn exit_report(&mut self) -> Option<String> {
        self.holders.iter_mut().find_map(|holder| {
            match holder.wait(Duration::ZERO, &Interrupt::never()) {
                Ok(Waited::Ended(ended)) => Some(format!(
                    "a holder of idle connections ended with {}",
                    ended.status
                )),
                Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
            }
        })
    }

    /// Kills the holders. Must be called after their server ended: a connection that the client
    /// closes leaves its port in TIME_WAIT for a minute.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        let kill = |holder: &mut Child| holder.kill().map(drop);
        self.holders.iter_mut().try_for_each(kill)
    }
}

fn start(line: &CommandLine, folder: &Path, number: usize) -> Result<Holder, Failure> {
    let at = |what: &str| folder.join(format!("holder-{number}.{what}"));
    let (out, err) = (at("out"), at("log"));
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let (stdout, stderr) = files.map_err(Failure::impossible)?;
    let child = line
        .spawn(PACKAGE, stdout, stderr)
        .map_err(Failure::impossible)?;
    Ok(Holder { child, out, err })
}

impl Holder {
    fn output(&self) -> io::Result<String> {
        fs::read_to_string(&self.out)
    }

    /// Resident bytes of the holder before its first connection.
    fn initial_bytes(&self) -> io::Result<u64> {
        let output = self.output()?;
        let bytes = output.lines().find_map(|line| line.strip_prefix(BEGAN));
        let bytes = bytes.and_then(|bytes| bytes.parse().ok());
        bytes.ok_or_else(|| {
            io::Error::other(format!(
                "unexpected output of a holder of idle connections: {output:?}"
            ))
        })
    }
}

fn await_idle(holder: &mut Holder, interrupt: &Interrupt) -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < OPEN_LIMIT {
        let output = holder.output().map_err(Failure::impossible)?;
        if output.lines().any(|line| line == RESTS) {
            return Ok(());
        }
        let waited = holder.child.wait(PAUSE, interrupt);
        match waited.map_err(Failure::impossible)? {
            Waited::TimeOver => {}
            Waited::Interrupted => return Err(Failure::Interrupted),
            Waited::Ended(_) => return Err(Failure::run(last_line(&holder.err))),
        }
    }
    Err(Failure::run(format!(
        "idle connections were not ready within {} s",
        OPEN_LIMIT.as_secs()
    )))
}

/// Waits until the memory of both sides stops decreasing.
fn settle(server: &Server, holders: &mut [Child], interrupt: &Interrupt) -> Result<(), Failure> {
    let began = Instant::now();
    let mut least = (u64::MAX, began);
    while least.1.elapsed() < SETTLED {
        let pids = holders.iter().map(Child::pid);
        let now = of(pids.chain([server.process.child.pid()])).map_err(Failure::impossible)?;
        if now < least.0 {
            least = (now, Instant::now());
        }
        if began.elapsed() > SETTLE_LIMIT {
            let seconds = SETTLE_LIMIT.as_secs();
            return Err(Failure::run(format!(
                "the memory of idle connections still decreased after {seconds} s"
            )));
        }
        let Some(first) = holders.first_mut() else {
            return Ok(());
        };
        match first.wait(PAUSE, interrupt).map_err(Failure::impossible)? {
            Waited::TimeOver => {}
            Waited::Interrupted => return Err(Failure::Interrupted),
            Waited::Ended(_) => return Err(Failure::run("a holder of idle connections ended")),
        }
    }
    Ok(())
}

fn all_upgraded(probe: &dyn AccelerationProbe, server: &Server, idle: u32) -> Result<(), Failure> {
    let seen = probe.observe(server.process.child.pid(), 0);
    let seen = seen.map_err(|reason| Failure::run(format!("not accelerated: {reason}")))?;
    if seen.upgraded_sockets < u64::from(idle) {
        return Err(Failure::run(format!(
            "not accelerated: {} of {idle} idle connections were upgraded",
            seen.upgraded_sockets
        )));
    }
    Ok(())
}

/// Total resident bytes of several processes.
fn of(pids: impl IntoIterator<Item = u32>) -> io::Result<u64> {
    pids.into_iter().map(resident::bytes).sum()
}

fn each(before: u64, now: u64, idle: u32) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "bytes of memory stay below 2^53"
    )]
    let grown = now.saturating_sub(before) as f64;
    grown / f64::from(idle.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_share_the_connections_evenly() {
        assert_eq!(shares(19_000), [4750; 4]);
        assert_eq!(shares(5_001), [2501, 2500]);
        assert_eq!(shares(7), [7]);
        assert_eq!(shares(0), [0; 0]);
    }

    #[test]
    fn each_holder_has_its_own_address_up_to_the_maximum() {
        assert_eq!(addresses(0), ["127.0.0.1"]);
        assert_eq!(addresses(5_001), ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(addresses(1_000_000).len(), 16);
    }

    #[test]
    fn memory_is_divided_among_the_connections() {
        assert!((each(1000, 21_000, 10) - 2000.0).abs() < 1e-9);
        assert!((each(9, 1, 10)).abs() < 1e-9, "less is not a negative cost");
    }
}
