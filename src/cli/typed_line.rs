//! Parses the lines that the user types while a request is open, and finds those that answer it. Pure.
//!
//! Only a line that is exactly a key or a verb answers, so that no sentence does: a text or a choice is shown first and sent by `a`. Verbs,
//! order and guards are those of [`plexus_protocol::answers`].

use plexus_protocol::answers::{AnswerAction, AnswerRole, Answerer, KEYS, Sense, actions};
use plexus_protocol::{Answer, Misfit, Question, QuestionOption, Request, RequestType, Risk};

use super::card::question_card;
use super::output::{Paint, line};

/// Maximum length of an item's label, in characters.
const LABEL_MAX: usize = 100;

/// The progress of the answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum AnswerStep {
    #[default]
    Choose,
    /// Some questions of a form have answers.
    Form(Vec<Vec<String>>),
    /// A text, items or a form wait for `a`.
    Ready(Answer),
    /// The next line is the reason of a denial.
    Reason,
    /// A persistent answer waits for its second line.
    Persistent(Answer),
    /// An answer to a dangerous request waits for `yes`.
    Danger(Answer),
}

/// The effect of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypedLine {
    Answer(Answer),
    /// Shows this text; more has to be typed.
    Next(String),
    /// Has no effect, for this reason.
    Refused(String),
}

/// Parses a line while this request is displayed.
pub(crate) fn read_typed_line(request: &Request, step: &mut AnswerStep, text: &str, paint: Paint) -> TypedLine {
    let actions = actions(request, Answerer::UNLIMITED);
    let next = |text: &str| TypedLine::Next(format!("  {text}\n"));
    match std::mem::take(step) {
        AnswerStep::Danger(answer) if text == "yes" => TypedLine::Answer(answer),
        AnswerStep::Persistent(answer) if text == "A" => guarded(request, step, answer),
        AnswerStep::Danger(_) | AnswerStep::Persistent(_) => {
            TypedLine::Refused(format!("nothing was answered; {}", help(request)))
        }
        AnswerStep::Reason if text.is_empty() => TypedLine::Refused(format!("nothing was answered; {}", help(request))),
        AnswerStep::Reason => match denial(&actions) {
            Some(answer) => TypedLine::Answer(Answer { reason: Some(text.to_owned()), ..answer }),
            None => TypedLine::Refused(help(request)),
        },
        AnswerStep::Ready(answer) => match text {
            "a" => guarded(request, step, answer),
            "d" | "-" => denial(&actions).map_or_else(|| TypedLine::Refused(help(request)), TypedLine::Answer),
            _ => take_content(request, step, Vec::new(), text, paint),
        },
        AnswerStep::Form(answers) => take_content(request, step, answers, text, paint),
        AnswerStep::Choose if actions.iter().any(|action| action.role == AnswerRole::Send) => match text {
            "-" => denial(&actions).map_or_else(|| TypedLine::Refused(help(request)), TypedLine::Answer),
            "d" if request.form().is_empty() => {
                denial(&actions).map_or_else(|| TypedLine::Refused(help(request)), TypedLine::Answer)
            }
            _ => take_content(request, step, Vec::new(), text, paint),
        },
        AnswerStep::Choose if text == "r" && request.allow_reason && denial(&actions).is_some() => {
            *step = AnswerStep::Reason;
            next("type the reason; an empty line answers nothing")
        }
        AnswerStep::Choose => {
            let verb = |action: &&AnswerAction| action.verb().eq_ignore_ascii_case(text);
            let key = |action: &&AnswerAction| action.key.is_some_and(|key| text.chars().eq([key]));
            let Some(action) = actions.iter().find(key).or_else(|| actions.iter().find(verb)) else {
                return TypedLine::Refused(help(request));
            };
            let Some(answer) = action.answer.clone() else { return TypedLine::Refused(help(request)) };
            match action.role.rule() {
                rule if rule.persistent => {
                    *step = AnswerStep::Persistent(answer);
                    next(&format!(
                        "{}: this also covers what the agent finds similar, from now on. Type A again",
                        rule.verb
                    ))
                }
                rule if rule.sense == Sense::Allow => guarded(request, step, answer),
                _ => TypedLine::Answer(answer),
            }
        }
    }
}

