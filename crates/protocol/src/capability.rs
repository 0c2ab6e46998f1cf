//! Capabilities of a runtime, as far as it reports them.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $word:literal $(, ui $ui:literal)?;)*) => {
        /// One ability of a runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All capabilities, in display order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// Returns the name among the `server_capabilities` of the UI protocol, if it has one.
            pub fn ui_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => None$(.or(Some($ui)))?,)*
                }
            }
        }
    };
}

capabilities! {
    /// Loads an old conversation with its history.
    Load = "load";
    /// Resumes an old conversation without its history.
    Resume = "resume";
    /// Lists its conversations.
    List = "list";
    /// Copies a conversation, so that the copy can continue differently.
    Fork = "fork";
    /// Closes a conversation.
    Close = "close";
    /// Deletes a conversation.
    Delete = "delete";
    /// Signs out.
    Logout = "logout";
    /// Stops a run.
    Cancel = "cancel", ui "supports_run_cancel";
    /// Asks users questions, and accepts their answers.
    Requests = "requests", ui "supports_ui_requests";
    /// Accepts a reason with an answer.
    Reasons = "reasons";
    /// Accepts an edited form of the action in a request.
    Edits = "edits";
    /// Offers modes. ACP agents report this with their first session.
    Modes = "modes";
    /// Offers models. ACP agents report this with their first session.
    Models = "models";
    /// Accepts images in a prompt.
    Images = "images";
    /// Accepts audio in a prompt.
    Audio = "audio";
    /// Accepts the text of files in a prompt.
    EmbeddedContext = "embedded_context";
    /// Connects to MCP servers over HTTP that a client names.
    McpHttp = "mcp_http";
    /// Connects to MCP servers over server-sent events that a client names.
    McpSse = "mcp_sse";
    /// Lists its MCP servers by `mcp.list`.
    McpList = "mcp_list", ui "supports_mcp_list";
    /// Lists its skills by `skills.list`.
    SkillsList = "skills_list", ui "supports_skills_list";
    /// Reports the tool call of a question before it asks.
    PermissionPreflight = "permission_preflight_events", ui "supports_permission_preflight_events";
    /// Returns the model's context: `context.inspect`.
    ContextInspect = "context_inspect", ui "supports_context_inspect";
    /// Reports how a run used its context.
    RunDiagnostics = "run_diagnostics", ui "supports_run_diagnostics";
    /// Runs a shell command: `shell.exec`.
    ShellExec = "shell_exec", ui "supports_shell_exec";
    /// Runs shell commands in the background: `shell.start` and related methods.
    ShellTasks = "shell_tasks", ui "supports_shell_tasks";
    /// Moves a running shell command to the background: `shell.detach`.
    ShellDetach = "shell_detach", ui "supports_shell_detach";
    /// Has background tasks: `task.*`.
    Tasks = "tasks", ui "supports_tasks";
    /// Calls one of its tools: `tool.call`.
    ToolCall = "tool_call", ui "supports_tool_call";
    /// Sets a theme: `theme.set`.
    ThemeSet = "theme_set", ui "supports_theme_set";
}

/// The capabilities of a runtime: on the wire a list of names. Unknown names, from a later version, are skipped when read.
#[derive(Clone, Debug, Default, PartialEq, Eq, ToSchema)]
#[schema(value_type = Vec<Capability>)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// Returns whether the capability is in the set.
    pub fn has(&self, one: Capability) -> bool {
        self.0.contains(&one)
    }

    /// Adds the capability if `present` is true.
    #[must_use]
    pub fn with(mut self, one: Capability, present: bool) -> Self {
        if present {
            self.0.insert(one);
        }
        self
    }

    /// Returns the capabilities in display order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.0.iter().copied()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(Capability::as_str))
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        Ok(Capability::ALL.iter().copied().filter(|one| names.iter().any(|name| name == one.as_str())).collect())
    }
}

/// Returns the `server_capabilities` of the UI protocol for a client of these runtimes: the union of their capabilities. A runtime that
/// has not reported its capabilities counts as able to cancel and to ask.
pub fn server_capabilities<'a>(
    runtimes: impl IntoIterator<Item = Option<&'a Capabilities>>,
    offered: &[Capability],
) -> serde_json::Map<String, serde_json::Value> {
    let runtimes: Vec<_> = runtimes.into_iter().collect();
    let is_default = |one| matches!(one, Capability::Cancel | Capability::Requests);
    let can = |one| {
        (runtimes.is_empty() && is_default(one))
            || runtimes.iter().any(|reported| reported.map_or_else(|| is_default(one), |reported| reported.has(one)))
    };
    offered.iter().filter_map(|one| Some((one.ui_name()?.to_owned(), can(*one).into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_names_are_unique_and_unknown_ones_skipped() {
        let names: BTreeSet<_> = Capability::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(names.len(), Capability::ALL.len());
        let some: Capabilities = serde_json::from_str(r#"["models","levitation","load"]"#).unwrap();
        assert_eq!(serde_json::to_string(&some).unwrap(), r#"["load","models"]"#);
    }

    #[test]
    fn capability_of_several_runtimes_is_the_union() {
        let of = [Capability::Cancel, Capability::McpList];
        let offered = |runtimes: &[Option<&Capabilities>]| {
            let offered = server_capabilities(runtimes.iter().copied(), &of);
            (offered["supports_run_cancel"] == true, offered["supports_mcp_list"] == true)
        };
        let (none, lists) = (Capabilities::default(), Capabilities::default().with(Capability::McpList, true));
        assert_eq!((offered(&[]), offered(&[None])), ((true, false), (true, false)));
        assert_eq!(offered(&[Some(&none)]), (false, false));
        assert_eq!(offered(&[Some(&none), Some(&lists)]), (false, true));
    }
}
