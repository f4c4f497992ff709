//! Whether a load goes to the servers that an experiment starts for it.
//!
//! The servers of an experiment run on this machine. Props files, and the command lines of sysbench
//! and pgbench, name addresses of their own: where such an address is another host's, or no server
//! has its port, one server would be started and restored, and another one measured. Deliberately
//! absent: workloads of kind `command`, whose options are not known.

use std::net::IpAddr;

use saiga_experiment::file::{Arm, Experiment, Kind, Server};
use saiga_tpcc::db::options::Options;
use saiga_tpcc::props::{Engine, Props};

use crate::machine::Machine;

/// A load that would not reach the servers that are started for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Astray {
    /// It goes to another host.
    #[error(
        "{place} leads to {host} ({why}), but the servers of arm {arm:?} are started on this \
         machine; write 127.0.0.1 there, or run the experiment on {host}; {instead}"
    )]
    Host {
        /// Which word of which file says so.
        place: String,
        /// As it stands there.
        host: String,
        /// Why it is not this machine.
        why: String,
        /// The first arm whose servers it misses.
        arm: String,
        /// How a server on another host is measured.
        instead: &'static str,
    },
    /// It goes to a port of this machine on which nothing is started.
    #[error(
        "{place} leads to port {port}, on which arm {arm:?} starts no server ({servers}); give \
         both the same port"
    )]
    Port {
        /// Which word of which file says so.
        place: String,
        /// As it stands there.
        port: u16,
        /// The first arm whose servers it misses.
        arm: String,
        /// The ports of its servers, for people.
        servers: String,
    },
    /// It goes to a Unix socket, of which only the server that made it is known.
    #[error(
        "{place} leads to the Unix socket {path}, which may be that of another server than the one \
         that arm {arm:?} starts; write the server's host and port there"
    )]
    Socket {
        /// Which word of which file says so.
        place: String,
        /// As it stands there.
        path: String,
        /// The first arm whose servers it may miss.
        arm: String,
    },
}

/// How TPC-C measures a server on another host.
const BY_BENCH: &str = "`saiga bench tpcc run` measures a server on another host";
/// And the tools of others.
const BY_ITSELF: &str = "a server on another host is measured without an experiment";

/// What a load says of where it goes.
struct Address {
    place: String,
    host: Option<String>,
    port: Option<u16>,
    instead: &'static str,
}

/// Checks that the load of `file` goes to the servers of each arm; `props` are its props files.
///
/// # Errors
/// [`Astray`], for the first address that leads elsewhere.
pub fn check_reach(
    file: &Experiment,
    props: &[Props],
    machine: &dyn Machine,
) -> Result<(), Astray> {
    for arm in file.arms.iter().filter(|arm| !arm.servers.is_empty()) {
        if let Some(astray) = props.iter().find_map(|props| by_socket(props, arm)) {
            return Err(astray);
        }
        for address in addresses(&file.workload.kind, arm, props) {
            check(address, arm, machine)?;
        }
    }
    Ok(())
}

fn check(address: Address, arm: &Arm, machine: &dyn Machine) -> Result<(), Astray> {
    let Address {
        place,
        host,
        port,
        instead,
    } = address;
    let elsewhere = host.and_then(|host| is_here(&host, machine).err().map(|why| (host, why)));
    if let Some((host, why)) = elsewhere {
        let arm = arm.name.clone();
        return Err(Astray::Host {
            place,
            host,
            why,
            arm,
            instead,
        });
    }
    let has = |port| arm.servers.iter().any(|server| server.port == Some(port));
    match port.filter(|port| !has(*port)) {
        Some(port) => Err(Astray::Port {
            place,
            port,
            arm: arm.name.clone(),
            servers: ports(&arm.servers),
        }),
        None => Ok(()),
    }
}

/// `server "a" has 3306, server "b" says none`.
fn ports(servers: &[Server]) -> String {
    let said = |server: &Server| match server.port {
        Some(port) => format!("server {:?} has {port}", server.name),
        None => format!("server {:?} says none", server.name),
    };
    servers.iter().map(said).collect::<Vec<_>>().join(", ")
}

/// A folder in the place of a host holds a Unix socket, as libpq has it.
fn is_here(host: &str, machine: &dyn Machine) -> Result<(), String> {
    let address = host.parse::<IpAddr>();
    let is_loopback = address.is_ok_and(|address| address.to_canonical().is_loopback());
    if is_loopback || host.eq_ignore_ascii_case("localhost") || host.starts_with('/') {
        return Ok(());
    }
    machine.host(host)
}

