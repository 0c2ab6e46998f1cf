//! The settings that an agent offers in a session: mode, model, and other options (ACP's session modes and session config options).

use serde::Serialize;
use serde_json::Value;

use super::view_model::{field, line};

/// Maximum number of modes, of options, and of choices of one option.
const CHOICES_MAX: usize = 200;

/// A choice: its id as the agent wrote it, and its sanitized name.
#[derive(Clone, Debug, PartialEq)]
struct NamedChoice {
    id: String,
    name: String,
}

impl NamedChoice {
    fn read(value: &Value, id: &str) -> Option<Self> {
        let id = value[id].as_str()?.to_owned();
        let name = Some(field(&value["name"])).filter(|name| !name.is_empty()).unwrap_or_else(|| line(&id));
        Some(Self { id, name })
    }
}

/// The slash commands of an `available_commands_update`: sanitized names and descriptions.
pub(crate) fn commands(body: &Value) -> impl Iterator<Item = (String, String)> {
    let commands = body["availableCommands"].as_array().into_iter().flatten();
    commands.map(|command| (field(&command["name"]), field(&command["description"])))
}

/// The parameters of a [`SettingCall`]: those of ACP, and the session.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum SettingParams<'a> {
    Mode {
        #[serde(rename = "session_id")]
        session: &'a str,
        mode_id: &'a str,
    },
    Model {
        #[serde(rename = "session_id")]
        session: &'a str,
        name: &'a str,
    },
    Option {
        #[serde(rename = "session_id")]
        session: &'a str,
        config_id: &'a str,
        value: &'a str,
    },
}

/// An option with several choices.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    option: NamedChoice,
    model: bool,
    now: String,
    choices: Vec<NamedChoice>,
}

/// The settings of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    mode: String,
    modes: Vec<NamedChoice>,
    options: Vec<Setting>,
}

/// A change of a setting: a method of the agent, with the identifiers that the agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingCall {
    Mode(String),
    Model(String),
    Option { option: String, value: String },
}

impl SettingCall {
    /// The method for this session, and its parameters.
    pub(crate) fn request<'a>(&'a self, session: &'a str) -> (&'static str, SettingParams<'a>) {
        match self {
            Self::Mode(mode) => ("session.set_mode", SettingParams::Mode { session, mode_id: mode }),
            Self::Model(model) => ("model.set", SettingParams::Model { session, name: model }),
            Self::Option { option, value } => {
                ("session.set_config_option", SettingParams::Option { session, config_id: option, value })
            }
        }
    }
}

/// A possible choice: its command, its description, and the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingChoice {
    pub(crate) command: String,
    pub(crate) description: String,
    pub(crate) call: SettingCall,
}

/// A choice for a session that is not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingPick {
    pub(crate) name: String,
    pub(crate) call: SettingCall,
}

impl Settings {
    /// The modes and the models that can be chosen for a new session.
    pub(crate) fn offers(&self) -> (Vec<SettingPick>, Vec<SettingPick>) {
        let pick = |choice: &NamedChoice, call| SettingPick { name: choice.name.clone(), call };
        let mode = |choice: &NamedChoice| pick(choice, SettingCall::Mode(choice.id.clone()));
        let model = |choice: &NamedChoice| pick(choice, SettingCall::Model(choice.id.clone()));
        let models = self.options.iter().find(|setting| setting.model);
        let mut modes: Vec<SettingPick> = self.modes.iter().map(mode).collect();
        if modes.is_empty() {
            // Agents may report their modes as an option.
            let option = self.options.iter().find(|setting| setting.option.id == "mode");
            let value =
                |choice: &NamedChoice| SettingCall::Option { option: "mode".to_owned(), value: choice.id.clone() };
            let choices = option.into_iter().flat_map(|setting| &setting.choices);
            modes = choices.map(|choice| pick(choice, value(choice))).collect();
        }
        (modes, models.into_iter().flat_map(|setting| &setting.choices).map(model).collect())
    }

    /// Applies `current_mode_update`; the first one of a session lists the modes.
    pub(crate) fn take_mode(&mut self, body: &Value) {
        body["currentModeId"].as_str().unwrap_or_default().clone_into(&mut self.mode);
        let offered = body["_meta"]["modes"]["availableModes"].as_array();
        if let Some(offered) = offered.filter(|offered| !offered.is_empty()) {
            self.modes = offered.iter().filter_map(|mode| NamedChoice::read(mode, "id")).take(CHOICES_MAX).collect();
        }
    }

