//! Any lines from the runtime, after the handshake: no panic, and every event's body is one JSON object on one line.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plexus::dialects::{Command, Outbox, Said, find};
use plexus::model::{Connect, Decision, RuntimeId, RuntimeSpec, Ticket};

fuzz_target!(|data: &[u8]| {
    let connect = Connect::Command(Vec::new());
    let spec = RuntimeSpec::new(RuntimeId::trusted("fuzz"), "acp", connect, "/w");
    let mut dialect = find(&spec.dialect).expect("in the table")(&spec);
    let mut out = Outbox::default();
    dialect.open(&mut out);
    dialect.feed(Bytes::from_static(br#"{"id":0,"result":{"protocolVersion":1}}"#), &mut out);
    dialect.command(Command::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None }, &mut out);
    for line in data.split(|byte| *byte == b'\n') {
        dialect.feed(Bytes::copy_from_slice(line), &mut out);
        for said in std::mem::take(&mut out.said) {
            match said {
                Said::Event { draft, .. } => {
                    assert!(draft.body.starts_with(b"{") && !draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')));
                }
                Said::Asked { ask, .. } => {
                    dialect.command(Command::Answer { key: ask.key, decision: Decision::Withdrawn }, &mut out);
                }
                _ => {}
            }
        }
        assert!(out.frames.drain(..).all(|frame| frame.ends_with(b"\n")));
    }
});
