//! Each source on synthetic pages: exact offsets; truncated, blank and absurd pages.

use std::collections::HashMap;

mod faults;
mod groups;
mod worn;
mod zeroes;

use super::*;
use crate::identity::identify;
use crate::status::Status;

/// A drive that returns the same bytes for every page, except for its identity in pages of full
/// length.
struct Babbler {
    bytes: Vec<u8>,
    controller: Vec<u8>,
}

impl Drive for Babbler {
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError> {
        let mut bytes = if page == Page::Controller {
            self.controller.clone()
        } else {
            self.bytes.clone()
        };
        if matches!(page, Page::Namespaces | Page::Namespace(_) | Page::Uuids) {
            bytes.resize(page.length(), 0);
        }
        Ok(bytes)
    }

    fn namespace(&self) -> Option<u32> {
        None
    }
}

proptest::proptest! {
    /// Any pages give a result, and counters can be added and multiplied.
    #[test]
    fn any_page_gives_a_result(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        identity in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        vendor in proptest::sample::select(vec![0x19e5, 0x8086, 0x144d]),
    ) {
        let strange = identify(&mut Babbler { bytes: bytes.clone(), controller: identity });
        let known = Synthetic::new(vendor, b"HWE", FDP | 1 << 9 | 1 << 4, 1);
        let controller = known.pages[&Page::Controller].clone();
        let mut babbler = Babbler { bytes, controller };
        let known = identify(&mut babbler);
        for identity in [strange, known].into_iter().flatten() {
            for (source, read) in probe(&mut babbler, &identity) {
                match read {
                    Ok(counters) => {
                        let sum = counters.host + counters.media;
                        proptest::prop_assert!(sum <= 3 * MOST_BYTES, "{}", source);
                    }
                    Err(why) => proptest::prop_assert!(!why.to_string().is_empty()),
                }
            }
        }
    }
}

/// A drive with some pages.
#[derive(Default)]
struct Synthetic {
    pages: HashMap<Page, Vec<u8>>,
    /// A page that cannot be read at the moment.
    failing: Option<Page>,
    named: Option<u32>,
}

impl Drive for Synthetic {
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError> {
        if self.failing == Some(page) {
            let status = Status::new(0x006);
            return Err(ReadError::Refused { page, status });
        }
        let found = self.pages.get(&page).cloned();
        found.ok_or(ReadError::NotRecorded { page })
    }

    fn namespace(&self) -> Option<u32> {
        self.named
    }
}

impl Synthetic {
    /// Creates a drive with `attributes` (CTRATT) and one namespace, in the endurance group `group`
    /// unless that is 0.
    fn new(vendor: u16, model: &[u8], attributes: u32, group: u16) -> Self {
        let mut controller = vec![b' '; 72];
        controller.resize(4096, 0);
        put(&mut controller, 0, &vendor.to_le_bytes());
        put(&mut controller, 4, b"S1");
        put(&mut controller, 24, model);
        put(&mut controller, 96, &attributes.to_le_bytes());
        let mut namespace = vec![0; 4096];
        put(&mut namespace, 102, &group.to_le_bytes());
        let mut namespaces = vec![0; 4096];
        namespaces[0] = 1;
        let pages = [
            (Page::Controller, controller),
            (Page::Namespaces, namespaces),
            (Page::Namespace(1), namespace),
        ];
        Self {
            pages: HashMap::from(pages),
            ..Self::default()
        }
    }

    /// Adds a page of 512 bytes that is zero except for `fields`.
    fn with(mut self, page: Page, fields: &[(usize, &[u8])]) -> Self {
        let mut bytes = vec![0; 512];
        for (at, field) in fields {
            put(&mut bytes, *at, field);
        }
        self.pages.insert(page, bytes);
        self
    }

    fn cut(mut self, page: Page, length: usize) -> Self {
        self.pages.get_mut(&page).unwrap().truncate(length);
        self
    }

    fn read(&mut self, source: Source) -> Result<Counters, Unusable> {
        let identity = identify(self).unwrap();
        source.read(self, &identity)
    }

