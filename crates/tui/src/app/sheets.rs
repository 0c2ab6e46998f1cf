//! The windows over a page that call the gateway by themselves: the pairing of a device, the usage, and the facts of the settings.

use super::*;
use crate::ceilings;
use crate::facts::{self, SettingsFacts};
use crate::pages::message::CallKey;
use crate::pairing::{PairCall, PairOutcome, PairingSheet, revoke};
use crate::usage::{UsageOutcome, UsagePart, UsageSheet};
use plexus_protocol::CeilingKind;
use plexus_protocol::api::pairing::PairingBegun;
use plexus_protocol::api::usage::CeilingsView;

impl App {
    fn next_sheet(&mut self) -> u64 {
        self.sheets += 1;
        self.sheets
    }

    // === pairing

    pub(super) fn pair_device(&mut self) {
        let serial = self.next_sheet();
        self.shared.overlay = Some(Overlay::Pairing(Box::new(PairingSheet::new(serial))));
    }

    pub(super) fn pairing_key(&mut self, mut sheet: PairingSheet, key: &Key, effects: &mut Vec<Effect>) {
        let outcome = sheet.key(key.name(), self.shared.now);
        self.pairing_outcome(sheet, outcome, effects);
    }

    fn pairing_outcome(&mut self, sheet: PairingSheet, outcome: PairOutcome, effects: &mut Vec<Effect>) {
        let serial = sheet.serial;
        match outcome {
            PairOutcome::Close => return self.end_pairing(&sheet, effects),
            outcome => effects.extend(pairing_effect(serial, outcome)),
        }
        self.shared.overlay = Some(Overlay::Pairing(Box::new(sheet)));
    }

    /// Closes the pairing, and revokes a code that was not used.
    pub(super) fn end_pairing(&mut self, sheet: &PairingSheet, effects: &mut Vec<Effect>) {
        effects.extend(pairing_effect(sheet.serial, sheet.end()));
        self.refresh(effects);
    }

    pub(super) fn on_pairing_reply(
        &mut self,
        (serial, call): (u64, PairCall),
        reply: &CallReply,
        effects: &mut Vec<Effect>,
    ) {
        match self.shared.overlay.take() {
            Some(Overlay::Pairing(mut sheet)) if sheet.serial == serial => {
                let outcome = sheet.on_reply(&call, reply, self.shared.now);
                self.pairing_outcome(*sheet, outcome, effects);
                self.refresh(effects);
            }
            other => {
                self.shared.overlay = other;
                // The window was closed before its code arrived.
                if let (PairCall::Begin, Ok(begun)) = (call, reply.read::<PairingBegun>()) {
                    effects.extend(pairing_effect(serial, revoke(&begun.pairing_id)));
                }
            }
        }
    }

    /// Repeats a poll that failed.
    pub(super) fn tick_pairing(&mut self, effects: &mut Vec<Effect>) {
        if let Some(Overlay::Pairing(sheet)) = &mut self.shared.overlay {
            effects.extend(pairing_effect(sheet.serial, sheet.on_tick(self.shared.now)));
        }
    }

    pub(super) fn sign_out_browsers(&mut self) {
        self.shared.confirm(
            "Sign out all browsers of this machine? Each needs `plexus open` again.".into(),
            AfterConfirm::call(
                CallTag::Notice("the browsers of this machine are signed out".into()),
                calls::revoke_local_browsers(),
            ),
        );
    }

    // === usage

    pub(super) fn open_usage(&mut self, effects: &mut Vec<Effect>) {
        let sheet = UsageSheet::new(self.next_sheet());
        self.read_usage(sheet, effects);
    }

    fn read_usage(&mut self, mut sheet: UsageSheet, effects: &mut Vec<Effect>) {
        sheet.serial = self.next_sheet();
        let time_zone = jiff::tz::TimeZone::system();
        for part in [UsagePart::Days, UsagePart::Rows, UsagePart::Ceilings] {
            let request = sheet.request(part, self.shared.now, &time_zone);
            effects.push(Effect::Call { tag: CallTag::Usage(sheet.serial, part), request, key: CallKey::None });
        }
        self.shared.overlay = Some(Overlay::Usage(Box::new(sheet)));
    }

