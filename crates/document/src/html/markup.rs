//! A writer of well-formed HTML: it closes every element and escapes every text.
//!
//! Names of elements and attributes are literals of this crate; values and texts are escaped and
//! pass [`printable`]. Deliberately absent: a way to insert other markup than the literals that
//! [`Markup::literal`] takes.

use crate::untrusted::printable;

/// Name and value of an attribute.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// Builds HTML text; every text and attribute value is escaped.
#[derive(Default)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    /// The HTML written so far.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Writes an element whose content `inside` writes.
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

    /// Writes an element with a text as its only content.
    pub(super) fn leaf(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.element(name, attributes, |inner| inner.text(text));
    }

    /// Writes a void element, which has no content and no end tag: `meta`, `br`.
    pub(super) fn void(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.open(name, attributes);
    }

    /// Writes an escaped text.
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

    /// Writes a text; parts between `backticks` become `code` elements.
    pub(super) fn prose(&mut self, text: &str) {
        let mut parts = text.split('`').peekable();
        let mut typed = false;
        while let Some(part) = parts.next() {
            match (typed, parts.peek()) {
                (true, Some(_)) => self.leaf("code", &[], part),
                (true, None) => self.text(&format!("`{part}")), // A backtick without its pair.
                (false, _) => self.text(part),
            }
            typed = !typed;
        }
    }

    /// Writes markup that is part of this crate's source, without escaping.
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
    fn text_between_backticks_becomes_code() {
        let mut markup = Markup::default();
        markup.prose("use `--full <x>`, not `that");
        assert_eq!(
            markup.finish(),
            "use <code>--full &lt;x&gt;</code>, not `that"
        );
    }
}
