//! Masks passwords in URLs. Connector/J and pgjdbc accept passwords as parameters. Connector/J also
//! accepts a password before the host.

use super::Password;
use super::url::host_and_port;

/// Whether a parameter holds a password: `password`, `sslpassword`, `trustStorePassword`.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("password") || key.contains("pwd")
}

/// The value of a parameter for output: a mask if it is a password.
pub(crate) fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    if is_secret(key) {
        Password::MASK
    } else {
        value
    }
}

/// The URL with each password replaced by a mask.
pub(super) fn masked(url: &str) -> String {
    let (address, query) = split_query(url);
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

/// Splits a URL into address and parameters. A password before the host may contain `?` and `@`. If
/// the part before the first `?` is not a complete address, the last `@` ends the password.
pub(super) fn split_query(url: &str) -> (&str, &str) {
    let Some((address, query)) = url.split_once('?') else {
        return (url, "");
    };
    match url.rfind('@') {
        Some(at) if at > address.len() && !is_complete(address) => match url[at..].find('?') {
            Some(mark) => (&url[..at + mark], &url[at + mark + 1..]),
            None => (url, ""),
        },
        _ => (address, query),
    }
}

/// Whether an address has a host and a database.
fn is_complete(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("//") else {
        return true; // A file name of SQLite.
    };
    let (userinfo, rest) = split_userinfo(rest);
    let Some((hosts, _)) = rest.split_once('/') else {
        return false;
    };
    let is_host = |host: &str| {
        let port = host_and_port(host).1.unwrap_or("");
        port.bytes().all(|byte| byte.is_ascii_digit())
    };
    userinfo.is_some() || hosts.split(',').all(is_host)
}

/// Turns `//user:secret@host` into `//user:***@host`.
fn masked_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("//") else {
        return address.to_owned();
    };
    match split_userinfo(rest) {
        (Some((user, Some(_))), rest) => {
            format!("{scheme}//{user}:{}@{rest}", Password::MASK)
        }
        (Some((_, None)) | None, _) => address.to_owned(),
    }
}

/// Splits `user:password@host:3306/db` at the last `@`, because a password may contain `@`.
pub(super) fn split_userinfo(text: &str) -> (Option<(&str, Option<&str>)>, &str) {
    match text.rsplit_once('@') {
        None => (None, text),
        Some((userinfo, rest)) => match userinfo.split_once(':') {
            Some((user, password)) => (Some((user, Some(password))), rest),
            None => (Some((userinfo, None)), rest),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_in_all_positions() {
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
            ("jdbc:mysql://me:se?cret@h/t", "jdbc:mysql://me:***@h/t"),
            ("jdbc:mysql://me:s/e?c@r?t@h", "jdbc:mysql://me:***@h"),
            (
                "jdbc:mysql://me:a@b?c@h/t?x=1&password=d",
                "jdbc:mysql://me:***@h/t?x=1&password=***",
            ),
            (
                "jdbc:postgresql://a:1,[::1]:2/t?user=me@b&password=c@d",
                "jdbc:postgresql://a:1,[::1]:2/t?user=me@b&password=***",
            ),
            ("mysqlx?pwd=b", "mysqlx?pwd=***"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
