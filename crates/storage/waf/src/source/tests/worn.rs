//! The wear of a drive: offsets in the pages, and refused values.

use super::*;
use crate::wear::{Wear, read};

/// A warning of degraded reliability; composite temperature in bytes 1 and 2.
const WORN: &[u8] = &[0b100, 0x40, 0x01, 97, 10, 130];

fn drive(health: &[(usize, &[u8])]) -> Synthetic {
    Synthetic::new(0x8086, b"M", 0, 1).with(Page::Smart, health)
}

fn wear(drive: &mut Synthetic) -> Result<Wear, Unusable> {
    let identity = identify(drive).unwrap();
    read(drive, &identity)
}

#[test]
fn the_wear_of_a_drive_is_from_smart() {
    let wear = wear(&mut drive(&[(0, WORN), (48, &[7])])).unwrap();
    assert_eq!(
        wear,
        Wear {
            used_percent: 130,
            spare_percent: 97,
            threshold_percent: 10,
            warnings: 0b100,
            host: 7 * 512_000,
        }
    );
    let names: Vec<&str> = wear.warnings().map(|(name, _)| name).collect();
    assert_eq!(names, ["reliability"]);
}

/// SMART is about all groups together.
#[test]
fn the_wear_of_one_of_several_groups_is_from_its_own_page() {
    let of_group: &[(usize, &[u8])] = &[(3, &[100, 5, 3]), (64, &[9])];
    let mut drive = drive(&[(0, WORN), (48, &[7])]).with(Page::Endurance(1), of_group);
    let mut identity = identify(&mut drive).unwrap();
    identity.groups = vec![1, 2];
    let wear = read(&mut drive, &identity).unwrap();
    assert_eq!((wear.used_percent, wear.host), (3, 9_000_000_000));
}

#[test]
fn invalid_health_pages_are_refused() {
    let said = |health: &[(usize, &[u8])]| wear(&mut drive(health)).unwrap_err();
    assert!(matches!(said(&[(0, &[0xff; 512])]), Unusable::Blank { .. }));
    assert!(matches!(said(&[(3, &[101])]), Unusable::Spare { .. }));
    let absurd = said(&[(0, WORN), (48, &[0xff; 16])]);
    assert!(matches!(absurd, Unusable::Absurd { .. }), "{absurd}");
    let short = wear(&mut drive(&[(0, WORN)]).cut(Page::Smart, 63)).unwrap_err();
    assert!(matches!(short, Unusable::Short { .. }), "{short}");
}
