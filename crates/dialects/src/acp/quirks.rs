//! Special cases of single agents, which differ from ACP or from most agents. No other file of the dialect names an agent.
//!
//! An agent is recognized by the beginning of its `agentInfo.name`; an agent without a row has no special case. A row
//! names the versions in which it was observed, and the test of its treatment by the dialect.

use serde::Deserialize;
use serde_json::value::RawValue;

use self::CommandField::{Input, Text, Title};
use super::super::jsonrpc::object;

/// A special case of one agent.
pub(super) struct Quirk {
    /// The beginning of its `agentInfo.name`.
    pub(super) agent: &'static str,
    /// The versions in which it was observed.
    #[cfg(test)]
    pub(super) versions: &'static str,
    /// The behavior of the agent.
    #[cfg(test)]
    pub(super) behavior: &'static str,
    /// The reason for the treatment, or for the behavior.
    #[cfg(test)]
    pub(super) reason: &'static str,
    /// The test, in `acp/open_tests.rs`, `acp/reading_tests.rs` or `acp/usage_tests.rs`.
    #[cfg(test)]
    pub(super) test: &'static str,
    /// The treatment by the dialect.
    pub(super) then: Treatment,
}

/// A field in which an agent sends the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandField {
    /// The members of `rawInput`, by the general rules.
    Input,
    /// A text block of `content`, by the general rules.
    Text,
    /// The title, which is exactly the command.
    Title,
}

/// The treatment of a quirk by the dialect.
pub(super) enum Treatment {
    /// Reads the command from these fields, in this order.
    Commands {
        fields: &'static [CommandField],
        /// The recording that demonstrates it.
        #[cfg(test)]
        recording: &'static str,
    },
    /// Recognizes a tool call of the gateway's own server by this field, and allows it.
    OwnTools(ServerField),
    /// Lists the tools of the gateway's own server as allowed whenever a session is opened.
    AllowedTools(AllowedTools),
    /// Takes new conversations out of the mode in which the agent never asks.
    AsksIn {
        /// The mode in which the agent never asks.
        from: &'static str,
        /// The mode in which it asks.
        mode: &'static str,
    },
    /// Waits before it loads a conversation.
    LoadLater {
        /// The time to wait, in seconds.
        ticks: u32,
        /// The message for the user meanwhile.
        message: &'static str,
    },
    /// Waits for the beginning of a replay that comes after the response, for at most this number of seconds.
    ReplaysLate { ticks: u32 },
    /// Reopens conversations by `session/load`, even if the agent has `session/resume`.
    LoadsOnly,
    /// Reads the tokens in the response to a prompt as the sum of the session.
    SumsUsage,
    /// Reads the tokens of each model call from the chunk that reports them.
    SpendsInChunks,
    /// Reports that commands run in the folder of the agent's process.
    FixedFolder,
    /// Logs none of these notifications: ACP messages have their content, or they are for the agent's own screen.
    Repeats {
        /// The methods.
        methods: &'static [&'static str],
        /// The method whose `update` has a type as in `session/update`.
        update_method: &'static str,
        /// The types of updates.
        updates: &'static [&'static str],
    },
}

/// The place and form of an agent's list of allowed tools.
#[derive(Clone, Copy)]
pub(super) struct AllowedTools {
    /// The list of allowed tools in `_meta`: the members that lead to it.
    pub(super) path: &'static [&'static str],
    /// The text before the server's name.
    pub(super) prefix: &'static str,
}

/// The field in which an agent itself names the MCP server of a tool call. Titles are written by the model and prove nothing.
#[derive(Clone, Copy)]
pub(super) enum ServerField {
    /// The member `_meta.serverId` of the tool call, in the request or in the announcement.
    MetaServerId,
    /// The id of the tool call, which begins with `mcp_SERVER_`, together with this option, which only MCP tools have.
    CallIdPrefix {
        /// The option.
        option: &'static str,
    },
}

macro_rules! commands {
    ($fields:expr, $recording:literal) => {
        Treatment::Commands {
            fields: &$fields,
            #[cfg(test)]
            recording: include_str!(concat!("../../../../tests/recordings/", $recording, ".ndjson")),
        }
    };
}

