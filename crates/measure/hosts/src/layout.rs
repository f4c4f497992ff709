//! [`Layout`]: the two hosts of an arm, and the commands that make them.

use std::path::{Path, PathBuf};

use saiga_experiment::arm::ArmKind;
use saiga_experiment::two_hosts::Wire;
use saiga_process::child::{CommandLine, quoted};

/// Address of the server's host.
pub const SERVER: &str = "10.77.0.1";
/// Address of the client's host.
pub const CLIENT: &str = "10.77.0.2";
/// Length of the network's prefix.
const PREFIX: u8 = 24;
/// The device at the server's end of the wire.
const DEVICE: &str = "wire0";
/// The device at the client's end of a veth pair.
const PEER: &str = "wire1";
/// File names of the settings of the gateways on the server's and on the client's host.
const SETTINGS: &str = "gateway.toml";
const FAR_SETTINGS: &str = "client.toml";
/// The user of a gateway under test: one without rights that every distribution has.
const USER: &str = "daemon";

/// The gateway at the server's end of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The `saiga` to start.
    pub tool: PathBuf,
    /// The port of the server.
    pub port: u16,
    /// CPU affinity on the server's and on the client's host; empty for that of this process.
    pub cpus: [Vec<usize>; 2],
}

/// Two hosts for each run of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    pub wire: Wire,
    /// The `saiga` to start as the gateway.
    pub tool: PathBuf,
}

impl Over {
    /// The hosts of an arm, whose server has the port `port`. `cpus` are the CPUs of server and
    /// client; a gateway runs on those of its host, too.
    #[must_use]
    pub fn layout(&self, kind: &ArmKind, port: u16, cpus: &[Vec<usize>; 2]) -> Layout {
        let gateway = || Gateway {
            tool: self.tool.clone(),
            port,
            cpus: cpus.clone(),
        };
        Layout {
            wire: self.wire,
            gateway: matches!(kind, ArmKind::Gateway(_)).then(gateway),
        }
    }

    /// The same wire with the name of the program in place of its path, for results.
    #[must_use]
    pub fn shown(&self) -> Self {
        Self {
            wire: self.wire,
            tool: "saiga".into(),
        }
    }
}

/// The hosts of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub wire: Wire,
    /// `None` if the kernel is at the server's end of the wire.
    pub gateway: Option<Gateway>,
}

/// The files of two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// File of the server's namespace.
    pub server: PathBuf,
    /// File of the client's namespace.
    pub client: PathBuf,
    /// Directory of the gateway's settings.
    pub gateway: PathBuf,
}

impl Places {
    /// Placeholders, for dry runs and results.
    #[must_use]
    pub fn placeholders() -> Self {
        Self {
            server: "{server}".into(),
            client: "{client}".into(),
            gateway: "{gateway}".into(),
        }
    }

    pub(crate) fn settings(&self, side: Side) -> PathBuf {
        self.gateway.join(match side {
            Side::Server => SETTINGS,
            Side::Client => FAR_SETTINGS,
        })
    }
}

/// The host of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

