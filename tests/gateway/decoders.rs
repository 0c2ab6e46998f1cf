//! All dialects with arbitrary input: nothing panics, frames and events are complete, every request is answered once, and memory
//! is bounded. The same bench runs under a fuzzer: `fuzz/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::decoder::{Bench, IDS, OPEN_MAX, Op, known, words};
use plexus::runtimes::dialects::names;
use proptest::collection::vec;
use proptest::prelude::*;

/// JSON values that parsers often mishandle.
const NASTY: &[&str] = &[
    "1e400",
    "-0",
    "99999999999999999999999",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "null",
    "{}",
    "[]",
    "{\"a\":1,\"a\":2}",
    "\"\r\"",
    "[1\r]",
    "{\"id\":1}",
    "true",
    "\"\u{202e}\"",
    "1.50",
    "{\"sessionId\":7}",
];

/// A message that the runtime may send, valid or damaged.
fn line(dialect: &'static str) -> BoxedStrategy<Vec<u8>> {
    let junk = vec(any::<u8>(), 0..60)
        .prop_map(|bytes: Vec<u8>| bytes.into_iter().filter(|b| *b != b'\n').collect::<Vec<u8>>());
    let all = words(dialect);
    if all.is_empty() {
        return junk.boxed();
    }
    let sound = (0..all.len(), 0..IDS.len()).prop_map(move |(word, id)| all[word].replace('@', IDS[id]).into_bytes());
    let cut = (sound.clone(), any::<prop::sample::Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len()));
        line
    });
    let flipped = (sound.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        let at = at.index(line.len());
        line[at] = if byte == b'\n' { b'\r' } else { byte };
        line
    });
    let joined = (sound.clone(), sound.clone(), any::<prop::sample::Index>()).prop_map(|(a, b, at)| {
        let at = at.index(a.len());
        [&a[..at], &b[..]].concat()
    });
    // One value is replaced.
    let swapped = (sound.clone(), any::<prop::sample::Index>(), 0..NASTY.len()).prop_map(|(line, at, nasty)| {
        let text = String::from_utf8(line).unwrap();
        let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
        let at = colons[at.index(colons.len())];
        let rest = &text[at + 1..];
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        format!("{}{}{}", &text[..=at], NASTY[nasty], &rest[end..]).into_bytes()
    });
    let spaced = sound.clone().prop_map(|line| {
        let text = String::from_utf8(line).unwrap();
        text.replace("\":", "\" :\r\t").into_bytes()
    });
    prop_oneof![6 => sound, 1 => junk, 2 => cut, 2 => flipped, 1 => joined, 4 => swapped, 1 => spaced].boxed()
}

