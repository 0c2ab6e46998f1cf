//! Requests and answers: requests made from agents' questions, the checks of answers, and receipts. Pure.

use sha2::{Digest, Sha256};

use super::error::{Refused, TooRisky};
use super::{SessionError, questions};
use plexus_dialects::{AgentRequest, AgentReview, AnsweredElsewhere, RequestSubject};
use plexus_protocol::{
    ABOUT_MAX, Answer, AnsweredBy, Choice, Decision, Editable, Item, Offer, Question, QuestionOption, Receipt, Request,
    RequestId, RequestState, RequestType, Resolver, Risk, RunId, RuntimeId, SINGLE_QUESTION, SessionId, Timestamp,
};
use plexus_risk::{Display, SessionFolders, label};

/// Maximum length of the title of a request, in bytes; `native` has the whole.
const TITLE_MAX: usize = 300;
/// Maximum length of a reason forwarded to an agent, in bytes.
const REASON_MAX: usize = 4 << 10;

/// Maximum length of an editable text and of an edit, in bytes. A longer text is not offered for editing, a longer edit is refused.
const EDIT_MAX: usize = 64 << 10;
/// Maximum length of the label of an editable text, in bytes.
const LABEL_MAX: usize = 60;

/// Makes a request from a runtime's question.
pub(super) fn open(
    ask: &AgentRequest,
    id: RequestId,
    owners: (SessionId, RunId, RuntimeId),
    folders: SessionFolders<'_>,
    generation: u64,
    times: (Timestamp, Option<Timestamp>),
) -> Request {
    build(ask, id, owners, folders, generation, times, 0)
}

fn build(
    ask: &AgentRequest,
    id: RequestId,
    (session_id, run_id, runtime_id): (SessionId, RunId, RuntimeId),
    folders: SessionFolders<'_>,
    generation: u64,
    (now, expires_at): (Timestamp, Option<Timestamp>),
    revision: u64,
) -> Request {
    let danger = ask.danger_level.as_deref() == Some("danger");
    let command = plexus_risk::command_of(&ask.subject);
    let subject = command.as_ref().unwrap_or(&ask.subject);
    let display = plexus_risk::render(subject, folders, danger);
    let subject = plexus_risk::about(subject, ask.kind, &display.folder, &display.counts, || single_question(ask));
    let mut request = Request {
        request_id: id,
        session_id,
        run_id,
        runtime_id,
        generation,
        kind: ask.kind,
        state: RequestState::Open,
        title: label(&ask.title, TITLE_MAX),
        message: ask.message.clone(),
        subject,
        display: display.text,
        display_truncated: false,
        display_bytes: None,
        warnings: display.warnings,
        risk: display.risk,
        risk_reasons: display.reasons,
        revision,
        changed: revision > 0,
        digest: String::new(),
        options: ask.options.clone(),
        items: ask.items.clone(),
        multi: ask.multi,
        default_value: ask.default_value.clone(),
        multiline: ask.multiline,
        secret: ask.secret,
        danger,
        danger_level: ask.danger_level.clone(),
        allow_reason: ask.allow_reason,
        // Dialects with options have "always" as one of them.
        allow_remember: ask.allow_remember || ask.options.iter().any(|offer| offer.kind == Choice::AllowAlways),
        observe_only: ask.observe_only,
        editable: ask
            .editable
            .clone()
            .filter(|editable| editable.value.len() <= EDIT_MAX && !ask.secret)
            .map(|editable| Editable { label: label(&editable.label, LABEL_MAX), ..editable }),
        tool_call_id: ask.tool_call_id.clone(),
        native: Some(ask.params.clone()),
        expires_at,
        opened_at: now,
        receipt: None,
    };
    request.digest = digest(&request, &display.subject_digest);
    request
}

