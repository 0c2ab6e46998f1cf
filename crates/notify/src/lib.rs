//! Notifications to devices and to the owner's own channels. One file: the stored state of each target, and the way to reach it. The
//! engine follows the log like any subscriber, observes viewers, applies the `rule`, and sends; nothing waits for it, regardless of the
//! services.
//!
//! Notifications that a service accepted are stored beside the subscription: after a restart nothing is sent twice, and ended news can
//! still be withdrawn. (After a kill between the acceptance and its storage a notification may be sent twice; the second replaces the
//! first.) Requests that are open at a start and were not sent are considered again.

mod api;
mod channels;
mod delivery_queue;
mod encryption;
mod engine;
mod rule;
mod sender;
mod text;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

pub use api::{NotifyState, routes};
pub use channels::{
    ChannelKind, ChannelSetting, ChannelSettings, ConfiguredChannel, KINDS as CHANNEL_KINDS, SettingError,
};
use channels::{Delivery, DeliveryContext, put};
use encryption::Keys;
pub use rule::NotificationFilter;
use rule::Quiet;
pub use sender::check_service;
use sender::{DeliveryTarget, Sender};
use text::NotificationMessage;

use plexus_protocol::{DeviceId, Origin, RuntimeId, SessionId, Timestamp};
use plexus_router::public_address::PublicAddresses;
use plexus_sessions::{CommitEntry, CommitRows, Log};
use plexus_store::PushChange;

/// Default time without viewers of a session before its news is sent.
pub const AFTER: Duration = Duration::from_secs(20);
/// Default time for which a failed notification is retried.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(600);
/// Maximum number of channels of one kind.
pub const CHANNELS: usize = 16;
/// Maximum number of tags that the row of a target remembers as sent: as many as the rule remembers.
const REMEMBERED_TAGS: usize = 1024;

/// A secret of the configuration; never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The settings of `[push]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// Time without viewers of a session before its news is sent.
    pub after: Duration,
    /// Time for which a failed notification is retried.
    pub give_up_after: Duration,
    /// The contact for push services: `mailto:` or `https:`.
    pub contact: Option<String>,
    /// Push services beside the browsers' own: hosts or origins.
    pub services: Vec<String>,
    /// The channels of the owner.
    pub channels: Vec<ConfiguredChannel>,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self { after: AFTER, give_up_after: GIVE_UP_AFTER, contact: None, services: Vec::new(), channels: Vec::new() }
    }
}

/// A device's subscription, in the form of its browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subscription {
    endpoint: String,
    p256dh: String,
    auth: String,
    /// The public half of the gateway's key for which it was made; absent in rows of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// The quiet hours of a device, as it set them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = PushQuiet)]
struct Hours {
    from: String,
    to: String,
    offset_minutes: i16,
    /// The owner's time zone by its IANA name; rows of earlier releases have only the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
}

impl Hours {
    /// Returns the hours, if they are valid.
    fn read(&self) -> Option<Quiet> {
        let minutes = |text: &str| {
            let (hours, minutes) = text.split_once(':')?;
            let two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            if !two(hours) || !two(minutes) {
                return None;
            }
            let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let (from, to) = (minutes(&self.from)?, minutes(&self.to)?);
        let valid = from != to && (-14 * 60..=14 * 60).contains(&self.offset_minutes);
        let zone = match &self.zone {
            Some(name) => TimeZone::get(name).ok()?,
            None => TimeZone::fixed(Offset::from_seconds(i32::from(self.offset_minutes) * 60).ok()?),
        };
        valid.then_some(Quiet { from, to, zone })
    }
}

/// The choices of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = PushSettings)]
struct ChosenChannels {
    #[serde(flatten)]
    filter: NotificationFilter,
    #[schema(required)]
    quiet: Option<Hours>,
}

/// The stored row of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TargetRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subscription: Option<Subscription>,
    /// `true` if the subscription ended against the device's choice: its page subscribes again at its next visit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lapsed: bool,
    #[serde(default)]
    chosen: ChosenChannels,
    /// The tags of the notifications that were sent and not withdrawn.
    #[serde(default, rename = "told", skip_serializing_if = "BTreeSet::is_empty")]
    sent: BTreeSet<String>,
    /// The tags of the news that was in a summary.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    summed: BTreeSet<String>,
}

impl TargetRow {
    /// Drops the subscription, for its page to subscribe again.
    fn mark_lapsed(&mut self) {
        self.leave();
        self.lapsed = true;
    }

    /// Drops the subscription and the record of notifications sent to it.
    fn leave(&mut self) {
        self.subscription = None;
        self.lapsed = false;
        self.sent.clear();
        self.summed.clear();
    }

    /// Drops the record of the notification with this tag.
    fn forget(&mut self, tag: &str) {
        if tag == text::SUM_TAG {
            self.summed.clear();
        }
        self.sent.remove(tag);
    }
}

