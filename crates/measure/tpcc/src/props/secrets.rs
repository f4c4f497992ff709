//! Passwords inside URLs: Connector/J and pgjdbc take them as parameters, Connector/J before the
//! host, too. Whatever shows a URL shows it without them.

use super::Password;

/// Whether a parameter's value is a password: `password`, `sslpassword`, `trustStorePassword`.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("password") || key.contains("pwd")
}

/// A parameter's value as others may see it.
pub(crate) fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    if is_secret(key) {
        Password::MASK
    } else {
        value
    }
}

/// A URL with a mask in the place of each password.
pub(super) fn masked(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut text = masked_address(address);
    for (at, pair) in query.split('&').enumerate() {
        if query.is_empty() {
            break;
        }
        text.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, value)) => {
                text.push_str(key);
                text.push('=');
                text.push_str(shown(key, value));
            }
            None => text.push_str(pair),
        }
    }
    text
}

/// `//user:***@host` of `//user:secret@host`.
fn masked_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("//") else {
        return address.to_owned();
    };
    match before_host(rest) {
        (Some((user, Some(_))), rest) => {
            format!("{scheme}//{user}:{}@{rest}", Password::MASK)
        }
        (Some((_, None)) | None, _) => address.to_owned(),
    }
}

/// User and password of `user:password@host:3306/db`, and the rest. A password may have an `@`.
pub(super) fn before_host(text: &str) -> (Option<(&str, Option<&str>)>, &str) {
    match text.rsplit_once('@') {
        None => (None, text),
        Some((who, rest)) => match who.split_once(':') {
            Some((user, password)) => (Some((user, Some(password))), rest),
            None => (Some((who, None)), rest),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_wherever_they_stand() {
        for (url, shown) in [
            ("jdbc:mysql://h/t", "jdbc:mysql://h/t"),
            (
                "jdbc:mysql://h/t?user=a&password=b&x=c",
                "jdbc:mysql://h/t?user=a&password=***&x=c",
            ),
            (
                "jdbc:postgresql://h/t?sslPassword=b",
                "jdbc:postgresql://h/t?sslPassword=***",
            ),
            (
                "jdbc:mysql://me:se/c:r@t@h:1/t?a",
                "jdbc:mysql://me:***@h:1/t?a",
            ),
            ("jdbc:mysql://me@h:1/t", "jdbc:mysql://me@h:1/t"),
            ("mysqlx?pwd=b", "mysqlx?pwd=***"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
