//! Wrong values, keys and combinations, each with its message.

use std::fs;

use saiga_gateway::settings::Settings;

use crate::{SHORTEST, parsed};

/// The problems of a file, each as a user sees it.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let problems = Settings::parse(text).expect_err(text);
    problems.iter().map(ToString::to_string).collect()
}

/// Each row: lines for `[[device]]`, and a problem of the only device, which begins in line 2.
const IN_A_DEVICE: &[(&str, &str)] = &[
    (
        "",
        "line 2: device.interface is missing; write the name of the kernel's interface",
    ),
    (
        "interface = \"a/b\"",
        "line 3: device.interface = \"a/b\": write the name of an interface",
    ),
    ("interface = 5", "device.interface = 5: write a string"),
    (
        "interfaces = \"a\"",
        "line 3: device.interfaces is an unknown key; did you mean interface?",
    ),
    (
        "kind = \"ebpf\"\ninterface = \"a\"",
        "device.kind = \"ebpf\": write one of \"xdp\", \"tap\", \"dpdk\", \"memif\"",
    ),
    (
        "kind = \"tap\"\ninterface = \"a\"\naddresses = \"10.0.0.1/24\"\nmode = \"native\"",
        "device.mode = \"native\": only kind = \"xdp\" has this key",
    ),
    (
        "interface = \"a\"\nmode = \"generic\"\ncopy = \"zero-copy\"",
        "device.copy = \"zero-copy\": the kernel copies every frame in mode \"generic\"",
    ),
    (
        "interface = \"a\"\nqueues = \"8-15\"",
        "device.queues = \"8-15\": all queues of the interface are served; write their number",
    ),
    (
        "kind = \"tap\"\ninterface = \"a\"\naddresses = \"10.0.0.1/24\"\nring = 64",
        "device.ring = 64: a TAP device has no rings; remove it",
    ),
    (
        "kind = \"tap\"\ninterface = \"a\"\naddresses = \"10.0.0.1/24\"\nframes = 8192",
        "device.frames = 8192: a TAP device has no rings; remove it",
    ),
    (
        "interface = \"a\"\nqueues = 0",
        "device.queues = 0: write a whole number from 1 to 256",
    ),
    (
        "interface = \"a\"\nring = 3000",
        "device.ring = 3000: write a power of two",
    ),
    (
        "interface = \"a\"\nring = 4096\nframes = 8000",
        "device.frames = 8000: write at least 8192",
    ),
    (
        "interface = \"a\"\nvlan = 4095",
        "device.vlan = 4095: write a whole number from 1 to 4094",
    ),
    (
        "interface = \"a\"\nmtu = 500",
        "device.mtu = 500: write a whole number from 576 to 9600",
    ),
    (
        "interface = \"a\"\nmtu = 1000\naddresses = \"2001:db8::1/64\"",
        "device.mtu = 1000: IPv6 needs at least 1280",
    ),
    (
        "interface = \"a\"\naddresses = [\"10.0.0.1\"]",
        "device.addresses = [\"10.0.0.1\"]: \"10.0.0.1\": add the length of the network's \
             prefix: \"10.0.0.1/24\"",
    ),
    (
        "interface = \"a\"\naddresses = []",
        "device.addresses = []: write addresses",
    ),
    (
        "interface = \"a\"\nroutes = \"default via 10.0.0.1\"",
        "the kernel's routes hold with its addresses; remove the key",
    ),
    (
        "interface = \"a\"\naddresses = \"10.0.0.1/24\"\nroutes = \"default via 10.0.1.1\"",
        "10.0.1.1 is in no network of addresses; write a router that is",
    ),
    (
        "interface = \"a\"\naddresses = \"10.0.0.1/24\"\nroutes = [\"default via 10.0.0.2\", \
             \"0.0.0.0/0 via 10.0.0.3\"]",
        "there are two routes to 0.0.0.0/0; remove one",
    ),
    (
        "kind = \"tap\"\ninterface = \"a\"\naddresses = \"kernel\"",
        "device.addresses = \"kernel\": the kernel's end of a TAP device is another host",
    ),
    (
        "kind = \"tap\"\ninterface = \"a\"",
        "line 2: device.addresses is missing",
    ),
    (
        "kind = \"dpdk\"\naddresses = \"kernel\"",
        "line 2: device.pci is missing",
    ),
    ("pci = \"4:0\"", "device.pci = \"4:0\": write a PCI address"),
    (
        "pci = \"04:00.0\"\nmac = \"02:00:00:00:00:01\"\naddresses = \"kernel\"",
        "device.mac = \"02:00:00:00:00:01\": write only one of pci, mac and vdev",
    ),
    (
        "vdev = \"net_af_xdp0,iface=a\"\naddresses = \"kernel\"",
        "write kind = \"xdp\" and interface",
    ),
    (
        "vdev = \"net_tap0,iface=a\"\naddresses = \"kernel\"",
        "write kind = \"tap\" and interface",
    ),
    (
        "kind = \"memif\"\nrole = \"client\"\naddresses = \"10.0.0.1/24\"",
        "line 2: device.socket is missing; write the path of the socket",
    ),
    (
        "kind = \"memif\"\nsocket = \"/run/a\"\naddresses = \"10.0.0.1/24\"",
        "line 2: device.role is missing; write \"server\" at one end",
    ),
    (
        "kind = \"memif\"\nsocket = \"/\"\nrole = \"client\"\naddresses = \"10.0.0.1/24\"",
        "device.socket = \"/\": write the path of a socket, not of a folder",
    ),
    (
        "kind = \"memif\"\nsocket = \"/run/a\"\nrole = \"client\"\nqueues = 2\n\
             addresses = \"10.0.0.1/24\"",
        "device.queues = 2: a memif device has one queue; remove it",
    ),
    (
        "kind = \"memif\"\nsocket = \"/run/a\"\nrole = \"client\"\nring = 32768\n\
             addresses = \"10.0.0.1/24\"",
        "device.ring = 32768: write a whole number from 64 to 16384",
    ),
    (
        "interface = \"a\"\nsocket = \"/run/a\"",
        "device.socket = \"/run/a\": only kind = \"memif\" has this key",
    ),
    (
        "interface = \"a\"\ncpus = \"7\"",
        "device.cpus = \"7\": workers.cpus has no CPU 7",
    ),
];

