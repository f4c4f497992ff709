//! `saiga gateway` on a port of DPDK: a packet socket on one end of a veth pair, whose other end is
//! the client's. Needs what `support/gateway.rs` needs, DPDK with its headers, ethtool(8), ping(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use saiga_trials::snapshot::ip;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::{Said, said, text};
use world::{Wire, World, in_namespace, network};

/// A server's host with a port of DPDK, and the plug-in.
fn world() -> World {
    let mut world = World::over(Wire::Dpdk);
    // A packet socket gets frames beside the kernel, which must not take them from this interface.
    for (key, value) in [
        ("ipv4/conf/port0/rp_filter", "1"),
        ("ipv6/conf/port0/disable_ipv6", "1"),
    ] {
        fs::write(PathBuf::from("/proc/sys/net").join(key), value).unwrap();
    }
    // The driver does not know that a checksum can be open.
    world.client("ethtool -K tap0 tx off");
    world.before = network();
    world
}

/// `saiga gateway VERB`, with the file of settings of the world.
fn gateway(world: &World, verb: &str) -> Said {
    let settings = world.saiga.path("gateway.toml");
    said(
        &mut world
            .saiga
            .saiga(&["gateway", verb, "--config", text(&settings)]),
    )
}

/// What `saiga gateway status` says.
fn status(world: &World) -> String {
    let control = world.saiga.path("run/gateway.sock");
    let status = ["gateway", "status", "--control", text(&control)];
    said(&mut world.saiga.saiga(&status)).stdout
}