    pub(super) fn usage_key(&mut self, mut sheet: UsageSheet, key: &Key, effects: &mut Vec<Effect>) {
        match sheet.key(key.name(), sheet_drawing::usage_end(&self.shared, &sheet)) {
            UsageOutcome::Close => {}
            UsageOutcome::Nothing => self.shared.overlay = Some(Overlay::Usage(Box::new(sheet))),
            UsageOutcome::Read => self.read_usage(sheet, effects),
            UsageOutcome::Set(ceiling) => {
                let Some(known) = &sheet.ceilings else { return };
                let text = ceilings::text(known, ceiling);
                self.ask_ceiling(ceiling, known.clone(), if text == "none" { "" } else { &text });
            }
        }
    }

    pub(super) fn on_usage_reply(&mut self, serial: u64, part: UsagePart, reply: &CallReply) {
        if let Some(Overlay::Usage(sheet)) = &mut self.shared.overlay
            && sheet.serial == serial
        {
            sheet.on_reply(part, reply);
        }
    }

    fn ask_ceiling(&mut self, ceiling: CeilingKind, known: CeilingsView, text: &str) {
        let label = match ceiling {
            CeilingKind::Day => "a day: 5 USD, 2M tokens · none · configured",
            CeilingKind::Session => "each session: 5 USD, 2M tokens · none · configured",
        };
        let then = Box::new(AfterConfirm::Ceiling(ceiling, Box::new(known)));
        self.shared.overlay = Some(Overlay::Input { label, area: input::area(text), then });
    }

    /// Sets a ceiling to the typed amount, or shows the prompt again if it is invalid.
    pub(super) fn set_ceiling(
        &mut self,
        ceiling: CeilingKind,
        known: CeilingsView,
        text: &str,
        effects: &mut Vec<Effect>,
    ) {
        match ceilings::settings(&known, ceiling, text) {
            Err(why) => {
                self.shared.show_notice(&why, true);
                self.ask_ceiling(ceiling, known, text);
            }
            Ok(settings) => effects.push(Effect::call(CallTag::Ceilings, calls::set_ceilings(&settings))),
        }
    }

    /// Applies the outcome of setting a ceiling, and shows the usage again.
    pub(super) fn on_ceilings(&mut self, problem: Option<&str>, effects: &mut Vec<Effect>) {
        match problem {
            None => self.shared.show_notice("the ceiling is set", false),
            Some(why) => self.shared.show_notice(&format!("the ceiling was not set: {why}"), true),
        }
        if self.shared.overlay.is_none() {
            self.open_usage(effects);
        }
    }

    // === settings

    pub(super) fn open_settings(&mut self, effects: &mut Vec<Effect>) {
        let facts = SettingsFacts {
            address: self.shared.environment.address.clone(),
            home: self.shared.environment.home.clone(),
            ..SettingsFacts::default()
        };
        effects.push(Effect::call(CallTag::Settings(Box::new(facts)), calls::me()));
    }

    /// Shows the facts, once the permissions of this device and, for an administrator, the listeners of the gateway are known.
    pub(super) fn on_settings_reply(&mut self, mut facts: SettingsFacts, reply: &CallReply, effects: &mut Vec<Effect>) {
        if facts.me.is_none() {
            match reply.read() {
                Ok(me) => facts.me = Some(me),
                Err(why) => return self.shared.show_notice(&format!("the settings could not be read: {why}"), true),
            }
            if facts.is_admin() {
                return effects.push(Effect::call(CallTag::Settings(Box::new(facts)), calls::listeners()));
            }
        } else {
            facts.listeners = Some(reply.read());
        }
        let width = usize::from(self.shared.size.0).saturating_sub(6);
        let text = facts::facts(&facts, self.shared.now, width);
        self.shared.overlay = Some(Overlay::TextPage { title: "Settings".into(), text, scroll: 0 });
    }
}

fn pairing_effect(serial: u64, outcome: PairOutcome) -> Option<Effect> {
    let PairOutcome::Call { call, request } = outcome else { return None };
    Some(Effect::Call { tag: CallTag::Pairing(serial, call), request, key: CallKey::None })
}