impl Layout {
    /// The hosts and their wire in words, for reports.
    #[must_use]
    pub fn description(&self) -> &'static str {
        match (self.wire, &self.gateway) {
            (Wire::Veth, None) => {
                "client on another host over a veth pair (wire0, wire1), kernel TCP on both hosts, \
                 nothing preloaded"
            }
            (Wire::Veth, Some(_)) => {
                "client on another host over a veth pair (wire0, wire1), kernel TCP on the client's \
                 host; saiga gateway on the server's host (AF_XDP on wire0), server and gateway \
                 under Saiga"
            }
            (Wire::Memif, None) => {
                "client on another host over a veth pair (wire0, wire1) in place of shared memory, \
                 which needs programs at both ends; kernel TCP on both hosts, nothing preloaded"
            }
            (Wire::Memif, Some(_)) => {
                "client on another host over memory that two gateways share (memif); saiga gateway on \
                 both hosts, server, client and gateways under Saiga"
            }
            (Wire::Tap, None) => {
                "client on another host over a veth pair (wire0, wire1) in place of a TAP device, \
                 which needs a program that owns it; kernel TCP on both hosts, nothing preloaded"
            }
            (Wire::Tap, Some(_)) => {
                "client on another host over a TAP device (wire0), kernel TCP on the client's host; \
                 saiga gateway on the server's host owns the device, server and gateway under Saiga"
            }
        }
    }

    /// The shell commands that make the hosts, with placeholders.
    #[must_use]
    pub fn steps(&self) -> Vec<String> {
        let places = Places::placeholders();
        let mut steps = vec!["touch {server} {client}".to_owned()];
        steps.extend(["server", "client"].map(|host| format!("unshare --net={{{host}}} true")));
        let shown = |line: &CommandLine| line.to_string();
        steps.extend(self.before(&places).iter().map(shown));
        for (side, gateway) in self.gateways() {
            let settings = self.settings(side, gateway, &places);
            let words: Vec<String> = settings.iter().map(|line| quoted(line)).collect();
            let file = places.settings(side);
            steps.push(format!(
                "printf '%s\\n' {} > {}",
                words.join(" "),
                file.display()
            ));
            steps.push(format!("{} &", gateway.line(side, &places)));
            steps.push(match side {
                Side::Server => format!("# when it serves {SERVER}:{}", gateway.port),
                Side::Client => format!("# when it carries connections to {SERVER}"),
            });
        }
        steps.extend(self.after(&places).iter().map(shown));
        steps
    }

    /// The shell commands that remove the hosts, with placeholders.
    #[must_use]
    pub fn last_steps(&self) -> Vec<String> {
        let stop = |_| "kill (PID of saiga gateway)".to_owned();
        let remove = "umount {server} {client}".to_owned();
        self.gateways().map(stop).chain([remove]).collect()
    }

    /// The commands that run before the client, with placeholders, for results: those of the
    /// gateways, if there are any, and `server` on its host.
    #[must_use]
    pub fn shown_server(&self, server: CommandLine) -> String {
        let places = Places::placeholders();
        let line = |(side, gateway): (Side, &Gateway)| format!("{}; ", gateway.line(side, &places));
        let gateway: String = self.gateways().map(line).collect();
        let server = CommandLine {
            network: Some(places.server),
            ..server
        };
        format!("{gateway}{server}")
    }

    /// The command of the client on its host, with placeholders, for results.
    #[must_use]
    pub fn shown_client(&self, client: CommandLine) -> String {
        let network = Some(Places::placeholders().client);
        CommandLine { network, ..client }.to_string()
    }

    /// The gateways in the order of their starts: that of the server's host, and one on the
    /// client's host if the wire needs it.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = (Side, &Gateway)> {
        let far = self.gateway.iter().filter(|_| self.wire == Wire::Memif);
        let near = self.gateway.iter().map(|gateway| (Side::Server, gateway));
        near.chain(far.map(|gateway| (Side::Client, gateway)))
    }

    /// What the wire is in this arm: where no program owns it, a veth pair.
    fn actual_wire(&self) -> Wire {
        if self.gateway.is_some() {
            self.wire
        } else {
            Wire::Veth
        }
    }

    /// The commands before the gateway starts.
    pub(crate) fn before(&self, places: &Places) -> Vec<CommandLine> {
        let Places { server, client, .. } = places;
        let mut lines = vec![ip(server, "link set lo up")];
        match self.actual_wire() {
            Wire::Veth => {}
            Wire::Tap => {
                // The server needs a device with the address; the gateway has none for the kernel.
                lines.push(ip(server, &format!("address add {SERVER}/32 dev lo")));
                return lines;
            }
            Wire::Memif => {
                lines.push(ip(client, "link set lo up"));
                return lines;
            }
        }
        let peer = format!("peer name {PEER} netns {}", client.display());
        lines.push(ip(server, &format!("link add {DEVICE} type veth {peer}")));
        lines.extend(set_up(server, DEVICE, SERVER));
        lines.extend(set_up(client, PEER, CLIENT));
        lines
    }

    /// The commands when the gateway serves.
    pub(crate) fn after(&self, places: &Places) -> Vec<CommandLine> {
        if self.actual_wire() != Wire::Tap {
            return Vec::new();
        }
        let Places { server, client, .. } = places;
        let to_client = format!("link set {DEVICE} netns {}", client.display());
        let mut lines = vec![ip(server, &to_client)];
        lines.extend(set_up(client, DEVICE, CLIENT));
        lines
    }

    /// The lines of a gateway's settings.
    pub(crate) fn settings(&self, side: Side, gateway: &Gateway, places: &Places) -> Vec<String> {
        let (address, role) = match side {
            Side::Server => (SERVER, "server"),
            Side::Client => (CLIENT, "client"),
        };
        let addresses = format!("addresses = [\"{address}/{PREFIX}\"]");
        let interface = format!("interface = \"{DEVICE}\"");
        let mut lines = vec!["[[device]]".to_owned()];
        match self.actual_wire() {
            Wire::Veth => lines.extend(["kind = \"xdp\"".to_owned(), interface]),
            Wire::Tap => lines.extend(["kind = \"tap\"".to_owned(), interface, addresses]),
            Wire::Memif => {
                let socket = places.gateway.join("memif").display().to_string();
                lines.extend([
                    "kind = \"memif\"".to_owned(),
                    format!("socket = {socket:?}"),
                    format!("role = \"{role}\""),
                    interface,
                    addresses,
                ]);
            }
        }
        lines.extend(match side {
            Side::Server => ["[[serve]]".to_owned(), format!("port = {}", gateway.port)],
            Side::Client => [
                "[outgoing]".to_owned(),
                format!("prefixes = [\"{SERVER}/32\"]"),
            ],
        });
        // Not the usual socket, which belongs to the gateway of this machine.
        let control = places.gateway.join(format!("control-{role}"));
        let control = control.display().to_string();
        lines.extend([
            "[runtime]".to_owned(),
            format!("user = \"{USER}\""),
            format!("control = {control:?}"),
        ]);
        lines
    }
}

