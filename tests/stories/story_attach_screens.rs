//! Every screen of `plexus attach` in a narrow, a usual and a wide terminal, on a dark and on a light background: each opens by its key, says
//! what it is, and explains its keys completely.
//!
//! `PLEXUS_SHOTS` names a folder for pictures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::PathBuf;
use std::time::Duration;

use common::gateway::{Gateway, exe};
use common::terminal::Terminal;

/// The terminals that are looked at: a phone's, a usual one, and one with three panes.
const SIZES: [(u16, u16); 3] = [(40, 20), (80, 24), (200, 50)];
/// Before a picture, a terminal is looked at so often, and rests so long in between.
const LOOKS: u32 = 10;
const REST: Duration = Duration::from_millis(500);
/// A screen's name, the keys that open it, what stands on it, and the keys that leave it.
const SCREENS: [(&str, &[&str], &str, &[&str]); 11] = [
    ("inbox", &["1"], "make deploy", &[]),
    ("sessions", &["2"], "○ think", &[]),
    ("new", &["N"], "What is to be done?", &["Escape"]),
    ("runtimes", &["4"], "RUNTIME", &[]),
    ("devices", &["5"], "DEVICE", &[]),
    ("usage", &["U"], "Usage", &["Escape"]),
    ("settings", &[","], "home folder", &["Escape"]),
    ("help", &["?"], "Global keys", &["Escape"]),
    ("palette", &["C-k"], "Commands", &["Escape"]),
    ("pair", &["p"], "Add a device", &["Escape"]),
    // Its field takes letters, so it is the last.
    ("search", &["3"], "Type words", &[]),
];

/// A picture of the terminal, if pictures are wanted: once nothing but ages changes any more, or at the last look.
async fn shot(screen: &Terminal, name: &str) {
    let Some(dir) = std::env::var_os("PLEXUS_SHOTS").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&dir).unwrap();
    let words = || screen.text().replace(|letter: char| letter.is_ascii_digit(), "");
    let mut before = words();
    for _ in 0..LOOKS {
        tokio::time::sleep(REST).await;
        let now = words();
        if now == before {
            break;
        }
        before = now;
    }
    std::fs::write(dir.join(format!("{name}.ansi")), screen.capture(&["-e"])).unwrap();
}

async fn shows(screen: &Terminal, words: &str) -> String {
    screen.until(&format!("{words:?}"), Terminal::text, |text| text.contains(words)).await
}

#[tokio::test]
async fn attach_screens_at_40_80_and_200_columns_dark_and_light() {
    let gateway = Gateway::demo().await;
    let done = gateway.session("demo").await;
    gateway.until_ended(&done, &gateway.prompt(&done, "think ;; plan ;; diff ;; usage ;; echo done").await).await;
    let asking = gateway.session("demo").await;
    gateway.prompt(&asking, "ask make deploy").await;
    gateway.open_request(&asking).await;
    let home = gateway.home.display().to_string();
    for ((width, height), theme) in SIZES.into_iter().flat_map(|size| [(size, "dark"), (size, "light")]) {
        let ground = if theme == "light" { "0;15" } else { "15;0" };
        let env = [("PLEXUS_HOME", home.as_str()), ("COLORTERM", "truecolor"), ("COLORFGBG", ground)];
        let screen = Terminal::open(None, (width, height), &env, &[exe(), "attach"]);
        shows(&screen, "1 waiting").await;
        for (name, open, there, leave) in SCREENS {
            // A key that follows another at once is text.
            tokio::time::sleep(REST).await;
            screen.keys(open);
            shows(&screen, there).await;
            shot(&screen, &format!("{name}-{width}x{height}-{theme}")).await;
            if !leave.is_empty() {
                tokio::time::sleep(REST).await;
                screen.keys(leave);
                screen.until(&format!("the end of {name}"), Terminal::text, |text| !text.contains(there)).await;
            }
        }
    }
}

#[tokio::test]
async fn attach_screens_of_keys_and_settings_divide_no_word_at_40_columns() {
    let gateway = Gateway::demo().await;
    let home = gateway.home.display().to_string();
    let env = [("PLEXUS_HOME", home.as_str()), ("COLORTERM", "truecolor")];
    let screen = Terminal::open(None, (40, 24), &env, &[exe(), "attach"]);
    shows(&screen, "No sessions yet").await;
    screen.keys(&["?"]);
    // The longest explanation on the first screen stands there to its end.
    let help = shows(&screen, "Global keys").await;
    let words: String = help.split(|letter: char| letter.is_whitespace() || letter == '│').collect::<Vec<_>>().join("");
    assert!(words.contains("open the command palette; go to a session by name".replace(' ', "").as_str()), "{help}");
    screen.keys(&["Escape"]);
    // With a letter at once after it, it would be one key.
    shows(&screen, "No sessions yet").await;
    screen.keys(&[","]);
    let settings = shows(&screen, "home folder").await;
    assert!(settings.contains("approve,"), "{settings}");
}