/// Returns a pick or prompt request as one question.
fn single_question(ask: &AgentRequest) -> Question {
    let text = ask.message.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(&ask.title);
    let option = |item: &Item| QuestionOption {
        id: item.id.clone(),
        label: label(&item.label, ABOUT_MAX),
        description: item.detail.as_deref().map(|detail| label(detail, ABOUT_MAX)),
    };
    let offer = |offer: &Offer| QuestionOption {
        id: offer.id.clone(),
        label: label(&offer.label, ABOUT_MAX),
        description: None,
    };
    Question {
        id: SINGLE_QUESTION.into(),
        text: label(text, ABOUT_MAX),
        options: ask.items.iter().map(option).chain(ask.options.iter().map(offer)).collect(),
        multiple: ask.multi,
        free_text: ask.kind == RequestType::Prompt,
        optional: ask.expects.optional,
        field: ask.expects.field.clone(),
        fits: ask.expects.fits.clone(),
        ..Question::default()
    }
}

/// Returns the next revision of a request, from the runtime's new version of the question. `None` if nothing changed.
pub(super) fn revise(request: &Request, ask: &AgentRequest, folders: SessionFolders<'_>) -> Option<Request> {
    let at = |revision| {
        let owners = (request.session_id.clone(), request.run_id.clone(), request.runtime_id.clone());
        let times = (request.opened_at, request.expires_at);
        build(ask, request.request_id.clone(), owners, folders, request.generation, times, revision)
    };
    let same = at(request.revision);
    if same.digest == request.digest && same.risk == request.risk {
        return None;
    }
    Some(at(request.revision.saturating_add(1)))
}

/// Returns the SHA-256 digest (hex) of a request: its identity, its subject and what it offers. `subject_digest` is [`Display`]'s.
fn digest(request: &Request, subject_digest: &str) -> String {
    let identity = (
        &request.request_id,
        &request.session_id,
        &request.run_id,
        &request.runtime_id,
        request.generation,
        request.revision,
    );
    let subject = (subject_digest, request.kind, &request.title, &request.message, &request.display, &request.native);
    let offered = (&request.options, &request.items, request.multi, &request.default_value, request.secret);
    let offered = (offered, &request.editable);
    // Plain values, which always serialize.
    let canonical = serde_json::to_vec(&(identity, subject, offered)).unwrap_or_default();
    data_encoding::HEXLOWER.encode(&Sha256::digest(canonical))
}

/// Checks an answer against what the request offers, and what it allows against the device's risk limit `up_to`. The limit restricts only
/// allowing: every device that may answer may refuse, once or permanently.
///
/// # Errors
/// [`SessionError::RiskTooHigh`], [`SessionError::StaleDigest`], [`SessionError::DigestRequired`], [`SessionError::BadAnswer`].
pub fn judge(request: &Request, answer: &Answer, up_to: Option<Risk>) -> Result<Decision, SessionError> {
    if request.observe_only {
        return Err(SessionError::ObserveOnly);
    }
    let decision = decide(request, answer, up_to)?;
    if let Some(up_to) = up_to.filter(|up_to| request.risk > *up_to && !refuses(&decision)) {
        return Err(TooRisky::new(Refused::Allowing, request.risk, up_to, request.risk_reasons.clone()).into());
    }
    let older = answer.revision.is_some_and(|revision| revision != request.revision);
    if older || answer.digest.as_ref().is_some_and(|digest| *digest != request.digest) {
        return Err(SessionError::StaleDigest);
    }
    if answer.digest.is_none() && !refuses(&decision) {
        // To allow a request, a client must prove that it displayed all of the current revision.
        if request.changed && answer.revision.is_none() {
            return Err(SessionError::StaleDigest);
        }
        if request.is_long() {
            return Err(SessionError::DigestRequired);
        }
    }
    Ok(decision)
}

/// Returns whether a decision allows the agent nothing.
fn refuses(decision: &Decision) -> bool {
    match decision {
        Decision::Option { kind, .. } => kind.rejects(),
        Decision::Edited { .. } => false,
        Decision::Value(value) => value.is_none(),
        Decision::Ids(ids) => ids.is_empty(),
        Decision::Answers(answers) => answers.is_empty(),
        Decision::Expired | Decision::Withdrawn => true,
    }
}

