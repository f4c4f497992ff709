//! No text panics, and settings survive the way to TOML and back.

use proptest::prelude::*;
use saiga_gateway::lstack;
use saiga_gateway::settings::{KEYS, Settings};

/// Values of keys, right and wrong ones.
const VALUES: [&str; 42] = [
    "1",
    "0",
    "-1",
    "64",
    "128",
    "4096",
    "70000",
    "true",
    "2.5",
    "1979-05-27",
    "[]",
    "[1, 2]",
    "{}",
    "\"\"",
    "\"0-3\"",
    "\"1,1\"",
    "\"any\"",
    "\"kernel\"",
    "\"off\"",
    "\"always\"",
    "\"auto\"",
    "\"tap\"",
    "\"dpdk\"",
    "\"memif\"",
    "\"client\"",
    "\"generic\"",
    "\"zero-copy\"",
    "\"eth0\"",
    "\"04:00.0\"",
    "\"02:00:00:00:00:01\"",
    "\"net_memif0\"",
    "\"10.0.0.1\"",
    "\"10.0.0.1/24\"",
    "\"10.0.0.0/8\"",
    "[\"2001:db8::1/64\"]",
    "\"default via 10.0.0.2\"",
    "\"50us\"",
    "\"5m\"",
    "\"256KiB\"",
    "\"1GiB\"",
    "\"/run/a\"",
    "\"127.0.0.1:80\"",
];

/// One line of a file: a header, or a key with any value.
fn line() -> impl Strategy<Value = String> {
    let header = prop::sample::select(vec![
        "[[device]]",
        "[[serve]]",
        "[workers]",
        "[tcp]",
        "[dpdk]",
        "[outgoing]",
        "[metrics]",
        "[capture]",
        "[runtime]",
        "[device]",
    ]);
    let key = prop::sample::select(KEYS.to_vec());
    let value = prop::sample::select(VALUES.to_vec());
    prop_oneof![
        1 => header.prop_map(str::to_owned),
        4 => (key, value).prop_map(|(key, value)| format!("{} = {value}", key.name)),
        1 => "\\PC{0,20}",
    ]
}

/// A line, or none.
fn maybe(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::option::of(prop::sample::select(values))
        .prop_map(|line| line.map_or(String::new(), |line| format!("{line}\n")))
}

/// A valid device; `index` keeps devices apart.
fn device(index: usize) -> impl Strategy<Value = String> {
    let addresses = "addresses = [\"10.INDEX.0.1/16\", \"2001:db8:INDEX::1/64\"]\n";
    let routes = "routes = [\"default via 10.INDEX.0.9\", \"2001:db8::/32 via fe80::1\"]\n";
    let kind = prop::sample::select(vec![
        "interface = \"eth#INDEX\"\n".to_owned(),
        "interface = \"eth#INDEX\"\nmode = \"generic\"\ncopy = \"copy\"\n".to_owned(),
        "interface = \"eth#INDEX\"\nmode = \"native\"\ncopy = \"zero-copy\"\n".to_owned(),
        format!("interface = \"eth#INDEX\"\nqueues = 5\n{addresses}{routes}"),
        format!("kind = \"tap\"\ninterface = \"t#INDEX\"\nqueues = 16\n{addresses}"),
        format!("pci = \"04:0INDEX.0\"\ninterface = \"c'INDEX\"\n{addresses}{routes}"),
        format!("mac = \"02:00:00:00:00:0INDEX\"\n{addresses}"),
        "vdev = \"net_pcapINDEX,rx_pcap=\\\"a\\\\b\\\"\"\naddresses = \"kernel\"\n".to_owned(),
        format!("kind = \"memif\"\nsocket = \"/run/INDEX\"\nrole = \"server\"\n{addresses}"),
        format!(
            "kind = \"memif\"\nsocket = \"/run/'INDEX\"\nrole = \"client\"\nid = 7\n\
             interface = \"m#INDEX\"\n{addresses}{routes}"
        ),
    ]);
    let ring = maybe(&[
        "ring = 64",
        "ring = 4096",
        "frames = 5000",
        "ring = 512\nframes = 1024",
    ]);
    let vlan = maybe(&["vlan = 1", "vlan = 4094"]);
    let mtu = maybe(&["mtu = 1280", "mtu = 9000"]);
    (kind, ring, vlan, mtu).prop_map(move |(kind, ring, vlan, mtu)| {
        // A TAP device has no rings, and memif no other frames than those of its ring.
        let has_no_frames = kind.contains("memif") && ring.contains("frames");
        let ring = if kind.contains("tap") || has_no_frames {
            ""
        } else {
            &ring
        };
        let text = format!("[[device]]\n{kind}{ring}{vlan}{mtu}");
        text.replace("INDEX", &index.to_string())
    })
}