#[test]
fn mistakes_in_a_device() {
    for (lines, expected) in IN_A_DEVICE {
        let text = format!("serve = [{{ port = 1 }}]\n[[device]]\n{lines}\n");
        let problems = problems(&text);
        assert!(
            problems.iter().any(|one| one.contains(expected)),
            "{lines}: {problems:?}"
        );
    }
}

/// Each row: a file without `[[device]]`, and a problem of it.
const IN_OTHER_TABLES: &[(&str, &str)] = &[
    ("", "serve is missing; add [[serve]] with port = NUMBER"),
    (
        "[[serve]]\n",
        "line 3: serve.port is missing; write a port such as 6379",
    ),
    (
        "[[serve]]\nport = 0\n",
        "line 4: serve.port = 0: write a whole number from 1 to 65535",
    ),
    (
        "[[serve]]\nport = [1, 70000]\n",
        "serve.port = [1, 70000]: 70000: write a whole number",
    ),
    (
        "[[serve]]\nport = []\n",
        "serve.port = []: write a port such as 6379",
    ),
    (
        "[[serve]]\nport = \"80\"\n",
        "serve.port = \"80\": write a whole number",
    ),
    ("[serve]\nport = 80\n", "serve: write tables: [[serve]]"),
    (
        "[[serve]]\nport = 1\naddress = \"0.0.0.0\"\n",
        "serve.address = \"0.0.0.0\": write the address of one host that other hosts can reach, \
             or \"any\"",
    ),
    (
        "[[serve]]\nport = 1\nallow = \"10.0.0.0/8\"\ndeny = \"10.0.0.0/8\"\n",
        "serve.deny = \"10.0.0.0/8\": 10.0.0.0/8 is in allow, too",
    ),
    (
        "[[serve]]\nport = 1\nallow = \"10.2.0.0/16\"\ndeny = \"10.0.0.0/8\"\n",
        "10.0.0.0/8 contains 10.2.0.0/16 of allow, which then admits no client",
    ),
    (
        "[[serve]]\nport = 1\naddress = \"10.0.0.1\"\nallow = [\"10.0.0.0/8\", \"::1\"]\n",
        "\"::1/128\" is of another version of IP than address",
    ),
    (
        "[[serve]]\nport = 1\n[[serve]]\nport = [2, 1]\naddress = \"10.0.0.1\"\n",
        "line 6: serve.port = [2, 1]: line 3 serves port 1 at all addresses",
    ),
    (
        "[[serve]]\nport = [7, 7]\n",
        "line 3 serves port 7 at all addresses",
    ),
    (
        "[[serve]]\nport = 1\nconnections = 9\n[tcp]\nconnections = 8\n",
        "serve.connections = 9: write at most 8, as in tcp.connections",
    ),
    (
        "[worker]\ncpus = \"1\"\n",
        "line 3: worker is an unknown key; did you mean workers?",
    ),
    (
        "[workers]\ncpus = \"1,1\"\n",
        "workers.cpus = \"1,1\": 1 is in the list twice",
    ),
    (
        "[workers]\nspin = \"1s\"\n",
        "workers.spin = \"1s\": write a time of at most 10ms",
    ),
    ("workers = 4\n", "workers = 4: write a table: [workers]"),
    (
        "[tcp]\nkeep_alive = \"0s\"\n",
        "write a duration from \"1s\" to \"1day\", or \"off\"",
    ),
    ("[tcp]\nkeep_alive = \"1ms 1us\"\n", "write a duration from"),
    (
        "[tcp]\nkeep_alive = \"off\"\nkeep_alive_probes = 3\n",
        "tcp.keep_alive_probes = 3: there are no probes: keep_alive is \"off\"",
    ),
    (
        "[tcp]\nbuffer = \"5KiB\"\n",
        "power of two from \"4KiB\" to \"4MiB\"",
    ),
    (
        "[tcp]\nmemory = \"1MiB\"\n",
        "tcp.memory = \"1MiB\": write at least \"8MiB\"",
    ),
    (
        "[dpdk]\nmemory = \"1GiB\"\n",
        "dpdk: no device has kind = \"dpdk\"; remove this table",
    ),
    (
        "[outgoing]\nprefixes = \"127.0.0.0/8\"\n",
        "127.0.0.0/8 is not on another host",
    ),
    (
        "[outgoing]\nprefixes = [\"10.0.0.0/8\", \"10.0.0.0/8\"]\n",
        "is in the list twice",
    ),
    (
        "[metrics]\nlisten = \"127.0.0.1:0\"\n",
        "metrics.listen = \"127.0.0.1:0\": write address",
    ),
    (
        "[metrics]\nlisten = \"9464\"\n",
        "write address and port such as \"127.0.0.1:9464\"",
    ),
    (
        "[[serve]]\nport = 9464\n[metrics]\nlisten = \"0.0.0.0:9464\"\n",
        "metrics.listen = \"0.0.0.0:9464\": line 3 serves this port",
    ),
    (
        "[capture]\nsnap_length = 10\n",
        "write a whole number from 64 to 262144",
    ),
    (
        "[capture]\nfile_size = \"1KiB\"\n",
        "capture.file_size = \"1KiB\": write at least",
    ),
    (
        "[runtime]\nuser = \"root\"\n",
        "write a user without rights of its own",
    ),
    ("[runtime]\nuser = \"0day\"\n", "write the name of a user"),
    (
        "[runtime]\ncontrol = \"gateway.sock\"\n",
        "write an absolute path",
    ),
    ("[runtime]\ncontrol = \"/\"\n", "write the path of a socket"),
    (
        "[runtime]\nuser = \"a\\tb\"\n",
        "remove the control characters",
    ),
    ("device = [\n", "line"),
    ("[tcp]\nbuffer =\n", "line 4"),
];

