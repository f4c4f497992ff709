//! [`Kind`]: all that a result says about what a request asked for.

/// The kind of a request, across protocols. Texts, keys and values are never kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Select,
    Insert,
    Update,
    /// SQL, and HTTP's method.
    Delete,
    Begin,
    Commit,
    Rollback,
    Call,
    /// SQL that changes the session.
    Set,
    /// SQL that changes tables.
    Schema,
    Copy,
    Prepare,
    /// A prepared statement whose text is not part of the request.
    Execute,
    Fetch,
    Ping,
    /// A RESP command that only reads.
    Read,
    /// A RESP command that changes a key.
    Write,
    /// A RESP command that runs a script or function.
    Script,
    /// HTTP's methods.
    Get,
    Head,
    Post,
    Put,
    /// All other requests, and those counted in turns.
    Other,
}

const SQL: [(&[u8], Kind); 27] = [
    (b"SELECT", Kind::Select),
    (b"WITH", Kind::Select),
    (b"TABLE", Kind::Select),
    (b"VALUES", Kind::Select),
    (b"INSERT", Kind::Insert),
    (b"REPLACE", Kind::Insert),
    (b"UPDATE", Kind::Update),
    (b"DELETE", Kind::Delete),
    (b"BEGIN", Kind::Begin),
    (b"START", Kind::Begin),
    (b"COMMIT", Kind::Commit),
    (b"END", Kind::Commit),
    (b"ROLLBACK", Kind::Rollback),
    (b"CALL", Kind::Call),
    (b"SET", Kind::Set),
    (b"USE", Kind::Set),
    (b"CREATE", Kind::Schema),
    (b"ALTER", Kind::Schema),
    (b"DROP", Kind::Schema),
    (b"TRUNCATE", Kind::Schema),
    (b"COPY", Kind::Copy),
    (b"LOAD", Kind::Copy),
    (b"PREPARE", Kind::Prepare),
    (b"EXECUTE", Kind::Execute),
    (b"FETCH", Kind::Fetch),
    (b"DO", Kind::Call),
    (b"EXEC", Kind::Execute),
];

const RESP: [(&[u8], Kind); 48] = [
    (b"GET", Kind::Read),
    (b"MGET", Kind::Read),
    (b"GETRANGE", Kind::Read),
    (b"STRLEN", Kind::Read),
    (b"EXISTS", Kind::Read),
    (b"TTL", Kind::Read),
    (b"TYPE", Kind::Read),
    (b"HGET", Kind::Read),
    (b"HMGET", Kind::Read),
    (b"HGETALL", Kind::Read),
    (b"HLEN", Kind::Read),
    (b"LRANGE", Kind::Read),
    (b"LLEN", Kind::Read),
    (b"LINDEX", Kind::Read),
    (b"SCARD", Kind::Read),
    (b"SISMEMBER", Kind::Read),
    (b"SMEMBERS", Kind::Read),
    (b"ZRANGE", Kind::Read),
    (b"ZSCORE", Kind::Read),
    (b"ZCARD", Kind::Read),
    (b"SCAN", Kind::Read),
    (b"SET", Kind::Write),
    (b"MSET", Kind::Write),
    (b"SETEX", Kind::Write),
    (b"SETNX", Kind::Write),
    (b"APPEND", Kind::Write),
    (b"DEL", Kind::Write),
    (b"UNLINK", Kind::Write),
    (b"EXPIRE", Kind::Write),
    (b"INCR", Kind::Write),
    (b"INCRBY", Kind::Write),
    (b"DECR", Kind::Write),
    (b"HSET", Kind::Write),
    (b"HDEL", Kind::Write),
    (b"HINCRBY", Kind::Write),
    (b"LPUSH", Kind::Write),
    (b"RPUSH", Kind::Write),
    (b"LPOP", Kind::Write),
    (b"RPOP", Kind::Write),
    (b"SADD", Kind::Write),
    (b"SPOP", Kind::Write),
    (b"SREM", Kind::Write),
    (b"ZADD", Kind::Write),
    (b"ZPOPMIN", Kind::Write),
    (b"EVAL", Kind::Script),
    (b"EVALSHA", Kind::Script),
    (b"FCALL", Kind::Script),
    (b"PING", Kind::Ping),
];

fn find(table: &[(&[u8], Kind)], word: &[u8]) -> Kind {
    let found = table
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map_or(Kind::Other, |(_, kind)| *kind)
}

impl Kind {
    /// The kind of an SQL text from its first word, which may stand behind a comment.
    pub(super) fn of_sql(mut text: &[u8]) -> Self {
        loop {
            text = text.trim_ascii_start();
            text = text.strip_prefix(b"(").unwrap_or(text);
            let Some(comment) = text.strip_prefix(b"/*") else {
                if text
                    .first()
                    .is_none_or(|byte| !byte.is_ascii_whitespace() && *byte != b'(')
                {
                    break;
                }
                continue;
            };
            let Some(end) = comment.windows(2).position(|pair| pair == b"*/") else {
                return Self::Other;
            };
            text = &comment[end + 2..];
        }
        let end = text.iter().position(|byte| !byte.is_ascii_alphabetic());
        find(&SQL, &text[..end.unwrap_or(text.len())])
    }

    pub(super) fn of_resp(command: &[u8]) -> Self {
        find(&RESP, command)
    }

    pub(super) fn of_http(method: &str) -> Self {
        match method {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides() {
        for (text, kind) in [
            ("SELECT 1", Kind::Select),
            ("  select\n*", Kind::Select),
            ("/* trace=7 */ UPDATE t", Kind::Update),
            ("((select 1)", Kind::Select),
            ("/* never ends", Kind::Other),
            ("COMMIT", Kind::Commit),
            ("selection", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(Kind::of_sql(text.as_bytes()), kind, "{text}");
        }
        assert_eq!(Kind::of_resp(b"hgetall"), Kind::Read);
        assert_eq!(Kind::of_resp(b"NOSUCH"), Kind::Other);
    }
}