fn addresses(kind: &Kind, arm: &Arm, props: &[Props]) -> Vec<Address> {
    match kind {
        Kind::Tpcc { .. } => props.iter().filter_map(of_props).collect(),
        Kind::Command { name, line, .. } => match name.as_str() {
            "sysbench" => of_sysbench(line),
            "pgbench" => of_pgbench(line, arm),
            _ => Vec::new(),
        },
        // Its flags have no address: it is given that of the arm's first server.
        Kind::Redis { .. } => Vec::new(),
    }
}

/// The key of a props file that names the database.
fn place(props: &Props) -> String {
    let key = match props.path.extension() {
        Some(end) if end == "toml" => "database.url",
        Some(_) | None => "conn=",
    };
    format!("{}: {key}", props.path.display())
}

fn by_socket(props: &Props, arm: &Arm) -> Option<Astray> {
    // Parameters that are wrong are told by the step that connects.
    let options = Options::of(&props.url).ok()?;
    options.socket.map(|path| Astray::Socket {
        place: place(props),
        path: path.display().to_string(),
        arm: arm.name.clone(),
    })
}

/// `None` for SQLite, which has no server.
fn of_props(props: &Props) -> Option<Address> {
    (props.url.engine != Engine::Sqlite).then(|| Address {
        place: place(props),
        host: Some(props.url.host.clone()),
        port: Some(props.url.port),
        instead: BY_BENCH,
    })
}

/// It takes turns among several hosts.
fn of_sysbench(line: &[String]) -> Vec<Address> {
    let hosts = values(line, &["--mysql-host", "--pgsql-host"]);
    let hosts = hosts.flat_map(|(flag, hosts)| {
        let hosts = hosts.split(',');
        hosts.map(move |host| host_of(format!("workload.command: {flag}"), host))
    });
    let ports = values(line, &["--mysql-port", "--pgsql-port"]);
    let ports = ports.map(|(flag, port)| port_of(format!("workload.command: {flag}"), port));
    hosts.chain(ports).collect()
}

/// What the line does not say, libpq takes from the environment.
fn of_pgbench(line: &[String], arm: &Arm) -> Vec<Address> {
    let env = &arm.client.env;
    let variables = |names: &'static [&'static str]| {
        let said = move |name: &&'static str| {
            let value = env.get(*name)?;
            Some((format!("client.env: {name}"), value.as_str()))
        };
        names.iter().filter_map(said)
    };
    let words = |names: &'static [&'static str]| {
        let told = |(flag, value)| (format!("workload.command: {flag}"), value);
        values(line, names).map(told)
    };
    let hosts = words(&["-h", "--host"]).chain(variables(&["PGHOST", "PGHOSTADDR"]));
    let ports = words(&["-p", "--port"]).chain(variables(&["PGPORT"]));
    let hosts = hosts.map(|(place, host)| host_of(place, host));
    let ports = ports.map(|(place, port)| port_of(place, port));
    hosts.chain(ports).collect()
}

fn host_of(place: String, host: &str) -> Address {
    Address {
        place,
        host: Some(host.to_owned()),
        port: None,
        instead: BY_ITSELF,
    }
}

/// The tool itself complains of a port that is none.
fn port_of(place: String, port: &str) -> Address {
    Address {
        place,
        host: None,
        port: port.parse().ok(),
        instead: BY_ITSELF,
    }
}

