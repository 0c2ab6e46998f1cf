//! The runtimes of the gateway.

use plexus_client::calls;
use plexus_protocol::api::runtimes::RuntimeList;
use plexus_protocol::{RuntimeId, RuntimeState};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Span;

use super::context::{Context, MouseAction, MouseInput, Step, read_response};
use super::draw::{Draw, cell};
use super::layout::{body, line_row, list_height};
use super::message::{AfterConfirm, CallTag};
use super::shared::{ListState, Shared};
use super::{Hint, Page, TuiPage};
use crate::input::Key;
use crate::reply::CallReply;
use crate::sanitize;
use crate::view_model::{RuntimeItem, span};

#[derive(Debug, Default)]
pub(crate) struct RuntimesPage {
    list: ListState,
    /// `true` if the runtimes were read.
    pub(crate) read: bool,
    /// The reason why the runtimes could not be read.
    problem: Option<String>,
}

fn keys(shared: &Shared) -> Vec<String> {
    shared.runtimes.iter().map(|one| one.id.clone()).collect()
}

impl Page for RuntimesPage {
    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        let list = keys(cx.shared);
        let at = self.list.index(&list);
        let Some(id) = list.get(at) else {
            if key.name() == "N" {
                cx.then(Step::NewSession(None));
            }
            return;
        };
        let runtime = RuntimeId::trusted(id.as_str());
        let tag = |notice: &str| CallTag::Notice(format!("{id} {notice}"));
        match key.name() {
            "N" | "Enter" => cx.then(Step::NewSession(Some(id.clone()))),
            "R" => {
                let then = AfterConfirm::call(tag("restarts"), calls::restart_runtime(&runtime));
                cx.shared.confirm(format!("Restart {id}? Its current work is stopped."), then);
            }
            "x" => {
                let then = AfterConfirm::call(tag("is stopped"), calls::stop_runtime(&runtime));
                cx.shared.confirm(format!("Stop {id} and everything it started?"), then);
            }
            "l" => cx.call(CallTag::Logs, calls::runtime_logs(&runtime)),
            "r" => cx.then(Step::Refresh),
            name => self.list.step(name, at, &list),
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let list = keys(cx.shared);
        let selected = self.list.index(&list);
        let all = body(cx.shared);
        let at = match mouse.action {
            MouseAction::Click => line_row(Rect { height: list_height(all), ..all }, list.len(), selected, mouse.row),
            _ => Some(mouse.moved(selected, list.len())),
        };
        at.map(|at| self.list.choose(at, &list));
    }

    fn reply(&mut self, _call: String, reply: &CallReply, cx: &mut Context<'_>) {
        if let Some(RuntimeList { runtimes }) = read_response(&mut self.problem, reply) {
            cx.shared.runtimes = runtimes.iter().map(|runtime| RuntimeItem::new(runtime)).collect();
            self.read = true;
        }
    }

    fn refresh(&mut self, cx: &mut Context<'_>) {
        cx.call(CallTag::Page(TuiPage::Runtimes, String::new()), calls::runtimes());
    }

    fn hints(&self, _shared: &Shared) -> Vec<Hint> {
        vec![
            ("↑↓", "move"),
            ("N", "new session"),
            ("R", "restart"),
            ("x", "stop"),
            ("l", "log"),
            ("?", "keys"),
            ("q", "quit"),
        ]
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        let shared = draw.shared;
        let theme = &shared.theme;
        let all = body(shared);
        let width = usize::from(all.width);
        let ids = keys(shared);
        let rows: Vec<Vec<Span<'static>>> = shared
            .runtimes
            .iter()
            .map(|one| {
                let style = match one.state {
                    RuntimeState::Ready => theme.ok,
                    RuntimeState::Exited => theme.bad,
                    RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown => theme.warn,
                };
                let detail = if one.problem.is_empty() { &one.agent } else { &one.problem };
                vec![
                    Span::styled(" ● ", style),
                    cell(&one.id, 13, theme.text.add_modifier(Modifier::BOLD)),
                    cell(one.state.as_str(), 11, style),
                    cell(&one.dialect, 13, theme.dim),
                    cell(
                        detail,
                        width.saturating_sub(65),
                        if one.problem.is_empty() { theme.text } else { theme.warn },
                    ),
                    cell(&one.pid.map(|pid| format!("pid {pid}")).unwrap_or_default(), 11, theme.dim),
                    Span::styled(format!("{:>7} ", span(shared.now - one.updated)), theme.dim),
                ]
            })
            .collect();
        let at = self.list.index(&ids);
        let heads = format!("   {:<14}{:<12}{:<14}{}", "RUNTIME", "STATE", "DIALECT", "WHAT IT IS");
        let none = self.problem.clone().unwrap_or_else(|| {
            "No agent is attached. `plexus run gemini` starts one; `plexus doctor` lists the installed ones.".into()
        });
        let high = list_height(all);
        draw.list(Rect { height: high, ..all }, &heads, rows, at, &none);
        // The selected runtime in full.
        if let Some(one) = shared.runtimes.get(at) {
            let mut lines = vec![("runs", one.connect.clone()), ("in", one.cwd.clone())];
            if one.fixed_folder {
                lines.push(("", "every command runs there, whatever the folder of the session is".into()));
            }
            if !one.acted_unasked.is_empty() {
                lines.push(("acts", format!("without asking; the first time: {}", one.acted_unasked)));
            }
            if !one.reviewer.is_empty() {
                lines.push(("asks", format!("{} in place of people", one.reviewer)));
            }
            if !one.problem.is_empty() {
                lines.push(("why", one.problem.clone()));
            }
            let tail = sanitize::text(&one.stderr);
            if let Some(last) = tail.trim_end().rsplit('\n').next().filter(|last| !last.is_empty()) {
                lines.push(("said", last.to_owned()));
            }
            draw.below_list(Rect { y: all.y + high, height: all.height - high, ..all }, lines);
        }
    }
}
