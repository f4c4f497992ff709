//! The tap and the meter on real file systems: each written byte is reported once, with its hint.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Command;

use saiga_blocktrace::{Device, Event, HintMeter, Operation, Options, Tap, Via};
use saiga_disks::{Disks, run};
use saiga_streams::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};

const MIB: u64 = 1 << 20;
/// Bytes of each write.
const PART: usize = 64 << 10;
/// Bytes that are written with each hint.
const SIZES: [(Hint, u64); 4] = [
    (Hint::Short, 3 * MIB),
    (Hint::Medium, 5 * MIB),
    (Hint::Long, 7 * MIB),
    (Hint::Extreme, 9 * MIB),
];

fn tap(device: Device, via: Via) -> Tap {
    let options = Options {
        devices: vec![device],
        via: Some(via),
        ..Options::default()
    };
    Tap::open(&options).unwrap()
}

fn events(tap: &mut Tap) -> Vec<Event> {
    let mut events = Vec::new();
    tap.read(&mut |event| events.push(event)).unwrap();
    assert_eq!(tap.lost().unwrap(), 0);
    events
}

/// Memory with the alignment that O_DIRECT needs.
#[repr(align(4096))]
struct Aligned([u8; PART]);

/// Writes and syncs one file per hint.
fn write_files(dir: &Path, is_direct: bool) {
    let data = Box::new(Aligned([7; PART]));
    for (hint, bytes) in SIZES {
        let flags = if is_direct { libc::O_DIRECT } else { 0 };
        let path = dir.join(format!("{}-{is_direct}", hint.name()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(flags)
            .open(path)
            .unwrap();
        Fcntl.set(file.as_fd(), hint).unwrap();
        for at in (0..bytes).step_by(PART) {
            file.write_all_at(&data.0, at).unwrap();
        }
        file.sync_all().unwrap();
    }
}

fn expected() -> BTreeMap<u8, u64> {
    let pairs = SIZES.map(|(hint, bytes)| (u8::try_from(hint.raw()).unwrap(), bytes));
    pairs.into_iter().collect()
}

#[test]
fn every_byte_is_reported_once_with_its_hint() {
    for kind in ["xfs", "ext4"] {
        for is_direct in [true, false] {
            let mut disks = Disks::new();
            let dir = disks.disk(kind);
            let device = Device::of_file(&dir).unwrap();
            let mut tap = tap(device, Via::Bpf);
            let meter = HintMeter::open(&[device]).unwrap();
            let everything = HintMeter::open(&[]).unwrap();
            write_files(&dir, is_direct);
            let mut found = BTreeMap::new();
            let mut last = 0;
            for event in events(&mut tap) {
                assert_eq!(event.device, device);
                assert_eq!(event.operation, Operation::Write);
                assert!(event.address + event.len <= 400 * MIB, "{event:?}");
                last = last.max(event.t_ns);
                *found.entry(event.hint.unwrap()).or_default() += event.len;
            }
            assert!(last > 0);
            let metadata = found.remove(&0).unwrap_or_default();
            assert_eq!(found, expected(), "{kind} {is_direct}");
            let mut counted: BTreeMap<u8, u64> = BTreeMap::new();
            for row in meter.read().unwrap() {
                assert_eq!(row.device, device);
                counted.insert(row.hint.unwrap(), row.bytes);
            }
            // Metadata may still be written between the two reads.
            assert!(counted.remove(&0).unwrap_or_default() >= metadata);
            assert_eq!(counted, expected(), "{kind} {is_direct}");
            assert_eq!(meter.lost().unwrap(), 0);
            let rows = everything.read().unwrap();
            assert!(rows.iter().any(|row| row.device == device));
        }
    }
}

#[test]
fn the_address_of_an_event_is_that_of_its_bytes_on_the_disk() {
    let mut disks = Disks::new();
    let dir = disks.disk("ext4");
    let device = Device::of_file(&dir).unwrap();
    assert_eq!(device.disk().unwrap(), device);
    assert_eq!(device.start_bytes().unwrap(), 0);
    assert_eq!(device.length_bytes().unwrap(), 400 * MIB);
    let mut tap = tap(device, Via::Bpf);
    let mut file = File::create(dir.join("a")).unwrap();
    let text = b"the text to be found on the disk ".repeat(1024);
    file.write_all(&text).unwrap();
    file.sync_all().unwrap();
    let image = File::open(disks.path("ext4.img")).unwrap();
    let has_text = |event: &Event| {
        let mut found = vec![0; usize::try_from(event.len).unwrap()];
        image.read_exact_at(&mut found, event.address).unwrap();
        found.starts_with(&text)
    };
    // The loop device wrote the bytes to the image before the sync returned.
    let events = events(&mut tap);
    assert_eq!(
        events.iter().filter(|event| has_text(event)).count(),
        1,
        "{events:?}"
    );
}

#[test]
fn tracefs_reports_the_same_events_without_hints() {
    let mut disks = Disks::new();
    let dir = disks.disk("xfs");
    let device = Device::of_file(&dir).unwrap();
    let (mut bpf, mut text) = (tap(device, Via::Bpf), tap(device, Via::Tracefs));
    assert_eq!(text.via(), Via::Tracefs);
    write_files(&dir, true);
    run("fstrim", &[dir.to_str().unwrap()]);
    run("umount", &[dir.to_str().unwrap()]);
    let key = |event: &Event| {
        let is_discard = event.operation == Operation::Discard;
        (event.device, event.address, event.len, is_discard)
    };
    let (by_bpf, by_text) = (events(&mut bpf), events(&mut text));
    let mut keys: Vec<_> = by_bpf.iter().map(key).collect();
    let mut others: Vec<_> = by_text.iter().map(key).collect();
    keys.sort_unstable();
    others.sort_unstable();
    assert!(keys.len() > 24, "{}", keys.len());
    assert_eq!(others, keys);
    assert!(by_text.iter().all(|event| event.hint.is_none()));
    assert!(by_text.iter().all(|event| event.pid.is_some()));
    // Both use the same clock.
    let first = |events: &[Event]| events.iter().map(|event| event.t_ns / 1000).min().unwrap();
    assert!(first(&by_bpf).abs_diff(first(&by_text)) < 1_000_000);
}

#[test]
fn discards_are_reported() {
    for kind in ["ext4", "xfs"] {
        let mut disks = Disks::new();
        let dir = disks.disk(kind);
        let device = Device::of_file(&dir).unwrap();
        fs::write(dir.join("a"), vec![1; 32 << 20]).unwrap();
        run("sync", &["-f", dir.to_str().unwrap()]);
        let mut tap = tap(device, Via::Bpf);
        fs::remove_file(dir.join("a")).unwrap();
        // XFS frees extents in the background; a freeze waits until all are freed.
        run("fsfreeze", &["-f", dir.to_str().unwrap()]);
        run("fsfreeze", &["-u", dir.to_str().unwrap()]);
        run("fstrim", &[dir.to_str().unwrap()]);
        let events = events(&mut tap);
        let discards = events
            .iter()
            .filter(|it| it.operation == Operation::Discard);
        let bytes: u64 = discards.map(|it| it.len).sum();
        assert!((300 * MIB..=400 * MIB).contains(&bytes), "{kind}: {bytes}");
    }
}

#[test]
fn writes_to_other_devices_are_not_reported() {
    let mut disks = Disks::new();
    let (followed, other) = (disks.disk("ext4"), disks.disk("xfs"));
    let device = Device::of_file(&followed).unwrap();
    for via in [Via::Bpf, Via::Tracefs] {
        let mut tap = tap(device, via);
        write_files(&other.join("."), via == Via::Bpf);
        assert_eq!(events(&mut tap), [], "{via:?}");
        fs::write(followed.join("a"), vec![via as u8; 8192]).unwrap();
        run("sync", &["-f", followed.to_str().unwrap()]);
        let events = events(&mut tap);
        assert!(events.iter().any(|event| event.len >= 8192), "{via:?}");
        assert!(events.iter().all(|event| event.device == device));
    }
}

#[test]
fn events_that_do_not_fit_in_the_buffer_are_counted_as_lost() {
    for via in [Via::Bpf, Via::Tracefs] {
        let mut disks = Disks::new();
        let dir = disks.disk("ext4");
        let options = Options {
            devices: vec![Device::of_file(&dir).unwrap()],
            buffer_bytes: 64, // A page.
            via: Some(via),
        };
        let mut small = Tap::open(&options).unwrap();
        let mut large = tap(options.devices[0], Via::Bpf);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(libc::O_DIRECT)
            .open(dir.join("a"))
            .unwrap();
        let data = Box::new(Aligned([7; PART]));
        // A buffer of a page has room for a twelfth of these events.
        for number in 0..rustix::param::page_size() as u64 / 4 {
            file.write_all_at(&data.0[..4096], number % 1000 * 4096)
                .unwrap();
        }
        let all = events(&mut large).len() as u64;
        let mut reported = 0;
        small.read(&mut |_| reported += 1).unwrap();
        let lost = small.lost().unwrap();
        assert!(lost > 0 && reported > 0, "{via:?}: {reported} {lost}");
        // Tracefs also counts some events that its filter dropped.
        let is_exact = via == Via::Bpf;
        assert!(reported + lost >= all, "{via:?}: {reported} {lost} {all}");
        assert!(
            !is_exact || reported + lost == all,
            "{reported} {lost} {all}"
        );
    }
}

#[test]
fn an_invalid_device_and_too_many_devices_are_refused() {
    let device = |major| Device { major, minor: 0 };
    for (devices, expected) in [
        (
            vec![device(8), device(1 << 13)],
            "8192:0 is not a valid device number",
        ),
        (vec![device(8); 40_000], "filter by 40000 devices"),
    ] {
        let options = Options {
            devices,
            via: Some(Via::Bpf),
            ..Options::default()
        };
        let error = Tap::open(&options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn addresses_on_a_partition_count_from_the_beginning_of_the_disk() {
    let disks = Disks::new();
    let image = disks.path("disk.img");
    File::create(&image).unwrap().set_len(64 * MIB).unwrap();
    let words = ["--find", "--show", "--partscan", image.to_str().unwrap()];
    let attached = Command::new("losetup").args(words).output().unwrap();
    let disk = String::from_utf8(attached.stdout)
        .unwrap()
        .trim()
        .to_owned();
    let _guard = Attached(disk.clone());
    // The partition is the second half of the disk; addpart counts in units of 512 bytes.
    run("addpart", &[&disk, "1", "65536", "65536"]);
    let half = OpenOptions::new()
        .write(true)
        .open(format!("{disk}p1"))
        .unwrap();
    let number = half.metadata().unwrap().rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let device = Device { major, minor };
    assert_eq!(device.start_bytes().unwrap(), 32 * MIB);
    assert_eq!(device.length_bytes().unwrap(), 32 * MIB);
    let whole = device.disk().unwrap();
    assert_ne!(whole, device);
    assert_eq!(whole.length_bytes().unwrap(), 64 * MIB);
    assert_eq!(device.disk_and_partitions().unwrap(), [whole, device]);
    let mut tap = tap(device, Via::Bpf);
    half.write_all_at(&[7; 8192], 4096).unwrap();
    half.sync_all().unwrap();
    let reported: Vec<_> = events(&mut tap)
        .iter()
        .map(|event| (event.device, event.address, event.len))
        .collect();
    let begin = 32 * MIB + 4096;
    assert!(
        reported.iter().all(|(by, ..)| *by == device),
        "{reported:?}"
    );
    assert_eq!(
        reported.first().map(|(_, address, _)| *address),
        Some(begin)
    );
    assert_eq!(reported.iter().map(|(_, _, len)| len).sum::<u64>(), 8192);
}

/// Detaches a loop device when it is dropped, so that a failing test detaches it too.
struct Attached(String);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}