impl Gateway {
    pub(crate) fn line(&self, side: Side, places: &Places) -> CommandLine {
        let Self {
            tool,
            port: _,
            cpus,
        } = self;
        let settings = places.settings(side).display().to_string();
        let [near, far] = cpus;
        let (host, cpus) = match side {
            Side::Server => (&places.server, near),
            Side::Client => (&places.client, far),
        };
        CommandLine {
            cpus: cpus.clone(),
            network: Some(host.clone()),
            ..CommandLine::new(
                &tool.to_string_lossy(),
                ["gateway", "up", "--config", &settings],
            )
        }
    }
}

/// ip(8) in the namespace `place`.
fn ip(place: &Path, words: &str) -> CommandLine {
    CommandLine {
        network: Some(place.to_owned()),
        ..CommandLine::new("ip", words.split(' '))
    }
}

fn set_up(place: &Path, device: &str, address: &str) -> [CommandLine; 2] {
    [
        ip(
            place,
            &format!("address add {address}/{PREFIX} dev {device}"),
        ),
        ip(place, &format!("link set {device} up")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(wire: Wire, has_gateway: bool) -> Layout {
        let gateway = || Gateway {
            tool: "/bin/saiga".into(),
            port: 6379,
            cpus: [vec![0], vec![1]],
        };
        Layout {
            wire,
            gateway: has_gateway.then(gateway),
        }
    }

    #[test]
    fn a_tap_device_is_the_gateway_s_and_moves_to_the_client() {
        let layout = layout(Wire::Tap, true);
        let settings = "printf '%s\\n' '[[device]]' 'kind = \"tap\"' 'interface = \"wire0\"' \
                        'addresses = [\"10.77.0.1/24\"]' '[[serve]]' 'port = 6379' '[runtime]' \
                        'user = \"daemon\"' 'control = \"{gateway}/control-server\"' > \
                        {gateway}/gateway.toml";
        assert_eq!(
            layout.steps(),
            [
                "touch {server} {client}",
                "unshare --net={server} true",
                "unshare --net={client} true",
                "nsenter --net={server} ip link set lo up",
                "nsenter --net={server} ip address add 10.77.0.1/32 dev lo",
                settings,
                "nsenter --net={server} taskset -c 0 /bin/saiga gateway up --config \
                 {gateway}/gateway.toml &",
                "# when it serves 10.77.0.1:6379",
                "nsenter --net={server} ip link set wire0 netns {client}",
                "nsenter --net={client} ip address add 10.77.0.2/24 dev wire0",
                "nsenter --net={client} ip link set wire0 up",
            ]
        );
        assert_eq!(
            layout.last_steps(),
            ["kill (PID of saiga gateway)", "umount {server} {client}"]
        );
    }

    #[test]
    fn shared_memory_has_a_gateway_at_each_end() {
        let steps = layout(Wire::Memif, true).steps();
        assert_eq!(
            steps[3..5],
            [
                "nsenter --net={server} ip link set lo up",
                "nsenter --net={client} ip link set lo up",
            ]
        );
        for (step, wanted) in [
            (
                5,
                "'kind = \"memif\"' 'socket = \"{gateway}/memif\"' 'role = \"server\"'",
            ),
            (5, "'[[serve]]' 'port = 6379'"),
            (
                6,
                "nsenter --net={server} taskset -c 0 /bin/saiga gateway up",
            ),
            (8, "'socket = \"{gateway}/memif\"' 'role = \"client\"'"),
            (8, "'[outgoing]' 'prefixes = [\"10.77.0.1/32\"]'"),
            (
                9,
                "nsenter --net={client} taskset -c 1 /bin/saiga gateway up",
            ),
            (10, "# when it carries connections to 10.77.0.1"),
        ] {
            assert!(steps[step].contains(wanted), "{wanted}: {}", steps[step]);
        }
        assert_eq!(steps.len(), 11);
        assert_eq!(layout(Wire::Memif, true).last_steps().len(), 3);
    }

    #[test]
    fn every_other_wire_is_a_veth_pair() {
        let pair = [
            "nsenter --net={server} ip link set lo up",
            "nsenter --net={server} ip link add wire0 type veth peer name wire1 netns {client}",
            "nsenter --net={server} ip address add 10.77.0.1/24 dev wire0",
            "nsenter --net={server} ip link set wire0 up",
            "nsenter --net={client} ip address add 10.77.0.2/24 dev wire1",
            "nsenter --net={client} ip link set wire1 up",
        ];
        for wire in [Wire::Veth, Wire::Tap, Wire::Memif] {
            assert_eq!(layout(wire, false).steps()[3..], pair, "{wire:?}");
        }
        let gateway = layout(Wire::Veth, true).steps();
        assert_eq!(gateway[3..9], pair);
        assert!(gateway[9].contains("'kind = \"xdp\"' 'interface = \"wire0\"' '[[serve]]'"));
        assert_eq!(gateway.len(), 12);
    }
}