/// Returns the reason of an answer, and whether the choice is to be remembered. Checks the answer's edit, too.
fn reason_and_remember(request: &Request, answer: &Answer) -> Result<(Option<String>, bool), SessionError> {
    let bad = |code, message: String| Err(SessionError::BadAnswer { code, message, field: None });
    let reason = answer.reason.clone().filter(|_| request.allow_reason || !answer.as_offered);
    if let Some(reason) = &reason {
        if !request.allow_reason {
            return bad("reason_not_offered", "this runtime does not accept a reason: answer without one".into());
        }
        if reason.len() > REASON_MAX {
            return bad("reason_too_long", format!("a reason may have at most {REASON_MAX} bytes"));
        }
    }
    if let Some(edited) = &answer.edited {
        if request.editable.is_none() {
            return bad("edit_not_offered", "this request cannot be edited: answer it as it is".into());
        }
        if edited.len() > EDIT_MAX || edited.trim().is_empty() {
            return bad("bad_edit", format!("an edit must have 1 to {EDIT_MAX} bytes, not only white space"));
        }
    }
    let mut remember = answer.remember == Some(true);
    if answer.as_offered
        && let Some(ok) = answer.ok
    {
        remember &= request.allow_remember && always(request, ok).is_some();
    }
    if remember && !request.allow_remember {
        return bad("remember_not_offered", "this runtime cannot remember a choice: answer without `remember`".into());
    }
    Ok((reason, remember))
}

/// Returns the decision of an answer, if it matches what the request offers.
fn decide(request: &Request, answer: &Answer, up_to: Option<Risk>) -> Result<Decision, SessionError> {
    let bad = |code, message: String| Err(SessionError::BadAnswer { code, message, field: None });
    let given = usize::from(answer.option_id.is_some())
        + usize::from(answer.ok.is_some())
        + usize::from(answer.value.is_some())
        + usize::from(answer.ids.is_some())
        + usize::from(answer.answers.is_some());
    if given != 1 {
        return bad(
            "answer_type",
            format!("give exactly one of option_id, ok, value, ids, answers; {given} were given"),
        );
    }
    if let Some(answers) = &answer.answers {
        return match questions::judge(request, answers)? {
            // A single question is answered in the request's own form.
            questions::ParsedAnswers::Single(plain) => {
                let plain = Answer { reason: answer.reason.clone(), remember: answer.remember, ..plain };
                decide(request, &plain, up_to)
            }
            questions::ParsedAnswers::PerQuestion(answers) => Ok(Decision::Answers(answers)),
        };
    }
    let (reason, remember) = reason_and_remember(request, answer)?;
    match request.kind {
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            let offer = match (&answer.option_id, answer.ok) {
                (Some(id), _) => {
                    let offer = request.options.iter().find(|offer| offer.id == *id);
                    match offer {
                        Some(offer) if remember => always(request, offer.kind.allows()),
                        offer => offer,
                    }
                }
                (None, Some(ok)) if remember => always(request, ok),
                (None, Some(ok)) => {
                    let kind = if ok { Choice::AllowOnce } else { Choice::RejectOnce };
                    let single = request.options.iter().find(|offer| offer.kind == kind);
                    // `ok: false` of the UI protocol selects a permanent refusal if the request offers no other one.
                    single.or_else(|| always(request, ok).filter(|_| answer.as_offered && !ok))
                }
                (None, None) => return bad("answer_type", "answer with option_id or ok".into()),
            };
            match offer {
                // "Always" also allows later requests, regardless of their risk. `judge` refuses what is too risky even once.
                Some(Offer { kind: Choice::AllowAlways, .. })
                    if up_to.is_some_and(|up_to| (request.risk..Risk::Danger).contains(&up_to)) =>
                {
                    let reason = vec!["it also allows later actions, regardless of their risk".to_owned()];
                    let up_to = up_to.unwrap_or(Risk::Low);
                    Err(TooRisky::new(Refused::AllowingAlways, Risk::Danger, up_to, reason).into())
                }
                Some(Offer { id, kind, .. }) if is_edited(request, answer) => match kind {
                    Choice::AllowOnce => {
                        let text = answer.edited.clone().unwrap_or_default();
                        let display = render_edit(&text);
                        if let Some(up_to) = up_to.filter(|up_to| display.risk > *up_to) {
                            return Err(TooRisky::new(Refused::Allowing, display.risk, up_to, display.reasons).into());
                        }
                        Ok(Decision::Edited { id: id.clone(), text, reason })
                    }
                    // The agent's "always" is about the original text.
                    _ => bad(
                        "bad_edit",
                        "an edit is possible only when allowing once: leave it out, or allow once".into(),
                    ),
                },
                Some(Offer { id, kind, .. }) => Ok(Decision::Option { id: id.clone(), kind: *kind, reason }),
                None => {
                    let offered: Vec<&str> = request.options.iter().map(|offer| offer.id.as_str()).collect();
                    bad("option_not_offered", format!("not offered; the options are: {}", offered.join(", ")))
                }
            }
        }
        RequestType::Prompt => match (&answer.value, answer.ok) {
            (Some(Some(text)), _) => questions::parse_text(request, text),
            (Some(None), _) => Ok(Decision::Value(None)),
            (None, Some(false)) => Ok(Decision::Value(None)),
            _ => bad("answer_type", "answer with value (text, or null to cancel)".into()),
        },
        RequestType::Pick => match (&answer.ids, &answer.option_id, answer.ok) {
            (Some(ids), _, _) => pick(request, ids.clone()),
            (None, Some(id), _) => pick(request, vec![id.clone()]),
            (None, None, Some(false)) => Ok(Decision::Ids(Vec::new())),
            _ => bad("answer_type", "answer with ids (a list; empty to cancel)".into()),
        },
    }
}

