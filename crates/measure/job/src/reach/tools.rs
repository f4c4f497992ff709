//! The addresses to which sysbench and pgbench connect.
//!
//! In: a command line and the environment of its program. Out: every host, port and socket in
//! them, with the defaults of the client libraries for those that are missing. libmysqlclient
//! connects to a Unix socket if the host is `localhost`; libpq connects to a Unix socket if the
//! host is missing (PostgreSQL manual, "Environment Variables").

use std::fs;

use saiga_experiment::file::Launch;

use super::{Address, Destination, Inherited, WITHOUT_EXPERIMENT};

/// Tests of sysbench that connect to no server.
const WITHOUT_SERVER: [&str; 5] = ["cpu", "memory", "fileio", "threads", "mutex"];
const MYSQL_PORT: u16 = 3306;
const POSTGRES_PORT: u16 = 5432;

/// A command line and the environment of its program.
struct Invocation<'a> {
    line: &'a [String],
    client: &'a Launch,
    inherited: Inherited<'a>,
}

/// The addresses of a sysbench command; sysbench distributes its connections over several hosts
/// and ports.
pub(super) fn of_sysbench(
    line: &[String],
    client: &Launch,
    inherited: Inherited<'_>,
) -> Vec<Address> {
    if line
        .iter()
        .any(|word| WITHOUT_SERVER.contains(&word.as_str()))
    {
        return Vec::new();
    }
    let line = with_configuration(line, client);
    let invocation = Invocation {
        line: &line,
        client,
        inherited,
    };
    let driver = option_values(&line, &["--db-driver"]).last();
    if driver.is_some_and(|(_, driver)| driver == "pgsql") {
        let mut all = invocation.set_by_libpq();
        all.extend(invocation.hosts(&["--pgsql-host"]).unwrap_or_default());
        all.extend(invocation.ports(&["--pgsql-port"], POSTGRES_PORT));
        return all;
    }
    let sockets = option_values(&line, &["--mysql-socket"]);
    let mut all: Vec<Address> = sockets
        .map(|(flag, path)| address(of_command(flag), Destination::Socket(path.to_owned())))
        .collect();
    let is_localhost = |destination: &Destination| matches!(destination, Destination::Host(host) if host.eq_ignore_ascii_case("localhost"));
    let as_client = |mut address: Address| {
        if is_localhost(&address.destination) {
            let socket = "of the MySQL client, which it uses for localhost";
            address.destination = Destination::Socket(socket.to_owned());
        }
        address
    };
    let hosts = invocation.hosts(&["--mysql-host"]);
    let hosts = hosts.unwrap_or_else(|| {
        let origin = without("--mysql-host");
        vec![address(origin, Destination::Host("localhost".to_owned()))]
    });
    all.extend(hosts.into_iter().map(as_client));
    all.extend(invocation.ports(&["--mysql-port"], MYSQL_PORT));
    all
}

/// The addresses of a pgbench command; libpq takes those that the command line omits from the
/// environment.
pub(super) fn of_pgbench(
    line: &[String],
    client: &Launch,
    inherited: Inherited<'_>,
) -> Vec<Address> {
    let invocation = Invocation {
        line,
        client,
        inherited,
    };
    let mut all = invocation.set_by_libpq();
    all.extend(invocation.connection_strings());
    let from_options = invocation.hosts(&["-h", "--host"]);
    let by_variable = || invocation.variable("PGHOST");
    let hosts =
        from_options.or_else(|| by_variable().map(|(origin, hosts)| listed(&origin, &hosts)));
    let has_address = invocation.variable("PGHOSTADDR").is_some();
    all.extend(hosts.unwrap_or_else(|| {
        let socket = Destination::Socket("in PostgreSQL's default folder".to_owned());
        let none = (!has_address).then(|| address(without("-h"), socket));
        none.into_iter().collect()
    }));
    let by_variable = invocation.variable("PGPORT");
    let of_line = option_values(line, &["-p", "--port"]).next();
    all.extend(match (of_line, by_variable) {
        (None, Some((origin, port))) => port_of(origin, &port).into_iter().collect(),
        (Some(_), _) | (None, None) => invocation.ports(&["-p", "--port"], POSTGRES_PORT),
    });
    all
}

