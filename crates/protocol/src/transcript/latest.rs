//! Readers of the agents' JSON of which only the latest counts.

use serde_json::Value;

/// Returns the identifier of the mode in a `current_mode_update`.
pub fn current_mode(body: &Value) -> Option<&str> {
    body["currentModeId"].as_str()
}

/// Returns the part of the model's context that a `usage_update` leaves, in percent.
pub fn context_left_percent(body: &Value) -> Option<u64> {
    if let Some(percent) = body["contextLeftPercent"].as_f64() {
        return Some(percent.clamp(0.0, 100.0) as u64);
    }
    let (used, size) = context_use(body).filter(|(_, size)| *size > 0)?;
    Some(100 - (used.min(size) as u128 * 100 / u128::from(size)) as u64)
}

/// Returns the used tokens of the model's context in a `usage_update`, and the size of the context.
pub fn context_use(body: &Value) -> Option<(u64, u64)> {
    Some((body["used"].as_u64()?, body["size"].as_u64()?))
}

/// Returns the title in a `session_info_update` that changes it. The gateway repeats the title where it reports another project.
pub fn new_title(body: &Value) -> Option<&str> {
    body["title"].as_str().filter(|_| body["_meta"]["plexus"]["project"].is_null())
}
