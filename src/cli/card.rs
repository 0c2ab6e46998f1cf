//! The text of a request for `requests`, `tail` and `run`. Pure. Text of agents is sanitized, and text that must be read before an answer
//! is never truncated.

use plexus_protocol::answers::{Answerer, actions};
use plexus_protocol::{About, Number, Question, Request, RequestType, Risk};

use super::output::{Paint, clean, line, wire_name};

/// Maximum length of a name, an identifier or a label, in characters.
const NAME: usize = 100;

fn risk_label(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low risk",
        Risk::Elevated => "elevated risk",
        Risk::Danger => "danger",
    }
}

/// Formats a request: its agent, its complete question, and its warnings. The caller adds how to answer.
pub(crate) fn card(request: &Request, paint: Paint) -> String {
    let kind = wire_name(request.kind);
    let head = format!("? {} asks ({kind}, {})", line(request.runtime_id.as_str(), NAME), risk_label(request.risk));
    let mut out = format!("{}\n", paint.yellow(&head));
    if request.changed {
        let text = "! this request has changed since it was first shown: read it again";
        out.push_str(&format!("  {}\n", paint.red(text)));
    }
    let edit = matches!(request.subject, About::Edit { .. });
    let mut quoted = |text: &str, diff: bool| {
        for part in clean(text).lines() {
            let part = match part.as_bytes().first() {
                Some(b'+') if diff => paint.green(part),
                Some(b'-') if diff => paint.red(part),
                _ => part.to_owned(),
            };
            out.push_str(&format!("  │ {part}\n"));
        }
    };
    let questions = request.form();
    if !questions.is_empty() || request.display.lines().next() != Some(&request.title) {
        quoted(&request.title, false);
    }
    if questions.is_empty() {
        quoted(&request.display, edit);
    }
    let is_displayed = |message: &str| match questions.is_empty() {
        true => request.display.contains(message),
        // A form shows its questions in place of its display.
        false => questions.iter().any(|question| question.text.trim() == message),
    };
    if let Some(message) = request.message.as_ref().filter(|message| !is_displayed(message.trim())) {
        quoted(message, false);
    }
    if !questions.is_empty() {
        // Only the display has the complete text of a question that was cut.
        if questions.iter().any(cut) {
            quoted(&request.display, false);
        }
        for (n, question) in questions.iter().enumerate() {
            out.push_str(&question_card(question, n, questions.len(), paint));
        }
    }
    if request.display_truncated {
        let bytes = request.display_bytes.unwrap_or_default();
        out.push_str(&format!("  … {bytes} bytes in total; `plexus requests` shows everything\n"));
    }
    if request.subject == About::Unreadable {
        let text = "! Plexus cannot tell what this would do; it is shown as the agent sent it";
        out.push_str(&format!("  {}\n", paint.red(text)));
    }
    if !request.risk_reasons.is_empty() {
        let reason = format!("{}: {}", risk_label(request.risk), request.risk_reasons.join("; "));
        out.push_str(&format!("  {}\n", paint.yellow(&clean(&reason))));
    }
    for warning in &request.warnings {
        out.push_str(&format!("  {}\n", paint.red(&format!("! {}", clean(warning)))));
    }
    out
}

fn cut(question: &Question) -> bool {
    let options = question.options.iter().flat_map(|option| [Some(&option.label), option.description.as_ref()]);
    let texts = [Some(&question.text), question.header.as_ref()].into_iter().chain(options).flatten();
    texts.into_iter().any(|text| text.len() >= plexus_protocol::ABOUT_MAX)
}

/// Formats one question of a form: its name, its text, and the possible answers by number.
pub(crate) fn question_card(question: &Question, n: usize, total: usize, paint: Paint) -> String {
    let mut out = String::new();
    let header = question.header.as_ref().map(|header| format!(" · {}", whole(header))).unwrap_or_default();
    let number = if total > 1 { format!("question {} of {total}{header}", n + 1) } else { format!("question{header}") };
    out.push_str(&format!("  {} {}\n", paint.bold(&number), paint.dim(&format!("({})", accepted_answers(question)))));
    for part in clean(&question.text).lines() {
        out.push_str(&format!("  │ {part}\n"));
    }
    for (n, option) in question.options.iter().enumerate() {
        let more = option.description.as_deref().filter(|more| !more.is_empty());
        let more = more.map(|more| paint.dim(&format!("  {}", whole(more)))).unwrap_or_default();
        out.push_str(&format!("  {:>3}  {}{more}\n", n + 1, whole(&option.label)));
    }
    out
}

