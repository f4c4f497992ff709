//! Drives with several endurance groups: a group's counters and the drive's are kept apart.

use super::*;

/// Namespaces 1 and 2 in groups 1 and 7, of which one may be named; OCP's page counts for both.
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

/// Both namespaces would show the drive's writes as their own, and their sum counts them twice.
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
            "it counts for the drive, whose namespaces are in endurance groups 1, 7, and not for group {group}: \
             name the drive (/dev/nvme0) instead of a namespace"
        );
        assert_eq!(error.to_string(), expected);
    }
    // With one group, its counters are the drive's.
    let mut one = two_groups(Some(2));
    one.pages.get_mut(&Page::Namespace(1)).unwrap()[102] = 7;
    assert_eq!(one.choose(None).unwrap(), Source::Ocp);
    // That the page cannot be read comes before whose it is.
    let mut blank = two_groups(Some(1));
    blank.pages.insert(C0, vec![0xff; 512]);
    assert!(!blank.read(Source::Ocp).unwrap_err().is_absence());
}

/// SMART has seen the other group's writes.
#[test]
fn a_group_that_nobody_wrote_to_stands_at_zero() {
    let mut drive = two_groups(Some(2)).with(Page::Smart, &[(48, &[0xff, 0xff, 0xff])]);
    drive.pages.insert(Page::Endurance(7), vec![0; 512]);
    assert_eq!(drive.read(Source::Endurance).unwrap(), counters(0, 0));
}
