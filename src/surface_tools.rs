//! The tools for surfaces, in the form that an agent gets: `plexus mcp`, an MCP server that the agent starts for one session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::auth::Auth;
use crate::sessions::AgentTools;
use plexus_dialects::McpServer;
use plexus_protocol::{OWN_SERVER_PREFIX, SessionId};

/// Length of the random tail of a server's name, in characters.
const TAIL: usize = 8;

/// Gives each session's agent its own MCP server and token.
pub(crate) struct SurfaceTools {
    pub(crate) auth: Auth,
    /// The path of this program, absolute.
    pub(crate) exe: PathBuf,
    /// The state folder, absolute.
    pub(crate) home: PathBuf,
}

/// Returns the name of a session's MCP server. Agents allow tools by the name of their server, and a repository's own settings may define
/// a server: no one can predict the tail of a later session's name.
pub(crate) fn server_name(session: &SessionId) -> String {
    let hash = Sha256::digest(format!("plexus surfaces {session}"));
    let tail = data_encoding::BASE32_NOPAD.encode(&hash).to_ascii_lowercase();
    format!("{OWN_SERVER_PREFIX}{}", &tail[..TAIL])
}

impl AgentTools for SurfaceTools {
    fn begin(&self, session: &SessionId) -> Vec<McpServer> {
        let texts = (self.exe.to_str().map(str::to_owned), self.home.to_str().map(str::to_owned));
        let (Some(command), Some(home)) = texts else {
            tracing::warn!("agents get no surfaces: the path of the program or of its state is not UTF-8");
            return Vec::new();
        };
        if let Err(error) = self.auth.admit_agent(session) {
            tracing::warn!(session_id = %session, %error, "the session's agent gets no surfaces");
            return Vec::new();
        }
        let args = ["mcp", "--session", session.as_str()].map(str::to_owned).to_vec();
        let env = BTreeMap::from([("PLEXUS_HOME".to_owned(), home)]);
        vec![McpServer::Own { name: server_name(session), command, args, env }]
    }

    fn end(&self, session: &SessionId) {
        self.auth.dismiss_agent(session);
    }

    fn restore(&self, sessions: &[SessionId]) {
        self.auth.keep_agents(sessions);
        for session in sessions {
            if let Err(error) = self.auth.admit_agent(session) {
                tracing::warn!(session_id = %session, %error, "the session's agent gets no surfaces");
            }
        }
    }
}
