//! A page that could not be read this time does not count as missing.

use super::*;
use crate::identity::IdentityError;

/// A drive with all parts of an identity: OCP's page by its UUID, and an endurance group.
fn drive() -> Synthetic {
    let mut drive = ocp();
    let controller = drive.pages.get_mut(&Page::Controller).unwrap();
    put(controller, 96, &u32::to_le_bytes(1 << 9));
    put(drive.pages.get_mut(&Page::Namespace(1)).unwrap(), 102, &[2]);
    let page = drive.pages.remove(&C0).unwrap();
    drive.pages.insert(Page::VendorC0 { uuid: 1 }, page);
    let mut uuids = vec![0; 4096];
    put(
        &mut uuids,
        32 + 16,
        b"\xc1\x94\xd5\x5b\xe0\x94\x47\x94\xa2\x1d\x29\x99\x8f\x56\xbe\x6f",
    );
    drive.pages.insert(Page::Uuids, uuids);
    drive
}

const LISTS: [Page; 3] = [Page::Namespaces, Page::Uuids, Page::Namespace(1)];

/// Without the list, the drive would have no group or no OCP page, like another drive or source.
#[test]
fn a_drive_whose_lists_fail_once_is_not_another_drive() {
    let identity = identify(&mut drive()).unwrap();
    assert_eq!(
        (identity.group, identity.ocp_uuid),
        (Group::One(2), Some(1))
    );
    for page in LISTS {
        let mut failing = drive();
        failing.failing = Some(page);
        let error = identify(&mut failing).unwrap_err();
        assert!(matches!(error, IdentityError::Read(_)), "{page:?}: {error}");
        let needed = if page == Page::Namespace(1) {
            104
        } else {
            4096
        };
        let error = identify(&mut drive().cut(page, needed - 1)).unwrap_err();
        let expected = format!(
            "{} has {} bytes, {needed} are needed",
            page.title(),
            needed - 1
        );
        assert_eq!(error.to_string(), expected);
        let mut blank = drive();
        blank.pages.insert(page, vec![0xff; 4096]);
        let error = identify(&mut blank).unwrap_err();
        assert!(
            matches!(error, IdentityError::Blank { .. }),
            "{page:?}: {error}"
        );
    }
}

#[test]
fn a_drive_may_have_no_lists_and_no_streams() {
    let mut old = drive();
    for page in LISTS {
        old.pages.remove(&page);
    }
    let identity = identify(&mut old).unwrap();
    assert_eq!((identity.group, identity.ocp_uuid), (Group::None, None));
    let mut drive = drive();
    drive.pages.get_mut(&Page::Controller).unwrap()[256] = 1 << 5;
    drive.failing = Some(Page::Streams(1));
    assert_eq!(identify(&mut drive).unwrap().streams, None);
}