macro_rules! quirks {
    ($({ agent: $agent:literal, versions: $versions:literal, behavior: $behavior:literal, reason: $reason:literal, test: $test:literal, then: $then:expr })*) => {
        /// All quirks.
        pub(super) const QUIRKS: &[Quirk] = &[$(Quirk {
            agent: $agent,
            #[cfg(test)] versions: $versions,
            #[cfg(test)] behavior: $behavior,
            #[cfg(test)] reason: $reason,
            #[cfg(test)] test: $test,
            then: $then,
        },)*];
    };
}

quirks! {
    {
        agent: "gemini",
        versions: "0.61.0",
        behavior: "empties a conversation that is loaded in the minute of the wall clock in which it was made",
        reason: "making and loading write to the same file, which is named after that minute; the dialect has no clock and does not know when it was made, so it waits for a whole minute, and some seconds for clocks and the first tick",
        test: "acp_quirk_gemini_loads_no_conversation_in_the_minute_of_its_creation",
        then: Treatment::LoadLater { ticks: 65, message: "Gemini CLI loses a conversation that is reopened within the \
            minute in which it was created" }
    }
    {
        agent: "gemini",
        versions: "0.61.0",
        behavior: "responds to `session/load` before it replays the past, by seconds on a busy machine",
        reason: "messages after the prompt would count as part of the run; it loads no conversation without messages, so a replay always comes",
        test: "acp_quirk_gemini_replay_is_waited_for_after_the_response",
        then: Treatment::ReplaysLate { ticks: 20 }
    }
    {
        agent: "gemini",
        versions: "0.61.0",
        behavior: "asks before every call of an MCP tool, whatever the tool's annotations say",
        reason: "the gateway itself asks the user where its own tools require it; a question before each drawing is noise",
        test: "acp_quirk_calls_of_the_gateways_own_tools_are_allowed",
        then: Treatment::OwnTools(ServerField::CallIdPrefix { option: "proceed_always_server" })
    }
    {
        agent: "qwen",
        versions: "0.24.4",
        behavior: "asks before every call of an MCP tool, whatever the tool's annotations say",
        reason: "the gateway itself asks the user where its own tools require it; a question before each drawing is noise",
        test: "acp_quirk_calls_of_the_gateways_own_tools_are_allowed",
        then: Treatment::OwnTools(ServerField::MetaServerId)
    }
    {
        agent: "@agentclientprotocol/claude-agent-acp",
        versions: "0.101.0",
        behavior: "opens conversations in the mode `auto`, in which it decides itself what to allow, unless a setting names a mode",
        reason: "users of a gateway expect to be asked; the mode can be chosen in the session",
        test: "acp_quirk_new_conversations_leave_the_mode_without_requests",
        then: Treatment::AsksIn { from: "auto", mode: "default" }
    }
    {
        agent: "@agentclientprotocol/claude-agent-acp",
        versions: "0.101.0",
        behavior: "asks before every call of an MCP tool that is not allowed by name when the session is opened",
        reason: "the gateway itself asks the user where its own tools require it; a question before each drawing is noise",
        test: "acp_quirk_gateways_own_tools_are_allowed_at_the_opening",
        then: Treatment::AllowedTools(AllowedTools { path: &["claudeCode", "options", "allowedTools"], prefix: "mcp__" })
    }
    {
        agent: "gemini",
        versions: "0.61.0",
        behavior: "asks with a title that is the command, and no input; the announced call is never sent",
        reason: "the general rules take no title for a command",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Input, Title], "gemini")
    }
    {
        agent: "qwen",
        versions: "0.24.4",
        behavior: "asks as the agent that it is a fork of",
        reason: "the general rules take no title for a command",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Input, Title], "gemini")
    }
    {
        agent: "OpenCode",
        versions: "1.18.33",
        behavior: "sends the command only in the input",
        reason: "its text blocks describe it",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Input], "opencode")
    }
    {
        agent: "codex",
        versions: "0.16.0",
        behavior: "sends the command only in the input",
        reason: "its text blocks describe it",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Input], "codex-acp")
    }
    {
        agent: "@mistralai/mistral-vibe",
        versions: "3.0.2",
        behavior: "asks with the call's identifier alone; the announced call has the input",
        reason: "details that the question lacks are read from the announcement",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Input], "vibe")
    }
    {
        agent: "@mistralai/mistral-vibe",
        versions: "3.0.2",
        behavior: "reports the tokens of the whole session in the response to each prompt",
        reason: "other agents report those of the turn; added up, a session would seem to cost many times its price",
        test: "acp_usage_of_vibe_is_the_sum_of_its_session",
        then: Treatment::SumsUsage
    }
    {
        agent: "qwen",
        versions: "0.24.4",
        behavior: "reports the tokens of each model call in an empty chunk of its message, and none in the response",
        reason: "it reports them nowhere else",
        test: "acp_usage_of_a_model_call_is_read_from_a_chunk",
        then: Treatment::SpendsInChunks
    }
    {
        agent: "Kimi",
        versions: "1.51.0",
        behavior: "sends no input: the announced call has it as text, and the question describes it",
        reason: "only the text is the command to the letter",
        test: "acp_quirk_commands_are_read_from_the_transcript_of_each_agent",
        then: commands!([Text], "kimi")
    }
    {
        agent: "fast-agent",
        versions: "0.4.0 and later",
        behavior: "runs commands in the folder of its process and ignores the `cwd` of the session",
        reason: "a request has to name the folder in which its command runs",
        test: "acp_quirk_fast_agent_runs_commands_in_the_folder_of_its_process",
        then: Treatment::FixedFolder
    }
    {
        agent: "fast-agent",
        versions: "0.10.48",
        behavior: "replays the past in response to `session/resume`, too",
        reason: "ACP says that a resumed conversation is not replayed, so the log would have its past twice",
        test: "acp_quirk_fast_agent_is_never_told_to_resume",
        then: Treatment::LoadsOnly
    }
    {
        agent: "grok",
        versions: "1.0.41",
        behavior: "sends notifications of its own beside those of ACP, about ten for each prompt",
        reason: "each would be an event that no client can show",
        test: "acp_quirk_notifications_of_grok_are_not_logged",
        then: Treatment::Repeats {
            methods: &[
                "_x.ai/mcp/init_progress",
                "_x.ai/mcp/server_status",
                "_x.ai/mcp/servers_updated",
                "_x.ai/mcp_initialized",
                "_x.ai/queue/changed",
                "_x.ai/session/prompt_complete",
                "_x.ai/session/setup",
                "_x.ai/sessions/changed",
            ],
            update_method: "_x.ai/session_notification",
            updates: &[
                "interaction_resolved",
                "last_turn_summary",
                "pending_interaction",
                "response_completed",
                "session_summary_generated",
                "tool_call_delta_chunk",
                "turn_completed",
            ],
        }
    }
}

