//! One recording from start to end, with its messages to the user.

use std::time::Duration;

use saiga_process::interrupt::Interrupt;
use saiga_record::{Options, Recorder, Totals};

use super::progress::Progress;
use super::target::{End, Running, Target};
use crate::exit;

/// Time between two reads of the events.
const PAUSE: Duration = Duration::from_millis(50);

pub(in crate::streams) struct Recorded {
    /// The directories under the names that the trace has for them.
    pub(in crate::streams) directories: Vec<String>,
    pub(in crate::streams) tally: Totals,
    pub(in crate::streams) end: End,
}

/// Records until the end of `target`; then the trace is complete on disk.
pub(in crate::streams) fn record(
    options: &Options,
    target: &Target,
    interrupt: &Interrupt,
) -> anyhow::Result<Recorded> {
    let mut recorder = Recorder::begin(options, &|| interrupt.raised())?;
    for ground in recorder.backing_volumes() {
        exit::say(&format!(
            "recording writes to {} ({})",
            ground.name, ground.kind
        ));
    }
    if let Some(why) = recorder.why_not_bpf() {
        exit::say(&format!(
            "warning: using tracefs, with microsecond timestamps, because BPF is not available: \
             {why}"
        ));
    }
    let mut running = target.start()?;
    let end = match watch(&mut recorder, &mut running, interrupt) {
        Ok(end) => end,
        Err(error) => {
            // Frees the buffer, whose memory the program may need to end.
            drop(recorder);
            running.give_up(interrupt)?;
            return Err(error);
        }
    };
    let directories = recorder.directories();
    let (tally, remarks) = recorder.finish()?;
    for remark in remarks {
        exit::say(&format!("warning: {remark}"));
    }
    Ok(Recorded {
        directories,
        tally,
        end,
    })
}

/// Records until the target has ended.
fn watch(
    recorder: &mut Recorder,
    running: &mut Running<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<End> {
    let mut progress = Progress::new();
    loop {
        recorder.step()?;
        for remark in recorder.remarks() {
            progress.say(&format!("warning: {remark}"));
        }
        progress.show(recorder)?;
        if let Some(end) = running.wait(PAUSE, interrupt, &|text| progress.say(text))? {
            return Ok(end);
        }
    }
}
