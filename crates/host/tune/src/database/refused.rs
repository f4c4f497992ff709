//! Settings that Saiga never proposes and refuses by name, because they open the server or destroy
//! data. The procedures use some of them.

use super::Engine;
use super::value;

/// A refused value: engines, setting, value (any if `None`), reason and alternative.
struct Refused {
    engines: &'static [Engine],
    name: &'static str,
    value: Option<&'static str>,
    why: &'static str,
}

use Engine::{MySql, OpenGauss, Postgres, Redis};

const ALL: [Refused; 12] = [
    refused(
        &[MySql],
        "skip_grant_tables",
        None,
        "anyone who connects would be root; to reset a password, start the server with --init-file",
    ),
    refused(
        &[MySql],
        "user",
        Some("root"),
        "a fault in the server would own the host; run it as the user mysql",
    ),
    refused(
        &[MySql],
        "ssl",
        Some("0"),
        "passwords and rows would cross the network in clear text; clients on this host do not \
         need TLS and can leave it off themselves",
    ),
    refused(
        &[MySql],
        "tls_version",
        Some(""),
        "this turns TLS off; let clients on this host leave it off themselves",
    ),
    refused(
        &[MySql],
        "innodb_doublewrite",
        Some("OFF"),
        "pages torn by a power failure could not be repaired; use a drive with atomic writes of \
         16 KiB and innodb_flush_method",
    ),
    refused(
        &[Postgres, OpenGauss],
        "fsync",
        Some("off"),
        "a crash of the host would destroy the database; use synchronous_commit for transactions \
         that may be lost",
    ),
    refused(
        &[Postgres, OpenGauss],
        "ssl",
        Some("off"),
        "passwords and rows would cross the network in clear text; use hostnossl lines in \
         pg_hba.conf for local clients",
    ),
    refused(
        &[OpenGauss],
        "audit_enabled",
        Some("off"),
        "auditing is a duty of the operator; measure its cost with an experiment",
    ),
    refused(
        &[OpenGauss],
        "enable_security_policy",
        Some("off"),
        "security policies are a decision of the operator",
    ),
    refused(
        &[OpenGauss],
        "enable_tde",
        Some("off"),
        "the data would be written without encryption",
    ),
    refused(
        &[Redis],
        "protected-mode",
        Some("no"),
        "anyone on the network could read and write all data; set bind and requirepass, or ACLs",
    ),
    refused(
        &[Redis],
        "appendfsync",
        Some("no"),
        "up to 30 s of writes would be lost in a crash; use everysec",
    ),
];

const fn refused(
    engines: &'static [Engine],
    name: &'static str,
    value: Option<&'static str>,
    why: &'static str,
) -> Refused {
    Refused {
        engines,
        name,
        value,
        why,
    }
}

/// The reason why a value is refused; `None` if it is not.
#[must_use]
pub fn reason(engine: Engine, name: &str, wanted: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    let found = ALL.iter().find(|refused| {
        refused.engines.contains(&engine)
            && refused.name.replace('-', "_") == name
            && refused
                .value
                .is_none_or(|value| value::is_same(value, None, wanted))
    });
    found.map(|refused| refused.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_a_server_or_destroys_data_is_refused() {
        for (engine, name, value) in [
            (MySql, "skip-grant-tables", ""),
            (MySql, "ssl", "OFF"),
            (MySql, "user", "root"),
            (Postgres, "fsync", "false"),
            (OpenGauss, "audit_enabled", "off"),
            (Redis, "protected-mode", "no"),
        ] {
            assert!(reason(engine, name, value).is_some(), "{name}={value}");
        }
        for (engine, name, value) in [
            (MySql, "ssl", "1"),
            (MySql, "user", "mysql"),
            (Postgres, "fsync", "on"),
            (Redis, "ssl", "off"),
        ] {
            assert_eq!(reason(engine, name, value), None, "{name}={value}");
        }
    }
}
