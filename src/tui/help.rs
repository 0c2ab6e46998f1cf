//! Every key and every command, once: the help, the palette and the tests read the same lists.

/// Keys by where they work: a heading, and the keys with what they do.
pub(crate) const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("1 … 5  Tab", "inbox, sessions, search, runtimes, devices"),
            (":  Ctrl-K", "commands, and going to a session by its name"),
            ("?", "this"),
            ("Esc  q", "back; from a page, leave (agents go on)"),
            ("Ctrl-C Ctrl-C", "leave, from anywhere"),
            ("Ctrl-Z", "suspend"),
            ("Ctrl-L", "draw anew"),
        ],
    ),
    (
        "A request",
        &[
            ("y  a", "allow once"),
            ("A", "allow always, where it is offered"),
            ("n  d  N", "deny; never allow"),
            ("r  D", "deny, saying why"),
            ("e", "change it, then allow that"),
            ("m", "remember the answer"),
            ("PgDn PgUp", "read: a yes counts once the end was on the screen"),
            ("c  Ctrl-R", "it changed while it was open: I have read it again"),
            ("[  ]", "the request before, the next one"),
        ],
    ),
    (
        "Questions with options",
        &[
            ("↑ ↓  1 … 9", "move; choose an option of this question"),
            ("Enter  Space", "choose and go on; choose one more"),
            ("Tab  S-Tab", "the next question, the one before"),
            ("Ctrl-S", "send the answers; at the end also Enter"),
            ("n  d  Ctrl-N", "say that there is no answer"),
        ],
    ),
    (
        "Lists",
        &[
            ("↑ ↓  j k", "move"),
            ("Enter", "open"),
            ("f", "sessions: only those with these words; older ones are read"),
            ("a", "sessions: show archived ones too"),
            ("N", "sessions, runtimes: a new session"),
            ("R  x  l", "runtimes: restart, stop, log"),
            ("R  x", "devices: rename, revoke"),
            ("r", "runtimes, devices: look again"),
        ],
    ),
    (
        "A session, reading",
        &[
            ("i  Enter", "write a prompt"),
            ("↑ ↓  PgUp PgDn", "scroll; what came before is read as you get there"),
            ("g  G  End", "to the beginning; to now, and follow"),
            ("J K  Space", "choose a card; fold or unfold it"),
            ("t  o", "unfold all thoughts; all tool output"),
            ("c", "copy the chosen block, or the last message, as Markdown"),
            ("x  R", "cancel the run; run the last prompt again"),
            ("Q", "take back the prompt that waits last"),
            ("{ }", "the session before, the next one"),
            ("E", "export to a file"),
            ("/", "search"),
        ],
    ),
    (
        "Writing",
        &[
            ("Enter", "send; it waits for its turn if the agent is at work"),
            ("Alt-Enter Ctrl-J", "a new line"),
            ("↑ ↓", "earlier prompts"),
            ("Tab", "complete a /command of the agent"),
            ("Esc", "to reading, and to the request that is open"),
        ],
    ),
];

/// The commands of the palette: name, and what it does.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("inbox", "open requests of all agents"),
    ("sessions", "all sessions"),
    ("search", "find words in all sessions"),
    ("runtimes", "agents that are attached"),
    ("devices", "who may connect"),
    ("new", "a new session in a runtime"),
    ("start", "attach another agent by its preset, such as gemini"),
    ("cancel", "stop the run under way"),
    ("restart", "run the last prompt again"),
    ("unqueue", "take back the prompt that waits last"),
    ("rename", "another title for this session"),
    ("archive", "put this session away, or back"),
    ("share", "a link that shows this session to others for a day"),
    ("export md", "this session as Markdown, to a file here"),
    ("export html", "this session as one HTML file"),
    ("export ndjson", "this session's events, one a line"),
    ("copy", "the chosen block, or the last message, to the clipboard"),
    ("thoughts", "fold or unfold all thoughts"),
    ("output", "fold or unfold all tool output"),
    ("now", "to the newest, and follow"),
    ("mouse", "mouse on or off: the terminal's own selection needs it off"),
    ("doctor", "what works, what does not, and the fix"),
    ("help", "all keys"),
    ("quit", "leave; agents go on"),
];