impl Invocation<'_> {
    /// The hosts in the values of the options `names`; `None` if no option contains a host.
    fn hosts(&self, names: &[&'static str]) -> Option<Vec<Address>> {
        let values = option_values(self.line, names);
        let all: Vec<Address> = values
            .flat_map(|(flag, hosts)| listed(&of_command(flag), hosts))
            .collect();
        (!all.is_empty()).then_some(all)
    }

    /// The ports in the values of the options `names`; `default` if there are none.
    fn ports(&self, names: &[&'static str], default: u16) -> Vec<Address> {
        let values: Vec<_> = option_values(self.line, names).collect();
        if let ([], Some(name)) = (values.as_slice(), names.first()) {
            return vec![address(without(name), Destination::Port(default))];
        }
        let each = values.into_iter();
        let each = each.flat_map(|(flag, ports)| ports.split(',').map(move |port| (flag, port)));
        each.filter_map(|(flag, port)| port_of(of_command(flag), port))
            .collect()
    }

    /// The variables of libpq that apply even if the command line contains an address.
    fn set_by_libpq(&self) -> Vec<Address> {
        let host_address = self.variable("PGHOSTADDR");
        let host_address = host_address.map(|(origin, hosts)| listed(&origin, &hosts));
        let service = self.variable("PGSERVICE");
        let service = service.map(|(origin, _)| address(origin, Destination::Unparsed));
        let all = host_address.into_iter().flatten();
        all.chain(service).collect()
    }

    /// Database names that contain an address: URIs, and lists such as `host=a port=1`.
    fn connection_strings(&self) -> Vec<Address> {
        let by_options = option_values(self.line, &["-d", "--dbname"]).map(|(_, value)| value);
        let words = self.line.iter().enumerate().skip(1);
        let words = words.filter_map(|(index, word)| {
            let defines = ["-D", "--define"].contains(&self.line[index - 1].as_str());
            (!defines && !word.starts_with('-')).then_some(word.as_str())
        });
        let of_line = by_options.chain(words).filter(|name| contains_server(name));
        let of_line = of_line.map(|_| "workload.command: the name of the database".to_owned());
        let by_variable = self.variable("PGDATABASE");
        let by_variable = by_variable.filter(|(_, name)| contains_server(name));
        let origins = of_line.chain(by_variable.map(|(origin, _)| origin));
        origins
            .map(|origin| address(origin, Destination::Unparsed))
            .collect()
    }

    /// The origin and the value of an environment variable. The order of precedence is: `env` in
    /// the command line, the experiment file, the environment of Saiga. libpq ignores empty values.
    fn variable(&self, name: &str) -> Option<(String, String)> {
        let set = |word: &String| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        let in_line = self.line.iter().find_map(set);
        let in_line = in_line.map(|value| (of_command(name), value));
        let in_file = || {
            let value = self.client.env.get(name)?.clone();
            Some((format!("client.env: {name}"), value))
        };
        let inherited = || {
            let value = (self.inherited)(name)?;
            Some((format!("the variable {name} of this shell"), value))
        };
        let found = in_line.or_else(in_file).or_else(inherited);
        found.filter(|(_, value)| !value.is_empty())
    }
}

/// Whether libpq takes the server from a database name.
fn contains_server(name: &str) -> bool {
    let is_uri = ["postgresql://", "postgres://"]
        .iter()
        .any(|scheme| name.starts_with(scheme));
    let mut words = name.split(|c: char| c == '=' || c.is_whitespace());
    let is_address = |word: &str| ["host", "hostaddr", "port", "service"].contains(&word);
    is_uri || name.contains('=') && words.any(is_address)
}

/// The words of a sysbench command line, preceded by those of its configuration files. Underscores
/// in option names are replaced by hyphens; sysbench accepts both.
fn with_configuration(line: &[String], client: &Launch) -> Vec<String> {
    let folder = client.directory.clone().unwrap_or_default();
    let files = option_values(line, &["--config-file"]);
    // sysbench reports files that it cannot read.
    let texts = files.filter_map(|(_, file)| fs::read_to_string(folder.join(file)).ok());
    let settings = texts.flat_map(|text| {
        let lines = text.lines().map(|line| format!("--{}", line.trim()));
        lines.collect::<Vec<_>>()
    });
    let hyphens = |word: String| match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => {
            format!("{}={value}", name.trim_end().replace('_', "-"))
        }
        _ => word,
    };
    let all = settings.chain(line.iter().cloned());
    all.map(hyphens).collect()
}

fn of_command(name: &str) -> String {
    format!("workload.command: {name}")
}

fn without(flag: &str) -> String {
    format!("workload.command without {flag}")
}

fn address(origin: String, destination: Destination) -> Address {
    Address {
        origin,
        destination,
        advice: WITHOUT_EXPERIMENT,
    }
}

/// Splits a comma-separated list of hosts. As in libpq, a host that begins with `/` is a directory
/// with a Unix socket, and a host that begins with `@` is an abstract Unix socket.
fn listed(origin: &str, hosts: &str) -> Vec<Address> {
    let one = |host: &str| {
        let host = host.to_owned();
        let destination = if host.starts_with(['/', '@']) {
            Destination::Socket(host)
        } else {
            Destination::Host(host)
        };
        address(origin.to_owned(), destination)
    };
    hosts.split(',').map(one).collect()
}

/// `None` if `port` is not a number; the load generator reports that.
fn port_of(origin: String, port: &str) -> Option<Address> {
    let port = port.trim().parse().ok()?;
    Some(address(origin, Destination::Port(port)))
}

/// The values of the options `names`, each with its name, in the forms `--name=value`,
/// `--name value`, `-n value` and `-nvalue`.
pub(crate) fn option_values<'a>(
    line: &'a [String],
    names: &'a [&'static str],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    line.iter().enumerate().flat_map(move |(index, word)| {
        let value = move |name: &&'static str| {
            let rest = word.strip_prefix(name)?;
            let joined = match rest.strip_prefix('=') {
                Some(value) if name.starts_with("--") => Some(value),
                None if !name.starts_with("--") => Some(rest),
                Some(_) | None => None,
            };
            let value = if rest.is_empty() {
                line.get(index + 1).map(String::as_str)
            } else {
                joined
            };
            Some((*name, value?))
        };
        names.iter().filter_map(value)
    })
}

#[cfg(test)]
mod tests;
