//! Pages recorded from QEMU's drive: unchanged, truncated, contradictory, and with random content.

use std::collections::HashMap;
use std::path::Path;

use super::*;
use crate::drive::ReadError;
use crate::recorded::Recorded;
use crate::status::Status;

const NAMESPACE: u32 = 2;
const PAGES: [Page; 6] = [
    Page::Controller,
    Page::Namespace(NAMESPACE),
    Page::FdpMode(1),
    Page::FdpConfigurations(1),
    Page::Handles(NAMESPACE),
    Page::FdpUsage(1),
];

/// The recorded drive with some pages replaced.
struct Changed(HashMap<Page, Result<Vec<u8>, u16>>);

impl Drive for Changed {
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError> {
        match self.0.get(&page) {
            Some(Ok(bytes)) => Ok(bytes.clone()),
            Some(Err(status)) => Err(ReadError::Refused {
                page,
                status: Status::new(*status),
            }),
            None => Err(ReadError::NotRecorded { page }),
        }
    }

    fn namespace(&self) -> Option<u32> {
        Some(NAMESPACE)
    }
}

impl Changed {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/qemu-fdp");
        let mut drive = Recorded::open(&folder).unwrap();
        Self(
            PAGES
                .map(|page| (page, Ok(drive.read(page).unwrap())))
                .into(),
        )
    }

    fn page(&mut self, page: Page) -> &mut Vec<u8> {
        self.0.get_mut(&page).unwrap().as_mut().unwrap()
    }

    fn with(page: Page, at: usize, bytes: &[u8]) -> Self {
        let mut drive = Self::new();
        drive.page(page)[at..at + bytes.len()].copy_from_slice(bytes);
        drive
    }

    fn placement(&mut self) -> Result<Placement, NoPlacement> {
        placement(self, NAMESPACE)
    }
}

#[test]
fn the_recorded_drive_has_one_handle_for_its_second_namespace() {
    let unit = Unit {
        placement: 0,
        handle: 1,
        left: 13423,
    };
    let expected = Placement {
        group: 1,
        unit_bytes: 64 << 20,
        handle: 1,
        is_specified: true,
        units: vec![unit],
    };
    assert_eq!(Changed::new().placement().unwrap(), expected);
}

#[test]
fn the_default_handle_is_that_of_placement_identifier_0_wherever_it_stands() {
    let (page, usage) = (Page::Handles(NAMESPACE), Page::FdpUsage(1));
    let mut drive = Changed::with(page, 14, &[2, 0]);
    drive.page(page)[16..20].copy_from_slice(&[1, 0, 5, 0]);
    drive.page(page)[48..52].copy_from_slice(&[0, 0, 3, 0]);
    let found = drive.placement().unwrap();
    let handles: Vec<u16> = found.units.iter().map(|unit| unit.handle).collect();
    assert_eq!((found.handle, handles), (3, vec![5, 3]));
    // A handle specified by the controller.
    drive.page(usage)[8 + 8 * 3] = 2;
    assert!(!drive.placement().unwrap().is_specified);
}

#[test]
fn the_size_of_units_is_that_of_the_enabled_configuration() {
    let page = Page::FdpConfigurations(1);
    let mut drive = Changed::with(Page::FdpMode(1), 1, &[1]);
    let error = drive.placement().unwrap_err().to_string();
    let expected =
        "log page 20h of endurance group 1 has no configuration 1, which is the enabled one";
    assert_eq!(error, expected);
    // The first configuration has 60h bytes.
    drive.page(page)[0] = 1;
    drive.page(page)[16 + 0x60 + 16] = 9;
    assert_eq!(drive.placement().unwrap().unit_bytes, 9);
    // Lengths that lead beyond the page, or are zero.
    drive.page(page)[16..18].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(drive.placement().unwrap_err().to_string(), expected);
    drive.page(page)[16..18].copy_from_slice(&[0, 0]);
    assert_eq!(drive.placement().unwrap_err().to_string(), expected);
}

#[test]
fn a_namespace_without_placement_has_the_reason() {
    let mut disabled = Changed::new();
    disabled.0.insert(Page::Handles(NAMESPACE), Err(0x4029));
    for (mut drive, expected) in [
        (
            Changed::with(Page::Controller, 98, &[0]),
            "the drive does not report Flexible Data Placement (CTRATT bit 19)",
        ),
        (
            Changed::with(Page::Namespace(NAMESPACE), 102, &[0]),
            "the drive reports no endurance group",
        ),
        (
            Changed::with(Page::FdpMode(1), 0, &[0]),
            "data placement (FDP) is not enabled in endurance group 1",
        ),
        (
            disabled,
            "the drive refuses the list of handles of namespace 2: NVMe status 029h, Flexible Data Placement is \
             disabled",
        ),
    ] {
        let why = drive.placement().unwrap_err();
        assert_eq!(why.to_string(), expected);
        assert!(why.is_absence(), "{why}");
    }
}

