//! Drives with several endurance groups: counters of a group and of the drive are not mixed.

use super::*;

/// A drive with namespaces 1 and 2 in groups 1 and 7. OCP's page counts for both.
fn two_groups(named: Option<u32>) -> Synthetic {
    let mut drive = ocp();
    drive.named = named;
    drive.pages.get_mut(&Page::Namespaces).unwrap()[4] = 2;
    for (nsid, group) in [(1, 1), (2, 7)] {
        let mut namespace = vec![0; 4096];
        namespace[102] = group;
        drive.pages.insert(Page::Namespace(nsid), namespace);
        let mut page = vec![0; 512];
        put(&mut page, 64, &[10 * group]);
        put(&mut page, 80, &[20 * group]);
        drive.pages.insert(Page::Endurance(group.into()), page);
    }
    drive
}

/// Otherwise both namespaces would show the drive's writes, and their sum would count them twice.
#[test]
fn counters_of_the_drive_are_not_those_of_one_group() {
    assert_eq!(two_groups(None).choose(None).unwrap(), Source::Ocp);
    for (nsid, group) in [(1, 1), (2, 7)] {
        let mut drive = two_groups(Some(nsid));
        assert_eq!(
            drive.choose(Some(Source::Ocp)).unwrap(),
            Source::Endurance,
            "{nsid}"
        );
        let error = drive.read(Source::Ocp).unwrap_err();
        assert!(error.is_absence());
        let expected = format!(
            "the counters are those of the drive, whose namespaces are in endurance groups 1, 7, not of group {group}: \
             name the drive (/dev/nvme0) instead of a namespace"
        );
        assert_eq!(error.to_string(), expected);
    }
    // With one group, its counters are those of the drive.
    let mut one = two_groups(Some(2));
    one.pages.get_mut(&Page::Namespace(1)).unwrap()[102] = 7;
    assert_eq!(one.choose(None).unwrap(), Source::Ocp);
    // An unreadable page is reported before the wrong scope.
    let mut blank = two_groups(Some(1));
    blank.pages.insert(C0, vec![0xff; 512]);
    assert!(!blank.read(Source::Ocp).unwrap_err().is_absence());
}

/// SMART has counted the writes of the other group.
#[test]
fn an_unwritten_group_has_counters_at_zero() {
    let mut drive = two_groups(Some(2)).with(Page::Smart, &[(48, &[0xff, 0xff, 0xff])]);
    drive.pages.insert(Page::Endurance(7), vec![0; 512]);
    assert_eq!(drive.read(Source::Endurance).unwrap(), counters(0, 0));
}
