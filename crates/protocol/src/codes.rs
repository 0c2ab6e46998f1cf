//! Numbers that both sides of a connection know; docs/protocol.md lists them all.

/// Close codes of the native WebSocket and of the ACP WebSocket; those below 4000 are defined by RFC 6455, section 7.4.1.
pub mod close {
    /// The close was requested.
    pub const NORMAL: u16 = 1000;
    /// The gateway stops, or the followed session no longer exists.
    pub const GOING_AWAY: u16 = 1001;
    /// The peer violates the WebSocket protocol.
    pub const PROTOCOL: u16 = 1002;
    /// The peer sent a binary frame.
    pub const TEXT_ONLY: u16 = 1003;
    /// The peer sent text that is not UTF-8.
    pub const NOT_UTF8: u16 = 1007;
    /// The peer sent no `initialize` in time, or a message that took too long.
    pub const POLICY: u16 = 1008;
    /// The peer sent a message beyond the limit.
    pub const TOO_BIG: u16 = 1009;
    /// A limit of the gateway is reached: the client may retry later.
    pub const TRY_LATER: u16 = 1013;
    /// The device was revoked: its token is no longer valid.
    pub const REVOKED: u16 = 4001;
    /// The device lacks the permission.
    pub const SCOPE: u16 = 4003;
    /// The client read nothing for too long; it may reconnect with its cursor.
    pub const NO_PROGRESS: u16 = 4008;

    /// Returns whether connecting again with the same token would fail, too.
    pub const fn is_final(code: u16) -> bool {
        matches!(code, REVOKED | SCOPE)
    }
}

/// JSON-RPC error code of the UI protocol: the runtime has one session, and it is open.
pub const ONE_SESSION: i64 = -32021;
