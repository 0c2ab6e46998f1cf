//! Checks of answers to questions, before anything is forwarded. Pure.

use serde_json::Value;

use super::SessionError;
use plexus_protocol::{About, Answer, Answers, Choice, Decision, Misfit, Number, Question, Request, RequestType};

/// Checked answers.
#[derive(Debug, PartialEq)]
pub(super) enum ParsedAnswers {
    /// The request is a single question: the answer in the request's own form.
    Single(Answer),
    /// Option ids or free text for each answered question.
    PerQuestion(Answers),
}

/// Returns the id of the option that a text means: by its id or label, in any case if only one option matches.
pub(super) fn option_id<'a>(offered: &[(&'a str, &str)], text: &str) -> Option<&'a str> {
    if let Some((id, _)) = offered.iter().find(|(id, _)| *id == text) {
        return Some(id);
    }
    let unique = |fits: &dyn Fn(&str, &str) -> bool| {
        let mut all = offered.iter().filter(|(id, label)| fits(id, label));
        all.next().filter(|_| all.next().is_none()).map(|(id, _)| *id)
    };
    let low = text.trim().to_lowercase();
    unique(&|_, label| label == text)
        .or_else(|| unique(&|id, label| id.to_lowercase() == low || label.trim().to_lowercase() == low))
}

/// Checks answers against a request's questions. An empty map declines to answer.
///
/// # Errors
/// [`SessionError::BadAnswer`].
pub(super) fn judge(request: &Request, answers: &Answers) -> Result<ParsedAnswers, SessionError> {
    let bad = |code, message: String| Err(SessionError::BadAnswer { code, message, field: None });
    let About::Question { questions } = &request.subject else {
        return bad("answer_type", "this request has no questions: answer it in another form".into());
    };
    if let Some(id) = answers.keys().find(|id| !questions.iter().any(|question| question.id == **id)) {
        let ids: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
        return bad("item_not_offered", format!("there is no question {id:?}; the questions are: {}", ids.join(", ")));
    }
    let mut checked = Answers::new();
    for question in questions.iter().filter(|_| !answers.is_empty()) {
        let texts = check_answer(question, answers.get(&question.id).map_or(&[], Vec::as_slice))?;
        if !texts.is_empty() {
            checked.insert(question.id.clone(), texts);
        }
    }
    let single = matches!(questions.as_slice(), [only] if only.id == "answer");
    if !single && request.kind == RequestType::Prompt {
        return Ok(ParsedAnswers::PerQuestion(checked));
    }
    let texts = checked.remove("answer").unwrap_or_default();
    Ok(ParsedAnswers::Single(match request.kind {
        RequestType::Prompt => Answer { value: Some(texts.into_iter().next()), ..Answer::default() },
        RequestType::Pick => Answer { ids: Some(texts), ..Answer::default() },
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            let no =
                || request.options.iter().find(|offer| offer.kind == Choice::RejectOnce).map(|offer| offer.id.clone());
            match texts.into_iter().next().or_else(no) {
                Some(id) => Answer { option_id: Some(id), ..Answer::default() },
                None => return bad("answer_type", "this request cannot be left without an answer: choose one".into()),
            }
        }
    }))
}

/// Returns the agent's name of a question's field.
fn field_name(question: &Question) -> String {
    question.field.clone().unwrap_or_else(|| question.id.clone())
}

fn unfit(question: &Question, misfit: Misfit) -> SessionError {
    let within = |subject: &str| match (question.fits.least, question.fits.most) {
        (Some(least), Some(most)) => format!("{subject} from {least} to {most}"),
        (Some(least), None) => format!("{subject} of at least {least}"),
        (None, Some(most)) => format!("{subject} of at most {most}"),
        (None, None) => subject.to_owned(),
    };
    let number = |number| if number == Number::Integer { "a whole number" } else { "a number" };
    let requirement = match misfit {
        Misfit::Missing | Misfit::Several => "one answer".to_owned(),
        Misfit::NotA(type_name) => within(number(type_name)),
        Misfit::Bounds { .. } => within(match question.fits.number {
            _ if question.multiple => "a number of answers",
            Some(type_name) => number(type_name),
            None => "a text with a number of characters",
        }),
        Misfit::Pattern => format!("a text that matches {:?}", question.fits.pattern.as_deref().unwrap_or_default()),
        Misfit::Form => format!("a text of the form {:?}", question.fits.format.as_deref().unwrap_or_default()),
    };
    let name = question.field.as_ref().or(question.header.as_ref()).unwrap_or(&question.text);
    let message = format!("the answer to {name:?} is not valid: it must be {requirement}");
    SessionError::BadAnswer { code: "answer_unfit", message, field: Some(field_name(question)) }
}