#[test]
fn mistakes_in_other_tables() {
    for (lines, expected) in IN_OTHER_TABLES {
        let head = "[[device]]\ninterface = \"a\"\n";
        // Keys of the root come before tables.
        let text = match lines.strip_prefix("workers") {
            Some(_) => format!("{lines}{head}"),
            None => format!("{head}{lines}"),
        };
        let problems = problems(&text);
        assert!(
            problems.iter().any(|one| one.contains(expected)),
            "{lines}: {problems:?}"
        );
    }
    let long = format!("{SHORTEST}[runtime]\ncontrol = \"/{}\"\n", "a".repeat(107));
    assert!(problems(&long)[0].contains("at most 107 bytes"));
    assert!(problems(&long)[0].contains("aaa...: write a path"));
}

#[test]
fn conflicts_between_devices() {
    let two = |one: &str, other: &str, more: &str| {
        problems(&format!(
            "serve = [{{ port = 1 }}]\n[[device]]\n{one}\n[[device]]\n{other}\n{more}"
        ))
    };
    for (one, other, more, expected) in [
        (
            "interface = \"a\"",
            "interface = \"a\"",
            "",
            "line 5: device.interface = \"a\": the device of line 2 has it already",
        ),
        (
            "vdev = \"net_memif0\"\naddresses = \"10.0.0.1/24\"",
            "vdev = \"net_memif0\"\naddresses = \"10.0.0.2/24\"",
            "",
            "device.vdev = \"net_memif0\": the device of line 2 has it already",
        ),
        (
            "kind = \"memif\"\nsocket = \"/a\"\nrole = \"server\"\naddresses = \"10.0.0.1/24\"",
            "kind = \"memif\"\nsocket = \"/a\"\nrole = \"client\"\naddresses = \"10.0.0.2/24\"",
            "",
            "device.socket = \"/a\": the device of line 2 has it already",
        ),
        (
            "kind = \"memif\"\nsocket = \"/a\"\nrole = \"client\"\naddresses = \"10.0.0.1/24\"",
            "interface = \"b\"",
            "[workers]\ncpus = \"1-2\"\n",
            "a memif device has one; write one CPU in cpus",
        ),
        (
            "interface = \"a\"\naddresses = \"10.0.0.1/24\"",
            "interface = \"b\"\naddresses = \"10.0.0.1/16\"",
            "",
            "the device of line 2 has 10.0.0.1 already",
        ),
        (
            "interface = \"a\"\ncpus = \"1\"",
            "interface = \"b\"\ncpus = \"2\"",
            "[workers]\ncpus = \"1-4\"\n",
            "line 9: workers.cpus = \"1-4\": CPU 3-4 serves no device",
        ),
        (
            "interface = \"a\"\nqueues = 2",
            "interface = \"b\"\nqueues = 3",
            "[workers]\ncpus = \"1-3\"\n",
            "line 4: device.queues = 2: 3 workers serve the device, and each needs a queue",
        ),
    ] {
        let problems = two(one, other, more);
        assert!(
            problems.iter().any(|one| one.contains(expected)),
            "{expected}: {problems:?}"
        );
    }
}

