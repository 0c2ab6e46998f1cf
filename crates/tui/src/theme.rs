//! Colours by meaning, reduced to those that the terminal supports. Pure.

use ratatui::style::{Color, Modifier, Style};

/// The number of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// None: only bold, dim and reversed text.
    None,
    /// The sixteen basic colours.
    Ansi,
    /// 256 colours.
    Indexed,
    /// 24-bit colour.
    True,
}

impl Depth {
    /// The depth that the environment reports.
    pub(crate) fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if set("NO_COLOR").is_some() {
            return Self::None;
        }
        let term = set("TERM").unwrap_or_default();
        match set("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.ends_with("-direct") => Self::True,
            _ if term.contains("256color") => Self::Indexed,
            _ if term == "dumb" || term.ends_with("-m") || term.starts_with("vt") => Self::None,
            _ => Self::Ansi,
        }
    }

    /// The nearest available colour.
    pub(crate) fn color(self, color: Color) -> Color {
        match (self, color) {
            (Self::None, _) => Color::Reset,
            (Self::True, color) => color,
            (Self::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(cube(r, g, b)),
            (Self::Ansi, Color::Rgb(r, g, b)) => sixteen(r, g, b),
            (Self::Ansi, Color::Indexed(n)) if n > 15 => {
                let (r, g, b) = rgb(n);
                sixteen(r, g, b)
            }
            (_, color) => color,
        }
    }
}

/// The nearest colour of the 6x6x6 cube and of the greys.
fn cube(r: u8, g: u8, b: u8) -> u8 {
    let step = |v: u8| {
        if v < 48 {
            0
        } else if v < 115 {
            1
        } else {
            (v - 35) / 40
        }
    };
    let (cr, cg, cb) = (step(r), step(g), step(b));
    if r.abs_diff(g) < 10 && g.abs_diff(b) < 10 && (8..238).contains(&r) {
        return 232 + (r - 8) / 10;
    }
    16 + 36 * cr + 6 * cg + cb
}

/// The RGB value of one of the 256 colours.
fn rgb(n: u8) -> (u8, u8, u8) {
    if n >= 232 {
        let grey = 8 + (n - 232) * 10;
        return (grey, grey, grey);
    }
    let level = |v: u8| if v == 0 { 0 } else { 55 + v * 40 };
    let n = n.saturating_sub(16);
    (level(n / 36), level(n / 6 % 6), level(n % 6))
}

fn sixteen(r: u8, g: u8, b: u8) -> Color {
    let brightest = r.max(g).max(b);
    let min = r.min(g).min(b);
    if brightest - min < 32 {
        return match brightest {
            0..60 => Color::Black,
            60..150 => Color::DarkGray,
            150..225 => Color::Gray,
            _ => Color::White,
        };
    }
    let on = |v: u8| u8::from(u16::from(v) * 5 > u16::from(brightest) * 3);
    Color::Indexed(on(r) + 2 * on(g) + 4 * on(b) + if brightest > 200 { 8 } else { 0 })
}

/// The styles.
#[derive(Clone, Debug)]
pub(crate) struct Theme {
    pub(crate) depth: Depth,
    /// Normal text.
    pub(crate) text: Style,
    /// Less important text.
    pub(crate) dim: Style,
    /// Rules and frames.
    pub(crate) rule: Style,
    /// The UI's own text: titles, keys, the selection.
    pub(crate) accent: Style,
    /// A user's message.
    pub(crate) user: Style,
    /// Success.
    pub(crate) ok: Style,
    pub(crate) warn: Style,
    /// A failure.
    pub(crate) bad: Style,
    /// Work in progress.
    pub(crate) busy: Style,
    /// Code within text.
    pub(crate) code: Style,
    pub(crate) keyword: Style,
    /// Strings and numbers.
    pub(crate) literal: Style,
    /// The selected line.
    pub(crate) selected: Style,
    /// An added line, and the changed words in it.
    pub(crate) added: (Style, Style),
    /// A removed line, and the changed words in it.
    pub(crate) removed: (Style, Style),
    /// The bars at the top and the bottom.
    pub(crate) bar: Style,
}

