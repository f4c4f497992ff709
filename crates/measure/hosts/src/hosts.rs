//! [`Hosts`]: the namespaces of one run, their wire, and the gateway.

use std::fs;
use std::io;
use std::time::Duration;

use saiga_experiment::server::{NotReady, Server, WaitLimits};
use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::two_hosts;
use saiga_experiment::workload::Failure;
use saiga_process::child::CommandLine;
use saiga_process::cpu::Used;
use saiga_process::interrupt::Interrupt;
use saiga_process::network::Namespace;
use tempfile::TempDir;

use crate::layout::{Gateway, Layout, Places, Side};

/// Timeout of a command, which takes milliseconds.
const COMMAND_LIMIT: Duration = Duration::from_secs(20);
const READY_LIMITS: WaitLimits = WaitLimits {
    limit: Duration::from_secs(20),
    pause: Duration::from_millis(2),
};
/// The Debian package of ip(8).
const PACKAGE: &str = "iproute2";
/// Starts of the lines that a gateway prints when it serves.
const READY: [&str; 2] = ["serving ", "carrying "];

/// The hosts cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// No namespace, directory or settings.
    #[error("cannot make two hosts with network namespaces: {0}")]
    Prepare(io::Error),
    /// A command failed.
    #[error("{line} failed ({status}): {output}")]
    Command {
        line: String,
        /// Exit status, or the timeout.
        status: String,
        output: String,
    },
}

/// Two hosts. When dropped, the gateway is killed, and the namespaces end with their last process.
#[derive(Debug)]
pub struct Hosts {
    /// Those of the server's and of the client's host. Dropped before their namespaces and their
    /// directory.
    gateway: Option<Server>,
    far: Option<Server>,
    server: Namespace,
    client: Namespace,
    dir: TempDir,
}

impl Hosts {
    /// Makes the hosts and waits until the gateway serves.
    ///
    /// # Errors
    /// Fails with [`Failure::Impossible`] without the necessary rights, if a command fails or if
    /// the gateway does not start. Nothing is left then.
    pub fn start(layout: &Layout, interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut hosts = Self::unconnected().map_err(prepare)?;
        let places = hosts.places();
        hosts.run(&layout.before(&places), interrupt)?;
        for (side, gateway) in layout.gateways() {
            let settings = layout.settings(side, gateway, &places).join("\n");
            fs::write(places.settings(side), settings).map_err(prepare)?;
            let started = hosts.start_gateway(side, gateway, interrupt)?;
            match side {
                Side::Server => hosts.gateway = Some(started),
                Side::Client => hosts.far = Some(started),
            }
        }
        hosts.run(&layout.after(&places), interrupt)?;
        Ok(hosts)
    }

    fn unconnected() -> io::Result<Self> {
        Ok(Self {
            gateway: None,
            far: None,
            server: Namespace::new()?,
            client: Namespace::new()?,
            dir: tempfile::Builder::new().prefix("saiga-hosts-").tempdir()?,
        })
    }

    /// The files of these hosts, which are valid as long as this value exists.
    #[must_use]
    pub fn places(&self) -> Places {
        Places {
            server: self.server.path(),
            client: self.client.path(),
            gateway: self.dir.path().to_owned(),
        }
    }

    /// PID of the gateway; `None` if the kernel is at the server's end of the wire.
    #[must_use]
    pub fn gateway_pid(&self) -> Option<u32> {
        self.gateway.as_ref().map(|gateway| gateway.child.pid())
    }

    /// CPU time of the gateway so far; zero without a gateway.
    ///
    /// # Errors
    /// Fails if the gateway has ended.
    pub fn gateway_cpu_time(&self) -> io::Result<Duration> {
        let gateway = self.gateway.as_ref();
        gateway.map_or(Ok(Duration::ZERO), |gateway| gateway.child.cpu_time())
    }

    /// CPU time of the gateway on the client's host so far; zero without one.
    ///
    /// # Errors
    /// Fails if the gateway has ended.
    pub fn far_cpu_time(&self) -> io::Result<Duration> {
        let far = self.far.as_ref();
        far.map_or(Ok(Duration::ZERO), |far| far.child.cpu_time())
    }

    /// CPU seconds of a run of this client by the name of the metric per operation; `client` is the
    /// CPU time of the client and of its gateway in the run, `gateway` that of the server's.
    #[must_use]
    pub fn cpu_seconds(
        &self,
        used: &Used,
        client: Duration,
        gateway: Duration,
    ) -> Vec<(&'static str, f64)> {
        let gateway = self.gateway.is_some().then_some(gateway);
        two_hosts::cpu_seconds(used, client, gateway)
    }

