//! The mode and the model of a session that is opened. They are set before the caller gets the session, so that the agent does nothing in
//! another mode.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Directory, OpenSession};
use crate::SessionError;
use plexus_auth::{Permit, Prompt};
use plexus_protocol::{SessionId, SessionInfo};
use std::sync::Arc;

/// Maximum number of choices that an error names; the others are counted.
const NAMED_MAX: usize = 20;

/// The settings that a session begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstSettings {
    /// The agent's mode.
    pub mode: Option<String>,
    /// The agent's model.
    pub model: Option<String>,
}

/// The settings that an agent offers in a session.
#[derive(Debug, Default, PartialEq, Eq)]
struct OfferedSettings {
    modes: Vec<String>,
    /// `true` if the agent has a mode; an update of the mode may arrive without the list of modes.
    has_mode: bool,
    /// The modes of an agent that offers them as a configuration option.
    mode_options: Vec<String>,
    models: Vec<String>,
}

/// A configuration option of an agent (ACP).
#[derive(Deserialize)]
struct ConfigOption {
    id: String,
    category: Option<String>,
    #[serde(default)]
    options: Vec<ConfigChoice>,
}

/// A choice, or a group of them.
#[derive(Deserialize)]
struct ConfigChoice {
    value: Option<String>,
    #[serde(default)]
    options: Vec<ConfigChoice>,
}

impl ConfigOption {
    fn values(self) -> Vec<String> {
        let choice_values = |one: ConfigChoice| one.options.into_iter().filter_map(|one| one.value).chain(one.value);
        self.options.into_iter().flat_map(choice_values).collect()
    }
}