/// The destination of the notifications of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// A device, through the push service of its browser.
    Push(Subscription),
    /// A channel of the owner.
    Channel(ConfiguredChannel),
}

impl Destination {
    /// Returns the label in the metrics.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Push(_) => "push",
            Self::Channel(channel) => channel.kind,
        }
    }
}

/// The targets, and the means to reach them. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<Shared>,
}

struct Shared {
    settings: NotifySettings,
    /// The source of the beginning of links in notifications.
    addresses: Arc<PublicAddresses>,
    keys: Keys,
    sender: Sender,
    log: Log,
    origin: Arc<Origin>,
    rows: Mutex<BTreeMap<String, TargetRow>>,
    /// Held while a row changes, including the write.
    changing: tokio::sync::Mutex<()>,
    changed: watch::Sender<u64>,
}

impl Notifier {
    /// Reads the stored targets, and the key pair in `home`, which is made if it is absent. Links begin with the public URL of `addresses`.
    ///
    /// # Errors
    /// A text for users, with the fix.
    pub fn open(
        home: &Path,
        log: &Log,
        settings: NotifySettings,
        addresses: Arc<PublicAddresses>,
    ) -> Result<Self, String> {
        let keys = Keys::open(home)?;
        let mut rows = BTreeMap::new();
        for (name, body) in log.store().pushes().map_err(|error| error.to_string())? {
            match serde_json::from_slice(&body) {
                Ok(row) => drop(rows.insert(name, row)),
                // A device subscribes again by itself, so this does not prevent the start.
                Err(error) => {
                    tracing::warn!(name, %error, "the stored notification state of a target is damaged and ignored")
                }
            }
        }
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted("gateway"),
            runtime_id: RuntimeId::trusted("gateway"),
            dialect: "gateway".into(),
        });
        Ok(Self {
            shared: Arc::new(Shared {
                settings,
                addresses,
                keys,
                sender: Sender::default(),
                log: log.clone(),
                origin,
                rows: Mutex::new(rows),
                changing: tokio::sync::Mutex::default(),
                changed: watch::Sender::new(0),
            }),
        })
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, TargetRow>> {
        self.shared.rows.lock()
    }

    fn row(&self, name: &str) -> TargetRow {
        self.rows().get(name).cloned().unwrap_or_default()
    }

    /// Changes a row, in the store first. The error is a text for users.
    async fn change(&self, name: &str, change: impl FnOnce(&mut TargetRow)) -> Result<(), String> {
        let _changing = self.shared.changing.lock().await;
        let old = self.rows().get(name).cloned();
        let mut new = old.clone().unwrap_or_default();
        change(&mut new);
        if old.as_ref() == Some(&new) {
            return Ok(());
        }
        let body = serde_json::to_vec(&new).map_err(|error| error.to_string())?;
        self.commit(name, Some(body)).await?;
        self.rows().insert(name.to_owned(), new);
        self.shared.changed.send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    /// Removes a subscription from every target except `name`: it belongs to the device that subscribed last.
    async fn claim(&self, name: &str, endpoint: &str) -> Result<(), String> {
        for other in self.with(|row, subscription| row != name && subscription.endpoint == endpoint) {
            self.change(&other, TargetRow::leave).await?;
        }
        Ok(())
    }

    /// Drops subscriptions that were made for another key, or that two devices have; the others are marked with the gateway's key.
    async fn update_keys(&self) -> Result<(), String> {
        let (ours, made) = (&self.shared.keys.public, self.shared.keys.made);
        let has_other_key = |subscription: &Subscription| subscription.key.as_ref().map_or(made, |key| key != ours);
        for name in self.with(|_, subscription| has_other_key(subscription)) {
            tracing::info!(name, "a subscription was made for another key: its page subscribes again");
            self.change(&name, TargetRow::mark_lapsed).await?;
        }
        let mut seen = BTreeSet::new();
        for name in self.with(|_, _| true) {
            let Some(subscription) = self.row(&name).subscription else { continue };
            if seen.insert(subscription.endpoint) {
                self.change(&name, |row| row.subscription.iter_mut().for_each(|one| one.key = Some(ours.clone())))
                    .await?;
            } else {
                // It is unknown which device subscribed last: each page subscribes again.
                self.change(&name, TargetRow::mark_lapsed).await?;
            }
        }
        Ok(())
    }

    /// Returns the targets with a subscription that `wanted` accepts.
    fn with(&self, wanted: impl Fn(&str, &Subscription) -> bool) -> Vec<String> {
        let rows = self.rows();
        let some = rows.iter().filter(|(name, row)| row.subscription.as_ref().is_some_and(|one| wanted(name, one)));
        some.map(|(name, _)| name.clone()).collect()
    }

    /// Deletes a target.
    async fn forget(&self, name: &str) -> Result<(), String> {
        let _changing = self.shared.changing.lock().await;
        if self.rows().remove(name).is_some() {
            self.commit(name, None).await?;
            self.shared.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(())
    }

    async fn commit(&self, name: &str, body: Option<Vec<u8>>) -> Result<(), String> {
        let change = PushChange { name: name.to_owned(), body };
        let rows = move |_| CommitRows { pushes: vec![change], ..CommitRows::default() };
        let origin = Arc::clone(&self.shared.origin);
        let entry = CommitEntry {
            origin,
            events: Vec::new(),
            rows: Some(Box::new(rows)),
            on_stored: None,
            received: None,
            sync: false,
        };
        self.shared.log.commit(entry).await.map(drop).map_err(|error| error.to_string())
    }

    /// Makes one attempt to send to a target.
    async fn send(&self, to: &Destination, message: &NotificationMessage, now: Timestamp) -> sender::PostOutcome {
        let delivery = match to {
            Destination::Push(subscription) => self.pushed(subscription, message, now),
            Destination::Channel(to) => {
                to.channel.delivery(message, &DeliveryContext { now, link: self.link(message) })
            }
        };
        match delivery {
            Ok(Delivery { target, headers, body }) => self.shared.sender.send(&target, headers, body).await,
            Err(reason) => {
                tracing::warn!(reason, "a notification cannot be sent");
                sender::PostOutcome::Refused(0)
            }
        }
    }

    /// Makes a message to a browser's push service (RFC 8030), encrypted for the browser.
    fn pushed(&self, to: &Subscription, message: &NotificationMessage, now: Timestamp) -> Result<Delivery, String> {
        let NotifySettings { services, contact, .. } = &self.shared.settings;
        // Checked at each use: the configuration may have become stricter since.
        let target = DeliveryTarget::from_client(&to.endpoint, services)?;
        let (theirs, auth) = to.keys().ok_or("its keys are none")?;
        let plain = message.payload.to_string();
        let keys = &self.shared.keys;
        let body = keys.seal(&theirs, &auth, plain.as_bytes()).ok_or("it cannot be sealed")?;
        let proof = keys.proof(&target.origin(), contact.as_deref(), now).ok_or("it cannot be signed")?;
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&proof).map_err(|error| error.to_string())?);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("aes128gcm"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        put(&mut headers, "ttl", &message.ttl.to_string());
        put(&mut headers, "urgency", message.urgency.as_str());
        put(&mut headers, "topic", &topic(&message.tag));
        Ok(Delivery { target, headers, body })
    }

    /// Returns the link to the page with the news.
    fn link(&self, message: &NotificationMessage) -> Option<String> {
        let base = self.shared.addresses.url()?;
        let base = base.trim_end_matches('/');
        let part = match (message.payload["request_id"].as_str(), message.payload["session_id"].as_str()) {
            (Some(request), _) => format!("r/{request}"),
            (None, Some(session)) if message.tag != text::SUM_TAG => format!("s/{session}"),
            _ => "inbox".into(),
        };
        Some(format!("{base}/#/{part}"))
    }
}

