//! The settings of the gateway: whole files, mistakes, the document, properties, `lstack.conf`.

mod document;
mod lstack;
mod mistakes;
mod properties;
mod settings;

use saiga_gateway::settings::Settings;

/// The shortest useful file.
const SHORTEST: &str = "serve = [{ port = 6379 }]\n[[device]]\ninterface = \"enp4s0\"\n";

fn parsed(text: &str) -> Settings {
    Settings::parse(text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}
