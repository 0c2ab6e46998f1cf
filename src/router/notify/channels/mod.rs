//! The owner's channels. A kind of channel is a file of its own that implements [`Channel`], and a line in [`KINDS`] beside its `mod`: the
//! configuration, the delivery and the metrics know it by that.

mod ntfy;
mod telegram;
mod webhook;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plexus_protocol::Timestamp;
use sha2::{Digest as _, Sha256};

use super::sender::DeliveryTarget;
use super::text::NotificationMessage;
use super::{HiddenText, TargetWants};

/// Every kind of channel.
pub const KINDS: &[ChannelKind] = &[webhook::KIND, ntfy::KIND, telegram::KIND];

/// A kind of channel, as the configuration and the metrics name it.
pub struct ChannelKind {
    /// Its tables are `[[push.<name>]]`.
    pub name: &'static str,
    /// What such a table may hold beside `events`; `${VAR}` is expanded in each.
    pub settings: &'static [ChannelSetting],
    /// Makes a channel of the settings that are there; those that it needs are.
    pub(super) make: fn(&ChannelSettings) -> Result<Arc<dyn Channel>, SettingError>,
}

/// A setting of a kind of channel. Its value is text, and never shown.
pub struct ChannelSetting {
    /// Its key.
    pub name: &'static str,
    /// A value, for error messages.
    pub example: &'static str,
    /// What there is none of without it, where there has to be one: "an address".
    pub needed: Option<&'static str>,
}

/// What a channel's table says.
pub type ChannelSettings = BTreeMap<&'static str, HiddenText>;

/// A setting that is none.
#[derive(Debug)]
pub struct SettingError {
    /// Its key.
    pub setting: &'static str,
    /// In words; how to write it is added.
    pub why: String,
}

/// A way to tell the owner.
pub(super) trait Channel: Send + Sync {
    /// What makes it the same place after a restart: its address. Never shown.
    fn address(&self) -> String;

    /// The POST that brings a message.
    ///
    /// # Errors
    /// In words: it cannot be sent, now or later.
    fn delivery(&self, message: &NotificationMessage, context: &DeliveryContext) -> Result<Delivery, String>;
}

/// What a channel may need beside the message.
pub(super) struct DeliveryContext {
    pub(super) now: Timestamp,
    /// Where the page shows what the message is about, if the gateway knows how the owner's screens reach it.
    pub(super) link: Option<String>,
}

/// A POST.
pub(super) struct Delivery {
    pub(super) target: DeliveryTarget,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A channel of the configuration.
#[derive(Clone)]
pub struct ConfiguredChannel {
    /// The name of its [`ChannelKind`].
    pub kind: &'static str,
    /// Which news.
    pub events: TargetWants,
    /// As the configuration says them.
    pub settings: ChannelSettings,
    pub(super) channel: Arc<dyn Channel>,
}

impl ConfiguredChannel {
    /// A channel of this kind.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn new(kind: &ChannelKind, settings: ChannelSettings, events: TargetWants) -> Result<Self, SettingError> {
        let channel = (kind.make)(&settings)?;
        Ok(Self { kind: kind.name, events, settings, channel })
    }

    /// The name of its place: the same as long as its address is.
    pub(super) fn place(&self) -> String {
        let hash = HEXLOWER.encode(&Sha256::digest(self.channel.address().as_bytes()));
        format!("{}:{}", self.kind, &hash[..16])
    }
}

impl PartialEq for ConfiguredChannel {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.events, &self.settings) == (other.kind, other.events, &other.settings)
    }
}

impl Eq for ConfiguredChannel {}

impl fmt::Debug for ConfiguredChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, events, settings, channel: _ } = self;
        f.debug_struct("ConfiguredChannel")
            .field("kind", kind)
            .field("events", events)
            .field("settings", settings)
            .finish()
    }
}

/// Reads the address in a setting.
pub(super) fn target(settings: &ChannelSettings, name: &'static str) -> Result<DeliveryTarget, SettingError> {
    let url = settings.get(name).map_or("", |url| url.0.as_str());
    DeliveryTarget::of_owner(url).map_err(|why| SettingError { setting: name, why })
}

/// A header, where its value can be one.
pub(super) fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_settings_are_never_shown() {
        let settings =
            [("url", "https://x/1"), ("secret", "s3cret")].map(|(key, value)| (key, HiddenText(value.into())));
        let channel = ConfiguredChannel::new(&webhook::KIND, settings.into(), TargetWants::default()).unwrap();
        let shown = format!("{channel:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("https"), "{shown}");
    }

    #[test]
    fn channel_place_is_the_same_as_long_as_the_address_is() {
        let place = |kind: &ChannelKind, settings: &[(&'static str, &str)]| {
            let settings = settings.iter().map(|(key, value)| (*key, HiddenText((*value).into()))).collect();
            ConfiguredChannel::new(kind, settings, TargetWants::default()).unwrap().place()
        };
        let hook = place(&webhook::KIND, &[("url", "https://x/1")]);
        // Rows of earlier releases have this name.
        assert_eq!(hook, "webhook:8cfc4bebe4e75b65");
        assert_eq!(hook, place(&webhook::KIND, &[("url", "https://x/1"), ("secret", "other")]));
        assert_ne!(hook, place(&webhook::KIND, &[("url", "https://x/2")]));
        assert!(place(&ntfy::KIND, &[("url", "https://x/1")]).starts_with("ntfy:"));
    }
}
