//! [`RedisArm`]: an arm of a Redis comparison and its command lines.

use std::collections::BTreeMap;
use std::path::Path;

use saiga_experiment::arm::{self, ArmKind};
use saiga_experiment::result::Arm;
use saiga_hosts::{Layout, Over, SERVER, Wire};
use saiga_process::child::CommandLine;

use crate::idle;
use crate::load::{DEFAULT_MAX_CLIENTS, RedisLoad};
use crate::topology::{Role, Topology};

/// Suffix of the name of an arm with idle connections.
const IDLE_SUFFIX: &str = "+idle";
/// Descriptors that redis-server reserves besides those of clients (CONFIG_MIN_RESERVED_FDS in
/// `server.h`).
const RESERVED_DESCRIPTORS: u32 = 32;

/// The port of a server on a host of its own.
const PORT: u16 = 6379;

/// An arm with a unique name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisArm {
    /// `kernel`, `unix`, `saiga` or `gateway`, with a suffix for repetitions and idle connections.
    pub name: String,
    pub kind: ArmKind,
    /// Number of idle connections beside the load.
    pub idle: u32,
    /// The wire between the hosts of server and client; `None` if both are on this host.
    pub wire: Option<Wire>,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A port of 127.0.0.1.
    Tcp(String),
    /// A port of the server's host.
    Remote(String),
    /// The path of a Unix socket.
    Unix(String),
}

impl RedisArm {
    /// Makes arms with unique names; a repeated arm, to be compared with itself, gets a suffix.
    #[must_use]
    pub fn named(kinds: &[ArmKind]) -> Vec<Self> {
        let arm = |(name, kind): (String, &ArmKind)| Self {
            name,
            kind: kind.clone(),
            idle: 0,
            wire: None,
        };
        arm::names(kinds).into_iter().zip(kinds).map(arm).collect()
    }

    /// This arm with `idle` idle connections.
    #[must_use]
    pub fn with_idle(&self, idle: u32) -> Self {
        Self {
            name: format!("{}{IDLE_SUFFIX}", self.name),
            idle,
            ..self.clone()
        }
    }

    /// This arm with server and client on two hosts.
    #[must_use]
    pub fn over(self, wire: Wire) -> Self {
        Self {
            wire: Some(wire),
            ..self
        }
    }

    /// The hosts of server and client; `None` if both are on this host. `tool` is the path of this
    /// program, and `cpus` are the CPUs of server and client.
    pub(crate) fn layout(&self, tool: &Path, cpus: &[Vec<usize>; 2]) -> Option<Layout> {
        let over = Over {
            wire: self.wire?,
            tool: tool.to_owned(),
        };
        Some(over.layout(&self.kind, PORT, cpus))
    }

    /// The port of a server on a host of its own, where every port is free.
    pub(crate) fn own_port(&self) -> Option<u16> {
        self.wire.map(|_| PORT)
    }

    /// Number of descriptors that the server of `load` needs with `idle` idle connections.
    #[must_use]
    pub fn server_descriptors(load: &RedisLoad, idle: u32) -> u32 {
        let clients = load.max_clients(idle).unwrap_or(DEFAULT_MAX_CLIENTS);
        clients + RESERVED_DESCRIPTORS
    }

    /// The address of the server of this arm, given its port and folder.
    pub(crate) fn endpoint(&self, port: &str, dir: &str) -> Endpoint {
        match self.kind {
            ArmKind::Unix => Endpoint::Unix(format!("{dir}/redis.sock")),
            ArmKind::Kernel | ArmKind::Saiga(_) | ArmKind::Gateway(_) => match self.wire {
                Some(_) => Endpoint::Remote(port.to_owned()),
                None => Endpoint::Tcp(port.to_owned()),
            },
        }
    }

    /// The command line of a standalone server.
    pub(crate) fn server(&self, endpoint: &Endpoint, dir: &str, load: &RedisLoad) -> CommandLine {
        let addresses = idle::addresses(self.idle);
        let mut args: Vec<&str> = match endpoint {
            Endpoint::Tcp(port) => ["--port", port, "--bind"]
                .into_iter()
                .chain(addresses.iter().map(String::as_str))
                .collect(),
            Endpoint::Remote(port) => vec!["--port", port, "--bind", SERVER],
            Endpoint::Unix(path) => vec![
                "--port",
                "0",
                "--unixsocket",
                path,
                "--unixsocketperm",
                "700",
            ],
        };
        // It protects from clients on other hosts, and only the client is on the wire.
        let protected = match endpoint {
            Endpoint::Remote(_) => "no",
            Endpoint::Tcp(_) | Endpoint::Unix(_) => "yes",
        };
        args.extend(["--protected-mode", protected]);
        args.extend(["--daemonize", "no", "--dir", dir]);
        args.extend(["--save", "", "--appendonly", "no"]);
        let io_threads = load.io_threads.to_string();
        let max_clients = load.max_clients(self.idle).map(|most| most.to_string());
        if let Some(most) = &max_clients {
            args.extend(["--maxclients", most]);
        }
        if load.io_threads != 1 {
            args.extend(["--io-threads", &io_threads, "--io-threads-do-reads", "yes"]);
        }
        self.command("redis-server", args)
    }