/// Sends an answer that lets the agent continue: a dangerous request needs one more line.
fn guarded(request: &Request, step: &mut AnswerStep, answer: Answer) -> TypedLine {
    if request.risk != Risk::Danger {
        return TypedLine::Answer(answer);
    }
    *step = AnswerStep::Danger(answer);
    TypedLine::Next("  this is dangerous: type yes to do it\n".into())
}

/// The answer that denies, if there is one.
fn denial(actions: &[AnswerAction]) -> Option<Answer> {
    actions.iter().find(|action| action.role.rule().sense == Sense::Deny)?.answer.clone()
}

/// Handles a line as text, items or the reply to a question; `a` sends it.
fn take_content(
    request: &Request,
    step: &mut AnswerStep,
    mut answers: Vec<Vec<String>>,
    text: &str,
    paint: Paint,
) -> TypedLine {
    let questions = request.form();
    let answer = if questions.is_empty() {
        content(request, text).map(Some)
    } else if text == "-" {
        return denial(&actions(request, Answerer::UNLIMITED))
            .map_or_else(|| TypedLine::Refused(help(request)), TypedLine::Answer);
    } else {
        take_reply(questions, &mut answers, text)
    };
    match answer {
        Ok(Some(answer)) => {
            *step = AnswerStep::Ready(answer);
            TypedLine::Next("  a sends this answer, d skips the request; another line replaces it\n".into())
        }
        Ok(None) => {
            let next = question(questions, answers.len(), paint);
            *step = AnswerStep::Form(answers);
            TypedLine::Next(next)
        }
        Err(help) => {
            if !answers.is_empty() {
                *step = AnswerStep::Form(answers);
            }
            TypedLine::Refused(help)
        }
    }
}

/// The text or the items of a line.
fn content(request: &Request, text: &str) -> Result<Answer, String> {
    match request.kind {
        _ if text.is_empty() => Err(help(request)),
        RequestType::Pick => {
            let mut ids = Vec::new();
            for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
                let item = word.parse::<usize>().ok().and_then(|n| request.items.get(n.checked_sub(1)?));
                ids.push(item.ok_or_else(|| help(request))?.id.clone());
            }
            if ids.len() > 1 && !request.multi {
                return Err("only one can be chosen: type one number".into());
            }
            Ok(Answer { ids: Some(ids), ..Answer::default() })
        }
        // `a` sends a text, and is not a text itself.
        RequestType::Prompt | RequestType::Confirm | RequestType::Permission | RequestType::Elicitation
            if text == "a" =>
        {
            Err("type the text first; a then sends it".into())
        }
        RequestType::Prompt | RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            Ok(Answer { value: Some(Some(text.to_owned())), ..Answer::default() })
        }
    }
}

/// A reminder of the lines that answer this request.
fn help(request: &Request) -> String {
    let expected = match request.kind {
        RequestType::Pick => format!("a number from 1 to {}", request.items.len()),
        RequestType::Prompt => "the text".into(),
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            "a key that is shown, such as a or d, as a line of its own".into()
        }
    };
    format!("a request is open: type {expected}; `>` and a text sends a prompt, ? lists the keys")
}

/// The keys that answer a request on a line.
pub(crate) fn keys() -> String {
    let keys_here = KEYS.iter().filter(|(key, _)| *key != "e");
    let mut out: String = keys_here.map(|(key, action)| format!("  {key:<6} {action}\n")).collect();
    out.push_str("  > TEXT send a prompt while a request is open\n");
    out
}

/// The next question of a form, and how to answer it.
fn question(questions: &[Question], at: usize, paint: Paint) -> String {
    let Some(question) = questions.get(at) else { return String::new() };
    let mut out = question_card(question, at, questions.len(), paint);
    let how = match (question.options.is_empty(), question.multiple) {
        (true, _) => "type the answer",
        (false, false) if question.free_text => "type a number, or your own text",
        (false, false) => "type a number",
        (false, true) if question.free_text => "type a number, or several (1 3), or your own text",
        (false, true) => "type a number, or several (1 3)",
    };
    let empty = if question.optional { "; an empty line skips it" } else { "" };
    out.push_str(&format!("  {how}{empty}; - skips the request\n"));
    out
}

