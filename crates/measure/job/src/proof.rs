//! Which process must prove that a run under Saiga is accelerated.
//!
//! Where client and servers run under Saiga, a run counts only when nearly all of its bytes went by
//! channel. Deliberately absent: workloads of kind `command`, and sysbench and pgbench started by
//! another program, whose processes are not known.

use std::path::Path;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::file::{Arm, Kind, Server};
use saiga_tpcc::props::Props;

use crate::course::Asked;
use crate::load::{PAUSE, SHORT_PAUSE};
use crate::reach::values;

/// Which process is asked about a load of `kind` in `arm`, whose servers are the processes
/// `servers`; `props` are the props files of TPC-C. `None` where nothing is to be proved.
pub(crate) fn asked<'a>(
    kind: &Kind,
    props: &[Props],
    arm: &Arm,
    servers: &[u32],
    probe: &'a dyn AccelerationProbe,
) -> Option<Asked<'a>> {
    let is_under = |server: &Server| server.dress.saiga;
    let of_client = |connections: u32| Asked {
        probe,
        server: None,
        connections,
        pause: PAUSE,
    };
    if !arm.client.saiga || !arm.servers.iter().any(is_under) {
        return None;
    }
    let all = arm.servers.iter().all(is_under);
    match kind {
        // Whatever the servers are made of, the client has all connections.
        Kind::Tpcc { .. } => {
            let runs = props.iter().filter_map(|props| props.run.as_ref());
            all.then(|| of_client(runs.map(|run| run.terminals).sum()))
        }
        // The server is one process. Connections that are made anew for each request stay on TCP.
        Kind::Redis { flags, .. } => {
            let first = arm.servers.first().is_some_and(is_under);
            let server = Some(*servers.first()?);
            (first && !flags.reconnect).then(|| Asked {
                server,
                pause: SHORT_PAUSE,
                ..of_client(flags.clients)
            })
        }
        Kind::Command { name, line, .. } => connections(name, line).filter(|_| all).map(of_client),
    }
}

/// Those of a tool that is started by itself and keeps them.
fn connections(name: &str, line: &[String]) -> Option<u32> {
    let (names, anew): (&[&str], [&str; 2]) = match name {
        "sysbench" => (&["--threads"], ["--reconnect", "--reconnect"]),
        "pgbench" => (&["-c", "--client"], ["-C", "--connect"]),
        _ => return None,
    };
    let is_itself = Path::new(line.first()?).ends_with(name);
    let keeps = |word: &String| anew.iter().all(|flag| !word.starts_with(flag));
    let said = values(line, names).filter_map(|(_, value)| value.parse().ok());
    (is_itself && line.iter().all(keeps)).then(|| said.last().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use saiga_experiment::acceleration::Acceleration;
    use saiga_experiment::file::Experiment;

    use super::*;

    struct Mute;

    impl AccelerationProbe for Mute {
        fn observe(&self, _: u32, _: u32) -> Result<Acceleration, String> {
            Err("it says nothing".to_owned())
        }
    }

    /// Server that is asked, if one is, and connections.
    fn asked_of(arm: &str, workload: &str) -> Option<(Option<u32>, u32)> {
        let text = format!(
            "[[server]]\nname = \"one\"\ncommand = \"x\"\nport = 1\n\
             [[server]]\nname = \"two\"\ncommand = \"x\"\nport = 2\n\
             [[arm]]\nname = \"a\"\n{arm}\n[[arm]]\nname = \"b\"\n[workload]\n{workload}"
        );
        let file = Experiment::parse(Path::new("/e.toml"), &text, &[]).unwrap();
        let text = "conn=jdbc:mysql://h:1/t\nwarehouses=1\nterminals=7\nrunMins=1\n";
        let props = Props::parse(PathBuf::from("/p"), text).unwrap();
        let props = [props.clone(), props];
        let found = asked(&file.workload.kind, &props, &file.arms[0], &[41, 42], &Mute);
        found.map(|asked| (asked.server, asked.connections))
    }

    const SAIGA: &str = "saiga = true";
    const TPCC: &str = "kind = \"tpcc\"\nprops = [\"p\", \"p\"]";

    #[test]
    fn the_process_with_all_connections_is_asked() {
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
            assert_eq!(asked_of(SAIGA, &workload), wanted, "{workload}");
            assert_eq!(asked_of("", &workload), None, "{workload}");
        }
    }

    #[test]
    fn one_side_alone_under_saiga_has_nothing_to_prove() {
        let no_client = "saiga = true\n[arm.client]\nsaiga = false";
        let one = "saiga = true\n[[arm.server]]\nname = \"two\"\nsaiga = false";
        assert_eq!(asked_of(no_client, TPCC), None);
        assert_eq!(asked_of(one, TPCC), None);
        // The load goes to the first.
        let redis = "kind = \"redis-benchmark\"\nflags = \"-c 9\"";
        assert_eq!(asked_of(one, redis), Some((Some(41), 9)));
    }
}
