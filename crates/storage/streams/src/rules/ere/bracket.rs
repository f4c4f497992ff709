//! Bracket expressions of POSIX: `[]a-z[:digit:]]`, in the C locale.

use std::fmt::Write as _;

use super::EreError;

/// Reads what follows a `[`, the closing bracket included, and writes it as a class of the regex crate.
pub(super) fn read(rest: &mut &[u8]) -> Result<String, EreError> {
    let mut members = [false; 256];
    let mut text = *rest;
    let is_negated = text.first() == Some(&b'^');
    if is_negated {
        text = text.get(1..).unwrap_or_default();
    }
    let mut is_first = true;
    loop {
        let next = text.get(1);
        match text.first() {
            None => return Err(EreError::Bracket),
            Some(b']') if !is_first => break,
            // A hyphen stands for itself at either end only.
            Some(b'-') if !is_first && next.is_some_and(|next| *next != b']') => {
                return Err(EreError::Range);
            }
            Some(_) => {}
        }
        is_first = false;
        let item = item(&mut text)?;
        let high = range_end(&mut text)?;
        let (low, high) = match (item, high) {
            (Item::Class(class), None) => {
                for (byte, member) in (0..=u8::MAX).zip(members.iter_mut()) {
                    *member |= class(byte);
                }
                continue;
            }
            (Item::Class(_), Some(_)) | (_, Some(Item::Class(_))) => return Err(EreError::Range),
            (Item::Byte(low), None) => (low, low),
            (Item::Byte(low), Some(Item::Byte(high))) => (low, high),
        };
        if high < low {
            return Err(EreError::Range);
        }
        for (byte, member) in (0..=u8::MAX).zip(members.iter_mut()) {
            *member |= (low..=high).contains(&byte);
        }
    }
    *rest = text.get(1..).unwrap_or_default();
    if is_negated {
        for member in &mut members {
            *member = !*member;
        }
        members[usize::from(b'\n')] = false;
    }
    Ok(class_text(&members))
}

enum Item {
    Byte(u8),
    Class(fn(u8) -> bool),
}

/// The end of a range, when one begins here: `-` and something that is not the closing bracket.
fn range_end(text: &mut &[u8]) -> Result<Option<Item>, EreError> {
    match text {
        [b'-', b']', ..] => Ok(None),
        [b'-', rest @ ..] => {
            *text = rest;
            item(text).map(Some)
        }
        _ => Ok(None),
    }
}

/// One byte, `[.x.]`, `[=x=]` or `[:class:]`.
fn item(text: &mut &[u8]) -> Result<Item, EreError> {
    let Some((first, after)) = text.split_first() else {
        return Err(EreError::Bracket);
    };
    let kind = after.first().copied();
    let Some(kind) = kind.filter(|kind| *first == b'[' && matches!(kind, b'.' | b'=' | b':'))
    else {
        *text = after;
        return Ok(Item::Byte(*first));
    };
    let name = after.get(1..).unwrap_or_default();
    let end = name.windows(2).position(|pair| pair == [kind, b']']);
    let end = end.ok_or(EreError::Bracket)?;
    let (name, rest) = name.split_at(end);
    *text = rest.get(2..).unwrap_or_default();
    match (kind, name) {
        (b':', name) => Ok(Item::Class(class(name)?)),
        (_, [byte]) => Ok(Item::Byte(*byte)),
        (kind, name) => Err(EreError::Collation(format!(
            "{0}{1}{0}]",
            char::from(kind),
            String::from_utf8_lossy(name)
        ))),
    }
}

fn class(name: &[u8]) -> Result<fn(u8) -> bool, EreError> {
    Ok(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| byte.is_ascii_graphic() || byte == b' ',
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        other => return Err(EreError::Class(String::from_utf8_lossy(other).into_owned())),
    })
}

fn class_text(members: &[bool; 256]) -> String {
    let mut out = String::from("[");
    for (byte, member) in (0..=u8::MAX).zip(members) {
        if *member {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    if out.len() == 1 {
        // Nothing at all, which the regex crate writes so.
        out.push_str("^\\x00-\\xff");
    }
    out.push(']');
    out
}
