//! The counters of a redis-server, read by INFO during an observation.

use std::io;
use std::time::Duration;

use saiga_sampler::status::{Kind, ReadError, StatusSource, Variable};

use crate::resp::Control;
use crate::server::Info;

/// Timeout of an answer: a row of the sampler is due each second.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// Sections with the fields below.
const SECTIONS: [&str; 4] = ["clients", "stats", "replication", "persistence"];
/// Fields of INFO.
const FIELDS: [(&str, Kind); 8] = [
    ("total_commands_processed", Kind::Counter),
    ("total_connections_received", Kind::Counter),
    ("rejected_connections", Kind::Counter),
    ("evicted_keys", Kind::Counter),
    ("keyspace_misses", Kind::Counter),
    ("aof_delayed_fsync", Kind::Counter),
    ("connected_clients", Kind::Gauge),
    ("blocked_clients", Kind::Gauge),
];
/// Bytes by which the replica that is farthest behind has acknowledged less than was written.
const LAG: &str = "replica_lag_bytes";

/// The counters of a server on 127.0.0.1.
pub struct RedisCounters {
    port: u16,
    password: Option<String>,
    /// `None` after a failed read, until the next read connects again.
    control: Option<Control>,
    variables: Vec<Variable>,
}

impl RedisCounters {
    /// Connects to the server, and logs in with `password`.
    ///
    /// # Errors
    /// The server does not answer, or refuses the login.
    pub fn open(port: u16, password: Option<String>) -> io::Result<Self> {
        let fields = FIELDS.into_iter().chain([(LAG, Kind::Gauge)]);
        let variables = fields.map(|(name, kind)| Variable {
            name: name.to_owned(),
            kind,
        });
        let mut counters = Self {
            port,
            password,
            control: None,
            variables: variables.collect(),
        };
        counters.ask()?;
        Ok(counters)
    }

    /// Reads the sections, on a new connection if there is none.
    fn ask(&mut self) -> io::Result<Info> {
        let mut control = match self.control.take() {
            Some(control) => control,
            None => self.connect()?,
        };
        let mut text = String::new();
        for section in SECTIONS {
            text.push_str(&control.ask(&[b"INFO", section.as_bytes()])?);
        }
        // Kept only after a successful read: half an answer may be left in the connection.
        self.control = Some(control);
        Ok(Info(text))
    }

    fn connect(&self) -> io::Result<Control> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        if let Some(password) = &self.password {
            control.ask(&[b"AUTH", password.as_bytes()])?;
        }
        Ok(control)
    }
}

impl StatusSource for RedisCounters {
    fn label(&self) -> &'static str {
        "redis"
    }

    fn names(&self) -> &[Variable] {
        &self.variables
    }

    fn read(&mut self) -> Result<Vec<f64>, ReadError> {
        let info = self.ask()?;
        let field = |(name, _): (&str, Kind)| info.field(name).parse().unwrap_or(f64::NAN);
        Ok(FIELDS.into_iter().map(field).chain([lag(&info)]).collect())
    }
}

/// The lag of the replicas: `slaveN:ip=...,state=...,offset=...,lag=...`. A server without replicas
/// has none.
fn lag(info: &Info) -> f64 {
    let written: f64 = info.field("master_repl_offset").parse().unwrap_or(f64::NAN);
    let replicas = (0..).map(|number| info.field(&format!("slave{number}")).to_owned());
    let replicas = replicas.take_while(|replica| !replica.is_empty());
    let acknowledged = replicas.filter_map(|replica| {
        let mut values = replica
            .split(',')
            .filter_map(|part| part.strip_prefix("offset="));
        values.next()?.parse::<f64>().ok()
    });
    let lag = acknowledged.map(|offset| written - offset);
    lag.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replica_that_is_farthest_behind_counts() {
        let info = |text: &str| Info(text.to_owned());
        let two = "master_repl_offset:1000\r\n\
                   slave0:ip=::1,port=1,state=online,offset=990,lag=0\r\n\
                   slave1:ip=::1,port=2,state=online,offset=400,lag=1\r\n";
        assert_eq!(lag(&info(two)), 600.0);
        assert_eq!(lag(&info("master_repl_offset:1000\r\n")), 0.0);
    }
}
