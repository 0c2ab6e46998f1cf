//! A snapshot of any moment, and then the rest, is the same as the whole.

use proptest::prelude::*;

use super::*;

fn model(size: (u16, u16)) -> Model {
    Model::new(TerminalSize { rows: size.0, cols: size.1 }, 50)
}

/// Everything that a screen tells of itself.
fn state(screen: &vt100::Screen) -> String {
    let (rows, cols) = screen.size();
    let mut all = String::new();
    for row in 0..rows.get() {
        for column in 0..cols.get() {
            let cell = screen.cell(row, column).unwrap();
            let _ = write!(
                all,
                "{:?}{:?}{:?}{}{}{}{}{}{}|",
                cell.contents(),
                cell.fgcolor(),
                cell.bgcolor(),
                u8::from(cell.bold()),
                u8::from(cell.dim()),
                u8::from(cell.italic()),
                u8::from(cell.underline()),
                u8::from(cell.inverse()),
                u8::from(cell.is_wide_continuation()),
            );
        }
        let _ = writeln!(all, " {}", screen.row_wrapped(row));
    }
    let _ = write!(
        all,
        "{:?} {} {} {} {} {} {:?} {:?} {:?} {}",
        screen.cursor_position(),
        screen.alternate_screen(),
        screen.application_keypad(),
        screen.application_cursor(),
        screen.hide_cursor(),
        screen.bracketed_paste(),
        screen.mouse_protocol_mode(),
        screen.mouse_protocol_encoding(),
        screen.cursor_style(),
        screen.attributes_formatted(),
    );
    all
}

/// Returns the state of both screens, and of a restored cursor.
fn states(model: &Model) -> String {
    let main = model.probe(b"\x1b[?47l");
    let restored = model.probe(b"\x1b8");
    let scrolled = model.probe(b"\x1b[999;1H\n\x1b[Hx");
    [state(model.screen()), state(main.screen()), state(restored.screen()), state(scrolled.screen())].join("\n---\n")
}

/// Cuts `bytes` at `cut`, joins there, and compares the screens.
fn check(size: (u16, u16), bytes: &[u8], cut: usize) {
    let mut whole = model(size);
    whole.feed(bytes);
    let mut first = model(size);
    first.feed(&bytes[..cut]);
    let (snapshot, tail) = (first.snapshot(), first.tail());
    // The owner's terminal.
    let mut joined = model(size);
    joined.feed(&snapshot);
    joined.feed(&tail);
    joined.feed(&bytes[cut..]);
    assert_eq!(
        states(&joined),
        states(&whole),
        "owner at {cut} of {:?}: {:?}",
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(&snapshot)
    );
    // A viewer: what it gets comes in whole pieces, without what makes a terminal act.
    let mut viewer = model(size);
    viewer.feed(&snapshot);
    viewer.feed(&first.feed(&bytes[cut..]).viewers);
    assert_eq!(states(&viewer), states(&whole), "viewer at {cut} of {:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn joining_at_every_byte_shows_the_whole() {
    #[rustfmt::skip] // a case a line
    let cases = [
        "plain text\r\nand more\r\n",
        "a long line that wraps around the edge of the screen more than once, as prompts do",
        "\x1b[31mred \x1b[1;4mbold\x1b[0m \x1b[48;2;1;2;3mtrue\x1b[m",
        "wide 漢字 and ünïcode é\u{301} 👍",
        "shell$ \x1b[?1049h\x1b[2J\x1b[Halternate\x1b[5;5Hthere\x1b[?1049lback$ ",
        "shell$ \x1b7\x1b[?47hold way\x1b[?47l\x1b8back",
        "a\x1b[?47hleft behind\x1b[?47lb\x1b[?1047hnew\x1b[?1047lc\x1b[?47hagain",
        "shell$ \x1b[?1047hx\x1b[?1047l \x1b[?1048h\x1b[3;3Hy\x1b[?1048lz",
        "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\x1b[2;5r\x1b[5;1H\nscrolled\n\n\x1b[r\x1b[8;1Hend",
        "\x1b[2;5r\x1b[?6h\x1b[1;1Horigin\x1b[9;9Hclamped\x1b[?6l\x1b[1;1Htop",
        "\x1b[3;4H\x1b[35m\x1b7\x1b[m\x1b[Hx\x1b8saved",
        "\x1b(0lqqk\x1b(B lqqk \x1b)0\x0elqk\x0flqk",
        "\x1b[?2004h\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?25l\x1b[3 q modes \x1b[?1002l\x1b>",
        "\x1b]0;a title\x07x\x1b]2;b\x1b\\y\x1b]52;c;aGk=\x07z\x1b]8;;http://a\x07link\x1b]8;;\x07",
        "\u{e9}\x1b]0;between\x07\u{e9}",
        "\x1b[6n\x1b[c\x1bP$qm\x1b\\text\x05",
        "edge of the screen!!\x1b[20Gx\x08\x1b[Ky",
        "\x1b[1\x1b[2;2Hbroken\x1b[5\x18;off\x1b]0;t\x1b[3;3Hstring",
        "lines\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n10\r\n11\r\n12 \x1b[?1049h full \x1b[?1049l",
        "\x1bcafter a reset \x1b[?1049h\x1bcagain",
    ];
    for case in cases {
        for cut in 0..=case.len() {
            check((8, 20), case.as_bytes(), cut);
        }
    }
}

#[test]
fn character_that_is_broken_off_is_not_completed_later() {
    let bytes = b" \xc2\x1b]0;title\x07\xa0x\xe6\xbc\x1b[6n\xa2";
    (0..=bytes.len()).for_each(|cut| check((8, 20), bytes, cut));
}

/// Generates pieces of output as programs write them.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let number = 0u16..12;
    prop_oneof![
        6 => "[a-z ]{1,25}".prop_map(String::into_bytes),
        1 => Just("漢字👍é".as_bytes().to_vec()),
        3 => prop::sample::select(vec!["\r\n", "\n", "\r", "\x08", "\t", "\x1bM", "\x1b7", "\x1b8"])
            .prop_map(|text| text.as_bytes().to_vec()),
        4 => (number.clone(), number.clone(), prop::sample::select(vec!['H', 'A', 'B', 'C', 'D', 'J', 'K', 'L', 'M', 'P', 'X', '@', 'S', 'T', 'G', 'd', 'r']))
            .prop_map(|(a, b, last)| format!("\x1b[{}{last}", match last { 'H' | 'r' => format!("{a};{b}"), 'J' | 'K' => (a % 3).to_string(), _ => a.to_string() }).into_bytes()),
        2 => prop::sample::select(vec!["0", "1", "4", "7", "31", "42", "38;5;9", "48;2;9;8;7"])
            .prop_map(|sgr| format!("\x1b[{sgr}m").into_bytes()),
        2 => (prop::sample::select(vec![1u16, 25, 47, 1000, 1002, 1006, 1047, 1048, 1049, 2004]), any::<bool>())
            .prop_map(|(mode, on)| format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }).into_bytes()),
        1 => prop::sample::select(vec!["\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bPq\x1b\\", "\x1b[6n", "\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f", "\x1b=", "\x1b>", "\x1b[4 q", "\x1b[>1u", "\x1b[<u", "\x1b_x\x1b\\"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>().prop_filter("no ESC", |byte| *byte != 0x1b), 1..6),
    ]
}

