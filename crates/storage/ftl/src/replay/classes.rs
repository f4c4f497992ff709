//! Accounting classes of pages: files, or kinds of files if there are many.
//!
//! A class has one stream, so that a moved page keeps its stream. With many files, those whose
//! names only differ in numbers are one class; if there are still too many, the least written are
//! joined.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::footprint::{Footprint, Request};
use crate::trace::{Op, kind_of};

/// With more names, files are joined by kind.
const MAX_NAMES: usize = 48;
/// With more kinds, the least written are joined by stream.
const MAX_KINDS: usize = 160;
/// With more pairs of stream and directory, directories are not distinguished: joined files need a
/// class for each pair, and a device has 255.
const MAX_OTHERS: usize = u8::MAX as usize - MAX_KINDS;
/// The limit of stream numbers; higher ones become the last. No device has as many handles.
pub const MAX_STREAMS: usize = 64;
/// The class name of data without a file.
const NO_FILE: &str = "(no file)";

/// Pages that are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The place of a file, or of several with `N` for numbers; prefixed with the directory if the
    /// trace has several.
    pub name: String,
    /// The stream by the rules.
    pub stream: usize,
    /// The directory of the trace; `None` with a single directory, and for data outside all.
    pub directory: Option<usize>,
    /// Page writes of one repetition of the trace.
    pub written_pages: u64,
}

/// The classes of a trace under one rule set.
#[derive(Debug)]
pub(super) struct Classes {
    list: Vec<Class>,
    /// The class of each file; the last is that of data without a file, if there are any.
    of_file: Vec<u8>,
}

impl Classes {
    pub(super) fn of(footprint: &Footprint, rules: &dyn Rules) -> Self {
        let names = footprint.files.iter().map(|name| Some(name.as_str()));
        // Without such data, no stream is needed.
        let is_nameless =
            |request: &Request| request.file().is_none() && request.op() != Op::Discard;
        let has_nameless = footprint.requests.iter().any(is_nameless);
        let places = footprint.places.iter().map(String::as_str).chain([NO_FILE]);
        let written = written(footprint);
        let directories = footprint.directory_of.iter().copied().chain([None]);
        let mut files: Vec<Class> = names
            .chain(has_nameless.then_some(None))
            .zip(places)
            .zip(written)
            .zip(directories)
            .map(|(((name, place), written_pages), directory)| Class {
                name: place.to_owned(),
                stream: rules.stream_of(name).min(MAX_STREAMS - 1),
                directory,
                written_pages,
            })
            .collect();
        let others: BTreeSet<_> = files
            .iter()
            .map(|file| (file.stream, file.directory))
            .collect();
        if others.len() > MAX_OTHERS {
            files.iter_mut().for_each(|file| file.directory = None);
        }
        let mut classes = Self::join(&files);
        for class in &mut classes.list {
            if let Some(directory) = class.directory {
                class.name = format!("{}/{}", footprint.directories[directory], class.name);
            }
        }
        classes
    }

    /// Joins files to at most as many classes as a device has.
    fn join(files: &[Class]) -> Self {
        let by_name = sums(files, |file| file.name.clone());
        let name_or_kind = |file: &Class| {
            if by_name.len() > MAX_NAMES {
                kind_of(&file.name)
            } else {
                file.name.clone()
            }
        };
        let mut kinds: Vec<(Key, u64)> = sums(files, name_or_kind).into_iter().collect();
        kinds.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
        kinds.truncate(MAX_KINDS);
        kinds.sort();
        let name_of = |file: &Class| {
            let key = (name_or_kind(file), file.stream, file.directory);
            if kinds.binary_search_by(|(kind, _)| kind.cmp(&key)).is_ok() {
                key.0
            } else {
                "(other files)".to_owned()
            }
        };
        let classes = sums(files, name_of);
        let number = |file: &Class| {
            let key = (name_of(file), file.stream, file.directory);
            classes.keys().position(|class| *class == key)
        };
        let of_file = files.iter().map(|file| {
            // Kinds and one class for each joined pair are fewer than 256.
            number(file)
                .and_then(|class| u8::try_from(class).ok())
                .unwrap_or(0)
        });
        let of_file = of_file.collect();
        let list = classes
            .into_iter()
            .map(|((name, stream, directory), written_pages)| Class {
                name,
                stream,
                directory,
                written_pages,
            });
        Self {
            list: list.collect(),
            of_file,
        }
    }

    /// Assigns all classes to one stream.
    pub(super) fn join_streams(&mut self) {
        for class in &mut self.list {
            class.stream = 0;
        }
    }

    /// Returns the class of a file; `None` for data without a file.
    pub(super) fn of_file(&self, file: Option<u32>) -> u8 {
        let last = self.of_file.len() - 1;
        self.of_file[file.map_or(last, |file| file as usize)]
    }