/// Handles a typed line as the answer to the next question; returns the complete answer once all questions have one. The error names the
/// valid answers.
fn take_reply(questions: &[Question], answers: &mut Vec<Vec<String>>, text: &str) -> Result<Option<Answer>, String> {
    let Some(question) = questions.get(answers.len()) else { return Err("there is no open request".into()) };
    let numbers: Option<Vec<usize>> =
        text.split([' ', ',']).filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect();
    let named = |option: &&QuestionOption| option.label.eq_ignore_ascii_case(text) || option.id == text;
    let values: Vec<String> = match numbers.filter(|_| !question.options.is_empty() && !text.is_empty()) {
        Some(numbers) => {
            let option = |n: &usize| question.options.get(n.checked_sub(1)?).map(|option| option.id.clone());
            let ids: Option<Vec<String>> = numbers.iter().map(option).collect();
            ids.ok_or_else(|| format!("type 1 to {}", question.options.len()))?
        }
        None if text.is_empty() => Vec::new(),
        None => match question.options.iter().find(named) {
            Some(option) => vec![option.id.clone()],
            None if question.free_text || question.options.is_empty() => vec![text.to_owned()],
            None => return Err(format!("type 1 to {}", question.options.len())),
        },
    };
    let own_texts: Vec<String> =
        values.iter().filter(|word| !question.options.iter().any(|option| option.id == **word)).cloned().collect();
    match question.misfit(values.len() - own_texts.len(), &own_texts) {
        None => {}
        Some(Misfit::Missing) => return Err("this question must be answered".into()),
        Some(Misfit::Several) => return Err("only one answer is possible: type one number".into()),
        Some(Misfit::NotA(_)) => return Err("enter a number".into()),
        Some(misfit @ (Misfit::Pattern | Misfit::Form)) => {
            let fits = &question.fits;
            let constraint = if misfit == Misfit::Pattern { &fits.pattern } else { &fits.format };
            // The value is debug-escaped, so it is safe to show.
            return Err(format!("that does not fit {:?}", constraint.as_deref().unwrap_or_default()));
        }
        Some(Misfit::Bounds { least, most }) => {
            let bound = |word: &str, n: Option<f64>| n.map(|n| format!("{word} {n}"));
            let bounds = [bound("at least", least), bound("at most", most)].into_iter().flatten();
            return Err(format!("that does not fit: {}", bounds.collect::<Vec<_>>().join(", ")));
        }
    }
    answers.push(values);
    if answers.len() < questions.len() {
        return Ok(None);
    }
    let answers_by_id = questions.iter().zip(answers.iter()).filter(|(_, values)| !values.is_empty());
    let answers_by_id = answers_by_id.map(|(question, values)| (question.id.clone(), values.clone())).collect();
    Ok(Some(Answer { answers: Some(answers_by_id), ..Answer::default() }))
}