    fn choose(&mut self, last: Option<Source>) -> Result<Source, NoSource> {
        let identity = identify(self).unwrap();
        choose(self, &identity, None, last).map(|(source, _)| source)
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

const FDP: u32 = 1 << 19;
const GUID: &[u8] = b"\xc5\xaf\x10\x28\xea\xbf\xf2\xa4\x9c\x4f\x6f\x7c\xc9\x14\xd5\xaf";
const C0: Page = Page::VendorC0 { uuid: 0 };

fn counters(host: u128, media: u128) -> Counters {
    Counters { host, media }
}

fn fdp() -> Synthetic {
    Synthetic::new(0x1b36, b"QEMU", FDP, 1).with(
        Page::Fdp(1),
        &[
            (0, &[0xbc, 0x0a]),
            (8, &[1]),
            (16, &[0xde, 0x0c]),
            (24, &[1]),
            (32, &[0x77]),
        ],
    )
}

#[test]
fn fdp_statistics_are_bytes_in_sixteen_bytes() {
    assert_eq!(
        fdp().read(Source::Fdp).unwrap(),
        counters((1 << 64) + 2748, (1 << 64) + 3294)
    );
    assert_eq!(
        fdp().cut(Page::Fdp(1), 32).read(Source::Fdp).unwrap().media,
        (1 << 64) + 3294
    );
    let short = fdp().cut(Page::Fdp(1), 31).read(Source::Fdp).unwrap_err();
    assert_eq!(
        short.to_string(),
        "log page 22h of endurance group 1 has 31 bytes, 32 are needed"
    );
    assert!(!short.is_absence());
    let without = Synthetic::new(1, b"M", !FDP, 1)
        .read(Source::Fdp)
        .unwrap_err();
    assert!(matches!(without, Unusable::NoFdp));
    let no_group = Synthetic::new(1, b"M", FDP, 0)
        .read(Source::Fdp)
        .unwrap_err();
    assert!(matches!(no_group, Unusable::NoGroup));
}

#[test]
fn several_endurance_groups_need_a_namespace() {
    let mut drive = fdp();
    drive.pages.get_mut(&Page::Namespaces).unwrap()[4] = 2;
    let mut second = vec![0; 4096];
    second[102] = 7;
    drive.pages.insert(Page::Namespace(2), second);
    let error = drive.read(Source::Fdp).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("namespaces are in endurance groups 1, 7:"),
        "{error}"
    );
}

fn ocp() -> Synthetic {
    let version = 3_u16.to_le_bytes();
    Synthetic::new(0x144d, b"PM9D3a", 0, 0)
        .with(
            C0,
            &[
                (0, &9_000_000_u64.to_le_bytes()),
                (120, &[55]),
                (494, &version),
                (496, GUID),
            ],
        )
        .with(Page::Smart, &[(32, &[200]), (48, &[7]), (64, &[9])])
}

#[test]
fn ocp_divides_by_smart_units_of_512000_bytes() {
    assert_eq!(
        ocp().read(Source::Ocp).unwrap(),
        counters(7 * 512_000, 9_000_000)
    );
    let short = ocp().cut(C0, 511).read(Source::Ocp).unwrap_err();
    assert!(matches!(short, Unusable::Short { needed: 512, .. }));
    let short = ocp().cut(Page::Smart, 63).read(Source::Ocp).unwrap_err();
    assert!(matches!(
        short,
        Unusable::Short {
            found: 63,
            needed: 64,
            ..
        }
    ));
}

#[test]
fn ocp_is_accepted_by_guid_and_version_only() {
    for (version, is_known) in [
        (0_u16, false),
        (1, true),
        (6, true),
        (7, false),
        (0x0300, false),
    ] {
        let mut drive = ocp();
        put(
            drive.pages.get_mut(&C0).unwrap(),
            494,
            &version.to_le_bytes(),
        );
        let read = drive.read(Source::Ocp);
        assert_eq!(read.is_ok(), is_known, "{version}: {read:?}");
    }
    let mut drive = ocp();
    drive.pages.get_mut(&C0).unwrap()[511] ^= 1;
    let error = drive.read(Source::Ocp).unwrap_err();
    assert!(error.is_absence());
    assert_eq!(
        error.to_string(),
        "log page C0h is not OCP's: its GUID is c5af1028eabff2a49c4f6f7cc914d5ae"
    );
}

/// OCP's older specification for boot SSDs has another layout of the page, with another GUID.
#[test]
fn a_boot_ssd_is_refused_by_the_guid_of_its_page() {
    let guid = b"\x65\x43\x88\x78\xac\xd8\x78\xa1\x66\x42\x1e\x0f\x92\xd7\x6d\xc4";
    let written = 7_000_000_u64.to_le_bytes();
    let fields: [(usize, &[u8]); 4] = [(0, &written), (16, &written), (494, &[1]), (496, guid)];
    let mut drive = Synthetic::new(0x1b96, b"WUS4BB019D7P3E3", 0, 0)
        .with(C0, &fields)
        .with(Page::Smart, &[(48, &[9])]);
    let error = drive.choose(None).unwrap_err();
    assert!(error.0.iter().all(|(_, why)| why.is_absence()), "{error}");
    let expected = "ocp: log page C0h is not OCP's: its GUID is 65438878acd878a166421e0f92d76dc4;";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn ocp_of_a_drive_with_uuids_is_the_page_of_its_uuid() {
    let mut drive = Synthetic::new(0x1b96, b"WUS", 1 << 9, 0)
        .with(C0, &[(0, &[1])])
        .with(
            Page::VendorC0 { uuid: 2 },
            &[(0, &[42]), (494, &[2]), (496, GUID)],
        )
        .with(Page::Smart, &[(48, &[1])]);
    let mut uuids = vec![0; 4096];
    put(
        &mut uuids,
        2 * 32 + 16,
        b"\xc1\x94\xd5\x5b\xe0\x94\x47\x94\xa2\x1d\x29\x99\x8f\x56\xbe\x6f",
    );
    drive.pages.insert(Page::Uuids, uuids);
    assert_eq!(drive.read(Source::Ocp).unwrap().media, 42);
}

/// The bytes of the lines `01c0:` and `01d0:`, from which calculate_wa.sh takes its fields.
fn huawei() -> Synthetic {
    Synthetic::new(0x19e5, b"HWE52P431T6M002N", 0, 0).with(
        C0,
        &[
            (0x1c0, &[0xaa; 4]),
            (0x1c4, &0x0102_0304_0506_u64.to_le_bytes()),
            (0x1cc, &[0xbb; 4]),
            (0x1d0, &0x0000_0a0b_0c0d_u64.to_le_bytes()),
            (0x1d8, &[0xcc; 8]),
        ],
    )
}

#[test]
fn huawei_counts_4_kib_from_1c4h_and_1d0h() {
    let (host, moved) = (0x0102_0304_0506_u128, 0x0a0b_0c0d_u128);
    let read = huawei().read(Source::Huawei).unwrap();
    assert_eq!(read, counters(host * 4096, (host + moved) * 4096));
    assert!(huawei().cut(C0, 0x1d8).read(Source::Huawei).is_ok());
    let short = huawei().cut(C0, 0x1d7).read(Source::Huawei).unwrap_err();
    assert!(matches!(
        short,
        Unusable::Short {
            found: 471,
            needed: 472,
            ..
        }
    ));
}

#[test]
fn the_layout_of_huawei_is_not_used_for_other_drives() {
    for (vendor, model) in [(0x144d, &b"HWE52P431T6M002N"[..]), (0x19e5, b"OTHER")] {
        let mut drive = Synthetic::new(vendor, model, 0, 0).with(C0, &[(0x1c4, &[1])]);
        let error = drive.read(Source::Huawei).unwrap_err();
        assert!(matches!(error, Unusable::OtherDrive { .. }), "{error}");
    }
    // A drive with OCP's page.
    let mut drive = huawei();
    put(drive.pages.get_mut(&C0).unwrap(), 494, &[3, 0]);
    put(drive.pages.get_mut(&C0).unwrap(), 496, GUID);
    let error = drive.read(Source::Huawei).unwrap_err();
    assert!(
        error.to_string().ends_with("its log page C0h is OCP's"),
        "{error}"
    );
}

fn item(key: u8, raw: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, ..] = raw.to_le_bytes();
    [key, 0, 0, 100, 0, a, b, c, d, e, f, 0xee]
}

fn intel() -> Synthetic {
    Synthetic::new(0x8086, b"INTEL SSDPE2KX", 0, 0).with(
        Page::VendorCa,
        &[
            (0, &item(0xab, 7)),
            (12, &item(0xf4, 3 << 40 | 5)),
            (24, &item(0xf5, 1 << 40 | 2)),
        ],
    )
}

#[test]
fn intel_items_are_found_by_key_in_units_of_32_mib() {
    let unit = 32 << 20;
    assert_eq!(
        intel().read(Source::Intel).unwrap(),
        counters(((1 << 40) + 2) * unit, ((3 << 40) + 5) * unit)
    );
    assert!(intel().cut(Page::VendorCa, 36).read(Source::Intel).is_ok());
    let cut = intel()
        .cut(Page::VendorCa, 35)
        .read(Source::Intel)
        .unwrap_err();
    assert_eq!(cut.to_string(), "log page CAh has no item f5h");
    for vendor in [0x025e, 0x1e3b, 0x1c5f] {
        let mut drive = intel();
        put(
            drive.pages.get_mut(&Page::Controller).unwrap(),
            0,
            &u16::to_le_bytes(vendor),
        );
        assert!(drive.read(Source::Intel).is_ok(), "{vendor:04x}");
    }
    let mut stranger = intel();
    put(
        stranger.pages.get_mut(&Page::Controller).unwrap(),
        0,
        &[0x4d, 0x14],
    );
    assert!(matches!(
        stranger.read(Source::Intel),
        Err(Unusable::OtherDrive { .. })
    ));
    for (model, is_known) in [
        (&b"P5910DT"[..], false),
        (b"P4", false),
        (b"P5920DT", true),
        (b"P7936DT0640M00", true),
        (b"MEMBLAZE", true),
    ] {
        let mut drive = Synthetic::new(0x1c5f, model, 0, 0);
        drive
            .pages
            .extend(intel().pages.remove_entry(&Page::VendorCa));
        assert_eq!(drive.read(Source::Intel).is_ok(), is_known, "{model:?}");
    }
    // A key inside a raw value does not count.
    let mut shifted = intel();
    shifted.pages.get_mut(&Page::VendorCa).unwrap().drain(..1);
    assert!(matches!(
        shifted.read(Source::Intel),
        Err(Unusable::NoItem { key: 0xf5, .. })
    ));
}

fn endurance() -> Synthetic {
    Synthetic::new(0x144d, b"M", 1 << 4, 2).with(
        Page::Endurance(2),
        &[
            (48, &[99]),
            (64, &[100]),
            (72, &[0]),
            (80, &[150]),
            (96, &[98]),
        ],
    )
}

#[test]
fn the_endurance_group_counts_units_of_a_gigabyte() {
    let billion = 1_000_000_000;
    assert_eq!(
        endurance().read(Source::Endurance).unwrap(),
        counters(100 * billion, 150 * billion)
    );
    assert!(
        endurance()
            .cut(Page::Endurance(2), 96)
            .read(Source::Endurance)
            .is_ok()
    );
    let short = endurance()
        .cut(Page::Endurance(2), 95)
        .read(Source::Endurance);
    assert!(matches!(short, Err(Unusable::Short { needed: 96, .. })));
}

/// A page of any length gives counters or an error.
#[test]
fn pages_may_end_anywhere() {
    for (mut drive, page, source, needed) in [
        (fdp(), Page::Fdp(1), Source::Fdp, 32),
        (ocp(), C0, Source::Ocp, 512),
        (huawei(), C0, Source::Huawei, 0x1d8),
        (intel(), Page::VendorCa, Source::Intel, 36),
        (endurance(), Page::Endurance(2), Source::Endurance, 96),
    ] {
        let whole = drive.pages.get(&page).unwrap().clone();
        for length in 0..=whole.len() {
            drive.pages.insert(page, whole[..length].to_vec());
            let read = drive.read(source);
            assert_eq!(
                read.is_ok(),
                length >= needed,
                "{source} {length}: {read:?}"
            );
        }
    }
}

#[test]
fn pages_of_ones_and_absurd_counters_are_refused() {
    let all = [
        (fdp(), Page::Fdp(1), Source::Fdp),
        (ocp(), C0, Source::Ocp),
        (ocp(), Page::Smart, Source::Ocp),
        (huawei(), C0, Source::Huawei),
        (intel(), Page::VendorCa, Source::Intel),
        (endurance(), Page::Endurance(2), Source::Endurance),
    ];
    for (mut drive, page, source) in all {
        let blank = vec![0xff; 512];
        drive.pages.insert(page, blank);
        let error = drive.read(source).unwrap_err();
        assert!(matches!(error, Unusable::Blank { .. }), "{source}: {error}");
        assert!(!error.is_absence());
    }
    for (mut drive, page, at, source) in [
        (fdp(), Page::Fdp(1), 0, Source::Fdp),
        (fdp(), Page::Fdp(1), 16, Source::Fdp),
        (ocp(), C0, 0, Source::Ocp),
        (ocp(), Page::Smart, 48, Source::Ocp),
        (endurance(), Page::Endurance(2), 64, Source::Endurance),
        (endurance(), Page::Endurance(2), 80, Source::Endurance),
    ] {
        put(drive.pages.get_mut(&page).unwrap(), at, &[0xff; 16]);
        let error = drive.read(source).unwrap_err();
        assert!(
            matches!(error, Unusable::Absurd { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn the_finest_source_is_chosen() {
    let mut drive = ocp();
    assert_eq!(drive.choose(None).unwrap(), Source::Ocp);
    put(drive.pages.get_mut(&Page::Namespace(1)).unwrap(), 102, &[2]);
    drive.pages.insert(Page::Endurance(2), vec![1; 512]);
    assert_eq!(drive.choose(Some(Source::Endurance)).unwrap(), Source::Ocp);
    drive.pages.remove(&C0);
    let names = [("log", 80)];
    assert!(
        drive.choose(None).is_err(),
        "{names:?}: sixteen bytes of ones are absurd"
    );
    drive.pages.insert(Page::Endurance(2), {
        let mut page = vec![0; 512];
        put(&mut page, 64, &[9]);
        put(&mut page, 80, &[9]);
        page
    });
    assert_eq!(drive.choose(None).unwrap(), Source::Endurance);
}

#[test]
fn a_page_that_fails_once_does_not_change_the_source() {
    let mut drive = ocp();
    put(drive.pages.get_mut(&Page::Namespace(1)).unwrap(), 102, &[2]);
    drive.pages.insert(Page::Endurance(2), {
        let mut page = vec![0; 512];
        put(&mut page, 64, &[9]);
        put(&mut page, 80, &[9]);
        page
    });
    drive.pages.insert(C0, vec![0xff; 512]);
    let error = drive.choose(Some(Source::Ocp)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("ocp: log page C0h contains only FFh"),
        "{error}"
    );
    assert_eq!(drive.choose(None).unwrap(), Source::Endurance);
    // Now the drive reports that it lacks the page.
    drive.pages.remove(&C0);
    assert_eq!(drive.choose(Some(Source::Ocp)).unwrap(), Source::Endurance);
}

#[test]
fn each_source_gives_its_reason() {
    let mut drive = Synthetic::new(0x1b36, b"QEMU NVMe Ctrl", 0, 0);
    let identity = identify(&mut drive).unwrap();
    let reasons: Vec<String> = probe(&mut drive, &identity)
        .into_iter()
        .map(|(source, read)| format!("{source}: {}", read.unwrap_err()))
        .collect();
    assert_eq!(
        reasons,
        [
            "fdp: the drive does not report Flexible Data Placement (CTRATT bit 19)",
            "ocp: the recording has no log-c0.bin",
            "huawei: vendor 1b36h, model \"QEMU NVMe Ctrl\": this layout is that of Huawei's ES3000 (19e5h, HWE...)",
            "intel: vendor 1b36h, model \"QEMU NVMe Ctrl\": this layout is that of Intel, Solidigm, DapuStor and Memblaze (8086h, 025eh, 1e3bh, 1c5fh)",
            "endurance: the drive reports no endurance group",
        ]
    );
}

#[test]
fn streams_are_counted_on_drives_with_directives() {
    let streams = [(2_usize, &[16, 0][..]), (4, &[9])];
    let mut drive = Synthetic::new(0x144d, b"PM983", 0, 0).with(Page::Streams(1), &streams);
    assert_eq!(identify(&mut drive).unwrap().streams, None);
    drive.pages.get_mut(&Page::Controller).unwrap()[256] = 1 << 5;
    assert_eq!(identify(&mut drive).unwrap().streams, Some(16));
}