impl OfferedSettings {
    /// Applies the latest event of a kind.
    fn take(&mut self, kind: &str, body: &RawValue) {
        let Ok(body) = serde_json::from_str::<Value>(body.get()) else { return };
        match kind {
            "current_mode_update" => {
                let modes = body["_meta"]["modes"]["availableModes"].as_array();
                let ids = modes.into_iter().flatten().filter_map(|mode| mode["id"].as_str());
                (self.modes, self.has_mode) = (ids.map(str::to_owned).collect(), true);
            }
            "config_option_update" => {
                for option in body["configOptions"].as_array().into_iter().flatten() {
                    let Ok(option) = ConfigOption::deserialize(option) else { continue };
                    if option.id == "mode" {
                        self.mode_options = option.values();
                    } else if option.category.as_deref() == Some("model") {
                        self.models.extend(option.values());
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the call that sets a mode.
    fn mode_call(&self, mode: &str) -> Result<(&'static str, Value), SessionError> {
        if self.modes.is_empty() && !self.mode_options.is_empty() {
            check("mode", mode, &self.mode_options)?;
            return Ok(("session.set_config_option", json!({ "configId": "mode", "value": mode })));
        }
        if !self.has_mode || !self.modes.is_empty() {
            check("mode", mode, &self.modes)?;
        }
        Ok(("session.set_mode", json!({ "modeId": mode })))
    }

    /// Returns the call that sets a model.
    fn model_call(&self, model: &str) -> Result<(&'static str, Value), SessionError> {
        check("model", model, &self.models)?;
        Ok(("model.set", json!({ "name": model })))
    }
}

/// Checks that the agent offers a value.
fn check(setting: &'static str, requested: &str, offered: &[String]) -> Result<(), SessionError> {
    if offered.iter().any(|one| one == requested) {
        return Ok(());
    }
    let message = if offered.is_empty() {
        format!("this agent offers no choice of a {setting}: leave it out")
    } else {
        let named: Vec<&str> = offered.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = offered.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("this agent offers no {setting} {requested:?}: choose one of {}{more}", named.join(", "))
    };
    Err(not_offered(setting, message))
}

fn not_offered(setting: &'static str, message: String) -> SessionError {
    let code = if setting == "mode" { "mode_not_offered" } else { "model_not_offered" };
    SessionError::NotOffered { code, message }
}

impl Directory {
    /// Like [`open_session`](Self::open_session), with a mode and a model. If one of them cannot be set, the session is closed again,
    /// unless it was open before.
    ///
    /// # Errors
    /// The errors of `open_session` and of [`call`](Self::call); [`SessionError::NotOffered`].
    pub async fn open_session_set(
        &self,
        permit: &Permit<Prompt>,
        open: OpenSession,
        first: &FirstSettings,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        let was_there = self.is_open(&open);
        let session = self.open_session(permit, open).await?;
        if *first == FirstSettings::default() {
            return Ok(session);
        }
        let id = &session.session_id;
        match self.set_first(permit, id, first).await {
            Ok(()) => self.session(id).ok_or_else(|| SessionError::NoSession(id.clone())),
            Err(error) => {
                if !was_there && let Err(error) = self.delete(id).await {
                    tracing::debug!(%error, session_id = %id, "a session that could not be set up was removed already");
                }
                Err(error)
            }
        }
    }

    async fn set_first(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        first: &FirstSettings,
    ) -> Result<(), SessionError> {
        let mut offered = OfferedSettings::default();
        let snapshot = self.snapshots().within(id, 0).await?;
        snapshot.latest.iter().for_each(|(kind, body)| offered.take(kind, body));
        let model = first.model.as_deref().map(|model| Ok(("model", offered.model_call(model)?)));
        let mode = first.mode.as_deref().map(|mode| Ok(("mode", offered.mode_call(mode)?)));
        // Both are checked before the first is set.
        let calls: Vec<_> = model.into_iter().chain(mode).collect::<Result<_, SessionError>>()?;
        for (setting, (method, params)) in calls {
            let params = to_raw_value(&params).map_err(|error| SessionError::Invalid(error.to_string()))?;
            self.call(permit, id, method.into(), Some(params), false).await.map_err(|error| match error {
                SessionError::RuntimeRefused { message, .. } => {
                    not_offered(setting, format!("the agent did not take the {setting}: {message}"))
                }
                error => error,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(kind: &str, body: Value) -> OfferedSettings {
        let mut offered = OfferedSettings::default();
        offered.take(kind, &to_raw_value(&body).unwrap());
        offered
    }

    #[test]
    fn settings_that_are_offered_are_set_by_the_agents_own_way() {
        let modes =
            json!({ "currentModeId": "a", "_meta": { "modes": { "availableModes": [{ "id": "a" }, { "id": "b" }] } } });
        let by_mode = offered("current_mode_update", modes);
        assert_eq!(by_mode.mode_call("b").unwrap(), ("session.set_mode", json!({ "modeId": "b" })));
        let option =
            |id: &str, category: &str, options: Value| json!({ "id": id, "category": category, "options": options });
        let grouped = json!([{ "value": "large" }, { "name": "Others", "options": [{ "value": "small" }] }]);
        let options = json!([option("mode", "mode", json!([{ "value": "plan" }])), option("model", "model", grouped)]);
        let by_option = offered("config_option_update", json!({ "configOptions": options }));
        let set = json!({ "configId": "mode", "value": "plan" });
        assert_eq!(by_option.mode_call("plan").unwrap(), ("session.set_config_option", set));
        assert_eq!(by_option.model_call("small").unwrap(), ("model.set", json!({ "name": "small" })));
        let untold = offered("current_mode_update", json!({ "currentModeId": "a" }));
        assert_eq!(untold.mode_call("b").unwrap().0, "session.set_mode", "the agent decides");
        let message = |refused: Result<_, SessionError>| refused.map(|_: (&str, Value)| ()).unwrap_err().to_string();
        assert_eq!(message(by_mode.mode_call("c")), "this agent offers no mode \"c\": choose one of a, b");
        assert_eq!(message(by_mode.model_call("c")), "this agent offers no choice of a model: leave it out");
        assert_eq!(message(by_option.model_call("c")), "this agent offers no model \"c\": choose one of large, small");
        let many: Vec<String> = (0..NAMED_MAX + 3).map(|n| n.to_string()).collect();
        assert!(check("model", "x", &many).unwrap_err().to_string().ends_with(", 19, and 3 more"));
    }
}
