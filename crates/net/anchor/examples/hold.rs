//! Holds rules and routes of served ports until its standard input ends.
//!
//!     cargo run -p saiga-anchor --example hold -- 10.0.0.1:6379 [--anchor CLIENT]
//!
//! With `--anchor`, an anchor from CLIENT to the first served port is opened and kept, its bytes
//! unread. Needs root. Use a network namespace (`unshare -n`) unless the network is yours: clients
//! of the port on other hosts get no answers, because no gateway is there.

use std::error::Error;
use std::io::{Read as _, stdin};
use std::net::SocketAddr;
use std::process::ExitCode;

use saiga_anchor::{Anchors, Config, Opening, Routes};

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hold: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: Vec<String>) -> Result<(), Box<dyn Error>> {
    let client = match arguments.iter().position(|argument| argument == "--anchor") {
        None => None,
        Some(place) => arguments.drain(place..).nth(1),
    };
    let served: Vec<SocketAddr> = arguments
        .iter()
        .map(|text| text.parse().map_err(|error| format!("{text}: {error}")))
        .collect::<Result<_, _>>()?;
    let first = *served
        .first()
        .ok_or("usage: hold ADDRESS:PORT... [--anchor CLIENT]")?;
    let routes = Routes::up(&Config::default(), &served)?;
    let mut anchors = Anchors::new()?;
    let mut kept = None;
    if let Some(client) = client {
        let opening = anchors.connect(client.parse()?, first)?;
        let Opening::Established(anchor) = opening else {
            return Err(format!("no anchor: {opening:?}").into());
        };
        kept = Some(anchor);
    }
    println!("ready");
    stdin().read_to_end(&mut Vec::new())?;
    drop(kept);
    routes.down()?;
    Ok(())
}