/// Returns the question of a request that has exactly one.
fn only_question(request: &Request) -> Option<&Question> {
    match &request.subject {
        About::Question { questions } => match questions.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        _ => None,
    }
}

/// Checks the number of picked items.
///
/// # Errors
/// [`SessionError::BadAnswer`].
pub(super) fn check_count(request: &Request, count: usize) -> Result<(), SessionError> {
    match only_question(request).filter(|question| question.multiple) {
        Some(question) => question.fits.count(count as f64).map_err(|misfit| unfit(question, misfit)),
        None => Ok(()),
    }
}

/// Returns the decision of an answer given as one text: the answer to the only question, or, for several questions, a JSON object with a
/// member for each.
///
/// # Errors
/// [`SessionError::BadAnswer`].
pub(super) fn parse_text(request: &Request, text: &str) -> Result<Decision, SessionError> {
    let About::Question { questions } = &request.subject else { return Ok(Decision::Value(Some(text.to_owned()))) };
    if let [only] = questions.as_slice() {
        let left_out = only.optional && text.trim().is_empty();
        if only.free_text && !left_out {
            only.fits.check(text).map_err(|misfit| unfit(only, misfit))?;
        }
        return Ok(Decision::Value(Some(text.to_owned())));
    }
    let bad = |message: String, field| SessionError::BadAnswer { code: "answer_type", message, field };
    let Ok(Value::Object(members)) = serde_json::from_str(text) else {
        return Err(bad(
            "there are several questions: answer with a JSON object that has a field for each".into(),
            None,
        ));
    };
    let mut answers = Answers::new();
    for (name, value) in members {
        let plain = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        // JSON types are significant: a string is not a number.
        let numeric = questions.iter().any(|question| question.id == name && question.fits.number.is_some());
        let texts = match &value {
            Value::Null => continue,
            Value::Array(values) => values.iter().map(plain).collect(),
            Value::String(_) if numeric => None,
            Value::Number(_) if !numeric => None,
            one => plain(one).map(|text| vec![text]),
        };
        let Some(texts) = texts else {
            return Err(bad(format!("the answer to {name:?} has the wrong type"), Some(name)));
        };
        let owner = questions.iter().find(|question| question.own.as_deref() == Some(&name));
        answers.entry(owner.map_or(name, |question| question.id.clone())).or_default().extend(texts);
    }
    if answers.is_empty() {
        // An empty object answers nothing: allowed only if every question is optional.
        questions.iter().try_for_each(|question| check_answer(question, &[]).map(drop))?;
        return Ok(Decision::Value(Some(text.to_owned())));
    }
    match judge(request, &answers)? {
        ParsedAnswers::PerQuestion(answers) => Ok(Decision::Answers(answers)),
        ParsedAnswers::Single(_) => Ok(Decision::Value(Some(text.to_owned()))),
    }
}

