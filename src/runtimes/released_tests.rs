//! The state that released versions left is read and continued: see `tests/fixtures/released-0.1.0-7961eb0`.
#![allow(clippy::unwrap_used)]

use super::process_transport::HandoverState;
use super::saved_steps;
use plexus_dialects::{Dialect, Outbox, RuntimeCommand, RuntimeEvent};
use plexus_holder::wire::{Decoder, FromHolder, Welcome};
use plexus_protocol::{NativeId, Ticket};

macro_rules! greeting {
    ($name:literal) => {
        &include_bytes!(concat!("../../tests/fixtures/released-0.1.0-7961eb0/greeting-", $name, ".bin"))[..]
    };
}

fn greeted(greeting: &'static [u8]) -> Welcome {
    let mut decoder = Decoder::from_bytes(greeting.into());
    let Ok(FromHolder::Welcome(welcome)) = FromHolder::parse(decoder.frame().unwrap().unwrap()) else { panic!() };
    assert_eq!(decoder.frame().unwrap(), None);
    welcome
}

fn taken_over(greeting: &'static [u8]) -> (HandoverState, Box<dyn Dialect>) {
    let welcome = greeted(greeting);
    assert_eq!((welcome.version, welcome.instance), (1, None));
    let (_, blob) = welcome.blobs.last().unwrap();
    assert!(!saved_steps::is_step(blob));
    let (kept, saved) = HandoverState::read(blob).unwrap();
    let mut dialect = plexus_dialects::find(&kept.spec.dialect).unwrap()(&kept.spec);
    assert!(dialect.restore(saved));
    (kept, dialect)
}

#[test]
fn release_0_1_0_state_is_taken_over_by_every_dialect() {
    for greeting in [greeting!("demo"), greeting!("models"), greeting!("codex"), greeting!("codelia")] {
        let (kept, dialect) = taken_over(greeting);
        assert_eq!((kept.generation, kept.spec.outlive), (1, true));
        let id = &kept.spec.id;
        assert_eq!((dialect.asks().len(), dialect.prompts().len()), (1, 1), "{id}: its question and its prompt");
        // What is kept from now on is read again.
        let saved = dialect.save().unwrap();
        let mut again = plexus_dialects::find(&kept.spec.dialect).unwrap()(&kept.spec);
        assert!(again.restore(&saved), "{id}");
        assert_eq!((again.asks(), again.prompts()), (dialect.asks(), dialect.prompts()), "{id}");
    }
}

#[test]
fn release_0_1_0_models_of_each_session_are_known() {
    let (_, mut dialect) = taken_over(greeting!("models"));
    let mut out = Outbox::default();
    let (native, method) = (Some(NativeId::from("s1")), "model.list".to_owned());
    dialect.command(RuntimeCommand::Call { ticket: Ticket(9), native, method, params: None, notify: false }, &mut out);
    let Some(RuntimeEvent::Replied { reply: Ok(reply), .. }) = out.events.pop() else { panic!("{:?}", out.events) };
    assert_eq!(
        reply.get(),
        r#"{"provider":"modelled","models":["m1","m2"],"details":{"m1":{"name":"One"},"m2":{"name":"Two"}},"current":"m1"}"#
    );
}

#[test]
fn handover_state_ignores_additions_and_defaults_what_is_missing() {
    let blob = greeted(greeting!("models")).blobs.pop().unwrap().1;
    let head = usize::try_from(u32::from_be_bytes(blob[..4].try_into().unwrap())).unwrap();
    let mut kept: serde_json::Value = serde_json::from_slice(&blob[4..4 + head]).unwrap();
    let mut state: serde_json::Value = serde_json::from_slice(&blob[4 + head..]).unwrap();
    kept["later"] = "x".into();
    kept["spec"]["later"] = "x".into();
    kept["spec"]["serve"]["later"] = true.into();
    kept.as_object_mut().unwrap().remove("over");
    for name in ["env", "pass_env", "auth_method", "outlive", "remote"] {
        kept["spec"].as_object_mut().unwrap().remove(name);
    }
    state["later"] = "x".into();
    state["state"]["later"] = "x".into();
    for name in ["methods", "waiting", "jobs", "next_job", "terminals", "next_terminal", "writable", "seen"] {
        assert!(state["state"].as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    let blob = |kept: &serde_json::Value| {
        let kept = kept.to_string().into_bytes();
        [&u32::try_from(kept.len()).unwrap().to_be_bytes()[..], &kept, state.to_string().as_bytes()].concat()
    };
    let mut unreadable = kept.clone();
    unreadable["form"] = 99.into();
    assert!(HandoverState::read(&blob(&unreadable)).is_none(), "one that says that this version cannot read it");
    let blob = blob(&kept);
    let (kept, saved) = HandoverState::read(&blob).unwrap();
    assert!(kept.spec.outlive);
    let mut dialect = plexus_dialects::find("acp").unwrap()(&kept.spec);
    assert!(dialect.restore(saved));
    assert_eq!((dialect.asks().len(), dialect.prompts().len()), (1, 1));
}
