//! Checks that a load connects to the servers that the experiment starts.
//!
//! The experiment starts its servers on this machine, but props files and the command lines of
//! sysbench and pgbench contain addresses of their own. If such an address is on another host or
//! has another port, the experiment would start one server and measure another. In: the file, its
//! props files and the environment; out: the first wrong address. Deliberately absent: workloads
//! of kind `command`, whose options are unknown.

mod tools;

use std::net::IpAddr;

use saiga_experiment::file::{Arm, Experiment, Kind, Server};
use saiga_hosts::SERVER;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::props::{Engine, Props};

use crate::machine::Machine;
use tools::{of_pgbench, of_sysbench};

pub(crate) use tools::option_values;

/// The load would not connect to the servers of an arm. In every variant `origin` is the option,
/// key or variable that contains the address, and `arm` is the first arm that it does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    #[error(
        "{origin} points to {host} ({reason}), but the servers of arm {arm:?} are started on this \
         machine; write 127.0.0.1 there, or run the experiment on {host}; {advice}"
    )]
    Host {
        origin: String,
        host: String,
        /// The reason why `host` is not this machine.
        reason: String,
        arm: String,
        /// Advice on measuring a server on another host.
        advice: &'static str,
    },
    /// With `[hosts]`, servers have the address of the server's host.
    #[error(
        "{origin} points to {host}, but with [hosts] the servers of arm {arm:?} have the address \
         {server}; write {server} there, and let the server listen on it",
        server = SERVER
    )]
    OtherHost {
        origin: String,
        host: String,
        arm: String,
    },
    /// The address is on this machine, but its port is not that of a server of `arm`.
    #[error(
        "{origin} points to port {port}, on which arm {arm:?} starts no server ({servers}); give \
         both the same port"
    )]
    Port {
        origin: String,
        port: u16,
        arm: String,
        /// The servers of `arm` with their ports, for the message.
        servers: String,
    },
    /// The path of a Unix socket does not show which server created it.
    #[error(
        "{origin} points to the Unix socket {path}, which may belong to a server that arm {arm:?} \
         does not start; write the server's host and port there"
    )]
    Socket {
        origin: String,
        path: String,
        arm: String,
    },
    /// The address has a form that is not parsed, such as a connection URI.
    #[error(
        "{origin} names a server in a form that Saiga cannot compare with the servers of arm \
         {arm:?}; write -h 127.0.0.1 and -p PORT in the command, and the plain name of the database"
    )]
    Unparsed { origin: String, arm: String },
}

/// Advice for TPC-C on another host.
const USE_BENCH: &str = "`saiga bench tpcc run` measures a server on another host";
/// Advice for sysbench and pgbench on another host.
const WITHOUT_EXPERIMENT: &str = "to measure a server on another host, run the program without an \
                                  experiment";

/// An address that a load connects to.
struct Address {
    /// The option, key or variable that contains the address, as messages name it.
    origin: String,
    destination: Destination,
    /// Advice on measuring a server on another host.
    advice: &'static str,
}

/// Looks up an environment variable that started programs inherit from this process.
type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

enum Destination {
    Host(String),
    Port(u16),
    Socket(String),
    /// An address in a form that is not parsed.
    Unparsed,
}

/// Checks that the load of `file` connects to the servers of each arm; `props` are its props files.
///
/// # Errors
/// Returns the first address that does not belong to a server of an arm.
pub fn check_reach(
    file: &Experiment,
    props: &[Props],
    machine: &dyn Machine,
) -> Result<(), ReachError> {
    let inherited = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    check_with_environment(file, props, machine, &inherited)
}

/// [`check_reach`] with given inherited environment variables.
fn check_with_environment(
    file: &Experiment,
    props: &[Props],
    machine: &dyn Machine,
    inherited: Inherited<'_>,
) -> Result<(), ReachError> {
    for arm in file.arms.iter().filter(|arm| !arm.servers.is_empty()) {
        for address in addresses(&file.workload.kind, arm, props, inherited) {
            check(address, arm, file.wire.map(|_| SERVER), machine)?;
        }
    }
    Ok(())
}