/// Checks the answer to one question. Returns option ids, then free texts.
fn check_answer(question: &Question, texts: &[String]) -> Result<Vec<String>, SessionError> {
    let name = || question.header.as_deref().unwrap_or(&question.text);
    let bad = |code, message: String| Err(SessionError::BadAnswer { code, message, field: Some(field_name(question)) });
    let offered: Vec<(&str, &str)> = question.options.iter().map(|option| (&*option.id, &*option.label)).collect();
    let (mut chosen, mut free): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        match option_id(&offered, text) {
            Some(id) if chosen.iter().any(|other| other == id) => {
                return bad("answer_type", format!("{id:?} is given twice for {:?}", name()));
            }
            Some(id) => chosen.push(id.to_owned()),
            None if question.free_text => free.push(text.clone()),
            None => {
                let labels: Vec<&str> = offered.iter().map(|(_, label)| *label).collect();
                let message = format!(
                    "{text:?} is not an answer to {:?}, or matches two; the answers are: {}",
                    name(),
                    labels.join(", ")
                );
                return bad("item_not_offered", message);
            }
        }
    }
    match question.misfit(chosen.len(), &free) {
        None => {}
        Some(Misfit::Missing) => return bad("answer_missing", format!("{:?} has no answer", name())),
        Some(Misfit::Several) => return bad("answer_type", format!("{:?} accepts one answer", name())),
        Some(misfit) => return Err(unfit(question, misfit)),
    }
    chosen.extend(free);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{AnswerBounds, Number, QuestionOption};

    fn question(options: &[(&str, &str)], free_text: bool) -> Question {
        let option =
            |(id, label): &(&str, &str)| QuestionOption { id: (*id).into(), label: (*label).into(), description: None };
        Question {
            id: "q".into(),
            text: "Which?".into(),
            options: options.iter().map(option).collect(),
            free_text,
            ..Question::default()
        }
    }

    fn checked(question: &Question, texts: &[&str]) -> Result<Vec<String>, &'static str> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        check_answer(question, &texts).map_err(|refusal| match refusal {
            SessionError::BadAnswer { code, .. } => code,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn question_option_matches_id_or_unique_label_in_any_case() {
        let colours = question(&[("b", "Blue"), ("g", "Green"), ("x", "green"), ("Y", "yes"), ("y", "no")], false);
        for (words, meant) in [
            ("b", "b"),
            ("Blue", "b"),
            ("blue", "b"),
            (" BLUE ", "b"),
            ("Green", "g"),
            ("green", "x"),
            ("y", "y"),
            ("Y", "Y"),
        ] {
            assert_eq!(checked(&colours, &[words]), Ok(vec![meant.to_owned()]), "{words}");
        }
        for words in ["GREEN", "red", "blu"] {
            assert_eq!(checked(&colours, &[words]), Err("item_not_offered"), "{words}");
        }
        assert_eq!(checked(&colours, &[]), Err("answer_missing"));
        assert_eq!(checked(&colours, &["b", "g"]), Err("answer_type"));
        assert_eq!(checked(&question(&[("b", "Blue")], true), &["red"]), Ok(vec!["red".into()]));
    }

    #[test]
    fn question_answers_must_fit_type_bounds_and_count() {
        let free = |fits: AnswerBounds| Question { fits, ..question(&[], true) };
        let within = |number, least, most| AnswerBounds { number, least, most, ..AnswerBounds::default() };
        let whole = free(within(Some(Number::Integer), Some(1.0), Some(9.0)));
        assert_eq!(checked(&whole, &["3"]), Ok(vec!["3".into()]));
        for words in ["0", "10", "3.5", "three", "NaN"] {
            assert_eq!(checked(&whole, &[words]), Err("answer_unfit"), "{words}");
        }
        assert_eq!(checked(&free(within(None, Some(2.0), None)), &["a"]), Err("answer_unfit"));
        let several = Question {
            multiple: true,
            fits: within(None, Some(2.0), None),
            ..question(&[("a", "A"), ("b", "B")], false)
        };
        assert_eq!(checked(&several, &["a"]), Err("answer_unfit"));
        assert_eq!(checked(&several, &["a", "b"]), Ok(vec!["a".into(), "b".into()]));
        assert_eq!(checked(&several, &["a", "A"]), Err("answer_type"));
        assert_eq!(checked(&Question { optional: true, ..question(&[], true) }, &[" "]), Ok(vec![]));
    }

    #[test]
    fn question_answers_in_one_text_are_checked_one_by_one() {
        let fits = AnswerBounds { number: Some(Number::Integer), least: Some(1.0), ..AnswerBounds::default() };
        let age = Question { id: "age".into(), fits, ..question(&[], true) };
        let own = Some("colour_custom".into());
        let colour = Question { id: "colour".into(), own, ..question(&[("b", "Blue"), ("g", "Green")], true) };
        let note = Question { id: "note".into(), optional: true, ..question(&[], true) };
        let request = Request {
            kind: RequestType::Prompt,
            subject: About::Question { questions: vec![age, colour, note] },
            ..crate::requests::tests::request()
        };
        let of = |text: &str| match parse_text(&request, text) {
            Ok(Decision::Answers(answers)) => Ok(serde_json::to_string(&answers).unwrap()),
            Err(SessionError::BadAnswer { code, field, .. }) => Err((code, field.unwrap_or_default())),
            other => panic!("{other:?}"),
        };
        let good = r#"{"age":["3"],"colour":["b"]}"#;
        assert_eq!(of(r#"{"age":3,"colour":"blue","note":null}"#), Ok(good.to_owned()));
        assert_eq!(of(r#"{"age":3,"colour_custom":"red"}"#), Ok(r#"{"age":["3"],"colour":["red"]}"#.to_owned()));
        for (text, code, field) in [
            ("three", "answer_type", ""),
            ("[]", "answer_type", ""),
            ("{}", "answer_missing", "age"),
            (r#"{"age":0,"colour":"b"}"#, "answer_unfit", "age"),
            (r#"{"age":"3","colour":"b"}"#, "answer_type", "age"),
            (r#"{"age":3}"#, "answer_missing", "colour"),
            (r#"{"age":3,"colour":"b","note":7}"#, "answer_type", "note"),
            (r#"{"age":3,"colour":{"b":1}}"#, "answer_type", "colour"),
            (r#"{"age":3,"colour":"b","more":"x"}"#, "item_not_offered", ""),
        ] {
            assert_eq!(of(text), Err((code, field.to_owned())), "{text}");
        }
    }
}
