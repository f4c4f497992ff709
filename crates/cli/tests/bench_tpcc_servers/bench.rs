//! A server, a props file for it, and the steps of the program.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::results::Record;
use saiga_trials::witness::await_true;
use saiga_trials::{reaper, sys};

use crate::marked::{Marked, Said, send};
use crate::system::{OWNER, PASSWORD, System};

/// Terminals in the props file.
pub(crate) const TERMINALS: u32 = 10;
/// Transactions per terminal in the props file.
pub(crate) const TRANSACTIONS: u32 = 30;

/// Host name of the pretended other host.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// The part of a props file that is the same for all systems, with comments as in real files.
const USUAL: &str = "\
warehouses=1
loadWorkers=4

terminals=10
//To run specified transactions per terminal- runMins must equal zero
runTxnsPerTerminal=30
//To run for specified minutes- runTxnsPerTerminal must equal zero
runMins=0
//Number of total transactions per minute
limitTxnsPerMin=0 
//Set to true to run in 4.x compatible mode. Set to false to use the
//entire configured database evenly.
terminalWarehouseFixed=true
//The following five values must add up to 100
newOrderWeight=45
paymentWeight=43
orderStatusWeight=4
deliveryWeight=4
stockLevelWeight=4
// Directory name to create for collecting detailed result data.
resultDirectory=my_result_%tY-%tm-%td_%tH%tM%tS
";

/// One server and one installation.
pub(crate) struct Bench {
    pub(crate) system: System,
    test: Marked,
    runs: Cell<u32>,
}

/// A run in the background.
pub(crate) struct UnderWay {
    child: Child,
    out: PathBuf,
}

impl Bench {
    pub(crate) fn new(system: System) -> Self {
        let bench = Self {
            system,
            test: Marked::new(),
            runs: Cell::new(0),
        };
        bench.props("props.conf", OWNER, PASSWORD);
        bench
    }

    /// Writes a props file for a user.
    pub(crate) fn props(&self, name: &str, user: &str, password: &str) {
        let system = self.system.props();
        let text = format!("{system}user={user}\npassword={password}\n\n{USUAL}");
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.test.path(name)
    }

    /// `saiga bench tpcc STEP --props FILE ...`, in the directory of the file.
    pub(crate) fn command_with(&self, props: &str, step: &str, more: &[&str]) -> Command {
        let mut command = self
            .test
            .saiga(&[&["bench", "tpcc", step, "--props", props], more].concat());
        command.current_dir(self.path(""));
        command
    }

    /// Runs a step whose database is given by options, with the password in the variable that the
    /// database's own clients read.
    pub(crate) fn said_by_options(&self, step: &str, password: &str, more: &[&str]) -> Said {
        let (engine, variable, port) = self.system.named();
        let port = port.to_string();
        let named = ["bench", "tpcc", step, "--engine", engine, "--port", &port];
        let mut command = self.test.saiga(&[&named[..], more].concat());
        command.current_dir(self.path("")).env(variable, password);
        self.test.said(&mut command)
    }

    /// Runs `saiga tune database` on the server.
    pub(crate) fn tune_database(&self, more: &[&str]) -> Said {
        let (engine, variable, port) = self.system.named();
        let port = port.to_string();
        let named = [
            "tune", "database", engine, "--port", &port, "--user", "tpcc",
        ];
        let mut command = self.test.saiga(&[&named[..], more].concat());
        command.current_dir(self.path("")).env(variable, PASSWORD);
        self.test.said(&mut command)
    }

    pub(crate) fn command(&self, step: &str, more: &[&str]) -> Command {
        self.command_with("props.conf", step, more)
    }

    /// Runs a step.
    pub(crate) fn said(&self, step: &str, more: &[&str]) -> Said {
        self.test.said(&mut self.command(step, more))
    }

    /// Runs a step with another props file.
    pub(crate) fn said_with(&self, props: &str, step: &str) -> Said {
        self.test.said(&mut self.command_with(props, step, &[]))
    }

    /// The last line of a step that must fail.
    pub(crate) fn refused(&self, command: &mut Command) -> String {
        let said = self.test.refused(command);
        said.lines().last().unwrap().to_owned()
    }

    pub(crate) fn spawn(&self, step: &str, more: &[&str]) -> Child {
        let mut command = self.command(step, more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Starts a step in another UTS namespace, as on another host: this host has no process of that
    /// host name.
    pub(crate) fn spawn_elsewhere(&self, step: &str, more: &[&str]) -> Child {
        let here = self.command(step, more);
        let mut command = Command::new("unshare");
        if !sys::is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = format!("hostname {ELSEWHERE} && exec \"$0\" \"$@\"");
        command.args(["--uts", "sh", "-c", &script]);
        command.arg(here.get_program()).args(here.get_args());
        let variables = here.get_envs();
        command
            .env_clear()
            .envs(variables.filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.path(""));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        reaper::end_with_parent(&mut command, saiga_trials::Signal::TERM);
        command.spawn().unwrap()
    }

    /// Checks all conditions except the eleventh, which holds only after a load.
    pub(crate) fn must_hold(&self) {
        let said = self.said("check", &[]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let name = self.system.name();
        let (start, end) = (
            format!("{name}: 1 warehouse, after a run; "),
            ": all rules hold\n",
        );
        let holds = said.stdout.starts_with(&start) && said.stdout.ends_with(end);
        assert!(holds, "{said:?}");
    }

    /// A new directory for the results of a run.
    pub(crate) fn fresh_out(&self) -> String {
        self.runs.set(self.runs.get() + 1);
        self.test.text(&format!("out-{}", self.runs.get()))
    }

    /// Queries an integer.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let mut rows = Rows::new();
        self.system.session().run(sql, &mut rows).unwrap();
        // Sums are decimals.
        rows.shown(0, 0).unwrap().parse().unwrap()
    }

    /// Number of orders, including those of the load.
    pub(crate) fn orders(&self) -> i64 {
        self.number("select sum(d_next_o_id - 1) from bmsql_district")
    }

    /// Waits until the number of orders exceeds `orders`.
    pub(crate) fn await_orders(&self, above: i64) {
        await_true(
            || self.orders() > above,
            || format!("no more than {above} orders"),
        );
    }

    /// Starts a run without an end and waits for `orders` orders.
    pub(crate) fn under_way(&self, orders: i64) -> UnderWay {
        let (before, out) = (self.orders(), self.fresh_out());
        let words = ["--for", "1h", "--no-check", "--out", &out];
        let child = self.spawn("run", &words);
        let run = UnderWay {
            child,
            out: PathBuf::from(out),
        };
        self.await_orders(before + orders);
        run
    }

    pub(crate) fn assert_nothing_left(&self) {
        self.test.assert_nothing_left();
    }
}

impl UnderWay {
    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Presses Ctrl-C; returns the output and the record.
    pub(crate) fn interrupt(self) -> (String, Record) {
        send(&self.child, Signal::INT);
        let Output {
            status,
            stdout,
            stderr,
        } = self.child.wait_with_output().unwrap();
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert_eq!(status.code(), Some(2), "{said}");
        (said, record(&self.out))
    }
}

/// The record in a result directory.
pub(crate) fn record(out: &std::path::Path) -> Record {
    let text = fs::read_to_string(out.join("result.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}
