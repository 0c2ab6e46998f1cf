//! Questions and answers: what a request offers, which answers fit, what a receipt says. Pure.

use sha2::{Digest, Sha256};

use super::{Refusal, display};
use crate::dialects::{Ask, Elsewhere};
use crate::model::{
    Answer, Choice, Decision, Offer, Receipt, Request, RequestId, RequestState, RequestType, Resolver, Risk, RunId,
    RuntimeId, SessionId, Timestamp,
};

/// Longest headline kept in a request, in bytes; the whole of it is in `native`.
const TITLE_MAX: usize = 300;
/// Longest reason that is forwarded to an agent, in bytes.
const REASON_MAX: usize = 4 << 10;

/// Makes a request of a runtime's question. `folder` is the session's.
pub(super) fn open(
    ask: &Ask,
    id: RequestId,
    (session_id, run_id, runtime_id): (SessionId, RunId, RuntimeId),
    folder: &str,
    generation: u64,
    (now, expires_at): (Timestamp, Option<Timestamp>),
) -> Request {
    let display = display::render(&ask.subject, folder, ask.danger);
    let mut request = Request {
        request_id: id,
        session_id,
        run_id,
        runtime_id,
        generation,
        kind: ask.kind,
        state: RequestState::Open,
        title: display::label(&ask.title, TITLE_MAX),
        message: ask.message.clone(),
        display: display.text,
        warnings: display.warnings,
        risk: display.risk,
        digest: String::new(),
        options: ask.options.clone(),
        items: ask.items.clone(),
        multi: ask.multi,
        default_value: ask.default_value.clone(),
        multiline: ask.multiline,
        secret: ask.secret,
        danger: ask.danger,
        allow_reason: ask.allow_reason,
        // A dialect that carries options carries "always" as one of them.
        allow_remember: ask.allow_remember || ask.options.iter().any(|offer| offer.kind == Choice::AllowAlways),
        observe_only: ask.observe_only,
        tool_call_id: ask.tool_call_id.clone(),
        native: Some(ask.params.clone()),
        expires_at,
        opened_at: now,
        receipt: None,
    };
    request.digest = digest(&request);
    request
}

/// SHA-256 (hex) over what is asked and of whom: any change to it is another digest.
fn digest(request: &Request) -> String {
    let of = (&request.request_id, &request.session_id, &request.run_id, &request.runtime_id, request.generation);
    let said = (request.kind, &request.title, &request.message, &request.display, &request.native);
    let offered = (&request.options, &request.items, request.multi, &request.default_value, request.secret);
    // Plain values of our own, which always can be written; were one not to, the digest would still be of one kind only.
    let canonical = serde_json::to_vec(&(of, said, offered)).unwrap_or_default();
    data_encoding::HEXLOWER.encode(&Sha256::digest(canonical))
}

