//! Replication from one server to another by global transaction identifiers (GTIDs).

use crate::{
    mariadb::{Kind, Server},
    parity::Arm,
};

impl Kind {
    /// Options of a primary or replica: server ID `id`, and a binary log in row format.
    pub fn logging(self, id: u32) -> Vec<String> {
        let mut options = vec![
            format!("--server-id={id}"),
            "--log-bin=changes".to_owned(),
            "--binlog-format=ROW".to_owned(),
        ];
        if self == Self::MySql {
            let own = [
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                // A replica that was killed fetches the changes that it had not applied again.
                "--relay-log-recovery=ON",
            ];
            options.extend(own.map(str::to_owned));
        }
        options
    }

    /// The query that returns ON if a replica receives and applies changes.
    pub fn following(self) -> String {
        match self {
            Self::MariaDb => self.counter("SLAVE_RUNNING"),
            Self::MySql => "SELECT IF(COUNT(*) = 2, 'ON', 'OFF') FROM ( \
                SELECT SERVICE_STATE FROM performance_schema.replication_connection_status \
                UNION ALL \
                SELECT SERVICE_STATE FROM performance_schema.replication_applier_status \
                ) state WHERE SERVICE_STATE = 'ON'"
                .to_owned(),
        }
    }
}

impl Server {
    /// Deletes this server's binary log and its record of applied changes. Then starts to replicate
    /// all changes that `primary` has logged. Rows in this server's tables stay.
    ///
    /// # Panics
    /// If the server refuses a statement.
    pub fn follow(&self, primary: &Self) {
        let port = primary.port;
        let statements = match self.kind {
            Kind::MariaDb => format!(
                "RESET MASTER; SET GLOBAL gtid_slave_pos = ''; \
                 CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, \
                 MASTER_USER='root', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; \
                 START SLAVE"
            ),
            Kind::MySql => format!(
                "RESET BINARY LOGS AND GTIDS; \
                 CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
                 SOURCE_USER='root', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, \
                 SOURCE_RETRY_COUNT=1000, GET_SOURCE_PUBLIC_KEY=1; \
                 START REPLICA"
            ),
        };
        self.must(Arm::Kernel, &statements);
    }

    /// Connects to the primary anew.
    ///
    /// # Panics
    /// If the server refuses a statement.
    pub fn connect_again(&self) {
        let statements = match self.kind {
            Kind::MariaDb => "STOP SLAVE IO_THREAD; START SLAVE IO_THREAD",
            Kind::MySql => "STOP REPLICA IO_THREAD; START REPLICA IO_THREAD",
        };
        self.must(Arm::Kernel, statements);
    }

    /// Waits until this server has applied all changes that `primary` has logged.
    ///
    /// # Panics
    /// If this takes more than a minute. The message has the replication status and the log.
    pub fn catch_up(&self, primary: &Self) {
        let (position, wait, state) = match self.kind {
            Kind::MariaDb => (
                "SELECT @@gtid_binlog_pos",
                "MASTER_GTID_WAIT",
                "SHOW SLAVE STATUS\\G",
            ),
            Kind::MySql => (
                "SELECT REPLACE(@@gtid_executed, '\\n', '')",
                "WAIT_FOR_EXECUTED_GTID_SET",
                "SHOW REPLICA STATUS\\G",
            ),
        };
        let position = primary.must(Arm::Kernel, position);
        let reached = self.must(Arm::Kernel, &format!("SELECT {wait}('{position}', 60)"));
        assert_eq!(
            reached,
            "0",
            "{position} is not reached\n{}\n{}",
            self.must(Arm::Kernel, state),
            self.log()
        );
    }
}