    /// Applies `config_option_update`, which replaces each option that it names.
    pub(crate) fn take_options(&mut self, body: &Value) {
        for value in body["configOptions"].as_array().into_iter().flatten().take(CHOICES_MAX) {
            let Some(option) = NamedChoice::read(value, "id") else { continue };
            // Choices may be grouped.
            let listed = value["options"].as_array().into_iter().flatten();
            let listed =
                listed.flat_map(|one| one["options"].as_array().map_or(std::slice::from_ref(one), Vec::as_slice));
            let setting = Setting {
                model: value["category"] == "model",
                now: value["currentValue"].as_str().unwrap_or_default().to_owned(),
                choices: listed.filter_map(|choice| NamedChoice::read(choice, "value")).take(CHOICES_MAX).collect(),
                option,
            };
            match self.options.iter().position(|known| known.option.id == setting.option.id) {
                Some(at) => self.options[at] = setting,
                None if self.options.len() < CHOICES_MAX => self.options.push(setting),
                None => {}
            }
        }
    }

    /// The current mode and model, for the header.
    pub(crate) fn current_names(&self) -> impl Iterator<Item = String> {
        let named = |all: &[NamedChoice], id: &str| {
            let found = all.iter().find(|one| one.id == id);
            found.map_or_else(|| line(id), |one| one.name.clone())
        };
        let models = self.options.iter().filter(|setting| setting.model);
        let models = models.map(|setting| named(&setting.choices, &setting.now)).collect::<Vec<_>>();
        std::iter::once(named(&self.modes, &self.mode)).chain(models).filter(|current_names| !current_names.is_empty())
    }

    /// The choices other than the current ones.
    pub(crate) fn choices(&self) -> Vec<SettingChoice> {
        let mut all = Vec::new();
        for mode in self.modes.iter().filter(|mode| mode.id != self.mode) {
            all.push(SettingChoice {
                command: format!("mode {}", mode.name),
                description: format!("the agent's mode: {}", mode.name),
                call: SettingCall::Mode(mode.id.clone()),
            });
        }
        for Setting { option, model, now, choices } in &self.options {
            // Agents may report their modes in both ways; one of them is enough.
            if option.id == "mode" && !self.modes.is_empty() {
                continue;
            }
            for choice in choices.iter().filter(|choice| choice.id != *now) {
                let call = match *model {
                    true => SettingCall::Model(choice.id.clone()),
                    false => SettingCall::Option { option: option.id.clone(), value: choice.id.clone() },
                };
                // An option may have the name of a UI command; a `set` command never has.
                let (command, kind) = if *model {
                    (format!("model {}", choice.name), "model".to_owned())
                } else {
                    (format!("set {} {}", option.name, choice.name), option.name.clone())
                };
                all.push(SettingChoice { command, description: format!("the agent's {kind}: {}", choice.name), call });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_offer_the_agents_options_once() {
        let mut settings = Settings::default();
        assert_eq!(settings.current_names().count() + settings.choices().len(), 0);
        settings.take_mode(&json!({ "currentModeId": "ask", "_meta": { "modes": { "availableModes": [
            { "id": "ask", "name": "Ask" }, { "id": "auto", "name": "Au\u{202e}to" }, { "name": "none" },
        ] } } }));
        settings.take_options(&json!({ "configOptions": [
            { "id": "model", "name": "Model", "category": "model", "currentValue": "a", "options": [
                { "value": "a", "name": "Model A" }, { "name": "More", "options": [{ "value": "b" }] } ] },
            { "id": "mode", "name": "Mode", "currentValue": "ask", "options": [{ "value": "auto", "name": "Auto" }] },
            { "id": "depth", "name": "Depth", "currentValue": "low", "options": [{ "value": "high", "name": "High" }] },
        ] }));
        assert_eq!(settings.current_names().collect::<Vec<_>>(), ["Ask", "Model A"]);
        let choices = settings.choices();
        let commands: Vec<&str> = choices.iter().map(|choice| choice.command.as_str()).collect();
        assert_eq!(commands[1..], ["model b", "set Depth High"]);
        assert!(commands[0].starts_with("mode Au") && !commands[0].contains('\u{202e}'), "{commands:?}");
        let calls: Vec<_> = choices.iter().map(|choice| choice.call.request("s_1")).collect();
        assert_eq!(json!(calls[0].1), json!({ "session_id": "s_1", "modeId": "auto" }));
        assert_eq!((calls[1].0, &json!(calls[1].1)["name"]), ("model.set", &json!("b")));
        assert_eq!(json!(calls[2].1), json!({ "session_id": "s_1", "configId": "depth", "value": "high" }));
        // A later update contains only changes.
        settings.take_mode(&json!({ "currentModeId": "auto" }));
        let model = json!({ "configOptions": [{ "id": "model", "category": "model", "currentValue": "b", "options": [{ "value": "a" }, { "value": "b" }] }] });
        settings.take_options(&model);
        assert_eq!(settings.choices()[0].command, "mode Ask");
        assert_eq!(settings.current_names().nth(1).as_deref(), Some("b"));
        settings.take_options(&json!({ "configOptions": 7 }));
        settings.take_mode(&json!(null));
        assert_eq!(settings.current_names().count(), 1, "only the model");
    }
}
