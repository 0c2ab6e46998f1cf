//! The main story of the page in the three engines of today's browsers, by keyboard alone and by the accessibility tree alone; the script is
//! `tests/web/story.mjs`. What an engine lacks is said with the package that has it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::browser::{program, run_script};
use common::gateway::{end_runtimes, exe};

/// The story in this engine, in this manner: `pointer`, `keyboard` or `tree`.
async fn told(engine: &str, manner: &str) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let chromium = if engine == "chromium" { program() } else { String::new() };
    let mut env = vec![("PLEXUS_BIN", exe()), ("PLEXUS_DIR", at), ("TMPDIR", at)];
    if engine == "chromium" {
        env.push(("CHROMIUM", &chromium));
    }
    let done = run_script("story.mjs", &[engine, manner], &env).await;
    // The story ends its agent; one that failed may not have.
    end_runtimes(&dir.path().join("home"));
    done.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_firefox() {
    told("firefox", "pointer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_webkit() {
    told("webkit", "pointer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_chromium_by_keyboard_alone() {
    told("chromium", "keyboard").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_chromium_by_accessibility_tree_alone() {
    told("chromium", "tree").await;
}