/// Returns the display and risk of an edited text, by the rules of commands. No folder is given, so that no path counts as inside it.
fn render_edit(text: &str) -> Display {
    plexus_risk::render(
        &RequestSubject::Command { argv: vec![text.to_owned()], cwd: None },
        SessionFolders::default(),
        false,
    )
}

/// Returns whether the answer changes the request's editable text.
fn is_edited(request: &Request, answer: &Answer) -> bool {
    answer.edited.is_some() && answer.edited.as_ref() != request.editable.as_ref().map(|editable| &editable.value)
}

fn always(request: &Request, allow: bool) -> Option<&Offer> {
    let kind = if allow { Choice::AllowAlways } else { Choice::RejectAlways };
    request.options.iter().find(|offer| offer.kind == kind)
}

fn pick(request: &Request, ids: Vec<String>) -> Result<Decision, SessionError> {
    let offered: Vec<(&str, &str)> = request.items.iter().map(|item| (&*item.id, &*item.label)).collect();
    let offered_id = |id: String| {
        questions::option_id(&offered, &id).map(str::to_owned).ok_or_else(|| {
            let names: Vec<&str> = offered.iter().map(|(id, _)| *id).collect();
            let message = format!("{id:?} is not one of the items, or of two of them: {}", names.join(", "));
            SessionError::BadAnswer { code: "item_not_offered", message, field: None }
        })
    };
    let wrong = |text: &str| Err(SessionError::BadAnswer { code: "answer_type", message: text.into(), field: None });
    let ids: Vec<String> = ids.into_iter().map(offered_id).collect::<Result<_, _>>()?;
    if ids.iter().enumerate().any(|(n, id)| ids[..n].contains(id)) {
        return wrong("an item can be chosen only once");
    }
    if ids.len() > 1 && !request.multi {
        return wrong("at most one item can be chosen");
    }
    if !ids.is_empty() {
        questions::check_count(request, ids.len())?;
    }
    Ok(Decision::Ids(ids))
}