proptest! {
    #[test]
    fn joining_anywhere_in_any_output_shows_the_whole(pieces in proptest::collection::vec(piece(), 1..40), at in any::<prop::sample::Index>()) {
        let bytes = pieces.concat();
        check((8, 20), &bytes, at.index(bytes.len() + 1));
    }

    #[test]
    fn bytes_of_any_kind_are_followed_at_any_size(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        sizes in proptest::collection::vec((1u16..40, 1u16..40), 1..5),
    ) {
        let mut model = model((24, 80));
        for (rows, cols) in sizes {
            model.set_size(TerminalSize { rows, cols }.within_limits().unwrap());
            model.feed(&bytes);
            model.snapshot();
        }
    }
}

#[test]
fn lines_that_scrolled_off_come_with_a_snapshot() {
    let mut first = model((4, 20));
    let text: String = (0..30).map(|line| format!("line {line}\r\n")).collect();
    first.feed(text.as_bytes());
    first.feed(b"\x1b[?1049hfull screen");
    let mut joined = model((4, 20));
    joined.feed(&first.snapshot());
    assert_eq!(states(&joined), states(&first));
    let scrolled = |model: &Model| {
        let mut probe = model.probe(b"\x1b[?47l");
        probe.screen_mut().set_scrollback(usize::MAX);
        probe.screen().contents()
    };
    assert_eq!(scrolled(&joined).lines().next(), Some("line 0"));
    assert_eq!(scrolled(&joined), scrolled(&first));
}

#[test]
fn viewers_never_see_what_makes_a_terminal_act() {
    let mut model = model((8, 20));
    let fed = model.feed(b"a\x1b[6nb\x1b]52;c;eA==\x07c\x05\x1b[cd\x1b]8;;javascript:x\x07e\x1b]8;;\x07");
    assert_eq!(String::from_utf8(fed.viewers).unwrap(), "abc\0de\x1b]8;;\x07");
    assert_eq!(fed.queries, [Query::Cursor, Query::Attributes]);
    assert_eq!(model.answer(Query::Cursor), "\x1b[1;6R");
}

#[test]
fn viewers_get_no_control_character_that_begins_a_sequence() {
    let mut model = model((8, 20));
    // As one piece, and cut within a character.
    let mut viewers = model.feed("a\u{9b}6nb\u{9d}52;c;eA==\u{9c}c\u{90}$qm\u{9c}\u{85}é\u{a0}漢".as_bytes()).viewers;
    viewers.extend(model.feed(b"\xc2").viewers);
    viewers.extend(model.feed(b"\x9b6n").viewers);
    let seen = String::from_utf8(viewers).unwrap();
    assert!(!seen.contains(|c: char| matches!(c, '\u{80}'..='\u{9f}')), "{seen:?}");
    assert_eq!(seen.replace('\0', ""), "a6nb52;c;eA==c$qmé\u{a0}漢6n");
    let snapshot = String::from_utf8(model.snapshot()).unwrap();
    assert!(!snapshot.contains(|c: char| matches!(c, '\u{80}'..='\u{9f}')), "{snapshot:?}");
}

#[test]
fn size_has_limits_and_nothing_is_no_size() {
    let of = |rows, cols| TerminalSize { rows, cols }.within_limits().map(|size| (size.rows, size.cols));
    assert_eq!(of(24, 80), Some((24, 80)));
    assert_eq!(of(0, 80), None);
    assert_eq!(of(24, 0), None);
    assert_eq!(of(1, 1), Some((2, 2)));
    assert_eq!(of(u16::MAX, u16::MAX), Some((LINES_MAX, COLUMNS_MAX)));
}