/// Joins a text in one line, without truncating it.
fn whole(text: &str) -> String {
    line(text, usize::MAX)
}

/// Describes the answers that a question accepts.
fn accepted_answers(question: &Question) -> String {
    let fits = &question.fits;
    let mut parts: Vec<String> = Vec::new();
    match (question.options.is_empty(), question.multiple, question.free_text) {
        (true, ..) => parts.push(
            match fits.number {
                Some(Number::Integer) => "a whole number",
                Some(Number::Number) => "a number",
                None => "words",
            }
            .into(),
        ),
        (false, false, false) => parts.push("one of these".into()),
        (false, true, false) => parts.push("any of these".into()),
        (false, false, true) => parts.push("one of these, or your own text".into()),
        (false, true, true) => parts.push("any of these, and your own text".into()),
    }
    let type_name = match (question.multiple, question.options.is_empty(), fits.number) {
        (true, ..) => " of them",
        (false, true, None) => " characters",
        _ => "",
    };
    match (fits.least, fits.most) {
        (None, None) => {}
        (Some(least), None) => parts.push(format!("at least {least}{type_name}")),
        (None, Some(most)) => parts.push(format!("at most {most}{type_name}")),
        (Some(least), Some(most)) => parts.push(format!("{least} to {most}{type_name}")),
    }
    if question.optional {
        parts.push("optional".into());
    }
    parts.join(", ")
}

/// The commands that answer a request, one a line.
pub(crate) fn answer_commands(request: &Request) -> String {
    let mut out = String::new();
    let mut push = |how: &str, effect: &str| {
        let effect = if effect.is_empty() { String::new() } else { format!("  {effect}") };
        out.push_str(&format!("  {how}{effect}\n"));
    };
    let questions = request.form();
    for question in questions {
        let id = shell_word(&question.id);
        for option in &question.options {
            push(&format!("--option {id}={}", shell_word(&option.id)), &line(&option.label, NAME));
        }
        if question.free_text || question.options.is_empty() {
            push(&format!("--option {id}=WORDS"), "");
        }
    }
    for action in actions(request, Answerer::UNLIMITED) {
        if let Some(id) = action.answer.as_ref().and_then(|answer| answer.option_id.as_ref()) {
            push(&format!("--option {}", shell_word(id)), &action.text());
        }
    }
    for item in &request.items {
        push(&format!("--option {}", shell_word(&item.id)), &line(&item.label, NAME));
    }
    if request.kind == RequestType::Prompt && questions.is_empty() {
        push("--text T", "");
    }
    if let Some(editable) = &request.editable {
        push("--allow --edit TEXT", &format!("another {}", line(&editable.label, NAME).to_lowercase()));
    }
    if request.changed {
        push(
            &format!("--digest {}", read_digest(request)),
            "needed to allow the request: it states which version was read",
        );
    }
    out
}

/// A short form of the command that answers a request.
pub(crate) fn answer_command(request: &Request) -> String {
    let answer = match request.kind {
        _ if !request.form().is_empty() => "--option QUESTION=ANSWER ..",
        RequestType::Pick => "--option ID",
        RequestType::Prompt => "--text T",
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation if request.options.is_empty() => {
            "--allow"
        }
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => "--allow | --option ID",
    };
    let read = if request.changed { format!(" --digest {}", read_digest(request)) } else { String::new() };
    format!("plexus answer {} {answer}{read} | --deny", request.request_id)
}

/// The prefix of the digest of the revision that was read.
pub(crate) fn read_digest(request: &Request) -> &str {
    request.digest.get(..12).unwrap_or(&request.digest)
}

