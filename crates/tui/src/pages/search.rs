//! The search in all sessions.

use plexus_client::calls;
use plexus_protocol::api::sessions::Hits;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui_textarea::TextArea;

use super::context::{Context, MouseInput, Step, read_response};
use super::draw::{Draw, cell};
use super::layout::{body, line_row};
use super::message::CallTag;
use super::shared::{ListState, Shared};
use super::{Hint, Page, TuiPage};
use crate::input::{self, Key};
use crate::pages::context::MouseAction;
use crate::reply::CallReply;
use crate::sanitize;
use crate::view_model::{SearchItem, SessionItem};

/// Maximum number of passages that a search returns.
const HITS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct SearchPage {
    query: TextArea<'static>,
    pub(crate) typing: bool,
    hits: Vec<SearchItem>,
    /// The text of the last search.
    searched: Option<String>,
    list: ListState,
    /// The reason why the last search failed.
    problem: Option<String>,
}

impl Default for SearchPage {
    fn default() -> Self {
        Self {
            query: input::area(""),
            typing: true,
            hits: Vec::new(),
            searched: None,
            list: ListState::default(),
            problem: None,
        }
    }
}

impl SearchPage {
    fn keys(&self) -> Vec<String> {
        self.hits.iter().map(|hit| format!("{} {}", hit.session, hit.cursor)).collect()
    }

    /// The selected hit.
    pub(crate) fn selected(&self) -> usize {
        self.list.index(&self.keys())
    }

    fn query_key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "Esc" => self.typing = false,
            "Down" => self.typing = self.hits.is_empty(),
            "Tab" | "S-Tab" => {
                self.typing = false;
                cx.then(Step::Key(key.clone()));
            }
            "Enter" => {
                let text = self.query.lines().join(" ").trim().to_owned();
                if !text.is_empty() {
                    let call = calls::search(&text, Some(HITS_MAX));
                    cx.call(CallTag::Page(TuiPage::Search, text), call);
                }
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.query, key);
            }
        }
    }

    fn open_selected(&mut self, cx: &mut Context<'_>) {
        match self.hits.get(self.selected()) {
            Some(hit) => cx.then(Step::ReadAt(hit.session.clone(), hit.cursor.position.0)),
            None => self.typing = true,
        }
    }
}

impl Page for SearchPage {
    fn early_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        let typing = self.typing;
        if typing {
            self.query_key(key, cx);
        }
        typing
    }

    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "Enter" => self.open_selected(cx),
            "i" => self.typing = true,
            "Up" | "k" if self.selected() == 0 => self.typing = true,
            name => self.list.step(name, self.selected(), &self.keys()),
        }
    }

    fn paste(&mut self, text: &str, _cx: &mut Context<'_>) {
        if self.typing {
            self.query.insert_str(text.replace('\n', " "));
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let (keys, selected) = (self.keys(), self.selected());
        if mouse.action != MouseAction::Click {
            if self.list.choose(mouse.moved(selected, keys.len()), &keys) {
                self.typing = false;
            }
            return;
        }
        let all = body(cx.shared);
        let area = Rect { y: all.y + 1, height: all.height - 1, ..all };
        let Some(at) = line_row(area, keys.len(), selected, mouse.row) else { return };
        let again = at == selected && !self.typing;
        // The user has chosen a result, so the query has no focus.
        self.list.choose(at, &keys);
        self.typing = false;
        if again {
            self.open_selected(cx);
        }
    }

    fn reply(&mut self, text: String, reply: &CallReply, _cx: &mut Context<'_>) {
        if let Some(Hits { hits }) = read_response(&mut self.problem, reply) {
            self.hits = hits.iter().map(SearchItem::new).collect();
            self.list.at = Some(0);
            self.typing = self.hits.is_empty();
        }
        self.searched = Some(text);
    }

    fn enter(&mut self) {
        self.typing = true;
    }

    fn takes_text(&self, _shared: &Shared) -> bool {
        self.typing
    }

    fn hints(&self, _shared: &Shared) -> Vec<Hint> {
        match self.typing {
            true => vec![("Enter", "search"), ("Esc", "list"), ("Tab", "next page")],
            false => vec![("↑↓", "move"), ("Enter", "open"), ("i", "new search"), ("?", "keys"), ("q", "quit")],
        }
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        let shared = draw.shared;
        let theme = &shared.theme;
        let all = body(shared);
        draw.put(1, all.y, Span::styled("find ", theme.accent), 6);
        draw.field(Rect::new(6, all.y, all.width.saturating_sub(7), 1), &self.query, self.typing);
        let width = usize::from(all.width);
        let rows: Vec<Vec<Span<'static>>> = self
            .hits
            .iter()
            .map(|hit| {
                let session = shared.sessions.all.get(&hit.session).map_or(String::new(), SessionItem::name);
                vec![
                    Span::raw("   "),
                    cell(&session, 19, theme.accent),
                    cell(&hit.role, 7, theme.dim),
                    cell(&hit.text, width.saturating_sub(32), theme.text),
                ]
            })
            .collect();
        let none = match (&self.searched, &self.problem) {
            (_, Some(why)) => why.clone(),
            (Some(text), _) => format!("No results for “{}”.", sanitize::line(text, 100)),
            (None, _) => "Type words to search for in all sessions.".into(),
        };
        let heads = match &self.searched {
            Some(text) if !rows.is_empty() => {
                format!("   “{}” was said {} times", sanitize::line(text, 60), rows.len())
            }
            _ => String::new(),
        };
        let area = Rect { y: all.y + 1, height: all.height - 1, ..all };
        let at = self.list.at.unwrap_or_default();
        let at = if self.typing { usize::MAX } else { at.min(rows.len().saturating_sub(1)) };
        draw.list(area, &heads, rows, at, &none);
    }
}