fn serve() -> impl Strategy<Value = String> {
    let port = prop::sample::select(vec!["port = 1", "port = [2, 3, 65535]"]);
    let clients = maybe(&[
        "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ndeny = \"10.1.0.0/16\"",
        "deny = \"::/0\"",
    ]);
    let limits = maybe(&[
        "backlog = 1",
        "connections = 7",
        "connections_per_client = 3",
        "address = \"any\"\nbacklog = 99",
    ]);
    (port, clients, limits)
        .prop_map(|(port, clients, limits)| format!("[[serve]]\n{port}\n{clients}{limits}"))
}

/// The tables that exist once. `[dpdk]` is left out: it needs such a device.
fn singles() -> impl Strategy<Value = String> {
    let workers = (
        maybe(&["cpus = \"1-4\"", "cpus = \"7\""]),
        maybe(&[
            "spin = \"always\"",
            "spin = \"0us\"",
            "spin = \"1500ns\"",
            "spin = \"10ms\"",
        ]),
        maybe(&["memory_bind = \"0,2-3\""]),
    );
    let tcp = (
        maybe(&["congestion = \"newreno\""]),
        maybe(&[
            "keep_alive = \"off\"",
            "keep_alive = \"1s\"\nkeep_alive_probes = 50",
            "keep_alive_interval = \"1h 1m 1s 1ms\"",
        ]),
        maybe(&["user_timeout = \"1day\"", "user_timeout = \"1500ms\""]),
        maybe(&["connections = 1000000"]),
        maybe(&[
            "buffer = \"4KiB\"\nmemory = \"9KiB\"",
            "memory = \"100GiB\"",
        ]),
    );
    let service = (
        maybe(&["prefixes = [\"10.9.0.0/16\", \"::/0\"]"]),
        maybe(&["listen = \"127.0.0.1:9464\"", "listen = \"[::]:9\""]),
        maybe(&["snap_length = 64", "file_size = \"1500KiB\""]),
        maybe(&["user = \"_a-1\"", "control = \"/run/ä \\\\ \\\"b\\\"\""]),
    );
    (workers, tcp, service).prop_map(|(workers, tcp, service)| {
        let (cpus, spin, memory) = workers;
        let (congestion, keep_alive, user_timeout, connections, buffer) = tcp;
        let (outgoing, metrics, capture, runtime) = service;
        format!(
            "[workers]\n{cpus}{spin}{memory}[tcp]\n{congestion}{keep_alive}{user_timeout}\
             {connections}{buffer}[outgoing]\n{outgoing}[metrics]\n{metrics}[capture]\n{capture}\
             [runtime]\n{runtime}"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_lines_give_settings_or_problems(lines in prop::collection::vec(line(), 0..30)) {
        let text = lines.join("\n");
        match Settings::parse(&text) {
            Ok(settings) => prop_assert_eq!(Settings::parse(&settings.to_toml()).unwrap(), settings),
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(problem.line <= lines.len() + 1, "{}", problem);
                    prop_assert!(!problem.text.contains('\n'), "{}", problem);
                }
            }
        }
    }

    #[test]
    fn settings_survive_the_way_to_toml_and_back(
        first in device(1),
        second in prop::option::of(device(2)),
        serve in serve(),
        singles in singles(),
    ) {
        let devices = format!("{first}{}", second.unwrap_or_default());
        // A memif device has one worker.
        let singles = if devices.contains("memif") {
            singles.replace("cpus = \"1-4\"", "cpus = \"1\"")
        } else {
            singles
        };
        let text = format!("{devices}{serve}{singles}");
        let settings = Settings::parse(&text);
        prop_assert!(settings.is_ok(), "{}\n{:?}", text, settings);
        let settings = settings.unwrap();
        let written = settings.to_toml();
        prop_assert_eq!(Settings::parse(&written).unwrap(), settings.clone());
        prop_assert_eq!(Settings::parse(&written).unwrap().to_toml(), written);
        prop_assert!(!settings.needs().is_empty());
    }

    #[test]
    fn any_text_is_translated_or_refused(
        text in prop_oneof![
            "\\PC{0,60}",
            "((num_cpus|dpdk_args|host_addr|devices|bond_mode) ?[=:] ?[\\[(\"{]?[0-9a-z.,\"\\-]{0,12}[\\])\"}]?[;,]?\n?){0,6}",
            "[\\[\\](){}=:;,\"\\\\/*#@a-c0-9 \n]{0,60}",
        ],
        port in 0_u16..3,
    ) {
        match lstack::translate(&text, &[port]) {
            Ok(translation) => {
                let written = translation.settings.to_toml();
                prop_assert_eq!(Settings::parse(&written).unwrap(), translation.settings);
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(!problem.text.contains('\n'), "{}", problem);
                }
            }
        }
    }
}
