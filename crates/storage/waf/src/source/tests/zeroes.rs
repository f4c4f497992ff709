//! Counters at zero: of a new drive, of a drive that does not report them, and of disabled
//! statistics.

use super::*;

#[test]
fn counters_at_zero_are_refused_if_smart_counts() {
    let written = [(48_usize, &[0xff, 0xff, 0xff][..])];
    let mut drive = Synthetic::new(0x144d, b"M", 1 << 4, 2)
        .with(Page::Endurance(2), &[(5, &[3])])
        .with(Page::Smart, &written);
    let error = drive.read(Source::Endurance).unwrap_err();
    assert!(matches!(error, Unusable::Standstill { .. }), "{error}");
    // A new drive has written nothing, and statistics of placement begin with its activation.
    let mut new = Synthetic::new(0x144d, b"M", 1 << 4, 2)
        .with(Page::Endurance(2), &[])
        .with(Page::Smart, &[(48, &[1])]);
    assert_eq!(new.read(Source::Endurance).unwrap(), counters(0, 0));
    let mut enabled = Synthetic::new(0x144d, b"M", FDP, 2)
        .with(Page::Fdp(2), &[])
        .with(Page::Smart, &written);
    assert_eq!(enabled.read(Source::Fdp).unwrap(), counters(0, 0));
    assert_eq!(enabled.choose(None).unwrap(), Source::Fdp);
}

/// Placement may never be enabled, but OCP's page always counts.
#[test]
fn statistics_at_zero_yield_to_a_source_that_counts() {
    let mut drive = ocp().with(Page::Fdp(2), &[]);
    let attributes = FDP.to_le_bytes();
    put(
        drive.pages.get_mut(&Page::Controller).unwrap(),
        96,
        &attributes,
    );
    put(drive.pages.get_mut(&Page::Namespace(1)).unwrap(), 102, &[2]);
    assert_eq!(drive.choose(Some(Source::Fdp)).unwrap(), Source::Ocp);
    let identity = identify(&mut drive).unwrap();
    let probed = probe(&mut drive, &identity);
    assert_eq!(preferred(&probed), Some(Source::Ocp));
    // The source of earlier samples cannot be read: a source at zero does not replace it.
    drive.pages.insert(C0, vec![0xff; 512]);
    assert!(drive.choose(Some(Source::Ocp)).is_err());
    drive.pages.remove(&C0);
    assert_eq!(drive.choose(Some(Source::Ocp)).unwrap(), Source::Fdp);
    drive.pages.get_mut(&Page::Fdp(2)).unwrap()[16] = 1;
    drive.pages.extend(ocp().pages.remove_entry(&C0));
    assert_eq!(drive.choose(Some(Source::Ocp)).unwrap(), Source::Fdp);
}

/// A zero in log 09h may mean that the drive does not report it.
#[test]
fn an_endurance_group_with_one_counter_has_no_factor() {
    for at in [64, 80] {
        let mut drive =
            Synthetic::new(0x144d, b"M", 1 << 4, 2).with(Page::Endurance(2), &[(at, &[5])]);
        let error = drive.read(Source::Endurance).unwrap_err();
        assert!(matches!(error, Unusable::OneSided { .. }), "{error}");
        assert!(error.is_absence());
    }
}