#[test]
fn contradictory_pages_are_refused() {
    let handles = Page::Handles(NAMESPACE);
    for (mut drive, expected) in [
        (
            Changed::with(Page::FdpConfigurations(1), 16 + 16, &[0; 8]),
            "log page 20h of endurance group 1 has a reclaim unit size of 0 bytes",
        ),
        (
            Changed::with(handles, 14, &[0]),
            "the list of handles of namespace 2 has no placement identifier 0",
        ),
        (
            Changed::with(handles, 14, &[2]),
            "the list of handles of namespace 2 has placement identifier 0 twice",
        ),
        (
            Changed::with(handles, 14, &[128]),
            "the list of handles of namespace 2 has 4096 bytes, 4112 are needed",
        ),
        (
            Changed::with(handles, 18, &[8]),
            "the list of handles of namespace 2 has reclaim unit handle 8, which log page 21h of endurance group 1 \
             does not list as used",
        ),
        (
            Changed::with(Page::FdpUsage(1), 16, &[0]),
            "the list of handles of namespace 2 has reclaim unit handle 1, which log page 21h of endurance group 1 \
             does not list as used",
        ),
        (
            Changed::with(Page::FdpUsage(1), 0, &[0, 2]),
            "log page 21h of endurance group 1 has 4096 bytes, 4104 are needed",
        ),
    ] {
        let why = drive.placement().unwrap_err();
        assert_eq!(why.to_string(), expected);
        assert!(!why.is_absence(), "{why}");
    }
}

#[test]
fn a_page_that_is_blank_or_ends_early_is_refused() {
    for page in PAGES {
        let whole = Changed::new().page(page).clone();
        for length in 0..whole.len().min(300) {
            let mut drive = Changed::new();
            drive.page(page).truncate(length);
            // The end of a page may be unused.
            if let Ok(found) = drive.placement() {
                assert_eq!(
                    found,
                    Changed::new().placement().unwrap(),
                    "{page:?} {length}"
                );
                assert!(length >= 2, "{page:?} {length}");
            }
        }
        let mut drive = Changed::new();
        drive.page(page).fill(0xff);
        assert!(drive.placement().is_err(), "{page:?}");
    }
}

proptest::proptest! {
    /// Any page gives an error or a consistent answer.
    #[test]
    fn any_pages_give_a_result(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400),
        page in proptest::sample::select(PAGES.to_vec()),
    ) {
        let mut drive = Changed::new();
        *drive.page(page) = bytes;
        match drive.placement() {
            Ok(found) => {
                let default = found.units.iter().find(|unit| unit.placement == 0);
                proptest::prop_assert_eq!(default.map(|unit| unit.handle), Some(found.handle));
                let mut meter = Meter::new(&found, 4096);
                meter.step(found.units.clone());
                proptest::prop_assert_eq!(meter.written(), 0);
            }
            Err(why) => proptest::prop_assert!(!why.to_string().is_empty()),
        }
    }
}

/// Creates units from placement identifier, handle and space left. A handle has a unit in each
/// reclaim group.
fn units(left: &[(u16, u16, u64)]) -> Vec<Unit> {
    let unit = |&(placement, handle, left)| Unit {
        placement,
        handle,
        left,
    };
    left.iter().map(unit).collect()
}

fn meter(left: &[(u16, u16, u64)]) -> Meter {
    let mut placement = Changed::new().placement().unwrap();
    placement.unit_bytes = 100 * 512;
    placement.units = units(left);
    Meter::new(&placement, 512)
}

#[test]
fn blocks_are_counted_over_all_groups_and_across_the_end_of_a_unit() {
    let mut meter = meter(&[(0, 1, 80), (1, 4, 90), (0x8000, 1, 7)]);
    assert_eq!(meter.left(), 87);
    meter.step(units(&[(0, 1, 50), (1, 4, 0), (0x8000, 1, 7)]));
    assert_eq!((meter.written(), meter.left()), (30, 57));
    // 7 to the end of one unit, and 10 in the next.
    meter.step(units(&[(0, 1, 50), (1, 4, 0), (0x8000, 1, 90)]));
    assert_eq!((meter.written(), meter.left()), (47, 140));
}

#[test]
fn impossible_counts_do_not_overflow() {
    let mut meter = meter(&[(0, 1, u64::MAX), (1, 1, u64::MAX)]);
    assert_eq!(meter.left(), u64::MAX);
    meter.step(units(&[(0, 1, 0), (1, 1, 0)]));
    assert_eq!(meter.written(), u64::MAX);
    meter.step(units(&[(0, 1, u64::MAX), (2, 1, 5)]));
    meter.step(Vec::new());
    assert_eq!((meter.written(), meter.left()), (u64::MAX, 0));
}
