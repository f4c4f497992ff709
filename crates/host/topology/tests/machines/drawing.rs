//! Machines as text, compared with the files in `golden/`, and as a page.
//!
//! To update a file, copy the text from the message of the failed test.

use std::fs;
use std::path::Path;

use saiga_document::html;
use saiga_topology::draw::draw;
use saiga_topology::latency::{Latency, Row, Samples};
use saiga_topology::machine::Machine;
use saiga_topology::page::page;
use saiga_topology::process::Process;

use crate::reading::with_process;
use crate::recorded;

/// Latencies of four nodes in which node 2 is nearer to node 0 than the firmware says.
fn latency(machine: &Machine) -> Latency {
    let row = |from: usize| Row {
        cpu: machine.nodes[from].cpus[0],
        node: machine.nodes[from].id,
        cells: (0..4)
            .map(|to| {
                let ns = [[90.0, 150.0, 120.0, 310.0], [150.0, 90.0, 250.0, 300.0]];
                let ns = ns.get(from).map_or(100.0, |row| row[to]);
                Some(Samples {
                    ns: vec![ns + 4.0, ns, ns + 2.5],
                })
            })
            .take(if from == 3 { 0 } else { 4 })
            .chain((0..4).map(|_| None))
            .take(4)
            .collect(),
    };
    Latency {
        bytes: 256 << 20,
        pages: "transparent huge pages".to_owned(),
        nodes: vec![0, 1, 2, 3],
        rows: (0..4).map(row).collect(),
        notes: vec!["A note.".to_owned()],
    }
}

#[test]
fn texts_are_as_committed() {
    let kunpeng = recorded::kunpeng();
    with_process(&kunpeng);
    let process = Process::read(&kunpeng.root(), 4242).unwrap();
    let machine = kunpeng.read();
    let latency = latency(&machine);
    let (small, r910, hybrid) = (recorded::small_vm(), recorded::r910(), recorded::hybrid());
    for (name, drawn, expected) in [
        (
            "kunpeng",
            draw(&machine, None, None, 80),
            include_str!("golden/kunpeng.txt"),
        ),
        (
            "process and latency",
            draw(&machine, Some(&process), Some(&latency), 80),
            include_str!("golden/process.txt"),
        ),
        (
            "r910",
            draw(&r910.read(), None, None, 80),
            include_str!("golden/r910.txt"),
        ),
        (
            "hybrid",
            draw(&hybrid.read(), None, None, 120),
            include_str!("golden/hybrid.txt"),
        ),
        (
            "small vm",
            draw(&small.read(), None, None, 80),
            include_str!("golden/small_vm.txt"),
        ),
    ] {
        assert_eq!(drawn, expected, "{name}:\n{drawn}");
    }
}

#[test]
fn the_documented_example_is_the_drawn_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/topology.md");
    let document = fs::read_to_string(file).unwrap();
    assert!(document.contains(include_str!("golden/kunpeng.txt")));
}

#[test]
fn lines_fit_the_width() {
    let machine = recorded::kunpeng().read();
    let latency = latency(&machine);
    for width in [40, 80, 120] {
        let drawn = draw(&machine, None, Some(&latency), width);
        let longest = drawn
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap();
        assert!(longest <= width, "{width}: {longest}\n{drawn}");
    }
}

#[test]
fn names_cannot_control_the_terminal() {
    let mut machine = recorded::kunpeng().read();
    machine.nics[0].name = "eth\u{1b}[2J".to_owned();
    machine.disks[0].mounts = vec!["/data\nNode 9".to_owned()];
    let drawn = draw(&machine, None, None, 80);
    assert!(drawn.contains("eth\u{fffd}[2J") && !drawn.contains('\u{1b}'));
    assert!(!drawn.contains("\nNode 9"), "{drawn}");
}

#[test]
fn the_page_has_a_square_for_each_cpu_and_no_script() {
    let tree = recorded::kunpeng();
    with_process(&tree);
    let process = Process::read(&tree.root(), 4242).unwrap();
    let mut machine = tree.read();
    machine.nics[0].name = "eth<0>".to_owned();
    let latency = latency(&machine);
    let origin = "saiga topology --out x.html";
    let html = html::render_without_script(&page(&machine, Some(&process), Some(&latency), origin));
    let count = |text: &str| html.matches(text).count();
    assert_eq!(count("class=\"square "), 128);
    assert_eq!(
        count("class=\"square series-2\""),
        56,
        "allowed for the process"
    );
    assert_eq!(
        count("class=\"square series-1\""),
        16,
        "interrupts, on CPUs not of the process"
    );
    assert_eq!(count("class=\"box\""), 4);
    assert_eq!(count("class=\"frame\""), 2);
    assert_eq!(count("class=\"attached\""), 2);
    assert_eq!(
        (count("<script"), count("script-src"), count("<button")),
        (0, 0, 0)
    );
    assert_eq!(
        (count("http://"), count("https://"), count("eth<0>")),
        (0, 0, 0)
    );
    assert!(count("eth&lt;0&gt;") >= 2);
    assert!(html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("<title>CPU 31, interrupts of eth&lt;0&gt;</title>"));
    assert!(html.contains("Process 4242 (mysqld): 2 threads"));
    assert!(html.contains("node 2 (distance 32) is faster than node 1 (distance 16)"));
}

#[test]
fn a_page_has_offline_cpus_and_devices_of_unknown_node() {
    let html = |machine: &Machine| html::render_without_script(&page(machine, None, None, ""));
    let offline = html(&recorded::offline().read());
    assert_eq!(offline.matches("class=\"square ").count(), 16);
    assert_eq!(offline.matches("class=\"square series-4\"").count(), 4);
    let r910 = html(&recorded::r910().read());
    assert_eq!(r910.matches("class=\"attached\"").count(), 4);
    assert!(r910.contains("Devices of unknown node"));
    let memory = html(&recorded::memory_only().read());
    assert!(memory.contains("Memory without CPUs") && memory.contains("no memory"));
}

#[test]
fn isolated_cpus_are_named_and_the_page_has_no_secrets() {
    let tree = recorded::hybrid();
    tree.write("/sys/devices/system/cpu/isolated", "2-3");
    tree.write("/proc/cmdline", "isolcpus=2-3 db.password=hunter2");
    let machine = tree.read();
    let drawn = draw(&machine, None, None, 80);
    assert!(drawn.contains("\n  isolated: 2-3\n"), "{drawn}");
    let html = html::render_without_script(&page(&machine, None, None, ""));
    assert_eq!(html.matches("class=\"square series-3\"").count(), 2);
    assert!(html.contains("isolcpus=2-3 db.password=removed") && !html.contains("hunter2"));
}

#[test]
fn json_is_read_back() {
    let machine = recorded::kunpeng().read();
    let json = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
}
