//! The channels of the owner. A kind of channel is a file that implements [`Channel`] and a line in [`KINDS`], from which the
//! configuration, the delivery and the metrics are derived.

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
use super::{HiddenText, NotificationFilter};

/// Every kind of channel.
pub const KINDS: &[ChannelKind] = &[webhook::KIND, ntfy::KIND, telegram::KIND];

/// A kind of channel, with its name in the configuration and the metrics.
pub struct ChannelKind {
    /// The name in `[[push.<name>]]` tables.
    pub name: &'static str,
    /// The members of such a table beside `events`; `${VAR}` is expanded in each.
    pub settings: &'static [ChannelSetting],
    /// Makes a channel; the settings that it needs are present.
    pub(super) make: fn(&ChannelSettings) -> Result<Arc<dyn Channel>, SettingError>,
}

/// A setting of a kind of channel. Its value is text, and never displayed.
pub struct ChannelSetting {
    /// The key.
    pub name: &'static str,
    /// An example of a value, for error messages.
    pub example: &'static str,
    /// The missing part of a table without this setting, in words ("an address"); `None` if the setting is optional.
    pub needed: Option<&'static str>,
}

/// The settings of the table of a channel.
pub type ChannelSettings = BTreeMap<&'static str, HiddenText>;

/// A setting whose value is not valid.
#[derive(Debug)]
pub struct SettingError {
    /// The key.
    pub setting: &'static str,
    /// The reason, in words; an example is added.
    pub reason: String,
}

/// A way to notify the owner.
pub(super) trait Channel: Send + Sync {
    /// Returns the address, which identifies the target across restarts. Never displayed.
    fn address(&self) -> String;

    /// Returns the POST that delivers a message.
    ///
    /// # Errors
    /// The reason why the message can never be sent, in words.
    fn delivery(&self, message: &NotificationMessage, context: &DeliveryContext) -> Result<Delivery, String>;
}

/// The context of a delivery besides the message.
pub(super) struct DeliveryContext {
    pub(super) now: Timestamp,
    /// The link to the page with the news, if the public address of the gateway is configured.
    pub(super) link: Option<String>,
}

/// A POST to make.
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
    /// The kinds of news that the channel gets.
    pub events: NotificationFilter,
    /// The settings of the channel's table.
    pub settings: ChannelSettings,
    pub(super) channel: Arc<dyn Channel>,
}

impl ConfiguredChannel {
    /// Makes a channel of this kind.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn new(
        kind: &ChannelKind,
        settings: ChannelSettings,
        events: NotificationFilter,
    ) -> Result<Self, SettingError> {
        let channel = (kind.make)(&settings)?;
        Ok(Self { kind: kind.name, events, settings, channel })
    }

    /// Returns the name of the channel's target, which stays the same as long as its address does.
    pub(super) fn target_name(&self) -> String {
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

/// Parses the address in a setting.
pub(super) fn target(settings: &ChannelSettings, name: &'static str) -> Result<DeliveryTarget, SettingError> {
    let url = settings.get(name).map_or("", |url| url.0.as_str());
    DeliveryTarget::from_config(url).map_err(|reason| SettingError { setting: name, reason })
}

/// Adds a header, if its value is a valid one.
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
        let channel = ConfiguredChannel::new(&webhook::KIND, settings.into(), NotificationFilter::default()).unwrap();
        let shown = format!("{channel:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("https"), "{shown}");
    }

    #[test]
    fn channel_place_is_the_same_as_long_as_the_address_is() {
        let place = |kind: &ChannelKind, settings: &[(&'static str, &str)]| {
            let settings = settings.iter().map(|(key, value)| (*key, HiddenText((*value).into()))).collect();
            ConfiguredChannel::new(kind, settings, NotificationFilter::default()).unwrap().target_name()
        };
        let hook = place(&webhook::KIND, &[("url", "https://x/1")]);
        // Rows of earlier releases have this name.
        assert_eq!(hook, "webhook:8cfc4bebe4e75b65");
        assert_eq!(hook, place(&webhook::KIND, &[("url", "https://x/1"), ("secret", "other")]));
        assert_ne!(hook, place(&webhook::KIND, &[("url", "https://x/2")]));
        assert!(place(&ntfy::KIND, &[("url", "https://x/1")]).starts_with("ntfy:"));
    }
}
