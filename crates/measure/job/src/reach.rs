//! Whether a load goes to the servers that an experiment starts for it.
//!
//! The servers of an experiment run on this machine. Props files, and the command lines of sysbench
//! and pgbench, name addresses of their own: where such an address is another host's, or no server
//! has its port, one server would be started and restored, and another one measured. Deliberately
//! absent: workloads of kind `command`, whose options are not known.

mod tools;

use std::net::IpAddr;

use saiga_experiment::file::{Arm, Experiment, Kind, Server};
use saiga_tpcc::db::options::Options;
use saiga_tpcc::props::{Engine, Props};

use crate::machine::Machine;
use tools::{of_pgbench, of_sysbench};

pub(crate) use tools::values;

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
    /// It says where it goes in a way that is not read here.
    #[error(
        "{place} says where the load goes, which is not compared with the servers of arm {arm:?}; \
         write -h 127.0.0.1 and -p PORT in the command, and the plain name of the database"
    )]
    Unread {
        /// Which word of which file says so.
        place: String,
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
    /// Which word of which file says so.
    place: String,
    to: To,
    instead: &'static str,
}

/// The variables that programs inherit.
type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

enum To {
    Host(String),
    Port(u16),
    Socket(String),
    /// Something that is not read here.
    Unread,
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
    let inherited = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    check_from(file, props, machine, &inherited)
}

/// The same where programs inherit these variables.
fn check_from(
    file: &Experiment,
    props: &[Props],
    machine: &dyn Machine,
    inherited: Inherited<'_>,
) -> Result<(), Astray> {
    for arm in file.arms.iter().filter(|arm| !arm.servers.is_empty()) {
        for address in addresses(&file.workload.kind, arm, props, inherited) {
            check(address, arm, machine)?;
        }
    }
    Ok(())
}

fn check(address: Address, arm: &Arm, machine: &dyn Machine) -> Result<(), Astray> {
    let Address { place, to, instead } = address;
    let has = |port| arm.servers.iter().any(|server| server.port == Some(port));
    let name = arm.name.clone();
    match to {
        To::Host(host) => is_here(&host, machine).map_err(|why| Astray::Host {
            place,
            host,
            why,
            arm: name,
            instead,
        }),
        To::Port(port) if has(port) => Ok(()),
        To::Port(port) => Err(Astray::Port {
            place,
            port,
            arm: name,
            servers: ports(&arm.servers),
        }),
        To::Socket(path) => Err(Astray::Socket {
            place,
            path,
            arm: name,
        }),
        To::Unread => Err(Astray::Unread { place, arm: name }),
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

fn is_here(host: &str, machine: &dyn Machine) -> Result<(), String> {
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

/// None for SQLite, which has no server.
fn of_props(props: &Props) -> Vec<Address> {
    if props.url.engine == Engine::Sqlite {
        return Vec::new();
    }
    let to = |to| Address {
        place: place(props),
        to,
        instead: BY_BENCH,
    };
    // Parameters that are wrong are told by the step that connects.
    let socket = Options::of(&props.url)
        .ok()
        .and_then(|options| options.socket);
    match socket {
        Some(path) => vec![to(To::Socket(path.display().to_string()))],
        None => vec![
            to(To::Host(props.url.host.clone())),
            to(To::Port(props.url.port)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::machine::ThisMachine;

    /// Two arms and a load.
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
}
