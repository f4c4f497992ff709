//! Selects the process whose counters prove that a run under Saiga was accelerated.
//!
//! If client and servers run under Saiga, a run is accepted only if nearly all of its bytes went
//! through channels. Deliberately absent: workloads of kind `command`, and sysbench and pgbench
//! started by another program, because the PID of the load generator is unknown there.

use std::path::Path;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::file::{Arm, Kind, Server};
use saiga_tpcc::props::Props;

use crate::load::{PAUSE, SHORT_PAUSE};
use crate::reach::option_values;
use crate::time_series::ProbedProcess;

/// The process to probe during a load of `kind` in `arm`. `servers` are the PIDs of the servers,
/// `props` the props files of TPC-C. Returns `None` if the run needs no proof.
pub(crate) fn probed<'a>(
    kind: &Kind,
    props: &[Props],
    arm: &Arm,
    servers: &[u32],
    probe: &'a dyn AccelerationProbe,
) -> Option<ProbedProcess<'a>> {
    let is_under = |server: &Server| server.launch.saiga;
    let of_client = |connections: u32| ProbedProcess {
        probe,
        server: None,
        with_children: false,
        connections,
        pause: PAUSE,
    };
    if arm.gateway {
        // The client has nothing preloaded. A server with a process per connection has them in its
        // children.
        let server = Some(*servers.first()?);
        let runs = props.iter().filter_map(|props| props.run.as_ref());
        let terminals = runs.map(|run| run.terminals).sum();
        return arm.servers.iter().all(is_under).then(|| ProbedProcess {
            server,
            with_children: true,
            ..of_client(terminals)
        });
    }
    if !arm.client.saiga || !arm.servers.iter().any(is_under) {
        return None;
    }
    let all = arm.servers.iter().all(is_under);
    match kind {
        // A server may consist of several processes; the client has all connections.
        Kind::Tpcc { .. } => {
            let runs = props.iter().filter_map(|props| props.run.as_ref());
            all.then(|| of_client(runs.map(|run| run.terminals).sum()))
        }
        // The server is a single process. With `-k 0` every request opens a connection, which
        // closes before it can be upgraded.
        Kind::Redis { flags, .. } => {
            let first = arm.servers.first().is_some_and(is_under);
            let server = Some(*servers.first()?);
            (first && !flags.reconnect).then(|| ProbedProcess {
                server,
                pause: SHORT_PAUSE,
                ..of_client(flags.clients)
            })
        }
        Kind::Command { name, line, .. } => connections(name, line).filter(|_| all).map(of_client),
    }
}

/// The number of connections of sysbench or pgbench; `None` if another program starts the tool, or
/// if the tool reconnects for each transaction.
fn connections(name: &str, line: &[String]) -> Option<u32> {
    let (names, reconnects): (&[&str], [&str; 2]) = match name {
        "sysbench" => (&["--threads"], ["--reconnect", "--reconnect"]),
        "pgbench" => (&["-c", "--client"], ["-C", "--connect"]),
        _ => return None,
    };
    let is_itself = Path::new(line.first()?).ends_with(name);
    let keeps = |word: &String| reconnects.iter().all(|flag| !word.starts_with(flag));
    let counts = option_values(line, names).filter_map(|(_, value)| value.parse().ok());
    (is_itself && line.iter().all(keeps)).then(|| counts.last().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use saiga_experiment::acceleration::Acceleration;
    use saiga_experiment::file::Experiment;

    use super::*;

    struct NoProbe;

    impl AccelerationProbe for NoProbe {
        fn observe(&self, _: u32, _: u32) -> Result<Acceleration, String> {
            Err("no answer".to_owned())
        }
    }

    /// The PID of the probed server (`None` is the client) and the number of connections.
    fn probed_in(arm: &str, workload: &str) -> Option<(Option<u32>, u32)> {
        let text = format!(
            "[[server]]\nname = \"one\"\ncommand = \"x\"\nport = 1\n\
             [[server]]\nname = \"two\"\ncommand = \"x\"\nport = 2\n\
             [[arm]]\nname = \"a\"\n{arm}\n[[arm]]\nname = \"b\"\n[workload]\n{workload}"
        );
        let file = Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap();
        let text = "conn=jdbc:mysql://h:1/t\nwarehouses=1\nterminals=7\nrunMins=1\n";
        let props = Props::parse(PathBuf::from("/p"), text).unwrap();
        let props = [props.clone(), props];
        let found = probed(
            &file.workload.kind,
            &props,
            &file.arms[0],
            &[41, 42],
            &NoProbe,
        );
        found.map(|probed| (probed.server, probed.connections))
    }

    const SAIGA: &str = "saiga = true";
    const TPCC: &str = "kind = \"tpcc\"\nprops = [\"p\", \"p\"]";

    #[test]
    fn the_process_with_all_connections_is_probed() {
        let redis = |flags: &str| format!("kind = \"redis-benchmark\"\nflags = \"-c 9 {flags}\"");
        let tool = |name: &str, line: &str| format!("kind = {name:?}\ncommand = {line:?}");
        for (workload, wanted) in [
            (TPCC.to_owned(), Some((None, 14))),
            (redis(""), Some((Some(41), 9))),
            (redis("-k 0"), None),
            (
                tool("sysbench", "/usr/bin/sysbench --threads=16 x run"),
                Some((None, 16)),
            ),
            (tool("sysbench", "sysbench --reconnect=5 x run"), None),
            (tool("pgbench", "pgbench -c 8 -T 5"), Some((None, 8))),
            (tool("pgbench", "pgbench -T 5"), Some((None, 1))),
            (tool("pgbench", "pgbench -C -c 8"), None),
            (tool("pgbench", "sh -c 'pgbench -c 8'"), None),
        ] {
            assert_eq!(probed_in(SAIGA, &workload), wanted, "{workload}");
            assert_eq!(probed_in("", &workload), None, "{workload}");
        }
    }

    #[test]
    fn behind_a_gateway_the_server_and_its_children_are_probed() {
        let text = format!(
            "[hosts]\nwire = \"tap\"\n[[server]]\nname = \"one\"\ncommand = \"x\"\nport = 1\n\
             [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\ngateway = true\n\
             [[arm.server]]\nname = \"one\"\nsaiga = true\n[workload]\n{TPCC}"
        );
        let file = Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap();
        let text = "conn=jdbc:mysql://h:1/t\nwarehouses=1\nterminals=7\nrunMins=1\n";
        let props = [Props::parse(PathBuf::from("/p"), text).unwrap()];
        let probed = |arm: &Arm| probed(&file.workload.kind, &props, arm, &[41], &NoProbe);
        let found = probed(&file.arms[1]).unwrap();
        assert_eq!((found.server, found.connections), (Some(41), 7));
        assert!(found.with_children);
        assert!(probed(&file.arms[0]).is_none());
    }

    #[test]
    fn a_run_with_only_one_side_under_saiga_needs_no_proof() {
        let no_client = "saiga = true\n[arm.client]\nsaiga = false";
        let one = "saiga = true\n[[arm.server]]\nname = \"two\"\nsaiga = false";
        assert_eq!(probed_in(no_client, TPCC), None);
        assert_eq!(probed_in(one, TPCC), None);
        // redis-benchmark connects to the first server only.
        let redis = "kind = \"redis-benchmark\"\nflags = \"-c 9\"";
        assert_eq!(probed_in(one, redis), Some((Some(41), 9)));
    }
}
