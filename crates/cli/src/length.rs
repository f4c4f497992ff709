//! Times with a unit as values of options.

use std::time::Duration;

/// The longest time that an option accepts: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Parses a time such as `90s`, `5min`, `2h`; zero is allowed.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "give a time with a unit: 90s, 5min, 2h".to_owned())?;
    if time > LONGEST {
        return Err("give at most ten years".to_owned());
    }
    Ok(time)
}

/// Parses a time greater than zero.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() {
        return Err("the time must be greater than zero".to_owned());
    }
    Ok(time)
}