/// Returns the name and version of Grok Build, which sends no `agentInfo`, from `_meta` of its response to `initialize`.
pub(super) fn grok_info(meta: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        grok_shell: bool,
        agent_version: String,
    }
    let Meta { grok_shell, agent_version } = object(meta)?;
    grok_shell.then(|| format!("grok {agent_version}"))
}

fn quirks_for(agent: Option<&str>) -> impl Iterator<Item = &'static Quirk> {
    QUIRKS.iter().filter(move |quirk| agent.is_some_and(|agent| agent.starts_with(quirk.agent)))
}

/// Returns the fields in which an agent sends the command, if they are known.
pub(super) fn command_fields(agent: Option<&str>) -> Option<&'static [CommandField]> {
    quirks_for(agent)
        .find_map(|quirk| if let Treatment::Commands { fields, .. } = quirk.then { Some(fields) } else { None })
}

/// Returns the time that a load waits for an agent that would lose the conversation, in seconds, and the message for the user.
pub(super) fn load_later(agent: Option<&str>) -> Option<(u32, &'static str)> {
    quirks_for(agent).find_map(|quirk| {
        if let Treatment::LoadLater { ticks, message } = quirk.then { Some((ticks, message)) } else { None }
    })
}

/// Returns the maximum wait for the beginning of a replay after the response to a load, in seconds, if the agent replays only then.
pub(super) fn replays_late(agent: Option<&str>) -> Option<u32> {
    quirks_for(agent)
        .find_map(|quirk| if let Treatment::ReplaysLate { ticks } = quirk.then { Some(ticks) } else { None })
}

