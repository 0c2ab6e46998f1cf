//! Actions with the effect of an approved command, and the risk limit that a device has for them.
//!
//! A device with `approve_up_to` may not allow a riskier command. An action that changes as much without a request must not be a way
//! around that limit, so each is rated here like a command with its effect. Denying, cancelling, stopping, revoking and prompting have no
//! entry: they allow nothing, and an agent that is prompted asks.

use plexus_protocol::Risk;

/// An action with the effect of an approved command, for which no request is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Undoing or redoing a change: files are rewritten or deleted, and their content is backed up.
    ChangeFiles,
    /// Making a git worktree, or removing one that holds nothing else.
    ChangeWorktree,
    /// Removing a worktree with work in it, or its branch.
    LoseWork,
    /// Deleting a session and all its data.
    DeleteSession,
    /// Changing the settings of an agent, which add a command to it.
    ChangeSettings,
    /// Starting an agent that the gateway knows, or attaching one that runs.
    StartAgent,
    /// Running a program that the client names: a runtime's command or environment, an MCP server, typing in a shared terminal, a method
    /// of an agent that acts without asking.
    RunProgram,
    /// Letting an agent continue without asking.
    AllowAhead,
    /// Letting agents spend more.
    RaiseCeiling,
    /// Trusting the wall clock after a step, whereupon old events are removed.
    TrustClock,
    /// Making the gateway reachable from other machines.
    OpenNetwork,
    /// Enrolling a device that may allow up to this risk.
    Enrol(Risk),
}

impl Effect {
    /// Returns the risk of a command with this effect.
    pub const fn risk(self) -> Risk {
        match self {
            Self::ChangeFiles
            | Self::ChangeWorktree
            | Self::DeleteSession
            | Self::ChangeSettings
            | Self::StartAgent
            | Self::RaiseCeiling
            | Self::TrustClock
            | Self::OpenNetwork => Risk::Elevated,
            Self::LoseWork | Self::RunProgram | Self::AllowAhead => Risk::Danger,
            Self::Enrol(up_to) => up_to,
        }
    }

    /// Returns the reason for the risk.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ChangeFiles => "it rewrites or deletes files",
            Self::ChangeWorktree => "it makes or removes a folder and a git branch",
            Self::LoseWork => "it deletes work that is nowhere else",
            Self::DeleteSession => "it permanently deletes a session",
            Self::ChangeSettings => "it changes the settings of an agent",
            Self::StartAgent => "it starts or attaches an agent",
            Self::RunProgram => "it runs any program without asking",
            Self::AllowAhead => "it lets the agent continue without asking",
            Self::RaiseCeiling => "it lets agents spend more",
            Self::TrustClock => "it lets old events be removed",
            Self::OpenNetwork => "it lets other machines reach the gateway",
            Self::Enrol(_) => "it enrols a device that may allow as much",
        }
    }
}
