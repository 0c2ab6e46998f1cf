//! Numbers that both sides of a connection know; docs/protocol.md lists them all.

/// Close codes of the native WebSocket and of the ACP WebSocket; those below 4000 are of RFC 6455, section 7.4.1.
pub mod close {
    /// Closed as asked.
    pub const NORMAL: u16 = 1000;
    /// The gateway stops, or the followed session is gone.
    pub const GOING_AWAY: u16 = 1001;
    /// The peer violates the WebSocket protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A binary frame.
    pub const TEXT_ONLY: u16 = 1003;
    /// Text that is not UTF-8.
    pub const NOT_UTF8: u16 = 1007;
    /// No `initialize` in time, or a message that took too long.
    pub const POLICY: u16 = 1008;
    /// A message beyond the limit.
    pub const TOO_BIG: u16 = 1009;
    /// A limit of the gateway is reached: come back later.
    pub const TRY_LATER: u16 = 1013;
    /// The device was revoked: its token is no longer valid.
    pub const REVOKED: u16 = 4001;
    /// The device may not do this.
    pub const SCOPE: u16 = 4003;
    /// The client read nothing for too long; it may come back with its cursor.
    pub const NO_PROGRESS: u16 = 4008;

    /// Returns whether connecting again with the same token is of no use.
    pub const fn is_final(code: u16) -> bool {
        matches!(code, REVOKED | SCOPE)
    }
}

/// JSON-RPC error code of the UI protocol: the runtime has one session, and it is open.
pub const ONE_SESSION: i64 = -32021;