/// Returns the field in which an agent names the MCP server of a tool call, if the gateway answers for its own server.
pub(super) fn server_field(agent: Option<&str>) -> Option<ServerField> {
    quirks_for(agent).find_map(|quirk| if let Treatment::OwnTools(field) = quirk.then { Some(field) } else { None })
}

/// Returns the place and form of the agent's list of allowed tools.
pub(super) fn allowed_tools(agent: Option<&str>) -> Option<AllowedTools> {
    quirks_for(agent).find_map(|quirk| if let Treatment::AllowedTools(how) = quirk.then { Some(how) } else { None })
}

/// Returns the mode in which the agent asks, if it opened a new conversation in one in which it does not.
pub(super) fn asking_mode(agent: Option<&str>, opened_in: Option<String>) -> Option<&'static str> {
    let opened_in = opened_in?;
    quirks_for(agent).find_map(|quirk| match quirk.then {
        Treatment::AsksIn { from, mode } if from == opened_in => Some(mode),
        _ => None,
    })
}

/// Returns whether the tokens in the response to a prompt are the sum of the session, and not of the turn.
pub(super) fn sums_usage(agent: Option<&str>) -> bool {
    quirks_for(agent).any(|quirk| matches!(quirk.then, Treatment::SumsUsage))
}

/// Returns whether conversations are reopened by `session/load` alone.
pub(super) fn loads_only(agent: Option<&str>) -> bool {
    quirks_for(agent).any(|quirk| matches!(quirk.then, Treatment::LoadsOnly))
}

/// Returns whether commands run in the folder of the agent's process, whatever the folder of the session is.
pub(super) fn fixed_folder(agent: Option<&str>) -> bool {
    quirks_for(agent).any(|quirk| matches!(quirk.then, Treatment::FixedFolder))
}

/// Returns whether a notification is not logged, because ACP messages have its content.
pub(super) fn repeats(agent: Option<&str>, method: &str, params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update<'a> {
        #[serde(borrow)]
        session_update: &'a str,
    }
    let kind = || Some(object::<Params<'_>>(params?)?.update.session_update);
    quirks_for(agent).any(|quirk| {
        let Treatment::Repeats { methods, update_method, updates } = quirk.then else { return false };
        methods.contains(&method) || (method == update_method && kind().is_some_and(|kind| updates.contains(&kind)))
    })
}

/// Returns whether the tokens of each model call are in a chunk of the agent's message.
pub(super) fn spends_in_chunks(agent: Option<&str>) -> bool {
    quirks_for(agent).any(|quirk| matches!(quirk.then, Treatment::SpendsInChunks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acp_quirk_rows_are_described_and_name_an_existing_test() {
        let tests =
            concat!(include_str!("open_tests.rs"), include_str!("reading_tests.rs"), include_str!("usage_tests.rs"));
        for quirk in QUIRKS {
            let Quirk { agent, versions, behavior, reason, test, .. } = quirk;
            assert!(versions.starts_with(|c: char| c.is_ascii_digit()), "{agent}: {versions}");
            assert!(behavior.len() > 20 && reason.len() > 20, "{agent}: {behavior}: {reason}");
            assert!(tests.contains(&format!("fn {test}() {{")), "{agent}: no test is called {test}");
        }
    }

    #[test]
    fn acp_quirks_do_not_apply_to_unlisted_agents() {
        assert!(command_fields(Some("some-agent")).is_none() && command_fields(None).is_none());
        assert!(load_later(Some("OpenCode 1.18.33")).is_none());
        assert_eq!(command_fields(Some("gemini-cli 0.61.0")), Some(&[Input, Title][..]));
        assert_eq!(load_later(Some("gemini-cli 0.61.0")).map(|(ticks, _)| ticks), Some(65));
    }
}
