//! The changes of a session: the screen at every size, its keys, what it asks for, and hostile names and contents.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::pages::message::ChangesCall;

fn file(path: &str, status: &str, added: u64, removed: u64, more: Value) -> Value {
    let mut file = json!({ "path": path, "status": status, "added": added, "removed": removed, "compared": "text",
        "digest": format!("d-{path}"), "by": "session", "runs": ["r_1"] });
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

fn list(rev: &str, files: &[Value]) -> Value {
    json!({ "session_id": "s_1", "source": "git", "root": "/home/you/project", "rev": rev, "files": files, "left_off": 0,
        "runs": [{ "run_id": "r_1", "at": at(NOON - 600_000), "prompt": "Mend the parser", "files": 3 },
            { "run_id": "r_2", "at": at(NOON - 60_000), "prompt": "And the docs", "files": 1 }], "notes": [] })
}

fn files() -> Vec<Value> {
    vec![
        file("docs/notes.md", "added", 12, 0, json!({ "by": "others" })),
        file(
            "img/logo.png",
            "modified",
            0,
            0,
            json!({ "compared": "binary", "reason": "it is binary", "added": null }),
        ),
        file("src/parser.rs", "modified", 3, 2, json!({})),
        file("src/very/deep/folder/with/a/long/name/reader.rs", "renamed", 0, 0, json!({ "from": "src/reader.rs" })),
    ]
}

const DIFF: &str = "diff --git a/src/parser.rs b/src/parser.rs\n--- a/src/parser.rs\n+++ b/src/parser.rs\n\
    @@ -1,5 +1,5 @@ impl Parser {\n fn next() {\n-    let c = bytes[0];\n+    let c = bytes.first();\n     go(c)\n }\n \n\
    @@ -40,3 +40,4 @@ fn last()\n one\n-two\n+2\n+two and a half\n three\n";

/// The calls of the screen that were sent: what for, and to where.
fn calls(stage: &mut Stage) -> Vec<(ChangesCall, String)> {
    let sent = std::mem::take(&mut stage.effects).into_iter();
    sent.filter_map(|effect| match effect {
        Effect::Call { tag: CallTag::Changes(_, call), request, .. } => Some((call, request.path)),
        _ => None,
    })
    .collect()
}

fn change_diff(path: &str, digest: &str, diff: &str) -> Value {
    json!({ "path": path, "status": "modified", "compared": "text", "digest": digest, "diff": diff, "truncated": false, "hunks": [] })
}

fn reply(stage: &mut Stage, call: ChangesCall, status: u16, body: Value) {
    stage.msg(done(CallTag::Changes("s_1".into(), call), status, body));
}

fn patch(stage: &mut Stage, patch: &str) {
    let reply = GatewayReply { status: 200, text: patch.to_owned(), retry_after: None };
    stage.msg(Msg::Done(CallTag::Changes("s_1".into(), ChangesCall::Patch), CallReply::new(Ok(reply))));
}

/// Answers what the screen asked for, until it asks for nothing more.
fn serve(stage: &mut Stage, list: &Value, diff: &str) {
    loop {
        let asked = calls(stage);
        if asked.is_empty() {
            return;
        }
        for (call, _) in asked {
            answer(stage, call, list, diff);
        }
    }
}

fn answer(stage: &mut Stage, call: ChangesCall, list: &Value, diff: &str) {
    let body = match &call {
        ChangesCall::List(_) => list.clone(),
        ChangesCall::Diff(path, digest) => change_diff(path, digest, diff),
        ChangesCall::PatchList => {
            let by = json!({ "device_id": "d_2", "name": "phone" });
            json!({ "undone": [{ "patch_id": "p1", "path": "old.rs", "at": at(NOON - 5_000), "by": by }] })
        }
        other => panic!("{other:?}"),
    };
    reply(stage, call, 200, body);
}

/// The screen of changes, with all that it asked for.
fn opened(width: u16, height: u16) -> Stage {
    let mut stage = Stage::new(width, height, &sessions(), &[]);
    stage.open("s_1");
    stage.keys(&["Esc", "g", "c"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    stage
}

fn comments(stage: &Stage) -> Vec<(String, usize, String)> {
    let screen = stage.app.pages.changes.screen.as_ref().unwrap();
    screen.draft.comments.iter().map(|one| (one.path.clone(), one.line, one.text.clone())).collect()
}

fn press(stage: &mut Stage, kind: MouseEventKind, (column, row): (u16, u16)) {
    stage.msg(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
}

#[test]
fn changes_are_drawn_at_every_size() {
    for (width, height) in [(40, 12), (40, 24), (80, 24), (120, 30), (200, 50)] {
        let mut stage = opened(width, height);
        insta::assert_snapshot!(format!("changes_files_{width}x{height}"), stage.screen());
        stage.keys(&["j", "j", "n"]);
        serve(&mut stage, &list("1", &files()), DIFF);
        stage.keys(&["c"]);
        stage.type_text("Why not get?");
        insta::assert_snapshot!(format!("changes_comment_{width}x{height}"), stage.screen());
        stage.keys(&["Enter", "S"]);
        insta::assert_snapshot!(format!("changes_review_{width}x{height}"), stage.screen());
    }
}

#[test]
fn changes_need_g_and_c_and_give_the_conversation_back() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    conversation(&mut stage);
    stage.keys(&["Esc"]);
    let before = stage.screen();
    stage.keys(&["g", "c"]);
    assert!(stage.app.pages.changes.screen.is_some());
    serve(&mut stage, &list("1", &files()), DIFF);
    stage.keys(&["u"]);
    assert!(stage.app.pages.changes.screen.is_none());
    assert_eq!(stage.screen(), before, "the conversation is where it was");
    // Later, they are two keys.
    stage.keys(&["g"]);
    stage.advance(2_000);
    stage.keys(&["c"]);
    assert!(stage.app.pages.changes.screen.is_none());
    stage.keys(&["C-k"]);
    stage.type_text("changes");
    stage.keys(&["Enter"]);
    assert!(stage.app.pages.changes.screen.is_some());
    // No key acts on what is behind them, wherever they were opened from.
    stage.keys(&["u", "i", "C-k"]);
    stage.type_text("changes");
    stage.keys(&["Enter", "z", "t", "?", "Esc", "Z"]);
    assert!(
        stage.app.pages.changes.screen.is_some() && stage.app.pages.session.composer.is_empty(),
        "{:?}",
        stage.app.pages.session.composer.lines()
    );
    // Another page closes them.
    stage.keys(&["1"]);
    assert!(stage.app.pages.changes.screen.is_none() && stage.app.shared.page == TuiPage::Inbox);
}

#[test]
fn changes_read_only_what_is_shown_and_one_diff_at_a_time() {
    let mut stage = Stage::new(120, 30, &sessions(), &[]);
    stage.open("s_1");
    stage.keys(&["Esc"]);
    calls(&mut stage);
    stage.keys(&["g", "c"]);
    let paths: Vec<String> = calls(&mut stage).into_iter().map(|(_, path)| path).collect();
    assert_eq!(paths, ["/v1/sessions/s_1/changes/undone", "/v1/sessions/s_1/changes"]);
    let count: Vec<Value> = (0..2_000).map(|n| file(&format!("src/{n:04}.rs"), "modified", 1, 1, json!({}))).collect();
    reply(&mut stage, ChangesCall::List(1), 200, list("1", &count));
    let first = calls(&mut stage);
    assert!(first.iter().any(|(_, path)| path == "/v1/sessions/s_1/changes/file?path=src%2F0000.rs"), "{first:?}");
    // Going through the list reads no diff until the one on its way is there; then that of the selected file.
    for _ in 0..500 {
        stage.keys(&["j"]);
    }
    assert_eq!(calls(&mut stage), []);
    let call = ChangesCall::Diff("src/0000.rs".into(), "d-src/0000.rs".into());
    reply(&mut stage, call, 200, change_diff("src/0000.rs", "d-src/0000.rs", DIFF));
    let next = calls(&mut stage);
    assert_eq!(
        next.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(),
        ["/v1/sessions/s_1/changes/file?path=src%2F0500.rs"]
    );
    let call = ChangesCall::Diff("src/0500.rs".into(), "d-src/0500.rs".into());
    reply(&mut stage, call, 200, change_diff("src/0500.rs", "d-src/0500.rs", DIFF));
    assert!(stage.screen().contains("bytes.first()"), "{}", stage.screen());
    assert_eq!(calls(&mut stage), []);
}

#[test]
fn changes_follow_the_session_and_keep_the_place() {
    let mut stage = opened(120, 30);
    stage.keys(&["j", "j", "n", "n"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    assert!(stage.screen().contains("▌  41     + 2") || stage.screen().contains("41 + 2"), "{}", stage.screen());
    // Another session's events, and a connection without news, read nothing.
    stage.event("s_2", "run_ended", &json!({ "run_id": "r_9", "status": "completed" }));
    stage.advance(10_000);
    assert_eq!(calls(&mut stage), []);
    for _ in 0..5 {
        stage.event("s_1", "tool_call", &json!({ "toolCallId": "t", "title": "edit", "status": "in_progress" }));
    }
    stage.advance(2_000);
    let asked = calls(&mut stage);
    assert!(matches!(asked.as_slice(), [(ChangesCall::List(2), _)]), "{asked:?}");
    // The file has another version, in which the line is elsewhere; a file before it is gone.
    let mut now = files();
    now[2]["digest"] = "d2".into();
    now.remove(0);
    reply(&mut stage, ChangesCall::List(2), 200, list("2", &now));
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().file().unwrap().path, "src/parser.rs");
    let longer = DIFF.replace("@@ -40,3 +40,4 @@", "@@ -39,4 +39,5 @@").replace(" one\n", " zero\n one\n");
    serve(&mut stage, &list("2", &now), &longer);
    let screen = stage.app.pages.changes.screen.as_ref().unwrap();
    assert_eq!(screen.lines(), Some((false, 41, 41)), "the same line is chosen");
}

#[test]
fn changes_are_reviewed_by_keys_and_nothing_is_lost() {
    let mut stage = opened(120, 30);
    stage.keys(&["c"]);
    assert!(stage.screen().contains("choose a line first"), "{}", stage.screen());
    stage.keys(&["n"]);
    stage.keys(&["c"]);
    stage.type_text("one");
    stage.keys(&["Esc"]);
    assert_eq!(comments(&stage), []);
    stage.keys(&["c"]);
    stage.type_text(" more");
    stage.keys(&["Enter", "n"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    stage.keys(&["J", "c"]);
    stage.type_text("two lines");
    stage.keys(&["Enter"]);
    assert_eq!(comments(&stage)[0], ("docs/notes.md".into(), 2, "one more".into()), "what was left is there again");
    assert_eq!(comments(&stage)[1].1, 41);
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().draft.comments[1].end, 42);
    // It is kept, and still there after the screen was left.
    assert!(stage.effects.iter().any(|effect| matches!(effect, Effect::SaveReview(..))));
    stage.keys(&["u", "g", "c"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    assert!(stage.screen().contains("2 comments · S: send"), "{}", stage.screen());
    stage.keys(&["S"]);
    stage.type_text("Look:");
    stage.keys(&["Enter"]);
    let key = |stage: &mut Stage| {
        let sent = std::mem::take(&mut stage.effects).into_iter();
        let found = sent.filter_map(|effect| match effect {
            Effect::Call { tag, request, key } if request.path.ends_with("/review") => {
                Some((tag, body_of(&request), key))
            }
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    let (tag, body, first) = key(&mut stage).remove(0);
    assert_eq!(body["text"], "Look:");
    assert_eq!(
        body["comments"][1],
        json!({ "path": "docs/notes.md", "side": "new", "line": 41, "end_line": 42, "text": "two lines" })
    );
    stage.keys(&["Enter"]);
    assert_eq!(key(&mut stage), [], "once at a time");
    stage.msg(lost(tag.clone(), "the connection was lost"));
    assert!(stage.screen().contains("nothing is lost"), "{}", stage.screen());
    assert_eq!(comments(&stage).len(), 2);
    stage.keys(&["Enter"]);
    assert_eq!(key(&mut stage).remove(0).2, first, "the same review has the same key");
    stage.msg(done(tag, 202, json!({ "run_id": "r_5" })));
    assert!(stage.app.pages.changes.screen.is_none(), "back in the session:\n{}", stage.screen());
    assert!(stage.app.pages.changes.reviews.drafts["s_1"].comments.is_empty());
}

#[test]
fn changes_list_their_comments_to_edit_and_remove() {
    let mut stage = opened(80, 24);
    stage.keys(&["n", "c"]);
    stage.type_text("first");
    stage.keys(&["Enter", "n", "c"]);
    stage.type_text("second");
    stage.keys(&["Enter", "S", "Down", "Down", "Enter"]);
    assert!(stage.screen().contains("Edit the comment on line 41"), "{}", stage.screen());
    stage.type_text(" better");
    stage.keys(&["Enter"]);
    assert_eq!(comments(&stage)[1].2, "second better");
    // On its line, the same key edits it.
    stage.keys(&["c"]);
    assert!(stage.screen().contains("Edit the comment on line 41"), "{}", stage.screen());
    stage.keys(&["Esc", "S", "Down", "d"]);
    assert_eq!(comments(&stage).len(), 1);
    stage.keys(&["d"]);
    assert_eq!(comments(&stage), []);
    assert!(!stage.screen().contains("S: send"), "{}", stage.screen());
}

#[test]
fn changes_are_undone_after_a_question_and_come_back() {
    let mut stage = opened(120, 30);
    stage.keys(&["j", "j", "n", "n"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    let sent = |stage: &mut Stage| {
        let sent = std::mem::take(&mut stage.effects).into_iter();
        let found = sent.filter_map(|effect| match effect {
            Effect::Call { tag: CallTag::Changes(_, call), request, .. } if request.method == "POST" => {
                let body = body_of(&request);
                Some((call, request.path, body))
            }
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    stage.keys(&["X"]);
    let screen = stage.screen();
    assert!(screen.contains("Undo this part of src/parser.rs?") && screen.contains("kept"), "{screen}");
    stage.keys(&["n"]);
    assert_eq!(sent(&mut stage), []);
    stage.keys(&["X", "y"]);
    let (call, path, body) = sent(&mut stage).remove(0);
    assert_eq!(path, "/v1/sessions/s_1/changes/undo");
    assert_eq!(body, json!({ "path": "src/parser.rs", "digest": "d-src/parser.rs", "hunk": 1 }));
    reply(&mut stage, call, 409, json!({ "code": "changed_meanwhile", "detail": "look at it again" }));
    assert!(stage.screen().contains("nothing was changed in src/parser.rs: look at it again"), "{}", stage.screen());
    serve(&mut stage, &list("2", &files()), DIFF);
    // While the agent works, the question says so, and the gateway is told that it was asked.
    stage.msg(Msg::Event(session_changed(session("s_1", "Fix the parser", "running", 0))));
    stage.keys(&["x"]);
    assert!(stage.screen().contains("The agent is working"), "{}", stage.screen());
    stage.keys(&["y"]);
    let (call, _, body) = sent(&mut stage).remove(0);
    assert_eq!(body, json!({ "path": "src/parser.rs", "digest": "d-src/parser.rs", "during_run": true }));
    reply(&mut stage, call, 200, json!({ "path": "src/parser.rs", "patch_id": "p2", "patch": "" }));
    serve(&mut stage, &list("3", &files()), DIFF);
    stage.keys(&["U"]);
    assert!(stage.screen().contains("old.rs") && stage.screen().contains("by phone"), "{}", stage.screen());
    stage.keys(&["Enter", "y"]);
    let (call, path, body) = sent(&mut stage).remove(0);
    assert_eq!(
        (path.as_str(), body),
        ("/v1/sessions/s_1/changes/redo", json!({ "patch_id": "p1", "during_run": true }))
    );
    reply(&mut stage, call, 200, json!({}));
    assert!(stage.screen().contains("old.rs has its changes again"), "{}", stage.screen());
}

#[test]
fn changes_find_a_file_mark_it_and_show_one_run() {
    let mut stage = opened(120, 30);
    stage.keys(&["f"]);
    stage.type_text("PARSER");
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().fit, [2]);
    stage.keys(&["Enter"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    stage.keys(&["v"]);
    assert!(stage.screen().contains("viewed"), "{}", stage.screen());
    stage.keys(&["/"]);
    stage.type_text("zzz");
    assert!(stage.screen().contains("No changed file has this in its name"), "{}", stage.screen());
    stage.keys(&["Esc"]);
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().fit.len(), 4);
    // A version that was not viewed says so.
    let mut now = files();
    now[2]["digest"] = "d2".into();
    stage.keys(&["R"]);
    serve(&mut stage, &list("2", &now), DIFF);
    stage.keys(&["g", "j", "j"]);
    serve(&mut stage, &list("2", &now), DIFF);
    assert!(stage.screen().contains("changed since you viewed it"), "{}", stage.screen());
    stage.keys(&["r"]);
    assert!(stage.screen().contains("Mend the parser") && stage.screen().contains("The whole session"));
    stage.keys(&["Down", "Down", "Enter"]);
    let asked = calls(&mut stage);
    assert!(asked.iter().any(|(_, path)| path == "/v1/sessions/s_1/changes?run=r_1"), "{asked:?}");
    stage.keys(&["x"]);
    assert!(stage.screen().contains("the whole session first"), "{}", stage.screen());
    // A diff of the run that comes later is not that of all runs.
    for (call, _) in asked {
        answer(&mut stage, call, &list("3", &now), DIFF);
    }
    serve(&mut stage, &list("3", &now), DIFF);
    stage.keys(&["j"]);
    let old = calls(&mut stage).remove(0).0;
    stage.keys(&["r", "Up", "Up", "Enter"]);
    assert!(calls(&mut stage).iter().all(|(call, _)| matches!(call, ChangesCall::List(_))), "one at a time");
    reply(&mut stage, old.clone(), 200, change_diff("src/parser.rs", "d", DIFF));
    assert!(stage.app.pages.changes.screen.as_ref().unwrap().diff().is_none());
    let again = calls(&mut stage);
    assert!(again.iter().any(|(call, path)| *call == old && !path.contains("run=")), "{again:?}");
}

#[test]
fn changes_say_why_there_is_nothing_to_show() {
    let mut none = list("1", &[]);
    none["source"] = "none".into();
    none["notes"] = json!([{ "code": "no_repository", "text": "the folder is not in a git repository" }]);
    let forbidden = json!({ "code": "only_a_link", "detail": "it shows the conversation only" });
    for (status, body, text) in [
        (200, list("1", &[]), "Nothing has changed."),
        (200, none, "the folder is not in a git repository"),
        (403, forbidden, "could not be read: it shows the conversation only"),
        (404, json!(null), "is it an older version?"),
    ] {
        for width in [40, 120] {
            let mut stage = Stage::new(width, 24, &sessions(), &[]);
            stage.open("s_1");
            stage.keys(&["Esc", "g", "c"]);
            assert!(stage.screen().contains("reading …"), "{}", stage.screen());
            calls(&mut stage);
            reply(&mut stage, ChangesCall::List(1), status, body.clone());
            let text_on_screen = stage.screen().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text_on_screen.contains(text), "{text}: {}", stage.screen());
            // No key needs a file.
            stage.keys(&["j", "n", "c", "v", "x", "X", "e", "y", "U", "r", "Esc", "Enter", "Down", "G", "J"]);
        }
    }
}

#[test]
fn changes_of_hostile_names_and_contents_are_text() {
    let evil = "a\u{1b}]52;c;AAAA\u{7}\u{202e}\n\tb\u{9b}31m";
    let mut all = vec![
        file(evil, "renamed", 1, 1, json!({ "from": evil, "by": "both" })),
        file(&"x/".repeat(50_000), "added", u64::MAX, u64::MAX, json!({ "by": "both" })),
        file("c", "modified", 1, 1, json!({ "compared": "link", "reason": evil, "added": null })),
        json!({ "path": 5 }),
    ];
    all.extend((0..100_000).map(|n| file(&format!("f{n}"), "odd", 1, 1, json!({ "compared": "odd", "by": "odd" }))));
    let mut reply = list("1", &all);
    reply["notes"] =
        json!([{ "code": "a", "text": evil }, { "code": "b", "text": "two" }, { "code": "c", "text": "three" }, {}]);
    reply["runs"][0]["prompt"] = evil.into();
    let long = format!("+{evil}{}\n", "y".repeat(1 << 20));
    let diff =
        format!("@@ -1,1 +1,200000 @@ {evil}\n-{}\n{}{}", evil.replace('\n', ""), long, "+z\u{200b}\n".repeat(100_000));
    for (width, height) in [(40, 12), (80, 24), (200, 50)] {
        let mut stage = Stage::new(width, height, &sessions(), &[]);
        stage.open("s_1");
        stage.keys(&["Esc", "g", "c"]);
        serve(&mut stage, &reply, &diff);
        for key in
            ["n", "J", "c", "Enter", "G", "PageUp", "g", "r", "Esc", "x", "Esc", "j", "n", "End", "j", "y", "e", "k"]
        {
            stage.keys(&[key]);
            serve_quietly(&mut stage, &reply, &diff);
            let bytes = String::from_utf8(stage.bytes()).unwrap();
            for bad in ["\u{1b}]", "\u{7}", "\u{202e}", "\u{9b}", "\u{200b}"] {
                assert!(!bytes.contains(bad), "{bad:?} after {key} at {width}x{height}");
            }
        }
        assert!(stage.app.pages.changes.screen.as_ref().unwrap().fit.len() <= 5_000);
    }
}

/// Serves like [`serve`], whatever is asked.
fn serve_quietly(stage: &mut Stage, list: &Value, diff: &str) {
    let others: Vec<Effect> = std::mem::take(&mut stage.effects)
        .into_iter()
        .filter(|effect| {
            matches!(
                effect,
                Effect::Call { tag: CallTag::Changes(_, ChangesCall::List(_) | ChangesCall::Diff(..)), .. }
            )
        })
        .collect();
    stage.effects = others;
    serve(stage, list, diff);
}

#[test]
fn changes_open_the_editor_at_the_line_and_copy_patches() {
    let mut stage = opened(120, 30);
    stage.keys(&["j", "j"]);
    serve(&mut stage, &list("1", &files()), DIFF);
    stage.effects.clear();
    stage.keys(&["e", "n", "n", "Up", "e"]);
    let edits: Vec<Effect> = stage.effects.drain(..).filter(|effect| matches!(effect, Effect::Edit { .. })).collect();
    let edit = |line| Effect::Edit { root: "/home/you/project".into(), path: "src/parser.rs".into(), line };
    assert_eq!(edits, [edit(2), edit(41)], "a removed line: where it was");
    stage.msg(Msg::Edited(Err("vim: exit status: 1".into())));
    assert!(stage.screen().contains("vim: exit status: 1"));
    stage.keys(&["y", "Y"]);
    let paths: Vec<String> = calls(&mut stage).into_iter().map(|(_, path)| path).collect();
    assert_eq!(paths, ["/v1/sessions/s_1/changes/patch?path=src%2Fparser.rs", "/v1/sessions/s_1/changes/patch"]);
    patch(&mut stage, DIFF);
    assert!(stage.effects.contains(&Effect::Copy(DIFF.into())));
    patch(&mut stage, &"x".repeat(100_000));
    assert!(stage.screen().contains("plexus changes s_1 --patch"), "{}", stage.screen());
}

#[test]
fn changes_take_clicks_and_the_wheel() {
    let mut stage = opened(120, 30);
    let at = |stage: &Stage, text: &str| {
        let screen = stage.screen();
        let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect(text);
        let column = line[..line.find(text).unwrap()].chars().count();
        (u16::try_from(column).unwrap(), u16::try_from(row).unwrap())
    };
    let place = at(&stage, "src/parser.rs");
    press(&mut stage, MouseEventKind::Down(MouseButton::Left), place);
    serve(&mut stage, &list("1", &files()), DIFF);
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().at, 2);
    let place = at(&stage, "two and a half");
    press(&mut stage, MouseEventKind::Down(MouseButton::Left), place);
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().lines(), Some((false, 42, 42)));
    press(&mut stage, MouseEventKind::ScrollUp, (3, 5));
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().at, 1);
    // A long diff scrolls under the wheel, and the chosen line stays chosen.
    let lines: String = (0..200).map(|n| format!("+line {n}\n")).collect();
    let long = format!("@@ -0,0 +1,200 @@\n{lines}");
    stage.keys(&["Tab", "g"]);
    let mut others = files();
    others[0]["digest"] = "long".into();
    stage.keys(&["R"]);
    serve(&mut stage, &list("9", &others), &long);
    stage.keys(&["n"]);
    press(&mut stage, MouseEventKind::ScrollDown, (80, 15));
    press(&mut stage, MouseEventKind::ScrollDown, (80, 15));
    let screen = stage.screen();
    assert!(screen.contains("line 10") && !screen.contains("+ line 1\n"), "{screen}");
    assert_eq!(stage.app.pages.changes.screen.as_ref().unwrap().lines(), Some((false, 1, 1)));
    for _ in 0..200 {
        press(&mut stage, MouseEventKind::ScrollDown, (80, 15));
    }
    assert!(stage.screen().contains("+ line 199"), "{}", stage.screen());
    stage.keys(&["Down"]);
    assert!(stage.screen().contains("+ line 1"), "a key goes back to the chosen line:\n{}", stage.screen());
}