/// The lines under a card that explain how to answer.
pub(crate) fn choices(request: &Request, paint: Paint) -> String {
    let questions = request.form();
    if !questions.is_empty() {
        // The card shows the questions themselves.
        return match questions {
            [_] => question(questions, 0, paint).lines().last().map(|line| format!("{line}\n")).unwrap_or_default(),
            _ => question(questions, 0, paint),
        };
    }
    let mut out = String::new();
    let actions = actions(request, Answerer::UNLIMITED);
    if actions.iter().any(|action| action.role == AnswerRole::Send) {
        for (n, item) in request.items.iter().enumerate() {
            out.push_str(&format!("  {}  {}\n", n + 1, line(&item.label, LABEL_MAX)));
        }
        let input = match (request.kind, request.multi) {
            (RequestType::Pick, true) => "a number, or several (1 3)",
            (RequestType::Pick, false) => "a number",
            (RequestType::Prompt | RequestType::Confirm | RequestType::Permission | RequestType::Elicitation, _) => {
                "the text"
            }
        };
        out.push_str(&format!("  type {input}; d skips the request\n"));
        return out;
    }
    for action in &actions {
        let label =
            if action.label.is_empty() { String::new() } else { paint.dim(&format!("  “{}”", action.label)) };
        let key = action.key.map_or_else(|| " ".into(), |key| key.to_string());
        out.push_str(&format!("  {key}  {}{label}\n", action.verb()));
    }
    if request.allow_reason {
        out.push_str("  r  Deny with a reason\n");
    }
    out.push_str("  type a key or a verb, as a line of its own\n");
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(kind: &str, more: Value) -> Request {
        let mut wire = json!({
            "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1, "type": kind,
            "state": "open", "title": "t", "display": "d", "warnings": [], "digest": "x", "options": [],
            "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z", "risk": "elevated",
        });
        for (key, value) in more.as_object().unwrap() {
            wire[key] = value.clone();
        }
        serde_json::from_value(wire).unwrap()
    }

    /// The answer that these lines give, if they give one.
    fn lines(request: &Request, typed: &[&str]) -> Option<Value> {
        let mut step = AnswerStep::default();
        typed.iter().find_map(|text| match read_typed_line(request, &mut step, text, Paint::none()) {
            TypedLine::Answer(answer) => Some(json!(answer)),
            TypedLine::Next(_) | TypedLine::Refused(_) => None,
        })
    }

    fn permission(more: Value) -> Request {
        let mut wire = json!({ "allow_reason": true, "options": [
            { "id": "always", "label": "Allow", "kind": "allow_always" },
            { "id": "once", "label": "Deny", "kind": "allow_once" },
            { "id": "no", "label": "Yes", "kind": "reject_once" },
            { "id": "never", "label": "", "kind": "reject_always" },
            { "id": "blue", "label": "Blue", "kind": "other" },
        ] });
        wire.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request("permission", wire)
    }

    #[test]
    fn typed_keys_and_verbs_answer_as_the_card_says() {
        let plain = permission(json!({}));
        let danger = permission(json!({ "risk": "danger" }));
        let items = json!([{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }]);
        let pick = request("pick", json!({ "items": items }));
        let several = request("pick", json!({ "items": items, "multi": true }));
        let text = request("prompt", json!({}));
        let option = |id: &str| json!({ "option_id": id });
        for (request, typed, answer) in [
            (&plain, vec!["a"], option("once")),
            (&plain, vec!["Allow once"], option("once")),
            (&plain, vec!["d"], option("no")),
            (&plain, vec!["deny"], option("no")),
            (&plain, vec!["A", "A"], option("always")),
            (&plain, vec!["always deny", "A"], option("never")),
            (&plain, vec!["1"], option("blue")),
            (&plain, vec!["r", "too risky"], json!({ "option_id": "no", "reason": "too risky" })),
            (&danger, vec!["a", "yes"], option("once")),
            (&danger, vec!["A", "A", "yes"], option("always")),
            (&danger, vec!["d"], option("no")),
            (&pick, vec!["2", "a"], json!({ "ids": ["b"] })),
            (&pick, vec!["d"], json!({ "ids": [] })),
            (&several, vec!["1, 2", "a"], json!({ "ids": ["a", "b"] })),
            (&text, vec!["hello you", "a"], json!({ "value": "hello you" })),
            (&text, vec!["hello", "hello you", "a"], json!({ "value": "hello you" })),
            (&text, vec!["d"], json!({ "value": null })),
        ] {
            assert_eq!(lines(request, &typed), Some(answer), "{typed:?}");
        }
        for (request, typed) in [
            (&plain, vec!["A"]),
            (&plain, vec!["A", "yes"]),
            (&plain, vec!["A", "why?", "A"]),
            (&plain, vec!["2"]),
            (&plain, vec!["0"]),
            (&plain, vec!["y", "yes", "n", "no", "ok", "Blue", "Yes", "Allow", "always", "once"]),
            (&plain, vec!["r", ""]),
            (&danger, vec!["a", "y"]),
            (&danger, vec!["a", "what is it?", "yes"]),
            (&pick, vec!["3", "1 2", "x", ""]),
            (&several, vec!["1 9"]),
            (&text, vec!["", "a"]),
        ] {
            assert_eq!(lines(request, &typed), None, "{typed:?}");
        }
    }

    #[test]
    fn typed_sentences_answer_nothing() {
        let requests = [
            permission(json!({})),
            permission(json!({ "risk": "danger" })),
            request("confirm", json!({ "allow_reason": true })),
            request("prompt", json!({})),
            request("pick", json!({ "items": [{ "id": "a", "label": "A" }] })),
        ];
        let rests =
            ["", "dd a test", "llow me to explain", " too risky", "es", "es please, always", "lways allow it, deny it"];
        let sentences: Vec<String> = (' '..='~')
            .filter(|first| *first != '-')
            .flat_map(|first| rests.map(|rest| format!("{first}{rest}")))
            // A line that is exactly a key is not a sentence.
            .filter(|sentence| sentence.trim().len() > 1)
            .collect();
        assert!(sentences.len() >= 200);
        for request in &requests {
            for first_keys in [&[][..], &["A"], &["a"]] {
                for sentence in sentences.iter().filter(|sentence| first_keys != ["a"] || *sentence != "yes") {
                    let mut typed = first_keys.to_vec();
                    // The key alone answers a request that is not dangerous.
                    if lines(request, &typed).is_some() {
                        typed.clear();
                    }
                    typed.extend([sentence.trim(), "next, please"]);
                    assert_eq!(lines(request, &typed), None, "{typed:?}");
                }
            }
        }
    }

    #[test]
    fn questions_of_a_form_are_answered_in_turn() {
        let form = request(
            "prompt",
            json!({ "subject": { "type": "question", "questions": [
                { "id": "db", "text": "Which?", "multiple": false, "free_text": true,
                    "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] },
                { "id": "with", "text": "With?", "multiple": true, "free_text": false, "fits": { "most": 2.0 },
                    "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }, { "id": "c", "label": "C" }] },
                { "id": "port", "text": "Port?", "multiple": false, "free_text": true, "optional": true, "options": [],
                    "fits": { "number": "integer", "least": 1024.0 } },
            ] } }),
        );
        let questions = form.form();
        let mut answers = Vec::new();
        let mut say = |text: &str| take_reply(questions, &mut answers, text);
        for wrong in ["3", "", "1 2"] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(say("sqlite"), Ok(None));
        for wrong in ["x", "1 2 3", "0", ""] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(say("1, 3"), Ok(None));
        for wrong in ["x", "80", "8080.5"] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        let answers = json!({ "answers": { "db": ["lite"], "with": ["a", "c"] } });
        assert_eq!(say("").map(|answer| json!(answer)), Ok(answers.clone()));
        // The last line does not send: `a` does.
        assert_eq!(lines(&form, &["2", "1 3", "", "a"]), Some(answers));
        assert_eq!(lines(&form, &["2", "1 3", ""]), None);
        assert_eq!(lines(&form, &["a", "1 3", "-"]), Some(json!({ "answers": {} })));
        let expected = choices(&form, Paint::none());
        assert!(expected.contains("1  Postgres") && expected.contains("question 1 of 3"), "{expected}");
    }

    #[test]
    fn card_lists_verbs_of_the_gateway_beside_labels_of_the_agent() {
        let options = json!([
            { "id": "x", "label": "Deny\u{1b}[2J", "kind": "allow_once" },
            { "id": "y", "label": "\u{202e}Allow", "kind": "reject_once" },
            { "id": "z", "label": "no ".repeat(70), "kind": "allow_always" },
        ]);
        let request = request("permission", json!({ "options": options }));
        let text = choices(&request, Paint::none());
        let mut expected = text.lines();
        assert_eq!(expected.next(), Some("  a  Allow once  “Deny\\u{1b}[2J”"));
        assert_eq!(expected.next(), Some("  d  Deny  “\\u{202e}Allow”"));
        assert!(
            expected
                .next()
                .is_some_and(|line| line.starts_with("  A  Always allow  “no no") && line.chars().count() < 110)
        );
        assert_eq!(expected.next(), Some("  type a key or a verb, as a line of its own"));
    }

    #[test]
    fn keys_are_those_of_the_manual() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
        let manual = std::fs::read_to_string(path).unwrap();
        let help = keys();
        for (key, action) in KEYS {
            let named = key.split(" … ").map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" … ");
            let is_here = if help.contains(action) { "yes" } else { "no" };
            let row = format!("| {named} | {action} | yes | yes | {is_here} |");
            assert!(manual.contains(&row), "docs/keys.md lacks {row}");
        }
    }
}