/// Makes the receipt for a decision that ended a request.
pub(super) fn receipt(request: &Request, decision: &Decision, by: Resolver, now: Timestamp) -> Receipt {
    let mut receipt = Receipt {
        answered_by: Some(AnsweredBy::Person),
        ..Receipt::new(request.request_id.clone(), RequestState::Answered, by, now)
    };
    match decision {
        Decision::Option { id, kind, reason } => {
            receipt.option_id = Some(id.clone());
            receipt.ok = (kind.allows() || kind.rejects()).then(|| kind.allows());
            receipt.reason.clone_from(reason);
        }
        Decision::Edited { id, text, reason } => {
            // All clients see the edited text as the agent gets it, rendered by the rules of requests.
            let display = render_edit(text);
            receipt.option_id = Some(id.clone());
            receipt.ok = Some(true);
            receipt.reason.clone_from(reason);
            receipt.edited = Some(text.clone());
            (receipt.edited_display, receipt.edited_warnings) = (Some(display.text), display.warnings);
        }
        Decision::Value(value) => {
            receipt.ok = Some(value.is_some());
            receipt.value = value.clone().filter(|_| !request.secret);
        }
        Decision::Ids(ids) => {
            receipt.ok = Some(!ids.is_empty());
            receipt.ids = Some(ids.clone());
        }
        Decision::Answers(answers) => {
            receipt.ok = Some(!answers.is_empty());
            receipt.answers = Some(answers.clone());
        }
        Decision::Expired => (receipt.state, receipt.answered_by) = (RequestState::Expired, None),
        Decision::Withdrawn => (receipt.state, receipt.answered_by) = (RequestState::Withdrawn, None),
    }
    receipt
}

/// Makes the receipt for a request that was answered outside the gateway.
pub(super) fn receipt_elsewhere(request: &Request, elsewhere: AnsweredElsewhere, now: Timestamp) -> Receipt {
    let by = Resolver::elsewhere(label(&elsewhere.by, TITLE_MAX));
    let kind = request.options.iter().find(|offer| Some(&offer.id) == elsewhere.option_id.as_ref()).map(|o| o.kind);
    Receipt {
        ok: kind.filter(|kind| kind.allows() || kind.rejects()).map(Choice::allows),
        option_id: elsewhere.option_id,
        reason: Some("answered elsewhere".into()),
        answered_by: Some(AnsweredBy::Person),
        ..receipt(request, &Decision::Withdrawn, by, now)
    }
}