/// The lines of each thread of a process that tell its rights.
fn rights(process: u32) -> (usize, BTreeSet<String>) {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let statuses =
        threads.map(|one| fs::read_to_string(one.unwrap().path().join("status")).unwrap());
    let rights: Vec<String> = statuses
        .map(|status| {
            let kept = ["Uid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];
            let lines = status.lines();
            let lines = lines.filter(|line| kept.iter().any(|key| line.starts_with(key)));
            lines.collect::<Vec<_>>().join("; ")
        })
        .collect();
    (rights.len(), rights.into_iter().collect())
}

/// The served port, and beside it the kernel's other port, echo requests and neighbours.
#[test]
fn a_port_of_dpdk_is_shared_with_the_kernel() {
    in_namespace(|| {
        let world = world();
        world.saiga.install_plugin();
        let gateway = world.gateway();
        let (threads, rights) = rights(gateway.0.id());
        assert!(threads > 2 && rights.len() == 1, "{rights:?}");
        let rights = rights.first().unwrap();
        assert!(
            rights.contains("Seccomp:\t2") && !rights.contains("Uid:\t0"),
            "{rights}"
        );
        let addresses = ["10.9.0.1", "fd09::1"];
        let _served = world.redis(true);
        let _other = world.saiga.redis(false, &addresses, 6380, &[]);
        let value = "0123456789abcdef".repeat(60_000);
        for (server, client) in addresses.into_iter().zip(["10.9.0.2:", "[fd09::2]:"]) {
            let mut pings = world.on_client(&format!("ping -q -c 50 -i 0.01 -w 60 {server}"));
            let pings = pings.stdout(std::process::Stdio::piped()).spawn().unwrap();
            for port in ["6379", "6380"] {
                let cli = format!("redis-cli -h {server} -p {port}");
                let seen = world.client(&format!("{cli} client list"));
                assert!(seen.contains(&format!("addr={client}")), "{seen}");
                world.client_with(&format!("{cli} -x set key"), value.as_bytes());
                assert!(world.client(&format!("{cli} get key")).trim_end() == value);
            }
            let load = format!("redis-benchmark -h {server} -n 2000 -c 20 -P 4 -q -t set,get");
            world.client(&load);
            let pings = pings.wait_with_output().unwrap();
            assert!(
                pings.status.success(),
                "{}",
                String::from_utf8_lossy(&pings.stdout)
            );
        }
        let status = status(&world);
        for part in ["net_af_packet0", "dpdk0", "PassiveOpens"] {
            assert!(status.contains(part), "{status}");
        }
        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

/// A card's queues need RSS; the driver net_null says that it has that.
#[test]
fn each_worker_has_a_queue_and_a_way_to_the_kernel() {
    in_namespace(|| {
        let world = World::over(Wire::Dpdk);
        world.saiga.install_plugin();
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let settings = settings.replace("net_af_packet0,iface=port0", "net_null0,no-rx=1");
        fs::write(&file, settings + "[workers]\ncpus = \"0,1\"\n").unwrap();
        let gateway = world.gateway();
        let status = status(&world);
        for worker in ["worker 0: up", "worker 1: up"] {
            assert!(status.contains(worker), "{status}");
        }
        for queue in ["net_null0", "dpdk0"] {
            let rows = status.lines().filter_map(|line| line.strip_prefix(queue));
            let numbers: Vec<&str> = rows
                .filter_map(|row| row.split_whitespace().next())
                .collect();
            assert_eq!(numbers, ["0", "1"], "{status}");
        }
        gateway.stop();
    });
}

/// The TAP device, its addresses and the rules are those of the process.
#[test]
fn what_dpdk_lacks_is_named_and_nothing_changes() {
    in_namespace(|| {
        let world = world();
        let out = gateway(&world, "up");
        assert_eq!(out.code, Some(2), "{}", out.stdout);
        assert!(out.stderr.contains("libdpdk-dev"), "{}", out.stderr);
        world.saiga.install_plugin();
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        for (from, to, reason) in [
            (
                "iface=port0",
                "iface=nowhere",
                "net_af_packet0,iface=nowhere",
            ),
            ("net_af_packet0", "net_nothing0", "net_nothing0"),
            ("[dpdk]\n", "[workers]\ncpus = \"0,1\"\n[dpdk]\n", "queue"),
            ("[dpdk]\n", "[dpdk]\neal = \"--nothing\"\n", "eal"),
            ("\"dpdk0\"", "\"port0\"", "exists already"),
        ] {
            fs::write(&file, settings.replace(from, to)).unwrap();
            let out = gateway(&world, "up");
            assert_eq!(out.code, Some(2), "{to}: {}{}", out.stdout, out.stderr);
            assert!(out.stderr.contains(reason), "{to}: {}", out.stderr);
            assert_eq!(network(), world.before);
        }
        assert!(!ip("link").contains("dpdk0"));
    });
}

/// The machine on which `up --prepare` and `down` run: a directory in place of `/sys`, with one
/// NUMA node without huge pages and a card with the interface `eth9`, and one in place of `/run`.
struct Machine<'a>(&'a World);

impl<'a> Machine<'a> {
    fn new(world: &'a World) -> Self {
        let machine = Self(world);
        let card = "devices/pci0000:00/0000:04:00.0";
        let pages = "devices/system/node/node0/hugepages/hugepages-2048kB";
        for (file, value) in [
            ("bus/pci/drivers_probe", ""),
            ("bus/pci/drivers/ixgbe/unbind", ""),
            (&format!("{card}/class"), "0x020000\n"),
            (&format!("{card}/driver_override"), "(null)\n"),
            (&format!("{card}/net/eth9/flags"), "0x1002\n"),
            (&format!("{pages}/nr_hugepages"), "0\n"),
            (&format!("{pages}/free_hugepages"), "0\n"),
            (&format!("{pages}/surplus_hugepages"), "0\n"),
            ("devices/system/node/node0/cpulist", "0-4095\n"),
            ("kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "0\n"),
            (
                "kernel/iommu_groups/7/devices/0000:04:00.0/class",
                "0x020000\n",
            ),
            ("class/net/none", ""),
            ("bus/pci/devices/none", ""),
        ] {
            let path = machine.path("sys").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        for (link, target) in [
            ("bus/pci/devices/0000:04:00.0", &*format!("../../../{card}")),
            ("class/net/eth9", &format!("../../{card}/net/eth9")),
            (&format!("{card}/driver"), "../../../bus/pci/drivers/ixgbe"),
            (
                &format!("{card}/iommu_group"),
                "../../../kernel/iommu_groups/7",
            ),
        ] {
            symlink(target, machine.path("sys").join(link)).unwrap();
        }
        fs::create_dir(machine.path("run")).unwrap();
        ip("link add eth9 type veth peer name eth8");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.saiga.path("machine").join(name)
    }

    /// `saiga gateway` with these words, in a mount namespace of its own.
    fn gateway(&self, words: &[&str]) -> Said {
        let script =
            "mount --bind \"$1\" /sys && mount --bind \"$2\" /run && shift 2 && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.args([
            self.path("sys"),
            self.path("run"),
            self.0.saiga.path("bin/saiga"),
        ]);
        said(command.arg("gateway").args(words))
    }

    /// Its files and links.
    fn state(&self) -> String {
        let mut find = Command::new("sh");
        let script = "find . -type l -printf '%p -> %l\\n' -o -type f -print -exec cat {} + | sort";
        said(find.args(["-c", script]).current_dir(self.path(""))).stdout
    }
}

/// Whatever `up --prepare` cannot do is named, with the exit status 2, and what it has done is
/// undone: here, DPDK finds none of the pages, and modprobe(8) no module.
#[test]
fn what_cannot_be_prepared_is_named_and_undone() {
    in_namespace(|| {
        let world = World::over(Wire::Dpdk);
        let machine = Machine::new(&world);
        let (before, network_before) = (machine.state(), network());
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let settings = settings.replace("\"ordinary\"", "[\"4MiB\"]");
        let vdev = "vdev = \"net_af_packet0,iface=port0\"";
        let card = |address: &str| (vdev, format!("pci = \"{address}\""));
        let check = |(from, to): (&str, String), reasons: &[&str]| {
            fs::write(&file, settings.replace(from, &to)).unwrap();
            let out = machine.gateway(&["up", "--prepare", "--config", text(&file)]);
            assert_eq!(out.code, Some(2), "{to}: {}{}", out.stdout, out.stderr);
            for reason in reasons {
                assert!(out.stderr.contains(reason), "{to}: {}", out.stderr);
            }
            assert_eq!(machine.state(), before, "{to}: {}", out.stderr);
            assert_eq!(network(), network_before, "{to}");
        };
        check(card("0000:04:00.0"), &["libdpdk-dev"]);
        world.saiga.install_plugin();
        check(
            card("0000:09:00.0"),
            &["no PCI device 0000:09:00.0", "lspci"],
        );
        check(card("0000:04:00.0"), &["vfio-pci cannot be loaded"]);
        check(
            ("[\"4MiB\"]", "[\"0MiB\", \"4MiB\"]".to_owned()),
            &["no NUMA node 1"],
        );
        let undone = [
            "prepared: huge pages of NUMA node 0: 2",
            "restored huge pages of NUMA node 0: 0",
        ];
        check(
            (vdev, vdev.to_owned()),
            &[&undone[..], &["DPDK does not begin"]].concat(),
        );
        let tap = "kind = \"tap\"".to_owned();
        let no_dpdk = settings
            .split_once("[dpdk]")
            .unwrap()
            .0
            .replace("ring = 512", "");
        let no_dpdk = no_dpdk + "[runtime]\nuser = \"saiga-none\"\n";
        fs::write(&file, no_dpdk.replace(vdev, &tap)).unwrap();
        let out = machine.gateway(&["up", "--prepare", "--config", text(&file)]);
        assert_eq!(out.code, Some(2));
        for part in ["--prepare has no effect", "useradd"] {
            assert!(out.stderr.contains(part), "{}", out.stderr);
        }
    });
}

/// Without a record, `down` has nothing to do; one that others can read may be theirs.
#[test]
fn the_machine_is_checked_and_a_foreign_record_refused() {
    in_namespace(|| {
        let world = World::over(Wire::Dpdk);
        let machine = Machine::new(&world);
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let settings = settings.replace("vdev = \"net_af_packet0,iface=port0\"", "pci = \"4:0.0\"");
        fs::write(&file, settings.replace("\"ordinary\"", "[\"4MiB\"]")).unwrap();
        let check = || machine.gateway(&["check", "--config", text(&file)]);
        let out = check();
        assert_eq!(out.code, Some(1), "{}", out.stderr);
        for part in [
            "lacks    device.pci: network card at 0000:04:00.0: the kernel has it; `up --prepare` binds",
            "needs 2 huge pages of 2 MiB and has 0; `up --prepare` reserves them",
            "there    runtime.user: user daemon",
        ] {
            assert!(out.stdout.contains(part), "{}", out.stdout);
        }
        ip("address add 10.8.0.1/24 dev eth9");
        let out = check();
        assert!(
            out.stdout.contains("eth9, which has 10.8.0.1"),
            "{}",
            out.stdout
        );

        let out = machine.gateway(&["down"]);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let record = machine.path("run/saiga-gateway.prepared");
        let pages = r#"{"begin":{"pages":{"node":0,"was":7,"wanted":9}}}"#;
        fs::write(&record, format!("{pages}\n")).unwrap();
        fs::set_permissions(&record, fs::Permissions::from_mode(0o644)).unwrap();
        let before = machine.state();
        let out = machine.gateway(&["down"]);
        assert_eq!(out.code, Some(2));
        assert!(
            out.stderr.contains("its contents are ignored: remove it"),
            "{}",
            out.stderr
        );
        assert_eq!(machine.state(), before);
    });
}
