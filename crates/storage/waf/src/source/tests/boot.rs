//! The page of OCP's boot SSDs.

use super::*;

/// A drive with the page.
pub(super) fn boot() -> Synthetic {
    let guid = b"\x65\x43\x88\x78\xac\xd8\x78\xa1\x66\x42\x1e\x0f\x92\xd7\x6d\xc4";
    Synthetic::new(0x1b96, b"WUS4BB019D7P3E3", 0, 0)
        .with(
            C0,
            &[
                (0, &7_000_000_u64.to_le_bytes()),
                (16, &1_000_001_u64.to_le_bytes()),
                (494, &[1, 0]),
                (496, guid),
            ],
        )
        .with(Page::Smart, &[(48, &[9])])
}

#[test]
fn boot_ssds_write_to_flash_in_two_modes() {
    assert_eq!(
        boot().read(Source::Boot).unwrap(),
        counters(9 * 512_000, 8_000_001)
    );
    let short = boot().cut(C0, 511).read(Source::Boot).unwrap_err();
    assert!(matches!(short, Unusable::Short { needed: 512, .. }));
    // Neither is this OCP's page, nor OCP's page this.
    assert!(boot().read(Source::Ocp).unwrap_err().is_absence());
    for (mut drive, at, byte, expected) in [
        (boot(), 494, 2, "but not version 1"),
        (boot(), 511, 0, "has not the GUID of OCP's boot SSDs"),
        (ocp(), 0, 1, "has not the GUID of OCP's boot SSDs"),
    ] {
        drive.pages.get_mut(&C0).unwrap()[at] = byte;
        let error = drive.read(Source::Boot).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(error.is_absence());
    }
    // Counters in units of 512,000 bytes.
    let mut coarse = boot().with(Page::Smart, &[(48, &[0, 0, 0, 1])]);
    let error = coarse.read(Source::Boot).unwrap_err().to_string();
    assert!(error.ends_with("so not in bytes"), "{error}");
}

/// What is unproven is used where there is nothing else.
#[test]
fn the_page_of_boot_ssds_is_tried_last() {
    assert_eq!(boot().choose(None).unwrap(), Source::Boot);
    let mut drive = boot();
    put(drive.pages.get_mut(&Page::Namespace(1)).unwrap(), 102, &[2]);
    let page = endurance().pages.remove(&Page::Endurance(2)).unwrap();
    drive.pages.insert(Page::Endurance(2), page);
    assert_eq!(drive.choose(None).unwrap(), Source::Endurance);
}