/// Makes the receipt for a question that the runtime put to a reviewer of its own.
pub(super) fn receipt_of_review(request: &Request, review: AgentReview, now: Timestamp) -> Receipt {
    let kind = if review.allowed { Choice::AllowOnce } else { Choice::RejectOnce };
    let option = request.options.iter().find(|offer| offer.kind == kind).map(|offer| offer.id.clone());
    let decision = Decision::Option { id: option.unwrap_or_default(), kind, reason: review.reason };
    let by = Resolver::elsewhere(label(&review.by, TITLE_MAX));
    Receipt { answered_by: Some(AnsweredBy::Agent), ..receipt(request, &decision, by, now) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use plexus_protocol::answers::{self, AnswerRole, Answerer};
    use plexus_protocol::{About, Item};

    pub(crate) fn request() -> Request {
        let offer = Offer { id: "yes".into(), label: "Yes".into(), kind: Choice::AllowOnce, for_session: false };
        Request {
            request_id: RequestId::trusted("q_1"),
            session_id: SessionId::trusted("s_1"),
            run_id: RunId::trusted("r_1"),
            runtime_id: RuntimeId::trusted("demo"),
            generation: 1,
            kind: RequestType::Permission,
            state: RequestState::Open,
            title: "Run?".into(),
            message: None,
            subject: About::Unreadable,
            display: "ls".into(),
            display_truncated: false,
            display_bytes: None,
            warnings: vec![],
            risk: Risk::Elevated,
            risk_reasons: vec![],
            revision: 0,
            changed: false,
            digest: String::new(),
            options: vec![offer],
            items: vec![],
            multi: false,
            default_value: None,
            multiline: false,
            secret: false,
            danger: false,
            danger_level: None,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            editable: None,
            tool_call_id: None,
            native: None,
            expires_at: None,
            opened_at: Timestamp::default(),
            receipt: None,
        }
    }

    #[test]
    fn request_digest_changes_with_every_part() {
        let changes: [fn(&mut Request); 14] = [
            |r| r.request_id = RequestId::trusted("q_2"),
            |r| r.session_id = SessionId::trusted("s_2"),
            |r| r.run_id = RunId::trusted("r_2"),
            |r| r.runtime_id = RuntimeId::trusted("other"),
            |r| r.generation = 2,
            |r| r.revision = 1,
            |r| r.kind = RequestType::Confirm,
            |r| r.title.push('!'),
            |r| r.message = Some(String::new()),
            |r| r.display.push(' '),
            |r| r.options[0].id.push('x'),
            |r| r.options[0].kind = Choice::AllowAlways,
            |r| r.items.push(Item { id: "i".into(), label: "i".into(), detail: None }),
            |r| r.native = serde_json::value::RawValue::from_string("{}".into()).ok(),
        ];
        let mut digests = vec![digest(&request(), "")];
        for change in changes {
            let mut changed = request();
            change(&mut changed);
            digests.push(digest(&changed, ""));
        }
        let all = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), all);
        assert!(digests.iter().all(|digest| digest.len() == 64));
    }

    #[test]
    fn request_risk_limit_restricts_allowing_alone_and_always_needs_danger() {
        let offers = [
            ("yes", Choice::AllowOnce),
            ("always", Choice::AllowAlways),
            ("no", Choice::RejectOnce),
            ("never", Choice::RejectAlways),
            ("other", Choice::Other),
        ];
        let offers = offers.map(|(id, kind)| Offer { id: id.into(), label: id.into(), kind, for_session: false });
        for risk in [Risk::Low, Risk::Elevated, Risk::Danger] {
            let request = Request { risk, options: offers.to_vec(), allow_remember: true, ..request() };
            for up_to in [None, Some(Risk::Low), Some(Risk::Elevated), Some(Risk::Danger)] {
                let is_allowed = up_to.is_none_or(|up_to| risk <= up_to);
                let every = up_to.is_none_or(|up_to| up_to == Risk::Danger);
                let option = |id: &str| Answer { option_id: Some(id.into()), ..Answer::default() };
                for (answer, is_allowed) in [
                    (option("yes"), is_allowed),
                    (Answer { ok: Some(true), ..Answer::default() }, is_allowed),
                    (option("other"), is_allowed),
                    (option("always"), is_allowed && every),
                    (Answer { ok: Some(true), remember: Some(true), ..Answer::default() }, is_allowed && every),
                    (option("no"), true),
                    (option("never"), true),
                    (Answer { ok: Some(false), ..Answer::default() }, true),
                    (Answer { ok: Some(false), remember: Some(true), ..Answer::default() }, true),
                ] {
                    match judge(&request, &answer, up_to) {
                        Ok(_) => assert!(is_allowed, "{risk:?} {up_to:?} {answer:?}"),
                        Err(SessionError::RiskTooHigh(_)) => assert!(!is_allowed, "{risk:?} {up_to:?} {answer:?}"),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        }
    }

    #[test]
    fn request_takes_exactly_the_answers_that_screens_offer() {
        let kinds = [Choice::AllowOnce, Choice::AllowAlways, Choice::RejectOnce, Choice::RejectAlways, Choice::Other];
        let offer = |kind: Choice| Offer { id: format!("{kind:?}"), label: "x".into(), kind, for_session: false };
        let item = Item { id: "a".into(), label: "A".into(), detail: None };
        for risk in [Risk::Low, Risk::Elevated, Risk::Danger] {
            let permission = Request { risk, options: kinds.map(offer).to_vec(), ..request() };
            let prompt = Request { kind: RequestType::Prompt, options: vec![], ..permission.clone() };
            let pick = Request { kind: RequestType::Pick, items: vec![item.clone()], ..prompt.clone() };
            for limit in [None, Some(Risk::Low), Some(Risk::Elevated), Some(Risk::Danger)] {
                let device = Answerer { may_approve: true, approve_up_to: limit };
                for request in [&permission, &prompt, &pick] {
                    for action in answers::actions(request, device) {
                        // A text or an item is still missing.
                        let Some(answer) = action.answer.filter(|_| action.role != AnswerRole::Send) else { continue };
                        let taken = judge(request, &answer, limit);
                        assert_eq!(taken.is_ok(), action.unavailable.is_none(), "{risk:?} {limit:?} {answer:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn request_above_the_limit_can_be_declined_in_every_form() {
        let item = Item { id: "a".into(), label: "A".into(), detail: None };
        let prompt = Request { kind: RequestType::Prompt, options: vec![], risk: Risk::Danger, ..request() };
        let pick = Request { kind: RequestType::Pick, items: vec![item], ..prompt.clone() };
        let value = |value: Option<&str>| Answer { value: Some(value.map(Into::into)), ..Answer::default() };
        let ids =
            |ids: &[&str]| Answer { ids: Some(ids.iter().map(ToString::to_string).collect()), ..Answer::default() };
        let decline = Answer { ok: Some(false), ..Answer::default() };
        for (request, answer, is_allowed) in [
            (&prompt, value(Some("hunter2")), false),
            (&prompt, value(None), true),
            (&prompt, decline.clone(), true),
            (&pick, ids(&["a"]), false),
            (&pick, ids(&[]), true),
            (&pick, decline, true),
        ] {
            match judge(request, &answer, Some(Risk::Elevated)) {
                Ok(decision) => assert!(is_allowed && refuses(&decision), "{answer:?}"),
                Err(SessionError::RiskTooHigh(too)) => {
                    assert!(!is_allowed && too.refused == Refused::Allowing, "{answer:?}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn request_edit_is_taken_only_where_offered_with_allow_once() {
        let offers = [("yes", Choice::AllowOnce), ("always", Choice::AllowAlways), ("no", Choice::RejectOnce)];
        let options: Vec<Offer> = offers
            .map(|(id, kind)| Offer { id: id.into(), label: id.into(), kind, for_session: false })
            .into_iter()
            .collect();
        let editable = Some(Editable { label: "Command".into(), value: "ls".into() });
        let plain = Request { options: options.clone(), ..request() };
        let edits = Request { editable, allow_remember: true, ..plain.clone() };
        assert_ne!(digest(&plain, ""), digest(&edits, ""));
        let answer = |option: &str, edited: &str| Answer {
            option_id: Some(option.into()),
            edited: Some(edited.into()),
            ..Answer::default()
        };
        let code = |request: &Request, answer: &Answer| match judge(request, answer, None) {
            Err(SessionError::BadAnswer { code, .. }) => code,
            other => panic!("{other:?}"),
        };
        let done = judge(&edits, &answer("yes", "ls -l\u{202e}"), None).unwrap();
        assert_eq!(done, Decision::Edited { id: "yes".into(), text: "ls -l\u{202e}".into(), reason: None });
        let stored = receipt(&edits, &done, Resolver::gateway(), Timestamp::default());
        assert_eq!((stored.ok, stored.edited.as_deref()), (Some(true), Some("ls -l\u{202e}")), "exactly");
        assert_eq!(stored.edited_display.as_deref(), Some("ls -l\\u{202e}"), "and safe to show");
        assert!(stored.edited_warnings.iter().any(|warning| warning.contains("bidirectional")));
        // A device's risk limit applies to the edit, too.
        let low =
            |text: &str| judge(&Request { risk: Risk::Low, ..edits.clone() }, &answer("yes", text), Some(Risk::Low));
        let risk = |text: &str| match low(text) {
            Err(SessionError::RiskTooHigh(too)) => too.risk,
            other => panic!("{other:?}"),
        };
        assert_eq!((risk("rm -rf /"), risk("make deploy")), (Risk::Danger, Risk::Elevated));
        // An unchanged text is a plain yes.
        assert!(matches!(judge(&edits, &answer("always", "ls"), None), Ok(Decision::Option { .. })));
        assert_eq!(code(&plain, &answer("yes", "ls")), "edit_not_offered");
        for (option, edited) in
            [("always", "x"), ("no", "x"), ("yes", ""), ("yes", " \n"), ("yes", &*"x".repeat(EDIT_MAX + 1))]
        {
            assert_eq!(code(&edits, &answer(option, edited)), "bad_edit", "{option} {}", edited.len());
        }
        let remembered = Answer { ok: Some(true), option_id: None, remember: Some(true), ..answer("", "x") };
        assert_eq!(code(&edits, &remembered), "bad_edit");
    }

    #[test]
    fn request_answer_from_ui_protocol_uses_only_what_is_offered() {
        let offers = [
            ("yes", Choice::AllowOnce),
            ("always", Choice::AllowAlways),
            ("no", Choice::RejectOnce),
            ("never", Choice::RejectAlways),
        ];
        let offer = |&(id, kind): &(&str, Choice)| Offer { id: id.into(), label: id.into(), kind, for_session: false };
        let all = Request { options: offers.iter().map(offer).collect(), allow_remember: true, ..request() };
        let few = Request { options: offers[..3].iter().map(offer).collect(), ..all.clone() };
        let once =
            Request { options: vec![offer(&offers[0]), offer(&offers[2])], allow_remember: false, ..all.clone() };
        let hard =
            Request { options: vec![offer(&offers[0]), offer(&offers[3])], allow_remember: false, ..all.clone() };
        for (request, ok, chosen) in [
            (&all, true, "always"),
            (&all, false, "never"),
            (&few, true, "always"),
            (&few, false, "no"),
            (&once, true, "yes"),
            (&once, false, "no"),
            (&hard, false, "never"),
        ] {
            let answer = Answer {
                ok: Some(ok),
                remember: Some(true),
                reason: Some("so".into()),
                as_offered: true,
                ..Answer::default()
            };
            match judge(request, &answer, None).unwrap() {
                Decision::Option { id, reason, .. } => assert_eq!((id.as_str(), reason), (chosen, None)),
                other => panic!("{other:?}"),
            }
            assert!(judge(request, &Answer { as_offered: false, ..answer }, None).is_err(), "others are told");
        }
    }

    #[test]
    fn request_picked_item_must_be_offered_and_secret_is_not_kept() {
        let item = Item { id: "a".into(), label: "A".into(), detail: None };
        let pick = Request { kind: RequestType::Pick, items: vec![item], options: vec![], ..request() };
        let ids =
            |ids: &[&str]| Answer { ids: Some(ids.iter().map(ToString::to_string).collect()), ..Answer::default() };
        assert_eq!(judge(&pick, &ids(&["a"]), None).unwrap(), Decision::Ids(vec!["a".into()]));
        assert_eq!(judge(&pick, &ids(&[]), None).unwrap(), Decision::Ids(vec![]));
        assert!(judge(&pick, &ids(&["b"]), None).is_err());
        assert!(judge(&pick, &ids(&["a", "a"]), None).is_err(), "one at most");
        let secret = Request { kind: RequestType::Prompt, secret: true, ..request() };
        let decision =
            judge(&secret, &Answer { value: Some(Some("hunter2".into())), ..Answer::default() }, None).unwrap();
        let stored = receipt(&secret, &decision, Resolver::gateway(), Timestamp::default());
        assert_eq!((stored.value, stored.ok, stored.answered_by), (None, Some(true), Some(AnsweredBy::Person)));
        let expired = receipt(&secret, &Decision::Expired, Resolver::gateway(), Timestamp::default());
        assert_eq!(expired.answered_by, None, "nobody decided");
    }
}
