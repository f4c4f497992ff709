//! Ranges of bytes with data, and the holes between them.

/// The bytes `start..end` of a file; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }

    fn intersection(self, other: Self) -> Option<Self> {
        let start = self.start.max(other.start);
        let end = self.end.min(other.end);
        (start < end).then_some(Self { start, end })
    }
}

/// The intersections of `spans`, which are sorted, with `window`.
pub(crate) fn within(spans: &[Span], window: Span) -> impl Iterator<Item = Span> {
    // A file with many extents is read in many windows; a binary search keeps that fast.
    let first = spans.partition_point(|span| span.end <= window.start);
    let rest = spans.get(first..).unwrap_or(&[]);
    rest.iter().map_while(move |span| span.intersection(window))
}

/// The holes of a file of `size` bytes: all bytes that are not in `data`, which is sorted.
pub(crate) fn holes(data: &[Span], size: u64) -> Vec<Span> {
    let mut holes = Vec::new();
    let mut at = 0;
    let end = Span {
        start: size,
        end: size,
    };
    for span in data.iter().copied().chain([end]) {
        if at < span.start {
            holes.push(Span {
                start: at,
                end: span.start,
            });
        }
        at = span.end;
    }
    holes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn windows_cut_spans() {
        let data = [span(0, 10), span(20, 30), span(40, 50)];
        for (window, expected) in [
            (span(0, 50), vec![span(0, 10), span(20, 30), span(40, 50)]),
            (span(5, 25), vec![span(5, 10), span(20, 25)]),
            (span(10, 20), vec![]),
            (span(45, 90), vec![span(45, 50)]),
        ] {
            assert_eq!(within(&data, window).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn holes_are_the_complement_of_data() {
        for (data, size, expected) in [
            (vec![], 0, vec![]),
            (vec![], 5, vec![span(0, 5)]),
            (vec![span(0, 5)], 5, vec![]),
            (
                vec![span(2, 4), span(4, 6)],
                9,
                vec![span(0, 2), span(6, 9)],
            ),
        ] {
            assert_eq!(holes(&data, size), expected);
        }
    }
}
