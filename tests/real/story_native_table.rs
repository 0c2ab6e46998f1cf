//! The table of agents in their own terminals in `docs/native.md`: what the stories of each agent play, step by step, with the real program.

use std::path::Path;

/// The steps of each agent's story: watched, asked and answered there and elsewhere, and with a gateway that is killed while it asks and
/// while text streams.
const STEPS: [&str; 9] = [
    "seen",
    "text",
    "tools",
    "answered there",
    "answered elsewhere",
    "both at once",
    "prompt from elsewhere",
    "gateway killed",
    "ends with it",
];

const KEYS: &str = "cannot: by keys alone, in a shared terminal";

/// An agent: what is typed, what the steps of its story show, and its file.
struct Played {
    typed: &'static str,
    cells: [&'static str; STEPS.len()],
    story: &'static str,
}

const PLAYED: [Played; 7] = [
    Played {
        typed: "claude",
        cells: ["yes", "by line", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
        story: include_str!("story_claude_terminal.rs"),
    },
    Played {
        typed: "codex",
        cells: [
            "yes",
            "by word",
            "yes",
            "yes",
            "yes",
            "yes",
            "yes",
            "yes",
            "cannot: nothing says which terminal shows a thread",
        ],
        story: include_str!("story_native_codex.rs"),
    },
    Played {
        typed: "opencode",
        cells: ["yes", "by word", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
        story: include_str!("story_opencode_terminal.rs"),
    },
    Played {
        typed: "copilot",
        cells: ["yes", "by word", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
        story: include_str!("story_copilot_terminal.rs"),
    },
    Played {
        typed: "plexus wrap qwen",
        cells: ["yes", "by word", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
        story: include_str!("story_qwen_terminal.rs"),
    },
    Played {
        typed: "gemini",
        cells: ["yes", "by message", "yes", "yes", KEYS, KEYS, KEYS, "yes", "yes"],
        story: include_str!("story_gemini_terminal.rs"),
    },
    Played {
        typed: "plexus term -- gemini",
        cells: ["yes", "by message", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
        story: include_str!("story_gemini_terminal.rs"),
    },
];

#[test]
fn native_table_in_the_docs_is_of_these_agents() {
    let mut table = format!("| typed | {} |\n|{}\n", STEPS.join(" | "), " --- |".repeat(STEPS.len() + 1));
    for played in &PLAYED {
        assert!(played.story.contains("#[tokio::test"), "{}: nothing is played", played.typed);
        table += &format!("| `{}` | {} |\n", played.typed, played.cells.join(" | "));
    }
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/native.md")).unwrap();
    let (_, rest) = docs.split_once("<!-- native:agents -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- native:end -->").unwrap();
    assert_eq!(shown.trim(), table.trim(), "put this into docs/native.md:\n{table}");
}
