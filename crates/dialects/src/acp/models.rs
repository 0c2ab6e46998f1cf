//! The modes, models and configuration options that a session reports.

use std::collections::HashSet;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionUpdate,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::EventDraft;
use super::super::jsonrpc::{object, string};
use plexus_protocol::Kind;

/// The models of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionModels {
    /// Identifier and name of each model, in the agent's order. Sessions with the same offer share one list: see [`ModelLists`].
    pub(super) offered: Arc<[(String, String)]>,
    /// The model in use.
    pub(super) current: Option<String>,
    /// The configuration option that sets the model; `None` if the agent has `session/set_model`.
    pub(super) option: Option<String>,
    /// `true` if there are modes as well; copied to the agent's capabilities once.
    pub(super) modes: bool,
}

/// The model lists of the sessions of one agent. Equal lists share memory, however many sessions there are.
#[derive(Debug, Default)]
pub(super) struct ModelLists(HashSet<Arc<[(String, String)]>>);

impl ModelLists {
    /// Replaces the list of the session by an equal stored one, or stores it.
    pub(super) fn share(&mut self, models: &mut SessionModels) {
        if models.offered.is_empty() {
            return;
        }
        if let Some(known) = self.0.get(&models.offered) {
            models.offered = Arc::clone(known);
            return;
        }
        // Lists that no session uses any more are removed whenever a new one is added.
        self.0.retain(|list| Arc::strong_count(list) > 1);
        self.0.insert(Arc::clone(&models.offered));
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession<'a> {
    #[serde(borrow)]
    modes: Option<&'a RawValue>,
    models: Option<&'a RawValue>,
    config_options: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModeState<'a> {
    #[serde(borrow)]
    current_mode_id: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelState {
    current_model_id: Option<String>,
    available_models: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    model_id: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigOption<'a> {
    id: String,
    category: Option<String>,
    #[serde(borrow)]
    current_value: Option<&'a RawValue>,
    options: Option<Vec<&'a RawValue>>,
}

/// A value to choose, or a group of them.
#[derive(Deserialize)]
struct Choice<'a> {
    value: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    options: Option<Vec<&'a RawValue>>,
}

impl SessionModels {
    /// Returns the models of a session that was just opened, and the events that report its settings.
    pub(super) fn from_new_session(frame: &Bytes, result: &RawValue) -> (Self, Vec<EventDraft>) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Mode<'a> {
            session_update: &'static str,
            current_mode_id: &'a RawValue,
            #[serde(rename = "_meta")]
            meta: Meta<'a>,
        }
        #[derive(Serialize)]
        struct Meta<'a> {
            modes: &'a RawValue,
        }
        let (mut models, mut drafts) = (Self::default(), Vec::new());
        let Some(new) = object::<NewSession<'_>>(result) else { return (models, drafts) };
        if let Some((modes, state)) = new.modes.and_then(|modes| Some((modes, object::<ModeState<'_>>(modes)?))) {
            let meta = Meta { modes };
            let body = Mode { session_update: "current_mode_update", current_mode_id: state.current_mode_id, meta };
            models.modes = true;
            drafts.push(draft(Kind::CurrentModeUpdate, &body, frame));
        }
        if let Some(state) = new.models.and_then(object::<ModelState>) {
            models.current = state.current_model_id;
            let pair = |model: Model| (model.model_id.clone(), model.name.unwrap_or(model.model_id));
            models.offered = state.available_models.into_iter().map(pair).collect();
        }
        match new.config_options {
            Some(options) => {
                models.set_options(options);
                drafts.push(options_draft(options, frame));
            }
            None if !models.offered.is_empty() => drafts.push(models.draft(frame)),
            None => {}
        }
        (models, drafts)
    }

    /// Reads a `config_option_update`, or a response with the same member.
    pub(super) fn options_changed(&mut self, update: &RawValue) {
        if let Some(options) = object::<NewSession<'_>>(update).and_then(|update| update.config_options) {
            self.set_options(options);
        }
    }

    fn set_options(&mut self, options: &RawValue) {
        let Ok(options) = serde_json::from_str::<Vec<&RawValue>>(options.get()) else { return };
        let mut options: Vec<_> = options.into_iter().filter_map(object::<ConfigOption<'_>>).collect();
        let position = |category: &str, options: &[ConfigOption<'_>]| {
            options.iter().position(|option| option.category.as_deref() == Some(category))
        };
        self.modes |= position("mode", &options).is_some();
        let Some(model) = position("model", &options).map(|at| options.swap_remove(at)) else { return };
        self.current = model.current_value.and_then(string).map(std::borrow::Cow::into_owned);
        self.option = Some(model.id);
        let mut offered = Vec::new();
        let mut offer = |value: Option<String>, name: Option<String>| {
            if let Some(value) = value {
                offered.push((value.clone(), name.unwrap_or(value)));
            }
        };
        for choice in model.options.iter().flatten().filter_map(|raw| object::<Choice<'_>>(raw)) {
            offer(choice.value, choice.name);
            for choice in choice.options.iter().flatten().filter_map(|raw| object::<Choice<'_>>(raw)) {
                offer(choice.value, choice.name);
            }
        }
        self.offered = offered.into();
    }

    /// Makes the event that reports the models as a configuration option, for agents that have none.
    pub(super) fn draft(&self, frame: &Bytes) -> EventDraft {
        let choice = |(value, name): &(String, String)| SessionConfigSelectOption::new(value.clone(), name.clone());
        let choices: Vec<_> = self.offered.iter().map(choice).collect();
        let option = SessionConfigOption::select("model", "Model", self.current.clone().unwrap_or_default(), choices)
            .category(SessionConfigOptionCategory::Model);
        draft(
            Kind::ConfigOptionUpdate,
            &SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(vec![option])),
            frame,
        )
    }
}

/// Makes a `config_option_update` with these options.
pub(super) fn options_draft(options: &RawValue, frame: &Bytes) -> EventDraft {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Options<'a> {
        session_update: &'static str,
        config_options: &'a RawValue,
    }
    let body = Options { session_update: "config_option_update", config_options: options };
    draft(Kind::ConfigOptionUpdate, &body, frame)
}

/// Returns the mode in which a session was opened.
pub(super) fn mode_in(result: &RawValue) -> Option<String> {
    let state: ModeState<'_> = object(object::<NewSession<'_>>(result)?.modes?)?;
    string(state.current_mode_id).map(std::borrow::Cow::into_owned)
}

/// Makes the event that reports a change of the mode.
pub(super) fn mode_draft(mode: String, frame: &Bytes) -> EventDraft {
    draft(Kind::CurrentModeUpdate, &SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode)), frame)
}

/// Returns the member `configOptions` of a response.
pub(super) fn options_in(result: &RawValue) -> Option<&RawValue> {
    object::<NewSession<'_>>(result)?.config_options
}

/// Makes an event from a response.
pub(super) fn draft(kind: Kind, body: &impl Serialize, frame: &Bytes) -> EventDraft {
    let body = super::super::jsonrpc::owned(&super::super::jsonrpc::to_raw(body));
    EventDraft {
        kind,
        body: String::from(Box::<str>::from(body)).into(),
        native: Some(frame.clone()),
        tool: None,
        title: None,
    }
}