/// Checks an answer against what the request offers.
///
/// # Errors
/// [`Refusal::RiskTooHigh`], [`Refusal::StaleDigest`], [`Refusal::BadAnswer`].
pub(crate) fn judge(request: &Request, answer: &Answer, up_to: Option<Risk>) -> Result<Decision, Refusal> {
    if request.observe_only {
        return Err(Refusal::ObserveOnly);
    }
    if let Some(up_to) = up_to.filter(|up_to| request.risk > *up_to) {
        return Err(Refusal::RiskTooHigh { risk: request.risk, up_to });
    }
    if answer.digest.as_ref().is_some_and(|digest| *digest != request.digest) {
        return Err(Refusal::StaleDigest);
    }
    let bad = |code, message: String| Err(Refusal::BadAnswer { code, message });
    let given = usize::from(answer.option_id.is_some())
        + usize::from(answer.ok.is_some())
        + usize::from(answer.value.is_some())
        + usize::from(answer.ids.is_some());
    if given != 1 {
        return bad("answer_type", format!("give exactly one of option_id, ok, value, ids; {given} were given"));
    }
    if let Some(reason) = &answer.reason {
        if !request.allow_reason {
            return bad("reason_not_offered", "this runtime cannot be told a reason: answer without one".into());
        }
        if reason.len() > REASON_MAX {
            return bad("reason_too_long", format!("a reason has {REASON_MAX} bytes at most"));
        }
    }
    let remember = answer.remember == Some(true);
    if remember && !request.allow_remember {
        return bad("remember_not_offered", "this runtime cannot remember a choice: answer without `remember`".into());
    }
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
                    request.options.iter().find(|offer| offer.kind == kind)
                }
                (None, None) => return bad("answer_type", "answer with option_id or ok".into()),
            };
            match offer {
                // What is allowed always is allowed whatever its risk will be.
                Some(Offer { kind: Choice::AllowAlways, .. }) if up_to.is_some_and(|up_to| up_to < Risk::Danger) => {
                    let up_to = up_to.unwrap_or(Risk::Low);
                    Err(Refusal::RiskTooHigh { risk: Risk::Danger, up_to })
                }
                Some(Offer { id, kind, .. }) => {
                    Ok(Decision::Option { id: id.clone(), kind: *kind, reason: answer.reason.clone() })
                }
                None => {
                    let offered: Vec<&str> = request.options.iter().map(|offer| offer.id.as_str()).collect();
                    bad("option_not_offered", format!("not offered; the options are: {}", offered.join(", ")))
                }
            }
        }
        RequestType::Prompt => match (&answer.value, answer.ok) {
            (Some(value), _) => Ok(Decision::Value(value.clone())),
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

fn always(request: &Request, allow: bool) -> Option<&Offer> {
    let kind = if allow { Choice::AllowAlways } else { Choice::RejectAlways };
    request.options.iter().find(|offer| offer.kind == kind)
}

fn pick(request: &Request, ids: Vec<String>) -> Result<Decision, Refusal> {
    let unknown = ids.iter().find(|id| !request.items.iter().any(|item| item.id == **id));
    if let Some(id) = unknown {
        return Err(Refusal::BadAnswer {
            code: "item_not_offered",
            message: format!("{id:?} is not one of the items"),
        });
    }
    if ids.len() > 1 && !request.multi {
        return Err(Refusal::BadAnswer { code: "answer_type", message: "one item at most may be picked".into() });
    }
    Ok(Decision::Ids(ids))
}

/// The receipt for a decision that ended a request.
pub(super) fn receipt(request: &Request, decision: &Decision, by: Resolver, now: Timestamp) -> Receipt {
    let mut receipt = Receipt {
        request_id: request.request_id.clone(),
        state: RequestState::Answered,
        option_id: None,
        ok: None,
        value: None,
        ids: None,
        reason: None,
        resolved_by: by,
        at: now,
        cursor: None,
        won: false,
    };
    match decision {
        Decision::Option { id, kind, reason } => {
            receipt.option_id = Some(id.clone());
            receipt.ok = (kind.allows() || kind.rejects()).then(|| kind.allows());
            receipt.reason.clone_from(reason);
        }
        Decision::Value(value) => {
            receipt.ok = Some(value.is_some());
            receipt.value = value.clone().filter(|_| !request.secret);
        }
        Decision::Ids(ids) => {
            receipt.ok = Some(!ids.is_empty());
            receipt.ids = Some(ids.clone());
        }
        Decision::Expired => receipt.state = RequestState::Expired,
        Decision::Withdrawn => receipt.state = RequestState::Withdrawn,
    }
    receipt
}

/// The receipt for a request that somebody answered past the gateway.
pub(super) fn elsewhere(request: &Request, elsewhere: Elsewhere, now: Timestamp) -> Receipt {
    let by = Resolver::elsewhere(display::label(&elsewhere.by, TITLE_MAX));
    let kind = request.options.iter().find(|offer| Some(&offer.id) == elsewhere.option_id.as_ref()).map(|o| o.kind);
    Receipt {
        ok: kind.filter(|kind| kind.allows() || kind.rejects()).map(Choice::allows),
        option_id: elsewhere.option_id,
        reason: Some("answered elsewhere".into()),
        ..receipt(request, &Decision::Withdrawn, by, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Item;

    fn request() -> Request {
        let offer = Offer { id: "yes".into(), label: "Yes".into(), kind: Choice::AllowOnce };
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
            display: "ls".into(),
            warnings: vec![],
            risk: Risk::Elevated,
            digest: String::new(),
            options: vec![offer],
            items: vec![],
            multi: false,
            default_value: None,
            multiline: false,
            secret: false,
            danger: false,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            tool_call_id: None,
            native: None,
            expires_at: None,
            opened_at: Timestamp::default(),
            receipt: None,
        }
    }

    #[test]
    fn whatever_is_asked_otherwise_has_another_digest() {
        let changes: [fn(&mut Request); 13] = [
            |r| r.request_id = RequestId::trusted("q_2"),
            |r| r.session_id = SessionId::trusted("s_2"),
            |r| r.run_id = RunId::trusted("r_2"),
            |r| r.runtime_id = RuntimeId::trusted("other"),
            |r| r.generation = 2,
            |r| r.kind = RequestType::Confirm,
            |r| r.title.push('!'),
            |r| r.message = Some(String::new()),
            |r| r.display.push(' '),
            |r| r.options[0].id.push('x'),
            |r| r.options[0].kind = Choice::AllowAlways,
            |r| r.items.push(Item { id: "i".into(), label: "i".into(), detail: None }),
            |r| r.native = serde_json::value::RawValue::from_string("{}".into()).ok(),
        ];
        let mut digests = vec![digest(&request())];
        for change in changes {
            let mut changed = request();
            change(&mut changed);
            digests.push(digest(&changed));
        }
        let all = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), all);
        assert!(digests.iter().all(|digest| digest.len() == 64));
    }

    #[test]
    fn nobody_answers_above_their_level_and_always_is_above_all() {
        let offers = [("yes", Choice::AllowOnce), ("always", Choice::AllowAlways), ("no", Choice::RejectOnce)];
        let offers = offers.map(|(id, kind)| Offer { id: id.into(), label: id.into(), kind });
        for risk in [Risk::Low, Risk::Elevated, Risk::Danger] {
            let request = Request { risk, options: offers.to_vec(), allow_remember: true, ..request() };
            for up_to in [None, Some(Risk::Low), Some(Risk::Elevated), Some(Risk::Danger)] {
                let fine = up_to.is_none_or(|up_to| risk <= up_to);
                let every = up_to.is_none_or(|up_to| up_to == Risk::Danger);
                for (answer, fine) in [
                    (Answer { option_id: Some("yes".into()), ..Answer::default() }, fine),
                    (Answer { ok: Some(true), ..Answer::default() }, fine),
                    (Answer { option_id: Some("no".into()), ..Answer::default() }, fine),
                    (Answer { option_id: Some("always".into()), ..Answer::default() }, fine && every),
                    (Answer { ok: Some(true), remember: Some(true), ..Answer::default() }, fine && every),
                ] {
                    match judge(&request, &answer, up_to) {
                        Ok(_) => assert!(fine, "{risk:?} {up_to:?} {answer:?}"),
                        Err(Refusal::RiskTooHigh { .. }) => assert!(!fine, "{risk:?} {up_to:?} {answer:?}"),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        }
    }

    #[test]
    fn a_picked_item_was_offered_and_a_secret_is_not_kept() {
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
        let kept = receipt(&secret, &decision, Resolver::gateway(), Timestamp::default());
        assert_eq!((kept.value, kept.ok), (None, Some(true)));
    }
}