impl Theme {
    /// A theme of this depth, for a light or dark background.
    pub(crate) fn new(depth: Depth, light: bool) -> Self {
        let bold = Modifier::BOLD;
        let fg = |dark: (u8, u8, u8), bright: (u8, u8, u8), ansi: Color| match depth {
            Depth::True | Depth::Indexed => {
                let (r, g, b) = if light { bright } else { dark };
                Style::new().fg(Color::Rgb(r, g, b))
            }
            Depth::Ansi => Style::new().fg(ansi),
            Depth::None => Style::new(),
        };
        let on = |style: Style, dark: (u8, u8, u8), bright: (u8, u8, u8)| match depth {
            Depth::True | Depth::Indexed => {
                let (r, g, b) = if light { bright } else { dark };
                style.bg(Color::Rgb(r, g, b))
            }
            Depth::Ansi | Depth::None => style,
        };
        let dim = match depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            _ => fg((138, 145, 158), (106, 113, 126), Color::DarkGray),
        };
        let green = fg((126, 200, 133), (30, 125, 52), Color::Green);
        let red = fg((240, 113, 120), (185, 28, 40), Color::Red);
        let selected = match depth {
            Depth::True | Depth::Indexed => on(Style::new(), (45, 52, 66), (222, 230, 244)),
            _ => Style::new().add_modifier(Modifier::REVERSED),
        };
        Self {
            depth,
            text: Style::new(),
            dim,
            rule: match depth {
                Depth::None => Style::new().add_modifier(Modifier::DIM),
                _ => fg((72, 79, 94), (196, 202, 212), Color::DarkGray),
            },
            accent: fg((122, 162, 247), (36, 87, 200), Color::Blue).add_modifier(bold),
            user: fg((187, 154, 247), (112, 56, 190), Color::Magenta).add_modifier(bold),
            ok: green,
            warn: fg((224, 175, 104), (154, 96, 0), Color::Yellow),
            bad: red.add_modifier(bold),
            busy: fg((125, 207, 255), (0, 110, 150), Color::Cyan),
            code: fg((158, 206, 106), (60, 110, 20), Color::Cyan),
            keyword: fg((187, 154, 247), (112, 56, 190), Color::Magenta),
            literal: fg((255, 158, 100), (170, 80, 10), Color::Yellow),
            selected,
            added: (
                on(green, (30, 48, 36), (226, 246, 230)),
                on(green.add_modifier(bold), (44, 84, 54), (176, 230, 188)).add_modifier(match depth {
                    Depth::Ansi | Depth::None => Modifier::UNDERLINED,
                    _ => Modifier::empty(),
                }),
            ),
            removed: (
                on(red, (58, 32, 38), (253, 230, 232)),
                on(red.add_modifier(bold), (104, 46, 56), (246, 190, 196)).add_modifier(match depth {
                    Depth::Ansi | Depth::None => Modifier::UNDERLINED,
                    _ => Modifier::empty(),
                }),
            ),
            bar: on(Style::new(), (31, 35, 45), (236, 239, 245)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theme_reads_the_number_of_colours_from_the_environment() {
        let depth = |pairs: &[(&str, &str)]| {
            Depth::detect(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(depth(&[("TERM", "tmux-256color")]), Depth::Indexed);
        assert_eq!(depth(&[("TERM", "screen")]), Depth::Ansi);
        assert_eq!(depth(&[("TERM", "linux")]), Depth::Ansi);
        assert_eq!(depth(&[("TERM", "vt100")]), Depth::None);
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")]), Depth::None);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "")]), Depth::Ansi);
    }

    #[test]
    fn theme_uses_only_colours_of_the_terminal() {
        for (r, g, b) in [(0, 0, 0), (255, 255, 255), (240, 113, 120), (31, 35, 45), (1, 254, 3)] {
            let color = Color::Rgb(r, g, b);
            assert!(matches!(Depth::Indexed.color(color), Color::Indexed(16..)));
            assert!(!matches!(Depth::Ansi.color(color), Color::Rgb(..) | Color::Indexed(16..)));
            assert_eq!(Depth::None.color(color), Color::Reset);
        }
        for n in 0..=255 {
            assert!(!matches!(Depth::Ansi.color(Color::Indexed(n)), Color::Rgb(..) | Color::Indexed(16..)));
        }
    }
}
