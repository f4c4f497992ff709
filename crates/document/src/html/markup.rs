//! Writes HTML so that it cannot be malformed: elements close themselves, texts are escaped.
//!
//! Names of elements and attributes are literals of this crate; every value and text passes
//! [`printable`] and the escape. Deliberately absent: a way to insert markup made elsewhere,
//! but for the literals of [`Markup::literal`].

use crate::untrusted::printable;

/// An attribute and its value.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// HTML under construction.
#[derive(Default)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    /// What was written.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An element with contents.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inside(self);
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// An element that holds a text.
    pub(super) fn leaf(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.element(name, attributes, |inner| inner.text(text));
    }

    /// An HTML element that has no contents and no end: `meta`, `br`.
    pub(super) fn void(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.open(name, attributes);
    }

    /// A text.
    pub(super) fn text(&mut self, text: &str) {
        for letter in printable(text).chars() {
            match letter {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                _ => self.out.push(letter),
            }
        }
    }

    /// A text in which `backticks` set off what one types.
    pub(super) fn prose(&mut self, text: &str) {
        let mut parts = text.split('`').peekable();
        let mut typed = false;
        while let Some(part) = parts.next() {
            match (typed, parts.peek()) {
                (true, Some(_)) => self.leaf("code", &[], part),
                (true, None) => self.text(&format!("`{part}")), // Never closed.
                (false, _) => self.text(part),
            }
            typed = !typed;
        }
    }

    /// Markup of this crate's own source.
    pub(super) fn literal(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    fn open(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(value);
            self.out.push('"');
        }
        self.out.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut markup = Markup::default();
        markup.leaf("p", &[("title", "\"><script>")], "a & <b> 'c'");
        assert_eq!(
            markup.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">a &amp; &lt;b&gt; &#39;c&#39;</p>"
        );
    }

    #[test]
    fn backticks_set_off_what_one_types() {
        let mut markup = Markup::default();
        markup.prose("use `--full <x>`, not `that");
        assert_eq!(
            markup.finish(),
            "use <code>--full &lt;x&gt;</code>, not `that"
        );
    }
}