/// The values of options in the forms `--name=value`, `--name value`, `-n value` and `-nvalue`.
pub(crate) fn values<'a>(
    line: &'a [String],
    names: &'a [&'static str],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    line.iter().enumerate().flat_map(move |(at, word)| {
        let value = move |name: &&'static str| {
            let rest = word.strip_prefix(name)?;
            let joined = match rest.strip_prefix('=') {
                Some(value) if name.starts_with("--") => Some(value),
                None if !name.starts_with("--") => Some(rest),
                Some(_) | None => None,
            };
            let value = if rest.is_empty() {
                line.get(at + 1).map(String::as_str)
            } else {
                joined
            };
            Some((*name, value?))
        };
        names.iter().filter_map(value)
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::machine::ThisMachine;

    /// Two arms, of which the second has another port, and a load.
    fn experiment(workload: &str) -> Experiment {
        let text = format!(
            "[[server]]\nname = \"db\"\ncommand = \"x\"\nport = 3306\n\
             [[server]]\nname = \"aid\"\ncommand = \"x\"\nready = {{ command = \"true\" }}\n\
             [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n{workload}"
        );
        Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap()
    }

    fn of_tpcc(file: &str, props: &str) -> Result<(), Astray> {
        let props = Props::parse(PathBuf::from(file), props).unwrap();
        let file = experiment("[workload]\nkind = \"tpcc\"\nprops = \"x\"");
        check_reach(&file, &[props], &ThisMachine)
    }

    fn of_conn(conn: &str) -> Result<(), Astray> {
        of_tpcc("/p.conf", &format!("conn={conn}\nwarehouses=1\n"))
    }

    #[test]
    fn props_must_lead_to_a_server_that_is_started_here() {
        for conn in [
            "jdbc:mysql://127.0.0.1:3306/t",
            "jdbc:mysql://localhost/t",
            "jdbc:mysql:///t",
            "jdbc:mysql://[::1]:3306/t",
            "jdbc:sqlite:/t.db",
        ] {
            assert_eq!(of_conn(conn), Ok(()), "{conn}");
        }
        let told = of_conn("jdbc:mysql://192.0.2.10:3306/t").unwrap_err();
        assert_eq!(
            told.to_string(),
            "/p.conf: conn= leads to 192.0.2.10 (this machine does not have 192.0.2.10), but the \
             servers of arm \"a\" are started on this machine; write 127.0.0.1 there, or run the \
             experiment on 192.0.2.10; `saiga bench tpcc run` measures a server on another host"
        );
        let told = of_conn("jdbc:mysql://localhost:3307/t").unwrap_err();
        assert_eq!(
            told.to_string(),
            "/p.conf: conn= leads to port 3307, on which arm \"a\" starts no server (server \"db\" \
             has 3306, server \"aid\" says none); give both the same port"
        );
        let told = of_conn("jdbc:mysql://localhost/t?localSocket=/run/s").unwrap_err();
        assert_eq!(
            told.to_string(),
            "/p.conf: conn= leads to the Unix socket /run/s, which may be that of another server \
             than the one that arm \"a\" starts; write the server's host and port there"
        );
        // A part of a name cannot be this long, so no name server is asked.
        let nowhere = "x".repeat(64);
        let own = format!("[database]\nurl = \"jdbc:postgresql://{nowhere}/t\"\nwarehouses = 1\n");
        let told = of_tpcc("/p.toml", &own).unwrap_err().to_string();
        let start = format!("/p.toml: database.url leads to {nowhere} (it has no address: ");
        assert!(told.starts_with(&start), "{told}");
    }

    #[test]
    fn an_arm_with_a_port_of_its_own_is_looked_at_by_itself() {
        let text = "[[server]]\nname = \"db\"\ncommand = \"x\"\nport = 3306\n\
                    [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
                    [[arm.server]]\nname = \"db\"\nport = 3307\n\
                    [workload]\nkind = \"tpcc\"\nprops = \"x\"";
        let file = Experiment::parse(Path::new("/e.toml"), text, &[]).unwrap();
        let props = "conn=jdbc:mysql://127.0.0.1:3306/t\nwarehouses=1\n";
        let props = Props::parse(PathBuf::from("/p"), props).unwrap();
        let told = check_reach(&file, &[props], &ThisMachine).unwrap_err();
        let told = told.to_string();
        assert!(told.contains("arm \"b\" starts no server"), "{told}");
    }

    #[test]
    fn the_addresses_of_known_tools_are_looked_at_and_of_others_not() {
        let of = |kind: &str, command: &str, more: &str| {
            let text = format!(
                "{more}\n[workload]\nkind = \"{kind}\"\ncommand = \"{command}\"\n\
                 [[workload.metric]]\nname = \"x\"\nregex = '(x)'\nunit = \"x\"\nbetter = \"higher\""
            );
            let said = check_reach(&experiment(&text), &[], &ThisMachine);
            said.map_err(|told| told.to_string())
        };
        let far = "leads to 192.0.2.10 (";
        let env = "[client]\nenv = { PGHOST = \"192.0.2.10\" }";
        for (kind, command, more, told) in [
            ("sysbench", "sysbench x run", "", None),
            (
                "sysbench",
                "sysbench --mysql-host=127.0.0.1 --mysql-port=3306 x run",
                "",
                None,
            ),
            (
                "sysbench",
                "nice sysbench --mysql-host=localhost,192.0.2.10 x run",
                "",
                Some(far),
            ),
            (
                "sysbench",
                "sysbench --pgsql-port=5432 x run",
                "",
                Some("leads to port 5432"),
            ),
            ("pgbench", "pgbench -h /run/postgresql -p 3306 db", "", None),
            ("pgbench", "pgbench -h192.0.2.10 db", "", Some(far)),
            ("pgbench", "pgbench --host 192.0.2.10 db", "", Some(far)),
            (
                "pgbench",
                "pgbench --port=5432 db",
                "",
                Some("leads to port 5432"),
            ),
            (
                "pgbench",
                "pgbench db",
                env,
                Some("client.env: PGHOST leads to 192.0.2.10"),
            ),
            ("command", "psql -h 192.0.2.10 db", "", None),
        ] {
            let said = of(kind, command, more);
            match told {
                None => assert_eq!(said, Ok(()), "{command}"),
                Some(told) => assert!(said.clone().unwrap_err().contains(told), "{said:?}"),
            }
        }
    }
}
