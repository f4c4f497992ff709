//! Measures the cost of database sessions on the client. `sessions PROPS build` creates and loads
//! the tables. `sessions PROPS trips CONNECTIONS ROUNDS` sends reads of New-Order and Payment.
//!
//! Prints elapsed time, CPU time of this process, and its peak memory.

use std::path::Path;
use std::time::Instant;
use std::{env, fs, thread};

use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::Value;
use saiga_tpcc::db::{Session, connect::connect};
use saiga_tpcc::population::Population;
use saiga_tpcc::props::Props;
use saiga_tpcc::script::{self, Step};
use saiga_tpcc::table::Table;

type Problem = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Problem> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [props, "build"] => build(&Props::read(Path::new(props))?),
        [props, "trips", connections, rounds] => trips(
            &Props::read(Path::new(props))?,
            connections.parse()?,
            rounds.parse()?,
        ),
        _ => Err("sessions PROPS build | sessions PROPS trips CONNECTIONS ROUNDS".into()),
    }
}

fn open(props: &Props) -> Result<Box<dyn Session>, Problem> {
    let options = Options::of(&props.url)?;
    Ok(connect(&props.url, &props.user, &props.password, &options)?)
}

fn run_step(props: &Props, session: &mut dyn Session, step: Step) -> Result<(), Problem> {
    for sql in script::find(None, &props.db, step)?.statements {
        session.run(&sql, &mut Rows::new())?;
    }
    Ok(())
}

/// Builds all tables; worker N of `load_workers` loads every `load_workers`-th warehouse.
fn build(props: &Props) -> Result<(), Problem> {
    let mut session = open(props)?;
    println!("{:?}", session.server());
    run_step(props, &mut *session, Step::TableDrops)?;
    let clock = Clock::start();
    run_step(props, &mut *session, Step::TableCreates)?;
    let population = Population::new(42, props.warehouses, 1_790_000_000);
    for table in [Table::Config, Table::Item] {
        session.load(table, &mut |sink| population.write_common(table, sink))?;
    }
    thread::scope(|scope| {
        let workers: Vec<_> = (0..props.load_workers)
            .map(|worker| scope.spawn(move || load(props, population, worker)))
            .collect();
        let ends = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(Err("panic".into())));
        ends.collect::<Result<(), Problem>>()
    })?;
    clock.print("rows");
    for step in Step::AFTER_LOAD {
        run_step(props, &mut *session, step)?;
        clock.print(step.name());
    }
    Ok(())
}

fn load(props: &Props, population: Population, worker: u32) -> Result<(), Problem> {
    let mut session = open(props)?;
    let step = usize::try_from(props.load_workers)?;
    for w_id in (worker + 1..=props.warehouses).step_by(step) {
        for table in Table::OF_WAREHOUSE {
            session.load(table, &mut |sink| population.write(table, w_id, sink))?;
        }
    }
    Ok(())
}

fn trips(props: &Props, connections: u32, rounds: u32) -> Result<(), Problem> {
    let mut sessions = (0..connections)
        .map(|_| open(props))
        .collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::start();
    let sent = thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .zip(0..)
            .map(|(session, at)| scope.spawn(move || read(&mut **session, at, rounds)))
            .collect();
        let sent = threads
            .into_iter()
            .map(|one| one.join().unwrap_or(Err("panic".into())));
        sent.sum::<Result<u64, Problem>>()
    })?;
    clock.print(&format!("{sent} round trips"));
    println!("{:.2} us of CPU each", clock.cpu_s() * 1e6 / sent as f64);
    Ok(())
}

/// Sends reads only, so that no session waits for a lock.
fn read(session: &mut dyn Session, at: i64, rounds: u32) -> Result<u64, Problem> {
    let (mut rows, mut sent) = (Rows::new(), 0);
    for round in 0..i64::from(rounds) {
        let (w_id, d_id) = (1, (at + round) % 10 + 1);
        let item = Value::Int((round * 7919 + at) % 100_000 + 1);
        let customer = [
            Value::Int(w_id),
            Value::Int(d_id),
            Value::Int(round % 3000 + 1),
        ];
        for (statement, params) in [
            (Statement::OrderCustomer, &customer[..]),
            (Statement::OrderItem, &[item]),
            (Statement::PayDistrictRead, &customer[..2]),
            (Statement::StatusCustomer, &customer),
        ] {
            session.execute(statement, params, &mut rows)?;
            if rows.len() != 1 {
                return Err(format!("{statement:?} found {} rows", rows.len()).into());
            }
            sent += 1;
        }
    }
    session.rollback()?;
    Ok(sent + 1)
}

/// Elapsed time and CPU time since the start.
struct Clock {
    wall: Instant,
    cpu_s: f64,
}

impl Clock {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            cpu_s: cpu_s(),
        }
    }

    fn cpu_s(&self) -> f64 {
        cpu_s() - self.cpu_s
    }

    fn print(&self, what: &str) {
        let (wall_s, cpu_s) = (self.wall.elapsed().as_secs_f64(), self.cpu_s());
        println!("{what}: {wall_s:.2} s wall, {cpu_s:.2} s CPU, {}", memory());
    }
}

/// User and system time of this process in seconds (`man 5 proc_pid_stat`).
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}

fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
