//! Where sysbench and pgbench go, by what their command lines, their variables and their own rules say.
//!
//! What is not said is decided by the client libraries: libmysqlclient takes `localhost` for a Unix
//! socket, and libpq takes a host that is missing for one (its manual, "Environment Variables").

use std::fs;

use saiga_experiment::file::Dress;

use super::{Address, BY_ITSELF, Inherited, To};

/// Tests of sysbench that know no server.
const WITHOUT_SERVER: [&str; 5] = ["cpu", "memory", "fileio", "threads", "mutex"];
const MYSQL_PORT: u16 = 3306;
const POSTGRES_PORT: u16 = 5432;

/// A command line, and the variables with which it is started.
struct Called<'a> {
    line: &'a [String],
    client: &'a Dress,
    inherited: Inherited<'a>,
}

/// Takes turns among several hosts and ports.
pub(super) fn of_sysbench(
    line: &[String],
    client: &Dress,
    inherited: Inherited<'_>,
) -> Vec<Address> {
    if line
        .iter()
        .any(|word| WITHOUT_SERVER.contains(&word.as_str()))
    {
        return Vec::new();
    }
    let line = with_configuration(line, client);
    let called = Called {
        line: &line,
        client,
        inherited,
    };
    let driver = values(&line, &["--db-driver"]).last();
    if driver.is_some_and(|(_, driver)| driver == "pgsql") {
        let mut all = called.beside_the_line();
        all.extend(called.hosts(&["--pgsql-host"]).unwrap_or_default());
        all.extend(called.ports(&["--pgsql-port"], POSTGRES_PORT));
        return all;
    }
    let sockets = values(&line, &["--mysql-socket"]);
    let mut all: Vec<Address> = sockets
        .map(|(flag, path)| address(of_command(flag), To::Socket(path.to_owned())))
        .collect();
    let by_name = |mut address: Address| {
        if matches!(&address.to, To::Host(host) if host.eq_ignore_ascii_case("localhost")) {
            let socket = "of the MySQL client, which takes localhost for it";
            address.to = To::Socket(socket.to_owned());
        }
        address
    };
    let hosts = called.hosts(&["--mysql-host"]);
    let hosts = hosts.unwrap_or_else(|| {
        let place = without("--mysql-host");
        vec![address(place, To::Host("localhost".to_owned()))]
    });
    all.extend(hosts.into_iter().map(by_name));
    all.extend(called.ports(&["--mysql-port"], MYSQL_PORT));
    all
}

/// What the line does not say, libpq takes from the environment.
pub(super) fn of_pgbench(
    line: &[String],
    client: &Dress,
    inherited: Inherited<'_>,
) -> Vec<Address> {
    let called = Called {
        line,
        client,
        inherited,
    };
    let mut all = called.beside_the_line();
    all.extend(called.connection_strings());
    let given = called.hosts(&["-h", "--host"]);
    let by_variable = || called.variable("PGHOST");
    let hosts = given.or_else(|| by_variable().map(|(place, hosts)| listed(&place, &hosts)));
    let has_address = called.variable("PGHOSTADDR").is_some();
    all.extend(hosts.unwrap_or_else(|| {
        let socket = To::Socket("in PostgreSQL's default folder".to_owned());
        let none = (!has_address).then(|| address(without("-h"), socket));
        none.into_iter().collect()
    }));
    let by_variable = called.variable("PGPORT");
    let of_line = values(line, &["-p", "--port"]).next();
    all.extend(match (of_line, by_variable) {
        (None, Some((place, port))) => port_of(place, &port).into_iter().collect(),
        (Some(_), _) | (None, None) => called.ports(&["-p", "--port"], POSTGRES_PORT),
    });
    all
}

