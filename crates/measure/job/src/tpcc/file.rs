//! [`ExperimentFile`]: the experiment file of `saiga compare tpcc`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use saiga_experiment::file::TableCheck;
use saiga_experiment::two_hosts::Wire;
use saiga_process::child;
use saiga_snapshot::Snapshot;
use saiga_tpcc::props::Engine;

/// Runs of each arm: the minimum for a verdict.
const USUAL_PAIRS: u32 = 6;

/// The `[plan]` and the checks; the reader's defaults apply to what is not given.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub pairs: Option<u32>,
    pub until: Option<f64>,
    pub seed: Option<u64>,
    pub max_foreign_cores: Option<f64>,
    pub check: Option<TableCheck>,
}

/// The contents of the experiment file.
#[derive(Debug)]
pub struct ExperimentFile {
    pub goal: String,
    pub pace: Pace,
    /// The wire between the hosts of server and client; `None` if both are on this host.
    pub wire: Option<Wire>,
    pub servers: Vec<Server>,
    /// The reference is first.
    pub arms: Vec<Arm>,
    pub props: Vec<PathBuf>,
    /// Additional arguments of `saiga bench tpcc run`.
    pub options: Vec<String>,
    pub restore: Option<RestorePoint>,
}

/// The properties of a server that all arms share.
#[derive(Debug)]
pub struct Server {
    pub name: String,
    pub engine: Engine,
    pub port: u16,
    pub data: Option<PathBuf>,
    pub user: Option<String>,
}

/// An arm, with a command for each server.
#[derive(Debug)]
pub struct Arm {
    pub name: String,
    pub description: String,
    /// Whether a gateway serves the client, which is on another host and not under Saiga.
    pub gateway: bool,
    pub lines: Vec<StartCommand>,
}

/// The command that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCommand {
    pub command: String,
    pub saiga: bool,
}

/// The snapshot to restore before each run.
#[derive(Debug)]
pub struct RestorePoint {
    pub parts: Vec<PathBuf>,
    pub dir: PathBuf,
}

impl RestorePoint {
    /// Whether the snapshot exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        Snapshot::open(&self.dir).is_ok()
    }

    /// The shell command that takes the snapshot.
    #[must_use]
    pub fn line(&self) -> String {
        let shown = |path: &PathBuf| child::quoted(&path.to_string_lossy());
        let parts: Vec<String> = self.parts.iter().map(shown).collect();
        format!(
            "saiga snapshot take {} --to {}",
            parts.join(" "),
            shown(&self.dir)
        )
    }
}

/// Whether an existing snapshot leaves out linked files, which needs an option when it is taken.
fn leaves_linked_files(dir: &Path) -> bool {
    let strays = Snapshot::open(dir).map(|held| saiga_snapshot::linked_files(&held));
    matches!(strays, Ok(Ok(strays)) if !strays.is_empty())
}

impl ExperimentFile {
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = String::from(
            "# Written by `saiga compare tpcc`. To run a variant, edit it and run\n\
             #   saiga compare experiment.toml --out DIR\n\
             # docs/experiments.md has every key.\n",
        );
        key(&mut text, "name", &quoted("tpcc"));
        key(&mut text, "goal", &quoted(&self.goal));
        self.plan(&mut text);
        if let Some(wire) = self.wire {
            text.push_str("\n[hosts]\n");
            key(&mut text, "wire", &quoted(wire.name()));
        }
        for (index, server) in self.servers.iter().enumerate() {
            self.server(index, server, &mut text);
        }
        for arm in &self.arms {
            self.arm(arm, &mut text);
        }
        text.push_str("\n[workload]\n");
        key(&mut text, "kind", &quoted("tpcc"));
        key(&mut text, "props", &list(&paths(&self.props)));
        if !self.options.is_empty() {
            key(&mut text, "options", &list(&self.options));
        }
        if let Some(check) = self.pace.check {
            key(&mut text, "check", &quoted(check.name()));
        }
        if let Some(RestorePoint { parts, dir }) = &self.restore {
            text.push_str("\n[restore]\n");
            key(&mut text, "kind", &quoted("snapshot"));
            key(&mut text, "parts", &list(&paths(parts)));
            key(&mut text, "snapshot", &path(dir));
            if leaves_linked_files(dir) {
                key(&mut text, "linked_files", &quoted("leave"));
            }
        }
        text
    }

    fn plan(&self, text: &mut String) {
        text.push_str("\n[plan]\n");
        let pairs = self.pace.pairs.unwrap_or(USUAL_PAIRS);
        key(text, "pairs", &pairs.to_string());
        if let Some(until) = self.pace.until {
            key(text, "until", &quoted(&format!("{}%", until * 100.0)));
        }
        if let Some(seed) = self.pace.seed {
            key(text, "seed", &seed.to_string());
        }
        if let Some(most) = self.pace.max_foreign_cores {
            key(text, "max_foreign_cores", &format!("{most:?}"));
        }
    }

    /// The command that all arms share, if there is one.
    fn common(&self, index: usize) -> Option<&str> {
        let mut lines = self
            .arms
            .iter()
            .map(|arm| arm.lines[index].command.as_str());
        let first = lines.next()?;
        lines.all(|line| line == first).then_some(first)
    }

    fn server(&self, index: usize, server: &Server, text: &mut String) {
        let Server {
            name,
            engine,
            port,
            data,
            user,
        } = server;
        text.push_str("\n[[server]]\n");
        key(text, "name", &quoted(name));
        if let Some(command) = self.common(index) {
            key(text, "command", &quoted(command));
        }
        key(text, "port", &port.to_string());
        if let Some(data) = data {
            key(text, "data", &list(&paths(std::slice::from_ref(data))));
        }
        if let Some(user) = user {
            key(text, "user", &quoted(user));
        }
        // SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for clients to disconnect.
        let (probe, signal) = match engine {
            Engine::MySql => ("mysql", "TERM"),
            Engine::Postgres | Engine::OpenGauss => ("postgres", "INT"),
            Engine::Sqlite => ("port", "TERM"),
        };
        let (probe, signal) = (quoted(probe), quoted(signal));
        let _ = writeln!(
            text,
            "ready = {{ probe = {probe} }}\nstop = {{ signal = {signal} }}"
        );
    }

    /// The client runs under Saiga if one of its servers does, unless it is on another host that
    /// has no gateway.
    fn arm(&self, arm: &Arm, text: &mut String) {
        let Arm {
            name,
            description,
            gateway,
            lines,
        } = arm;
        text.push_str("\n[[arm]]\n");
        key(text, "name", &quoted(name));
        key(text, "description", &quoted(description));
        let accelerates_client = self.wire.is_none_or(Wire::accelerates_client);
        let saiga = accelerates_client && lines.iter().any(|line| line.saiga);
        if saiga {
            key(text, "saiga", "true");
        }
        if *gateway {
            key(text, "gateway", "true");
        }
        for (index, line) in lines.iter().enumerate() {
            let own_command = self.common(index).is_none();
            if !own_command && line.saiga == saiga {
                continue;
            }
            text.push_str("[[arm.server]]\n");
            key(text, "name", &quoted(&self.servers[index].name));
            if own_command {
                key(text, "command", &quoted(&line.command));
            }
            if line.saiga != saiga {
                key(text, "saiga", &line.saiga.to_string());
            }
        }
    }
}

fn key(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {value}");
}

/// A TOML string, whose escapes are those of JSON. `${` is escaped because it starts a variable.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace("${", "$${")).to_string()
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

fn paths(all: &[PathBuf]) -> Vec<String> {
    all.iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

fn list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    format!("[{}]", all.join(", "))
}
