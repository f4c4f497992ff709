//! Files of Gazelle's operators: their settings, and what is said about the other keys.

use std::fs;

use saiga_gateway::lstack::{self, Translation, translate};
use saiga_gateway::settings::{Addresses, Bytes, Kind, Memory, Polling, Port};

/// The server of the procedure for MySQL, with the network of its examples.
const MYSQL: &str = r#"# lstack.conf
dpdk_args=["--socket-mem", "2048,2048,2048,2048", "--huge-dir", "/mnt/hugepages-lstack", "--proc-type", "primary", "--legacy-mem", "--map-perfect"]

use_ltran=0
kni_switch=0
low_power_mode=0
listen_shadow=1

num_cpus="18,38,58,78"

host_addr="192.168.1.10"
mask_addr="255.255.255.0"
gateway_addr="192.168.1.1"
devices="aa:bb:cc:dd:ee:ff"
"#;

/// The server of the procedure for Redis.
const REDIS: &str = r#"
dpdk_args=["--socket-mem", "2400,0,0,0", "--huge-dir", "/mnt/hugepages-lstack", "--proc-type", "primary", "-d", "librte_net_mlx5.so"]
use_ltran=0
num_cpus="2"
mbuf_count_per_conn=34
tcp_conn_count=20000
host_addr="192.168.1.10";
mask_addr="255.255.255.0";
gateway_addr="192.168.1.1";
devices="aa:bb:cc:dd:ee:ff";
"#;