impl Subscription {
    /// Returns the keys as bytes. Browsers omit the padding; libraries may not.
    fn keys(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = |text: &str| BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes()).ok();
        Some((bytes(&self.p256dh)?, bytes(&self.auth)?))
    }
}

/// Returns a tag in the form for push services: at most 32 characters of base64url (RFC 8030, 5.4), a hash that does not reveal the tag.
fn topic(tag: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(tag.as_bytes())[..24])
}

/// Returns the name of a device's target.
fn target_of(device: &DeviceId) -> String {
    device.as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_quiet_hours_are_two_different_times_of_day() {
        let hours = |from: &str, to: &str, offset_minutes| Hours {
            from: from.into(),
            to: to.into(),
            offset_minutes,
            zone: None,
        };
        let zone = TimeZone::fixed(Offset::from_seconds(7200).unwrap());
        assert_eq!(hours("22:00", "07:30", 120).read(), Some(Quiet { from: 1320, to: 450, zone }));
        let named = |zone: &str| Hours { zone: Some(zone.into()), ..hours("22:00", "07:30", 120) }.read();
        assert_eq!(named("Europe/Berlin").unwrap().zone.iana_name(), Some("Europe/Berlin"));
        assert!(named("Nowhere/Atall").is_none() && named("../../etc/passwd").is_none() && named("").is_none());
        for bad in [
            hours("22:00", "22:00", 0),
            hours("24:00", "07:00", 0),
            hours("22:60", "07:00", 0),
            hours("2:00", "07:00", 0),
            hours("+2:00", "07:00", 0),
            hours("2200", "07:00", 0),
            hours("22:00", "07:00", 841),
            hours("22:00", "", 0),
        ] {
            assert_eq!(bad.read(), None, "{bad:?}");
        }
    }

    #[test]
    fn push_topic_is_short_and_tells_nothing() {
        let topic = topic("request:q_3qpex3kh3bvb7h4t2nn4q5u6j2");
        assert!(topic.len() == 32 && topic.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
    }
}