    /// The exit report of a gateway that ended by itself.
    pub fn exit_report(&mut self) -> Option<String> {
        let gateways = [&mut self.far, &mut self.gateway];
        gateways.into_iter().flatten().find_map(Server::exit_report)
    }

    /// Stops the gateways and removes the hosts.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn stop(mut self) -> io::Result<()> {
        let gateways = [&mut self.far, &mut self.gateway];
        let stop = |gateway: &mut Server| gateway.child.stop().map(drop);
        gateways.into_iter().flatten().try_for_each(stop)
    }

    fn run(&self, lines: &[CommandLine], interrupt: &Interrupt) -> Result<(), Failure> {
        let output = self.dir.path().join("ip.log");
        for line in lines {
            let done = tool::run(line, PACKAGE, &output, COMMAND_LIMIT, interrupt)?;
            done.map_err(|Unsuccessful { status, output }| {
                Failure::impossible(HostsError::Command {
                    line: line.to_string(),
                    status,
                    output,
                })
            })?;
        }
        Ok(())
    }

    fn start_gateway(
        &self,
        side: Side,
        gateway: &Gateway,
        interrupt: &Interrupt,
    ) -> Result<Server, Failure> {
        let line = gateway.line(side, &self.places());
        let log = self.dir.path().join(format!("{side:?}.log"));
        let mut server =
            Server::start(&line, "saiga gateway", "saiga", log).map_err(Failure::impossible)?;
        let serves = |server: &Server| {
            let output = server.output();
            let is_ready = |line: &str| READY.iter().any(|start| line.starts_with(start));
            output.lines().any(is_ready)
        };
        match server.await_ready(READY_LIMITS, interrupt, serves) {
            Ok(()) => Ok(server),
            Err(NotReady::Failed(failure)) => Err(failure),
            Err(NotReady::Died(died)) => Err(Failure::impossible(died)),
        }
    }
}

fn prepare(error: io::Error) -> Failure {
    Failure::impossible(HostsError::Prepare(error))
}

/// These tests need root and ip(8).
#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use saiga_process::network::within;

    use super::*;
    use crate::{SERVER, Wire};

    const PLAIN: Layout = Layout {
        wire: Wire::Veth,
        gateway: None,
    };

    fn start(layout: &Layout) -> Result<Hosts, Failure> {
        Hosts::start(layout, &Interrupt::never())
    }

    #[test]
    fn the_client_reaches_the_server_by_the_wire_alone() {
        let hosts = start(&PLAIN).unwrap();
        let Places { server, client, .. } = hosts.places();
        let listener = within(Some(&server), || TcpListener::bind((SERVER, 6379))).unwrap();
        let mut ours = within(Some(&client), || TcpStream::connect((SERVER, 6379))).unwrap();
        let (mut theirs, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), "10.77.0.2");
        ours.write_all(b"over the wire").unwrap();
        drop(ours);
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "over the wire");
        // A second pair of hosts has the same addresses and no server.
        let others = start(&PLAIN).unwrap();
        let client = others.places().client;
        let refused = within(Some(&client), || TcpStream::connect((SERVER, 6379)));
        assert_eq!(
            refused.unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        assert_eq!(hosts.gateway_pid(), None);
        assert_eq!(hosts.gateway_cpu_time().unwrap(), Duration::ZERO);
        hosts.stop().unwrap();
    }

    #[test]
    fn a_failed_command_is_quoted() {
        let mut hosts = Hosts::unconnected().unwrap();
        let places = hosts.places();
        let lines = PLAIN.before(&places);
        hosts.run(&lines, &Interrupt::never()).unwrap();
        // The device exists already.
        let error = hosts.run(&lines[1..], &Interrupt::never()).unwrap_err();
        let text = error.to_string();
        let wanted = format!(
            "nsenter --net={} ip link add wire0 ",
            places.server.display()
        );
        assert!(text.starts_with(&wanted), "{text}");
        assert!(text.contains("exit status: 2"), "{text}");
        assert!(text.contains("File exists"), "{text}");
        assert_eq!(hosts.exit_report(), None);
    }

    /// A shell in place of `saiga` takes `gateway` for a script, which does not exist.
    #[test]
    fn a_gateway_that_does_not_serve_is_reported_with_its_output() {
        let gateway = Gateway {
            tool: "/bin/sh".into(),
            port: 6379,
            cpus: Default::default(),
        };
        let layout = Layout {
            wire: Wire::Tap,
            gateway: Some(gateway),
        };
        let error = start(&layout).unwrap_err().to_string();
        let wanted = "saiga gateway ended before it was ready; its output: ";
        assert!(error.starts_with(wanted), "{error}");
        assert!(error.contains("open gateway"), "{error}");
    }
}