/// Checks an address that the load of `arm` connects to. `served` is the address of the server's
/// host; `None` if the servers are on `machine`.
fn check(
    address: Address,
    arm: &Arm,
    served: Option<&str>,
    machine: &dyn Machine,
) -> Result<(), ReachError> {
    let Address {
        origin,
        destination,
        advice,
    } = address;
    let has = |port| arm.servers.iter().any(|server| server.port == Some(port));
    let name = arm.name.clone();
    match destination {
        Destination::Host(host) if served == Some(host.as_str()) => Ok(()),
        Destination::Host(host) if served.is_some() => Err(ReachError::OtherHost {
            origin,
            host,
            arm: name,
        }),
        Destination::Host(host) => check_host(&host, machine).map_err(|reason| ReachError::Host {
            origin,
            host,
            reason,
            arm: name,
            advice,
        }),
        Destination::Port(port) if has(port) => Ok(()),
        Destination::Port(port) => Err(ReachError::Port {
            origin,
            port,
            arm: name,
            servers: ports(&arm.servers),
        }),
        Destination::Socket(path) => Err(ReachError::Socket {
            origin,
            path,
            arm: name,
        }),
        Destination::Unparsed => Err(ReachError::Unparsed { origin, arm: name }),
    }
}

/// For example `server "a" has 3306, server "b" has no port`.
fn ports(servers: &[Server]) -> String {
    let shown = |server: &Server| match server.port {
        Some(port) => format!("server {:?} has {port}", server.name),
        None => format!("server {:?} has no port", server.name),
    };
    servers.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Checks that `host` is this machine; the error is the reason why it is not.
fn check_host(host: &str, machine: &dyn Machine) -> Result<(), String> {
    let address = host.parse::<IpAddr>();
    let is_loopback = address.is_ok_and(|address| address.to_canonical().is_loopback());
    if is_loopback || host.eq_ignore_ascii_case("localhost") {
        return Ok(());
    }
    machine.host(host)
}

fn addresses(kind: &Kind, arm: &Arm, props: &[Props], inherited: Inherited<'_>) -> Vec<Address> {
    match kind {
        Kind::Tpcc { .. } => props.iter().flat_map(of_props).collect(),
        Kind::Command { name, line, .. } => match name.as_str() {
            "sysbench" => of_sysbench(line, &arm.client, inherited),
            "pgbench" => of_pgbench(line, &arm.client, inherited),
            _ => Vec::new(),
        },
        // The file's flags contain no address; Saiga passes that of the arm's first server.
        Kind::Redis { .. } => Vec::new(),
    }
}

/// The path of a props file and the key that contains the address.
fn origin(props: &Props) -> String {
    let key = match props.path.extension() {
        Some(end) if end == "toml" => "database.url",
        Some(_) | None => "conn=",
    };
    format!("{}: {key}", props.path.display())
}

/// The addresses in a props file; none for SQLite, which has no server.
fn of_props(props: &Props) -> Vec<Address> {
    if props.url.engine == Engine::Sqlite {
        return Vec::new();
    }
    let address = |destination| Address {
        origin: origin(props),
        destination,
        advice: USE_BENCH,
    };
    // Invalid parameters are reported by the step that connects.
    let socket = Options::of(&props.url)
        .ok()
        .and_then(|options| options.socket);
    match socket {
        Some(path) => vec![address(Destination::Socket(path.display().to_string()))],
        None => vec![
            address(Destination::Host(props.url.host.clone())),
            address(Destination::Port(props.url.port)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::machine::ThisMachine;

    /// An experiment with two servers and two arms.
    fn experiment(workload: &str) -> Experiment {
        let text = format!(
            "[[server]]\nname = \"db\"\ncommand = \"x\"\nport = 3306\n\
             [[server]]\nname = \"aid\"\ncommand = \"x\"\nready = {{ command = \"true\" }}\n\
             [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n{workload}"
        );
        Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap()
    }

    fn of_tpcc(file: &str, props: &str) -> Result<(), ReachError> {
        let props = Props::parse(PathBuf::from(file), props).unwrap();
        let file = experiment("[workload]\nkind = \"tpcc\"\nprops = \"x\"");
        check_reach(&file, &[props], &ThisMachine)
    }

    fn of_conn(conn: &str) -> Result<(), ReachError> {
        of_tpcc("/p.conf", &format!("conn={conn}\nwarehouses=1\n"))
    }

    #[test]
    fn props_must_name_a_server_that_the_experiment_starts() {
        for conn in [
            "jdbc:mysql://127.0.0.1:3306/t",
            "jdbc:mysql://localhost/t",
            "jdbc:mysql:///t",
            "jdbc:mysql://[::1]:3306/t",
            "jdbc:sqlite:/t.db",
        ] {
            assert_eq!(of_conn(conn), Ok(()), "{conn}");
        }
        let error = of_conn("jdbc:mysql://192.0.2.10:3306/t").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/p.conf: conn= points to 192.0.2.10 (this machine does not have 192.0.2.10), but the \
             servers of arm \"a\" are started on this machine; write 127.0.0.1 there, or run the \
             experiment on 192.0.2.10; `saiga bench tpcc run` measures a server on another host"
        );
        let error = of_conn("jdbc:mysql://localhost:3307/t").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/p.conf: conn= points to port 3307, on which arm \"a\" starts no server (server \"db\" \
             has 3306, server \"aid\" has no port); give both the same port"
        );
        let error = of_conn("jdbc:mysql://localhost/t?localSocket=/run/s").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/p.conf: conn= points to the Unix socket /run/s, which may belong to a server that \
             arm \"a\" does not start; write the server's host and port there"
        );
        // Labels of domain names have at most 63 bytes (RFC 1035), so no name server is asked.
        let too_long = "x".repeat(64);
        let own = format!("[database]\nurl = \"jdbc:postgresql://{too_long}/t\"\nwarehouses = 1\n");
        let error = of_tpcc("/p.toml", &own).unwrap_err().to_string();
        let start = format!("/p.toml: database.url points to {too_long} (it has no address: ");
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn a_client_on_another_host_connects_to_the_server_s_host() {
        let text = "[hosts]\nwire = \"veth\"\n[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
                    [[server]]\nname = \"db\"\ncommand = \"x\"\nport = 3306\n\
                    [workload]\nkind = \"tpcc\"\nprops = \"x\"";
        let file = Experiment::parse(Path::new("/e.toml"), text, &[]).unwrap();
        let checked = |host: &str| {
            let props = format!("conn=jdbc:mysql://{host}:3306/t\nwarehouses=1\n");
            let props = Props::parse(PathBuf::from("/p"), &props).unwrap();
            check_reach(&file, &[props], &ThisMachine)
        };
        assert_eq!(checked("10.77.0.1"), Ok(()));
        let error = checked("127.0.0.1").unwrap_err().to_string();
        let wanted = "/p: conn= points to 127.0.0.1, but with [hosts] the servers of arm \"a\" \
                      have the address 10.77.0.1; write 10.77.0.1 there";
        assert!(error.starts_with(wanted), "{error}");
    }

    #[test]
    fn an_arm_that_overrides_the_port_is_checked_with_its_own_port() {
        let text = "[[server]]\nname = \"db\"\ncommand = \"x\"\nport = 3306\n\
                    [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
                    [[arm.server]]\nname = \"db\"\nport = 3307\n\
                    [workload]\nkind = \"tpcc\"\nprops = \"x\"";
        let file = Experiment::parse(Path::new("/e.toml"), text, &[]).unwrap();
        let props = "conn=jdbc:mysql://127.0.0.1:3306/t\nwarehouses=1\n";
        let props = Props::parse(PathBuf::from("/p"), props).unwrap();
        let error = check_reach(&file, &[props], &ThisMachine).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("arm \"b\" starts no server"), "{error}");
    }
}
