//! The paired devices.

use plexus_client::calls;
use plexus_protocol::api::devices::Devices;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::context::{Context, MouseAction, MouseInput, Step, read_response};
use super::draw::{Draw, cell};
use super::layout::{NARROW_TABS, body, line_row, list_height};
use super::message::{AfterConfirm, CallTag};
use super::shared::{ListState, Overlay, Shared};
use super::{Hint, Page, TuiPage};
use crate::input::{self, Key};
use crate::reply::CallReply;
use crate::sanitize;
use crate::view_model::{DeviceItem, ago, span};

#[derive(Debug, Default)]
pub(crate) struct DevicesPage {
    devices: Vec<DeviceItem>,
    pub(crate) list: ListState,
    /// The reason why the devices could not be read.
    problem: Option<String>,
}

impl DevicesPage {
    fn keys(&self) -> Vec<String> {
        self.devices.iter().map(|one| one.id.to_string()).collect()
    }
}

impl Page for DevicesPage {
    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "p" => return cx.command("pair"),
            "B" => return cx.command("sign out browsers"),
            _ => {}
        }
        let list = self.keys();
        let at = self.list.index(&list);
        let Some(device) = self.devices.get(at) else { return };
        match key.name() {
            "x" if device.local => {
                cx.shared.show_notice("this machine's own administrator cannot be revoked", true);
            }
            "x" => cx.shared.confirm(
                format!("Revoke {}? Its connections are closed at once.", device.name),
                AfterConfirm::call(
                    CallTag::Notice(format!("{} is revoked", device.name)),
                    calls::revoke_device(&device.id),
                ),
            ),
            "R" => {
                cx.shared.overlay = Some(Overlay::Input {
                    label: "its name",
                    area: input::area(&device.name),
                    then: Box::new(AfterConfirm::RenameDevice(device.id.clone())),
                });
            }
            "r" => cx.then(Step::Refresh),
            name => self.list.step(name, at, &list),
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let list = self.keys();
        let selected = self.list.index(&list);
        let all = body(cx.shared);
        let at = match mouse.action {
            MouseAction::Click => line_row(Rect { height: list_height(all), ..all }, list.len(), selected, mouse.row),
            _ => Some(mouse.moved(selected, list.len())),
        };
        at.map(|at| self.list.choose(at, &list));
    }

    fn reply(&mut self, _call: String, reply: &CallReply, _cx: &mut Context<'_>) {
        if let Some(Devices { devices }) = read_response(&mut self.problem, reply) {
            self.devices = devices.iter().map(DeviceItem::new).collect();
        }
    }

    fn refresh(&mut self, cx: &mut Context<'_>) {
        cx.call(CallTag::Page(TuiPage::Devices, String::new()), calls::devices());
    }

    fn hints(&self, _shared: &Shared) -> Vec<Hint> {
        vec![("p", "pair a device"), ("↑↓", "move"), ("R", "rename"), ("x", "revoke"), ("?", "keys"), ("q", "quit")]
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        let shared = draw.shared;
        let theme = &shared.theme;
        let all = body(shared);
        let width = usize::from(all.width);
        let narrow = all.width < NARROW_TABS;
        let may = |one: &DeviceItem| match one.level {
            None => one.scopes.clone(),
            Some(level) => format!("{} up to {}", one.scopes, level.as_str()),
        };
        let when = |one: &DeviceItem| match one.expires {
            Some(at) => format!("ends in {}", span(at - shared.now)),
            None => format!("seen {}", ago(shared.now, one.seen)),
        };
        let ids = self.keys();
        let rows: Vec<Vec<Span<'static>>> = self
            .devices
            .iter()
            .map(|one| {
                let (mark, style) = if one.online { ("●", theme.ok) } else { ("○", theme.dim) };
                let name = if one.you { format!("{} (you)", one.name) } else { one.name.clone() };
                if narrow {
                    let space = width.saturating_sub(14);
                    return vec![
                        Span::styled(format!(" {mark} "), style),
                        cell(&name, space, theme.text),
                        cell(one.kind, 9, theme.dim),
                    ];
                }
                vec![
                    Span::styled(format!(" {mark} "), style),
                    cell(&name, 21, theme.text),
                    cell(one.kind, 8, theme.dim),
                    cell(&may(one), width.saturating_sub(50), theme.text),
                    cell(&when(one), 14, theme.dim),
                ]
            })
            .collect();
        let heads = match narrow {
            true => "   DEVICE".to_owned(),
            false => format!("   {:<22}{:<9}{}", "DEVICE", "KIND", "MAY"),
        };
        let none = self.problem.clone().unwrap_or_else(|| "Looking …".into());
        let at = self.list.index(&ids);
        let high = list_height(all);
        draw.list(Rect { height: high, ..all }, &heads, rows, at, &none);
        // The selected device in full: its permissions need two lines where one is too short.
        if let Some(one) = self.devices.get(at) {
            let may = may(one);
            let (first, rest) = match sanitize::width(&may) > width.saturating_sub(8) {
                true => may.split_at(may.find(" up to ").unwrap_or(may.len())),
                false => (may.as_str(), ""),
            };
            let mut lines = vec![("may", first.to_owned())];
            if !rest.is_empty() {
                lines.push(("", rest.trim_start().to_owned()));
            }
            lines.push(("is", format!("{} · {}", one.kind, when(one))));
            draw.below_list(Rect { y: all.y + high, height: all.height - high, ..all }, lines);
        }
    }
}