/// A word for a shell, quoted where necessary.
fn shell_word(id: &str) -> String {
    let id = line(id, usize::MAX);
    let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/@%+".contains(c));
    if plain { id } else { format!("'{}'", id.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(more: Value) -> Request {
        let mut wire = json!({
            "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1,
            "type": "permission", "state": "open", "title": "Run it", "display": "rm -rf /", "warnings": [],
            "digest": "0123456789abcdef", "options": [], "allow_reason": false, "allow_remember": false,
            "opened_at": "2026-01-01T00:00:00Z",
        });
        wire.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(wire).unwrap()
    }

    #[test]
    fn card_shows_warnings_and_hides_nothing() {
        let danger = request(json!({
            "risk": "danger", "risk_reasons": ["deletes outside of the folder", "of the whole disk\u{1b}[2J"],
            "warnings": ["the agent itself calls this dangerous"], "changed": true, "revision": 1,
            "subject": { "type": "command", "argv": ["rm -rf /"] },
        }));
        let text = card(&danger, Paint::none());
        assert_eq!(
            text,
            "? demo asks (permission, danger)\n  ! this request has changed since it was first shown: read it again\n  │ Run it\n  \
             │ rm -rf /\n  danger: deletes outside of the folder; of the whole disk\\u{1b}[2J\n  \
             ! the agent itself calls this dangerous\n"
        );
        assert!(answer_commands(&danger).contains("--digest 0123456789ab"), "{}", answer_commands(&danger));
        let opaque = request(json!({ "risk": "danger", "subject": { "type": "unreadable" }, "display": "{\"x\":1}" }));
        let text = card(&opaque, Paint::none());
        assert!(text.contains("  │ {\"x\":1}\n") && text.contains("! Plexus cannot tell what this would do"), "{text}");
        let edit = request(json!({
            "risk": "elevated", "subject": { "type": "edit", "files": [{ "path": "a" }] },
            "display": "edit a\n@@ -1 +1 @@\n-old\n+new", "display_truncated": true, "display_bytes": 90_000,
        }));
        let text = card(&edit, Paint::none());
        assert!(text.contains("  │ -old\n  │ +new\n") && text.contains("… 90000 bytes in total"), "{text}");
    }

    #[test]
    fn ways_have_the_verbs_of_the_gateway_whatever_the_agent_says() {
        let lies = request(json!({ "options": [
            { "id": "deny", "label": "Deny this, and stop asking", "kind": "allow_always" },
            { "id": "no", "label": "Reject", "kind": "allow_once" },
            { "id": "yes", "label": "\u{202e}Allow\u{1b}[2J", "kind": "reject_once" },
            { "id": "x", "label": "", "kind": "reject_always" },
        ] }));
        assert_eq!(
            answer_commands(&lies),
            "  --option no  Allow once “Reject”\n  --option yes  Deny “\\u{202e}Allow\\u{1b}[2J”\n  \
             --option deny  Always allow “Deny this, and stop asking”\n  --option x  Always deny\n"
        );
    }

    #[test]
    fn card_repeats_nothing() {
        let command = json!({ "type": "command", "argv": ["rm -rf /"] });
        let title =
            |display: &str| json!({ "title": "rm -rf /", "display": display, "risk": "danger", "subject": command });
        let twice = request(title("rm -rf /\nin /home/you"));
        assert_eq!(card(&twice, Paint::none()), "? demo asks (permission, danger)\n  │ rm -rf /\n  │ in /home/you\n");
        let once = request(title("rm -rf /"));
        assert_eq!(card(&once, Paint::none()), "? demo asks (permission, danger)\n  │ rm -rf /\n");
    }

    #[test]
    fn card_shows_each_question_with_its_options_and_how_to_answer() {
        let long =
            "Which of the databases that were named above is to be used, given that it has to run without a server?";
        let form = request(json!({
            "type": "prompt", "display": "A JSON object", "message": "Before I begin:", "subject": { "type": "question", "questions": [
                { "id": "db", "header": "Database", "text": long, "multiple": false, "free_text": true,
                    "options": [{ "id": "pg 16", "label": "Postgres", "description": "a server" }, { "id": "lite", "label": "SQLite" }] },
                { "id": "port", "text": "Which port?", "multiple": false, "free_text": true, "optional": true, "options": [],
                    "fits": { "number": "integer", "least": 1024.0, "most": 65535.0 } },
            ] },
        }));
        let text = card(&form, Paint::none());
        assert!(text.contains(&format!("  │ {long}\n")), "{text}");
        for line in [
            "  │ Before I begin:\n",
            "  question 1 of 2 · Database (one of these, or your own text)\n",
            "    1  Postgres  a server\n",
            "  question 2 of 2 (a whole number, 1024 to 65535, optional)\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("JSON"), "{text}");
        let how =
            "  --option db='pg 16'  Postgres\n  --option db=lite  SQLite\n  --option db=WORDS\n  --option port=WORDS\n";
        assert_eq!(answer_commands(&form), how);
    }
}