fn op(dialect: &'static str) -> impl Strategy<Value = Op> {
    let error = prop_oneof![
        Just(&br#""error":{"code":-32001,"message":"busy"}}"#[..]),
        Just(&br#""error":{"code":-32004,"message":"gone"}}"#[..]),
        Just(&br#""error":7}"#[..]),
        Just(&br#""result":7}"#[..]),
        Just(&br#""result":null}"#[..]),
        Just(&b"}"[..]),
        Just(&b""[..]),
    ];
    prop_oneof![
        12 => line(dialect).prop_map(Op::Feed),
        4 => (0usize..8).prop_map(|n| Op::Respond(n, Ok(()))),
        2 => (0usize..8, error).prop_map(|(n, junk)| Op::Respond(n, Err(junk.to_vec()))),
        1 => Just(Op::Open),
        1 => any::<bool>().prop_map(Op::Resume),
        2 => Just(Op::Prompt),
        1 => Just(Op::Cancel),
        4 => (any::<usize>(), any::<u8>()).prop_map(|(n, sort)| Op::Answer(n, sort)),
        2 => any::<u8>().prop_map(Op::Call),
        1 => Just(Op::Wake),
        1 => Just(Op::Lost),
        1 => Just(Op::TakeOver),
    ]
}

/// Cases for each dialect; all of them take a few seconds.
const CASES: u32 = 300;

fn check<S: Strategy>(strategy: impl Fn(&'static str) -> S, test: impl Fn(&'static str, S::Value)) {
    for dialect in names() {
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let outcome = runner.run(&strategy(dialect), |value| {
            test(dialect, value);
            Ok(())
        });
        outcome.unwrap_or_else(|why| panic!("{dialect}: {why}"));
    }
}

#[test]
fn decoders_answer_once_and_never_panic_after_the_handshake() {
    check(
        |dialect| vec(op(dialect), 1..60),
        |dialect, ops| {
            let mut bench = Bench::ready(dialect);
            for op in &ops {
                bench.take(op);
                assert!(bench.asks_agree(), "{dialect}: what waits is what was asked");
            }
        },
    );
}

#[test]
fn decoders_never_panic_before_the_handshake() {
    check(
        |dialect| vec(op(dialect), 1..30),
        |dialect, ops| {
            let mut bench = Bench::new(dialect);
            ops.iter().for_each(|op| bench.take(op));
        },
    );
}

#[test]
fn decoders_report_and_keep_any_bytes() {
    check(
        |_| vec(any::<u8>(), 1..400),
        |dialect, bytes| {
            let mut bench = Bench::ready(dialect);
            bench.run(&bytes);
        },
    );
}

/// Feeds one line to every dialect, before and after the handshake.
fn feed_all(line: &[u8]) {
    for dialect in names() {
        for mut bench in [Bench::new(dialect), Bench::ready(dialect)] {
            let told = bench.told;
            bench.take(&Op::Feed(line.to_vec()));
            // The mirror reports nothing before it has the history, and its messages end in NUL; its own tests check this.
            let waits = dialect == "gemini-mirror";
            assert!(bench.told > told || !known(dialect) || waits, "{dialect}: it is an event, not silence");
        }
    }
}

#[test]
fn decoders_report_deep_nesting_bad_text_and_huge_numbers() {
    let deep = 100_000;
    for line in [
        "[".repeat(deep).into_bytes(),
        [br#"{"a":"#.repeat(deep), b"1".to_vec(), b"}".repeat(deep)].concat(),
        [br#"{"jsonrpc":"2.0","method":"m","params":"#.to_vec(), b"[".repeat(deep), b"]".repeat(deep), b"}".to_vec()]
            .concat(),
        b"\xff\xfe\x00{}".to_vec(),
        b"\0".to_vec(),
        br#"{"jsonrpc":"2.0","method":"\ud800"}"#.to_vec(),
        br#"{"jsonrpc":"2.0","method":"m","params":{"n":1e999999}}"#.to_vec(),
        [br#"{"jsonrpc":"2.0","method":"m","params":{"n":"#.to_vec(), b"9".repeat(deep), b"}}".to_vec()].concat(),
        br#"{"jsonrpc":"2.0","id":77777,"result":{}}"#.to_vec(),
    ] {
        feed_all(&line);
    }
}

#[test]
fn decoders_survive_each_message_with_each_value_replaced() {
    for dialect in names() {
        for word in words(dialect) {
            let mut bench = Bench::ready(dialect);
            let text = word.replace('@', "\"i\"");
            for (at, _) in text.match_indices(':') {
                let rest = &text[at + 1..];
                let end = rest.find([',', '}']).unwrap_or(rest.len());
                for nasty in NASTY {
                    let line = format!("{}{nasty}{}", &text[..=at], &rest[end..]);
                    bench.take(&Op::Feed(line.replace('\n', " ").into_bytes()));
                }
            }
            assert!(bench.asks_agree());
        }
    }
}

#[test]
fn decoders_return_identifiers_of_any_sort_unchanged() {
    for dialect in names() {
        let asked: Vec<_> = words(dialect).iter().filter(|word| word.contains("\"id\":@")).collect();
        let mut answered = 0;
        for word in asked {
            for id in IDS {
                let mut bench = Bench::ready(dialect);
                bench.take(&Op::Feed(word.replace('@', id).into_bytes()));
                // Either people are asked and answer, or the dialect answers at once; always with the same id.
                if bench.open_asks() == 0 {
                    let named = format!("\"id\":{id}");
                    assert!(
                        bench.sent.iter().any(|sent| sent.contains(&named)),
                        "{dialect}: {word} {id}: {:?}",
                        bench.sent
                    );
                } else {
                    bench.take(&Op::Answer(0, 0));
                }
                answered += 1;
            }
        }
        assert!(answered > 0 || !words(dialect).iter().any(|word| word.contains("\"id\":@")));
    }
}

#[test]
fn decoders_bound_the_number_of_open_questions() {
    for dialect in names() {
        let Some(word) = words(dialect).iter().find(|word| word.contains('@')) else { continue };
        let mut bench = Bench::ready(dialect);
        for n in 0..2 * OPEN_MAX {
            bench.take(&Op::Feed(word.replace('@', &n.to_string()).into_bytes()));
        }
        assert!(bench.open_asks() > 0 && bench.asks_agree());
        while bench.open_asks() > 0 {
            bench.take(&Op::Answer(0, 6));
        }
    }
}