fn translated(text: &str, ports: &[u16]) -> Translation {
    translate(text, ports).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn notes(translation: &Translation) -> Vec<String> {
    translation.notes.iter().map(ToString::to_string).collect()
}

#[test]
fn the_file_of_the_procedure_for_mysql() {
    let translation = translated(MYSQL, &[3306]);
    let expected = r#"[[device]]
kind = "dpdk"
mac = "aa:bb:cc:dd:ee:ff"
addresses = ["192.168.1.10/24"]
routes = ["default via 192.168.1.1"]

[[serve]]
port = 3306

[workers]
cpus = "18,38,58,78"

[dpdk]
memory = ["2GiB", "2GiB", "2GiB", "2GiB"]
huge_dir = "/mnt/hugepages-lstack"
"#;
    assert_eq!(translation.settings.to_toml(), expected);
    let expected = [
        "line 2: dpdk_args --proc-type: the gateway is the only process of DPDK",
        "line 2: dpdk_args --legacy-mem: dpdk.memory reserves memory at the start",
        "line 2: dpdk_args --map-perfect: no other process maps this memory",
        "line 4: use_ltran: ltran is not needed: one gateway serves any number of processes",
        "line 5: kni_switch: everything that is not served always goes to the kernel",
        "line 6: low_power_mode: workers sleep when there is no work; workers.spin sets how soon",
        "line 7: listen_shadow: every worker serves every port of [[serve]]",
    ];
    assert_eq!(notes(&translation), expected);
}

#[test]
fn the_file_of_the_procedure_for_redis() {
    let Translation { settings, .. } = translated(REDIS, &[6379, 6380]);
    assert_eq!(settings.workers.cpus, [2]);
    assert_eq!(settings.tcp.connections, 20_000);
    assert_eq!(settings.serve[0].ports, [6379, 6380]);
    let sizes = [2400, 0, 0, 0].map(|mib: u64| Bytes(mib << 20));
    assert_eq!(settings.dpdk.memory, Memory::PerNode(sizes.to_vec()));
    assert_eq!(settings.dpdk.eal, ["-d", "librte_net_mlx5.so"]);
}

#[test]
fn af_xdp_keeps_the_addresses_of_the_kernel() {
    let text = "dpdk_args=[\"--vdev\", \"net_af_xdp0,iface=enp4s0,force_copy=1\", \"--no-pci\"]\n\
                nic_vlan_mode=100\nhost_addr=\"192.168.1.10\"\nstack_interrupt=1\n";
    let translation = translated(text, &[6379]);
    let [device] = translation.settings.devices.as_slice() else {
        panic!("{translation:?}");
    };
    assert!(matches!(device.kind, Kind::Xdp { .. }), "{device:?}");
    assert_eq!(device.interface().unwrap().as_str(), "enp4s0");
    assert_eq!(device.addresses, Addresses::Kernel);
    assert_eq!(device.vlan, Some(100));
    let Polling::For(spin) = translation.settings.workers.spin else {
        panic!("{translation:?}");
    };
    assert!(spin.get().is_zero());
    let expected = [
        "line 1: dpdk_args --vdev: options other than iface are left out: all queues are served, \
         and device.copy says whether frames are copied",
        "line 1: dpdk_args: AF_XDP needs no DPDK and no huge pages",
        "line 3: host_addr: the kernel keeps the interface with its addresses and routes",
    ];
    assert_eq!(notes(&translation), expected);
}

/// The device, the VLAN and the rings of a file with these lines.
#[test]
fn devices_and_rings() {
    let network = "host_addr=\"10.0.0.2\"\nmask_addr=\"255.0.0.0\"\ngateway_addr=\"10.0.0.1\"\n";
    let device = |lines: &str| {
        let text = format!("{network}devices=\"02:00:00:00:00:01\"\n{lines}\n");
        let mut settings = translated(&text, &[1]).settings;
        settings.devices.remove(0)
    };
    let port = |lines: &str| match device(lines).kind {
        Kind::Dpdk { port, .. } => port,
        other @ (Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Memif { .. }) => panic!("{other:?}"),
    };
    let pci = Port::Pci("0000:04:00.0".parse().unwrap());
    assert_eq!(port("dpdk_args=[\"-a\", \"0000:04:00.0\"]"), pci);
    assert_eq!(port("dpdk_args=[\"-a04:00.0\"]"), pci);
    assert_eq!(
        port("dpdk_args=[\"--allow=04:00.0,mprq_en=1\", \"-l\", \"1\"]"),
        pci
    );
    let vdev = Port::Vdev("net_memif0,role=server".to_owned());
    assert_eq!(
        port("dpdk_args=[\"--vdev\", \"net_memif0,role=server\"]"),
        vdev
    );
    assert!(matches!(port(""), Port::Mac(_)));

    assert_eq!(
        device("nic_rxqueue_size=4096\nnic_txqueue_size=512").ring,
        4096
    );
    assert_eq!(device("nic_txqueue_size=\"512\"").ring, 512);
    assert_eq!(device("").ring, 2048);
    for (mode, vlan) in [("-1", None), ("0", None), ("7", Some(7)), ("4095", None)] {
        assert_eq!(
            device(&format!("nic_vlan_mode={mode}")).vlan,
            vlan,
            "{mode}"
        );
    }
    let own = device("host_addr6=\"2001:db8::2\"");
    let shown: Vec<String> = own
        .addresses
        .own()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["10.0.0.2/8", "2001:db8::2/64"]);
}

/// Files of other versions and of Gazelle's own tests have keys that Gazelle does not read.
#[test]
fn keys_that_gazelle_does_not_know_are_no_mistake() {
    let text = format!("{MYSQL}num_weakup=\"1,3,5\"\nnuma_bind=1\nnic_read_num=128\nx={{y=1}}\n");
    let translation = translated(&text, &[3306]);
    assert_eq!(translation.settings, translated(MYSQL, &[3306]).settings);
    let notes = notes(&translation);
    assert!(
        notes.contains(&"line 15: num_weakup: Gazelle does not know this key either".to_owned())
    );
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("line 17: nic_read_num: each worker"))
    );
    assert_eq!(notes.len(), 11, "{notes:#?}");
}

