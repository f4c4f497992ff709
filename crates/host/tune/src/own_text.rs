//! The mark with which every file of Saiga's begins.

pub(crate) const MARK: &str = "# Written by `saiga tune`; removed by `saiga tune undo`.";

/// Whether a text is that of a file of Saiga's. A script has the mark in its second line.
pub(crate) fn is_ours(text: &str) -> bool {
    text.lines().take(2).any(|line| line == MARK)
}