    /// Returns the used streams, sorted.
    pub(super) fn streams(&self) -> Vec<usize> {
        let mut streams: Vec<usize> = self.list.iter().map(|class| class.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Returns the index of each class's stream in `streams`.
    pub(super) fn stream_numbers(&self, streams: &[usize]) -> Vec<usize> {
        let number = |class: &Class| streams.partition_point(|stream| *stream < class.stream);
        self.list.iter().map(number).collect()
    }

    pub(super) fn into_list(self) -> Vec<Class> {
        self.list
    }
}

/// Name, stream and directory.
type Key = (String, usize, Option<usize>);

/// Returns the written pages by name, stream and directory.
fn sums(files: &[Class], name: impl Fn(&Class) -> String) -> BTreeMap<Key, u64> {
    let mut sums = BTreeMap::new();
    for file in files {
        let key = (name(file), file.stream, file.directory);
        *sums.entry(key).or_default() += file.written_pages;
    }
    sums
}

/// Returns the page writes of one repetition by file; those without a file are last.
fn written(footprint: &Footprint) -> Vec<u64> {
    let files = footprint.files.len();
    let mut written = vec![0; files + 1];
    for request in footprint
        .requests
        .iter()
        .filter(|request| request.op() == Op::Write)
    {
        let file = request.file().map_or(files, |file| file as usize);
        written[file] += u64::from(request.pages);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: String, stream: usize, written_pages: u64) -> Class {
        Class {
            name,
            stream,
            directory: None,
            written_pages,
        }
    }

    /// In the last two of three directories, the file names are the streams.
    #[test]
    fn directories_are_distinguished_if_there_are_enough_classes() {
        use crate::trace::{Row, Trace};
        let classes = |streams: usize| {
            let mut trace = Trace {
                directories: ["/a", "/b", "/c"].map(str::to_owned).into(),
                files: ["/a/t1", "/b/t1"].map(str::to_owned).into(),
                ..Trace::default()
            };
            let numbers = (0..streams).flat_map(|i| [format!("/b/{i}"), format!("/c/{i}")]);
            trace.files.extend(numbers);
            for file in 0..u32::try_from(trace.files.len()).unwrap() {
                trace.rows.push(Row {
                    t_ns: 0,
                    lba: u64::from(file) * 4096,
                    len: 4096,
                    op: Op::Write,
                    file: Some(file),
                });
            }
            let rules = |file: Option<&str>| {
                let number = file.and_then(|name| name[3..].parse().ok());
                number.unwrap_or(0)
            };
            Classes::of(&Footprint::of(&trace, 4096).unwrap(), &rules).list
        };
        let found = classes(1);
        let names = found.iter().map(|it| (it.name.as_str(), it.directory));
        let expected = [
            ("/b/0", Some(1)),
            ("/c/0", Some(2)),
            ("/a/t1", Some(0)),
            ("/b/t1", Some(1)),
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        // Kinds are still distinguished by directory.
        let kinds = classes(40);
        let has = |name: &str| kinds.iter().any(|class| class.name == name);
        assert!(has("/a/tN") && has("/b/tN") && !has("/b/t1"));
        assert!(classes(47).iter().all(|class| class.directory.is_some()));
        assert!(classes(48).iter().all(|class| class.directory.is_none()));
    }

    #[test]
    fn data_that_are_only_discarded_have_no_class() {
        use crate::trace::{Row, Trace};
        let row = |op, file| Row {
            t_ns: 0,
            lba: 0,
            len: 4096,
            op,
            file,
        };
        let mut trace = Trace {
            files: vec!["a".to_owned()],
            rows: [row(Op::Write, Some(0)), row(Op::Discard, None)]
                .into_iter()
                .collect(),
            ..Trace::default()
        };
        let streams = |trace: &Trace| {
            let rules = |file: Option<&str>| usize::from(file.is_some());
            Classes::of(&Footprint::of(trace, 4096).unwrap(), &rules).streams()
        };
        assert_eq!(streams(&trace), [1]);
        trace.rows.push(row(Op::Write, None));
        assert_eq!(streams(&trace), [0, 1]);
    }

    #[test]
    fn few_files_are_their_own_classes() {
        let files = [
            file("b1".into(), 2, 5),
            file("a".into(), 0, 1),
            file("b1".into(), 2, 3),
        ];
        let found = Classes::join(&files);
        assert_eq!(
            found.list,
            [file("a".into(), 0, 1), file("b1".into(), 2, 8)]
        );
        assert_eq!(found.of_file, [1, 0, 1]);
        assert_eq!(found.stream_numbers(&[0, 2]), [0, 1]);
    }

    #[test]
    fn many_files_are_joined_within_streams_only() {
        let mut files: Vec<Class> = (0..100)
            .map(|i| file(format!("t{i}"), usize::from(i >= 50), 1))
            .collect();
        let found = Classes::join(&files);
        assert_eq!(
            found.list,
            [file("tN".into(), 0, 50), file("tN".into(), 1, 50)]
        );
        files.extend((0..500_u64).map(|i| {
            let name: String = i
                .to_string()
                .chars()
                .map(|c| char::from(c as u8 + 49))
                .collect();
            file(name, usize::from(i % 2 == 1), i)
        }));
        let found = Classes::join(&files);
        assert_eq!(found.list.len(), MAX_KINDS + 2);
        let pages: u64 = found.list.iter().map(|class| class.written_pages).sum();
        assert_eq!(pages, 100 + 499 * 500 / 2);
        for (file, class) in files.iter().zip(&found.of_file) {
            assert_eq!(found.list[usize::from(*class)].stream, file.stream);
        }
    }
}