    /// The command line of a process of a topology, whose configuration file is in `dir`.
    pub(crate) fn member(&self, role: Role, dir: &str) -> CommandLine {
        let mut args = vec![format!("{dir}/redis.conf")];
        if role == Role::Sentinel {
            args.push("--sentinel".to_owned());
        }
        self.command("redis-server", args)
    }

    /// The command line that creates a cluster of six nodes.
    pub(crate) fn join(&self, nodes: &[String]) -> CommandLine {
        let mut args = ["--cluster", "create"].map(str::to_owned).to_vec();
        args.extend(nodes.iter().map(|port| format!("127.0.0.1:{port}")));
        args.extend(["--cluster-replicas", "1", "--cluster-yes"].map(str::to_owned));
        self.command("redis-cli", args)
    }

    /// A command line with the environment of this arm.
    pub(crate) fn command(
        &self,
        program: &str,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> CommandLine {
        CommandLine {
            env: self.kind.env(),
            ..CommandLine::new(program, args)
        }
    }

    /// The command line of redis-benchmark for `operations` requests.
    pub(crate) fn client(
        &self,
        endpoint: &Endpoint,
        load: &RedisLoad,
        operations: &str,
    ) -> CommandLine {
        let mut args: Vec<String> = match endpoint {
            Endpoint::Tcp(port) => ["-h", "127.0.0.1", "-p", port].map(str::to_owned).to_vec(),
            Endpoint::Remote(port) => ["-h", SERVER, "-p", port].map(str::to_owned).to_vec(),
            Endpoint::Unix(path) => ["-s", path].map(str::to_owned).to_vec(),
        };
        let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
        option("-t", load.test.name().to_owned());
        option("-c", load.clients.to_string());
        option("-n", operations.to_owned());
        option("-P", load.pipeline.to_string());
        option("-d", load.value_bytes.to_string());
        if load.client_threads != 1 {
            option("--threads", load.client_threads.to_string());
        }
        if load.keys != 0 {
            option("-r", load.keys.to_string());
        }
        if load.reconnect {
            option("-k", "0".to_owned());
        }
        if load.topology == Topology::Cluster {
            args.push("--cluster".to_owned());
        }
        args.push("--csv".to_owned());
        CommandLine {
            env: match self.wire {
                Some(wire) => wire.client_env(&self.kind),
                None => self.kind.client_env(),
            },
            ..CommandLine::new("redis-benchmark", args)
        }
    }

    fn description(&self, layout: Option<&Layout>) -> String {
        let kind = layout.map_or(self.kind.description(), Layout::description);
        match self.idle {
            0 => kind.to_owned(),
            idle => format!("{kind}; with {idle} idle connections that were used before"),
        }
    }

    /// The arm for the result, with placeholders for values that change from run to run.
    pub(crate) fn described(&self, topology: Topology) -> Arm {
        let port = self.own_port().map(|port| port.to_string());
        let endpoint = self.endpoint(port.as_deref().unwrap_or("{port}"), "{dir}");
        let load = RedisLoad {
            topology,
            ..RedisLoad::new(crate::Test::Set, 50)
        };
        let layout = self.layout(Path::new("saiga"), &Default::default());
        let bare = |line: CommandLine| CommandLine {
            env: BTreeMap::new(),
            ..line
        };
        let client = self.client(&endpoint, &load, "{requests}");
        let client = bare(client);
        let client = match &layout {
            Some(layout) => layout.shown_client(client),
            None => client.to_string(),
        };
        let client = [
            ("-t set", "-t {test}"),
            ("-c 50", "-c {clients}"),
            ("-P 1", "-P {pipeline}"),
            ("-d 3", "-d {value_bytes}"),
        ]
        .iter()
        .fold(client, |line, (from, to)| line.replace(from, to));
        let server = match topology {
            Topology::Standalone => self.server(&endpoint, "{dir}", &load),
            Topology::Replica | Topology::Sentinel | Topology::Cluster => {
                self.member(Role::Master, "{dir}")
            }
        };
        let server = bare(server);
        let server = match &layout {
            Some(layout) => layout.shown_server(server),
            None => server.to_string(),
        };
        Arm {
            name: self.name.clone(),
            server,
            client,
            env: self.kind.env(),
            description: Some(self.description(layout.as_ref())),
            varies: (self.idle > 0).then(|| self.name.trim_end_matches(IDLE_SUFFIX).to_owned()),
            configuration: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Test;

    #[test]
    fn repeated_arms_have_distinct_names() {
        let arms = RedisArm::named(&[ArmKind::Kernel, ArmKind::Unix, ArmKind::Kernel]);
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["kernel", "unix", "kernel (again)"]);
    }

    #[test]
    fn an_arm_with_idle_connections_varies_another_and_has_enough_descriptors() {
        let arm = RedisArm::named(&[ArmKind::Kernel])[0].with_idle(19_000);
        let described = arm.described(Topology::Standalone);
        assert_eq!(described.name, "kernel+idle");
        assert_eq!(described.varies.as_deref(), Some("kernel"));
        for wanted in [
            "--maxclients 19745",
            "--bind 127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 ",
        ] {
            assert!(described.server.contains(wanted), "{}", described.server);
        }
        let load = RedisLoad::new(Test::Get, 50);
        assert_eq!(RedisArm::server_descriptors(&load, 19_000), 19_777);
    }

    #[test]
    fn the_saiga_arm_differs_from_the_kernel_by_one_variable() {
        let arms = RedisArm::named(&[ArmKind::Kernel, ArmKind::Saiga("/l/libsaiga.so".into())]);
        let load = RedisLoad::new(Test::Get, 200);
        let lines = arms.iter().map(|arm| {
            let endpoint = arm.endpoint("7000", "/tmp/d");
            (
                arm.server(&endpoint, "/tmp/d", &load),
                arm.client(&endpoint, &load, "900"),
            )
        });
        let [(server_a, client_a), (server_b, client_b)] =
            <[_; 2]>::try_from(lines.collect::<Vec<_>>()).unwrap();
        assert_eq!(server_a.args, server_b.args);
        assert_eq!(
            client_a.to_string(),
            "redis-benchmark -h 127.0.0.1 -p 7000 -t get -c 200 -n 900 -P 1 -d 3 --csv"
        );
        assert_eq!(
            client_b.to_string(),
            format!("env LD_PRELOAD=/l/libsaiga.so {client_a}")
        );
    }

    #[test]
    fn a_client_on_another_host_has_nothing_preloaded() {
        let library = "/l/libsaiga.so".into();
        let arms = RedisArm::named(&[ArmKind::Kernel, ArmKind::Gateway(library)]);
        let [kernel, gateway] = <[_; 2]>::try_from(arms).unwrap();
        let [kernel, gateway] = [kernel, gateway].map(|arm| arm.over(Wire::Tap));
        let load = RedisLoad::new(Test::Get, 50);
        let endpoint = gateway.endpoint("6379", "/tmp/d");
        assert_eq!(endpoint, Endpoint::Remote("6379".to_owned()));
        let server = gateway.server(&endpoint, "/tmp/d", &load).to_string();
        let wanted = "env LD_PRELOAD=/l/libsaiga.so redis-server --port 6379 --bind 10.77.0.1 \
                      --protected-mode no ";
        assert!(server.starts_with(wanted), "{server}");
        let client = gateway.client(&endpoint, &load, "900");
        assert!(client.env.is_empty(), "{client}");
        assert_eq!(client, kernel.client(&endpoint, &load, "900"));

        let cpus = [vec![1], vec![0]];
        let layout = gateway.layout(Path::new("/bin/saiga"), &cpus).unwrap();
        let expected = saiga_hosts::Gateway {
            tool: "/bin/saiga".into(),
            port: 6379,
            cpus: cpus.clone(),
        };
        assert_eq!(layout.gateway, Some(expected));
        let layout = kernel.layout(Path::new("/bin/saiga"), &cpus).unwrap();
        assert_eq!(layout.gateway, None);
    }

    #[test]
    fn a_described_arm_names_both_hosts() {
        let arms = RedisArm::named(&[ArmKind::Gateway("/l/libsaiga.so".into())]);
        let arm = arms[0].clone().over(Wire::Tap);
        let described = arm.described(Topology::Standalone);
        let server = "nsenter --net={server} saiga gateway up --config {gateway}/gateway.toml; \
                      nsenter --net={server} redis-server --port 6379 --bind 10.77.0.1 ";
        assert!(described.server.starts_with(server), "{}", described.server);
        let client = "nsenter --net={client} redis-benchmark -h 10.77.0.1 -p 6379 -t {test} ";
        assert!(described.client.starts_with(client), "{}", described.client);
        let description = described.description.unwrap();
        assert!(description.contains("a TAP device"), "{description}");
        assert_eq!(described.env["LD_PRELOAD"], "/l/libsaiga.so");
    }

    #[test]
    fn a_described_arm_has_placeholders() {
        let arm = RedisArm::named(&[ArmKind::Unix])[0].described(Topology::Standalone);
        assert_eq!(
            arm.client,
            "redis-benchmark -s {dir}/redis.sock -t {test} -c {clients} -n {requests} -P {pipeline} \
             -d {value_bytes} --csv"
        );
        assert!(
            arm.server.contains("--unixsocket {dir}/redis.sock"),
            "{}",
            arm.server
        );
        assert!(
            arm.server.contains("--save '' --appendonly no"),
            "{}",
            arm.server
        );
    }
}
