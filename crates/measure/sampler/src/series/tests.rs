//! Tests of series files: written, read, incomplete, edited and downsampled.

use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn temporary_path() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.csv");
    (directory, path)
}

fn read_text(text: &str) -> Result<Series, ReadError> {
    let (_directory, path) = temporary_path();
    std::fs::write(&path, text).unwrap();
    Series::read(&path)
}

fn column(series: &Series, name: &str) -> Vec<Option<f64>> {
    series.column(name).unwrap().collect()
}

#[test]
fn the_file_has_the_documented_format() {
    let (_directory, path) = temporary_path();
    let mut writer = Writer::create(&path).unwrap();
    let mark = |time_s, name: &str| Mark {
        time_s,
        name: name.into(),
    };
    writer.row(0.0, &names(&["a_s"]), &[None]).unwrap();
    writer.mark(&mark(0.5, "warm-up")).unwrap();
    writer
        .row(1.000_4, &names(&["a_s"]), &[Some(1234.6)])
        .unwrap();
    writer
        .row(2.0, &names(&["a_s", "b_kb"]), &[Some(0.0), Some(12.34)])
        .unwrap();
    writer.mark(&mark(2.25, "measured\n3,4")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let expected = "time_s,a_s\n0.000,\n# mark 0.500 warm-up\n1.000,1235\n\
                    time_s,a_s,b_kb\n2.000,0,12.3\n# mark 2.250 measured 3,4\n";
    assert_eq!(text, expected);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let series = Series::read(&path).unwrap();
    assert_eq!(series.times_s, [0.0, 1.0, 2.0]);
    assert_eq!(column(&series, "a_s"), [None, Some(1235.0), Some(0.0)]);
    assert_eq!(column(&series, "b_kb"), [None, None, Some(12.3)]);
    let marks = [mark(0.5, "warm-up"), mark(2.25, "measured 3,4")];
    assert_eq!(series.marks, marks);
    let some = Series::read_columns(&path, |name| name.ends_with("_kb")).unwrap();
    assert_eq!(some.names, ["b_kb"]);
    assert_eq!(column(&some, "b_kb"), column(&series, "b_kb"));
    assert!(some.column("a_s").is_none());
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let (_directory, path) = temporary_path();
    std::fs::write(&path, "precious").unwrap();
    let refused = Writer::create(&path).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

/// A crash of the machine may truncate the file at any byte.
#[test]
fn a_truncated_file_is_read_up_to_its_last_complete_row() {
    let whole = "time_s,a_s,b_s\n1.000,1,2\n2.000,3,4\n";
    for end in 0..=whole.len() {
        let series = read_text(&whole[..end]).unwrap();
        let rows = whole[..end].matches('\n').count().saturating_sub(1);
        assert_eq!(series.times_s.len(), rows, "{end}");
        assert_eq!(series.is_torn, !whole[..end].ends_with('\n') && end > 0);
        assert!(series.columns.iter().all(|column| column.len() == rows));
    }
}

#[test]
fn errors_name_the_line() {
    for (text, line, reason) in [
        ("1.000,2\n", 1, "the names of the columns are missing"),
        ("time_s,a\n1.0\n", 2, "there are fewer cells than names"),
        ("time_s,a\n1.0,2,3\n", 2, "there are more cells than names"),
        ("time_s,a\n1.0,x\n", 2, "a cell is not a number"),
        ("time_s,a\n,1\n", 2, "the time is not a number"),
        (
            "time_s,a\n1.0,1\ntime_s,b,a\n",
            3,
            "a column has changed its name",
        ),
        (
            "time_s,a\ntime_s\n",
            2,
            "there are fewer columns than before",
        ),
        ("time_s,a\n# mark 7\n", 2, "a mark without a name"),
    ] {
        let message = read_text(text).unwrap_err().to_string();
        let expected = format!("host.csv, line {line}: {reason};");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let (_directory, path) = temporary_path();
    let message = Series::read(&path).unwrap_err().to_string();
    assert!(message.contains("host.csv: No such file"), "{message}");
}

fn points(points: usize) -> NonZeroUsize {
    NonZeroUsize::new(points).unwrap()
}

#[test]
fn peaks_survive_in_few_points() {
    let series = read_text(
        "time_s,a_s\n0.000,\n1.000,1\n2.000,9\n3.000,2\n4.000,\n5.000,\n6.000,\n7.000,4\n8.000,6\n",
    )
    .unwrap();
    let bucket = |min, mean, max| Some(Bucket { min, mean, max });
    let small = series.downsample(points(4));
    assert_eq!(small.times_s, [1.0, 3.0, 5.0, 8.0]);
    assert_eq!(
        small.columns,
        [vec![
            bucket(1.0, 1.0, 1.0),
            bucket(2.0, 5.5, 9.0),
            None,
            bucket(4.0, 5.0, 6.0)
        ]]
    );
    let same = series.downsample(points(100));
    assert_eq!(same.times_s, series.times_s);
    assert_eq!(same.columns[0][2], bucket(9.0, 9.0, 9.0));
    assert_eq!(Series::default().downsample(points(3)).times_s, [0.0; 0]);
}

/// Maximum rounding error of a written number.
fn precision(value: f64) -> f64 {
    if value.abs() >= 999.0 {
        0.5
    } else if value.abs() >= 9.9 {
        0.05
    } else {
        0.0005
    }
}

proptest! {
    /// Holds for any numbers, and for columns that appear in any row.
    #[test]
    fn a_series_that_is_written_is_read_back(
        rows in prop::collection::vec(
            (0_u32..3, prop::collection::vec(prop::option::of(-1e7..1e12_f64), 6)),
            1..30,
        ),
    ) {
        let (_directory, path) = temporary_path();
        let mut writer = Writer::create(&path).unwrap();
        let mut width = 0_usize;
        let all: Vec<String> = (0..6).map(|column| format!("c{column}_s")).collect();
        let mut written = Vec::new();
        for (number, (more, cells)) in rows.into_iter().enumerate() {
            width = (width + more as usize).min(6);
            writer.row(number as f64, &all[..width], &cells[..width]).unwrap();
            written.push(cells[..width].to_vec());
        }
        let series = Series::read(&path).unwrap();
        prop_assert_eq!(&series.names, &all[..width]);
        prop_assert_eq!(series.times_s.len(), written.len());
        for (index, name) in series.names.iter().enumerate() {
            for (read, row) in series.column(name).unwrap().zip(&written) {
                match (read, row.get(index).copied().flatten()) {
                    (None, None) => {}
                    (Some(read), Some(value)) => {
                        prop_assert!((read - value).abs() <= precision(value) * 1.001 + value.abs() * 1e-15);
                    }
                    (read, value) => prop_assert!(false, "{read:?} for {value:?}"),
                }
            }
        }
    }

    /// The extremes over all buckets are the extremes of the series.
    #[test]
    fn buckets_keep_the_extremes(
        values in prop::collection::vec(-1e6..1e6_f64, 1..200), count in 1_usize..50,
    ) {
        let mut series = Series { names: names(&["a"]), ..Series::default() };
        series.times_s = (0..values.len()).map(|row| row as f64).collect();
        series.columns = vec![values.clone()];
        let small = series.downsample(points(count));
        prop_assert!(small.times_s.len() <= count);
        let buckets: Vec<Bucket> = small.columns[0].iter().flatten().copied().collect();
        let extreme = |pick: fn(f64, f64) -> f64, values: &mut dyn Iterator<Item = f64>| {
            values.reduce(pick).unwrap()
        };
        let max = extreme(f64::max, &mut buckets.iter().map(|bucket| bucket.max));
        let min = extreme(f64::min, &mut buckets.iter().map(|bucket| bucket.min));
        prop_assert_eq!(max, extreme(f64::max, &mut values.iter().copied()));
        prop_assert_eq!(min, extreme(f64::min, &mut values.iter().copied()));
        for bucket in buckets {
            prop_assert!(bucket.min <= bucket.mean + 1e-6 && bucket.mean <= bucket.max + 1e-6);
        }
    }
}