#[test]
fn a_served_address_is_one_of_a_device() {
    let serve = "serve = [{ port = 1, address = \"2001:db8::1\" }]\n";
    let own = "[[device]]\ninterface = \"a\"\naddresses = \"10.0.0.1/24\"\n";
    let expected = "line 1: serve.address = \"2001:db8::1\": no device has this address; write one \
                    of device.addresses";
    assert_eq!(problems(&format!("{serve}{own}")), [expected]);
    // The kernel's interface may have the address; the machine tells.
    let kernel = "[[device]]\ninterface = \"b\"\n";
    parsed(&format!("{serve}{own}{kernel}"));
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_the_lines() {
    let text = "[[device]]\ninterface = \"a\"\nring = 1\n[[serve]]\nport = 0\n[tcp]\nwindow = 1\n";
    let problems = problems(text);
    let lines: Vec<&str> = problems
        .iter()
        .filter_map(|one| one.split(':').next())
        .collect();
    assert_eq!(lines, ["line 3", "line 5", "line 7"], "{problems:?}");
    assert!(
        problems[2].contains("known are congestion, keep_alive"),
        "{problems:?}"
    );
}

#[test]
fn the_message_of_a_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    let message = || Settings::read(&path).unwrap_err().to_string();
    assert!(message().contains("cannot read"), "{}", message());
    fs::write(&path, "[[device]]\ninterface = \"a\"\n").unwrap();
    let expected = format!("{} is not valid:\n  serve is missing", path.display());
    assert!(message().starts_with(&expected), "{}", message());
    fs::write(&path, b"\xff").unwrap();
    assert!(message().contains("it is not UTF-8 text"), "{}", message());
    fs::write(&path, "#".repeat(70_000)).unwrap();
    assert!(
        message().contains("it is larger than 64 KiB"),
        "{}",
        message()
    );
    fs::write(&path, SHORTEST).unwrap();
    assert_eq!(Settings::read(&path).unwrap(), parsed(SHORTEST));
    assert!(
        Settings::read(folder.path())
            .unwrap_err()
            .to_string()
            .contains("not a regular file")
    );
}
