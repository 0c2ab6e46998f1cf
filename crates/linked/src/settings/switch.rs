//! A switch in a settings file that must be on: `{"experimental": true}`.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged as _;
use serde_json::Value;

use crate::settings::document::{Container, Document, NewChild, SettingsError, Splice, Syntax};

/// A member of the settings that must be `true`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchSettings {
    /// The key.
    pub(crate) key: &'static str,
    /// The syntax that the agent reads.
    pub(crate) syntax: Syntax,
}

impl SwitchSettings {
    /// Returns whether the switch is on.
    pub(crate) fn is_on(&self, text: &str) -> Result<bool, SettingsError> {
        let document = Document::parse(text, self.syntax)?;
        match document.root().and_then(|root| root.get(self.key)) {
            None => Ok(false),
            Some(member) => match &member.value {
                Node::BooleanLit(switch) => Ok(switch.value),
                _ => Err(document.wrong_type(member, "true or false")),
            },
        }
    }

    /// Returns the note that linking changed `false` to `true`.
    fn changed(&self) -> String {
        format!("{}=false", self.key)
    }

    /// Returns the text with the switch on, and a note of the changes that this required.
    pub(crate) fn add(&self, text: &str) -> Result<(String, Vec<String>), SettingsError> {
        if self.is_on(text)? {
            return Ok((text.to_owned(), Vec::new()));
        }
        let document = Document::parse(text, self.syntax)?;
        let on = Value::Bool(true);
        let new = [NewChild { key: Some(self.key), value: &on }];
        let mut splices = Vec::new();
        let mut made = vec![self.key.to_owned()];
        match document.root() {
            None => splices.push(document.begin(&new)),
            Some(root) => match root.get(self.key) {
                Some(off) => {
                    splices.push(Splice { at: off.value.start()..off.value.end(), put: "true".into() });
                    made = vec![self.changed()];
                }
                None => document.append(&Container::object(root), &new, &mut splices),
            },
        }
        let after = document.spliced(splices)?;
        self.check(&after, document.value(), Some(true))?;
        Ok((after, made))
    }

    /// Returns the text with the switch as it was before linking. If it is unknown whether linking set it, it stays on.
    pub(crate) fn take_out(&self, text: &str, made: Option<&[String]>) -> Result<String, SettingsError> {
        let document = Document::parse(text, self.syntax)?;
        let was_made = |name: &str| made.is_some_and(|made| made.iter().any(|one| one == name));
        let Some(root) = document.root() else { return Ok(text.to_owned()) };
        // The user has changed it since, so it is left alone.
        let Some(member) =
            root.get(self.key).filter(|member| matches!(&member.value, Node::BooleanLit(it) if it.value))
        else {
            return Ok(text.to_owned());
        };
        let mut splices = Vec::new();
        let left = if was_made(&self.changed()) {
            splices.push(Splice { at: member.value.start()..member.value.end(), put: "false".into() });
            Some(false)
        } else if was_made(self.key) {
            let marks: Vec<bool> = root.properties.iter().map(|one| one.name.as_str() == self.key).collect();
            document.remove(&Container::object(root), &marks, &mut splices);
            None
        } else {
            return Ok(text.to_owned());
        };
        let after = document.spliced(splices)?;
        self.check(&after, document.value(), left)?;
        Ok(after)
    }

    /// Checks the edit: the switch has the wanted value, and the rest has not changed.
    fn check(&self, after: &str, before: &Value, wanted: Option<bool>) -> Result<(), SettingsError> {
        let document = Document::parse(after, self.syntax)?;
        let rest = |value: &Value| {
            let mut value = value.clone();
            if let Some(root) = value.as_object_mut() {
                root.shift_remove(self.key);
            }
            value
        };
        let is = document.value().get(self.key).and_then(Value::as_bool);
        if is == wanted && rest(document.value()) == rest(before) { Ok(()) } else { Err(SettingsError::Unsafe) }
    }
}