impl Called<'_> {
    /// The hosts that options name; `None` where they name none.
    fn hosts(&self, names: &[&'static str]) -> Option<Vec<Address>> {
        let said = values(self.line, names);
        let all: Vec<Address> = said
            .flat_map(|(flag, hosts)| listed(&of_command(flag), hosts))
            .collect();
        (!all.is_empty()).then_some(all)
    }

    /// The ports that options name, or the usual one.
    fn ports(&self, names: &[&'static str], usual: u16) -> Vec<Address> {
        let said: Vec<_> = values(self.line, names).collect();
        if let ([], Some(name)) = (said.as_slice(), names.first()) {
            return vec![address(without(name), To::Port(usual))];
        }
        let each = said.into_iter();
        let each = each.flat_map(|(flag, ports)| ports.split(',').map(move |port| (flag, port)));
        each.filter_map(|(flag, port)| port_of(of_command(flag), port))
            .collect()
    }

    /// What libpq reads whatever a line says.
    fn beside_the_line(&self) -> Vec<Address> {
        let address_of = self.variable("PGHOSTADDR");
        let address_of = address_of.map(|(place, hosts)| listed(&place, &hosts));
        let service = self.variable("PGSERVICE");
        let service = service.map(|(place, _)| address(place, To::Unread));
        let all = address_of.into_iter().flatten();
        all.chain(service).collect()
    }

    /// Names of a database that name a server as well: URIs, and lists such as `host=a port=1`.
    fn connection_strings(&self) -> Vec<Address> {
        let by_options = values(self.line, &["-d", "--dbname"]).map(|(_, value)| value);
        let words = self.line.iter().enumerate().skip(1);
        let words = words.filter_map(|(at, word)| {
            let defines = ["-D", "--define"].contains(&self.line[at - 1].as_str());
            (!defines && !word.starts_with('-')).then_some(word.as_str())
        });
        let of_line = by_options.chain(words).filter(|name| names_a_server(name));
        let of_line = of_line.map(|_| "workload.command: the name of the database".to_owned());
        let by_variable = self.variable("PGDATABASE");
        let by_variable = by_variable.filter(|(_, name)| names_a_server(name));
        let places = of_line.chain(by_variable.map(|(place, _)| place));
        places.map(|place| address(place, To::Unread)).collect()
    }

    /// The value of a variable, and where it is set: in the line, by `env`, in the file, or before
    /// Saiga was started. Empty ones are none to libpq.
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

/// Whether libpq finds a server in a database's name.
fn names_a_server(name: &str) -> bool {
    let is_uri = ["postgresql://", "postgres://"]
        .iter()
        .any(|scheme| name.starts_with(scheme));
    let mut words = name.split(|c: char| c == '=' || c.is_whitespace());
    let says_where = |word: &str| ["host", "hostaddr", "port", "service"].contains(&word);
    is_uri || name.contains('=') && words.any(says_where)
}

/// The words of a line of sysbench with those of its configuration files, and names of options
/// with hyphens alone, where sysbench takes underscores as well.
fn with_configuration(line: &[String], client: &Dress) -> Vec<String> {
    let folder = client.directory.clone().unwrap_or_default();
    let files = values(line, &["--config-file"]);
    // sysbench itself complains of a file that it cannot read.
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

fn address(place: String, to: To) -> Address {
    Address {
        place,
        to,
        instead: BY_ITSELF,
    }
}

/// Hosts with commas between them. A folder in the place of a host holds a Unix socket, as libpq has
/// it, and `@` begins the name of one.
fn listed(place: &str, hosts: &str) -> Vec<Address> {
    let one = |host: &str| {
        let host = host.to_owned();
        let to = if host.starts_with(['/', '@']) {
            To::Socket(host)
        } else {
            To::Host(host)
        };
        address(place.to_owned(), to)
    };
    hosts.split(',').map(one).collect()
}

/// The tool itself complains of a port that is none.
fn port_of(place: String, port: &str) -> Option<Address> {
    let port = port.trim().parse().ok()?;
    Some(address(place, To::Port(port)))
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
mod tests;