#[test]
fn a_router_elsewhere_is_left_out() {
    let text = MYSQL.replace("192.168.1.1\"", "10.0.0.1\"");
    let translation = translated(&text, &[3306]);
    assert!(
        notes(&translation)
            .iter()
            .any(|note| note.contains("gateway_addr: it is not a router"))
    );
    let Addresses::Own { routes, .. } = &translation.settings.devices[0].addresses else {
        panic!("{translation:?}");
    };
    assert!(routes.is_empty());
}

/// Each row: a file, and a problem of it.
const MISTAKES: &[(&str, &str)] = &[
    (
        "host_addr=\"10.0.0.2\"\ndevices=5 6",
        "line 2: write a setting such as",
    ),
    (
        "devices=\"02:00:00:00:00:01\"",
        "host_addr is missing; write the address of this host",
    ),
    (
        "host_addr=\"10.0.0.2\"\nmask_addr=\"255.0.0.0\"",
        "devices is missing; write the MAC address of the network card",
    ),
    (
        "host_addr=\"10.0.0.2\"",
        "mask_addr is missing; write the mask",
    ),
    (
        "host_addr=\"10.0.0\"",
        "line 1: host_addr=\"10.0.0\": write an address",
    ),
    (
        "host_addr=\"::1\"",
        "line 1: host_addr=\"::1\": write the address of one host",
    ),
    (
        "host_addr=[1]",
        "line 1: host_addr=[...]: write a string in quotation marks",
    ),
    (
        "\nnum_cpus=\"a\"",
        "line 2: num_cpus=\"a\": write a list of CPUs",
    ),
    (
        "tcp_conn_count=0",
        "line 1: tcp_conn_count=0: write a whole number from 1 to 1000000",
    ),
    (
        "tcp_conn_count=1.5",
        "tcp_conn_count=1.5: write a whole number",
    ),
    (
        "nic_rxqueue_size=600",
        "nic_rxqueue_size=600: write a power of two",
    ),
    (
        "nic_vlan_mode=5000",
        "nic_vlan_mode=5000: write a whole number from -1 to 4095",
    ),
    (
        "devices=\"eth0\"",
        "devices=\"eth0\": write the MAC address",
    ),
    (
        "dpdk_args=\"-l 1\"",
        "dpdk_args=\"-l 1\": write a list of strings in brackets",
    ),
    (
        "dpdk_args=[\"--socket-mem\"]",
        "line 1: dpdk_args --socket-mem: its value is missing",
    ),
    (
        "dpdk_args=[\"--socket-mem\", \"1GB\"]",
        "write MiB of each node such as",
    ),
    (
        "dpdk_args=[\"--vdev\", \"net_af_xdp0\"]",
        "iface= is missing",
    ),
    (
        "dpdk_args=[\"-a\", \"eth0\"]",
        "dpdk_args -a: write a PCI address",
    ),
    (
        "@include \"more.conf\"",
        "line 1: @include is not supported",
    ),
];

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, expected) in MISTAKES {
        let problems = translate(text, &[1]).expect_err(text);
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            shown.iter().any(|one| one.contains(expected)),
            "{text}: {shown:?}"
        );
    }
    let problems = translate(MYSQL, &[]).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].text.contains("does not name the ports"),
        "{problems:?}"
    );
    let problems = translate(MYSQL, &[7, 7]).unwrap_err();
    assert!(
        problems[0]
            .text
            .contains("translated to gateway.toml: serve.port"),
        "{problems:?}"
    );
}

#[test]
fn a_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lstack.conf");
    fs::write(&path, MYSQL).unwrap();
    assert_eq!(
        lstack::read(&path, &[3306]).unwrap(),
        translated(MYSQL, &[3306])
    );
    fs::write(&path, "num_cpus").unwrap();
    let message = lstack::read(&path, &[3306]).unwrap_err().to_string();
    let expected = format!("{} is not valid:\n  line 1: write \"=\"", path.display());
    assert!(message.starts_with(&expected), "{message}");
}
