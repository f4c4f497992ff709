//! Why a run ended before its time.

use super::Record;

impl Record {
    /// The reason of an early end, if there was one.
    #[must_use]
    pub fn early_end(&self) -> Option<String> {
        let first = self
            .errors
            .first()
            .map(|(text, count)| format!("{count} times: {text}"));
        let first = first.unwrap_or_else(|| "no error was reported".to_owned());
        match self.end.as_str() {
            "done" => None,
            "interrupted" => Some("interrupted; the figures cover the time until then".to_owned()),
            "gave up" if self.lost_connections == 0 => Some(format!(
                "stopped because the server answered no request for too long (--give-up), although no \
             connection was lost: it may wait for a lock or for disk space; {first}"
            )),
            "gave up" => Some(format!(
                "stopped because the server did not come back in time (--give-up); {first}"
            )),
            _ => Some(format!("stopped because no transaction succeeded; {first}")),
        }
    }
}
