//! Telegram: a bot of the owner writes to a chat (Bot API, `sendMessage`: <https://core.telegram.org/bots/api#sendmessage>).

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;

use super::super::sender::DeliveryTarget;
use super::super::text::NotificationMessage;
use super::{Channel, ChannelKind, ChannelSetting, Delivery, DeliveryContext, SettingError};

/// The default server.
const API: &str = "https://api.telegram.org";
/// Maximum length of the text of a message, in UTF-16 units; longer text is cut.
const TEXT_MAX: usize = 4096;

/// Channels in `[[push.telegram]]`.
pub(super) const KIND: ChannelKind = ChannelKind {
    name: "telegram",
    settings: &[
        ChannelSetting { name: "token", example: "${TELEGRAM_TOKEN}", needed: Some("the token of a bot") },
        ChannelSetting { name: "chat_id", example: "123456789", needed: Some("a chat") },
        ChannelSetting { name: "url", example: API, needed: None },
    ],
    make: |settings| {
        let value = |name: &str| settings.get(name).map_or("", |value| value.0.trim());
        let (token, chat_id) = (value("token"), value("chat_id"));
        // `<bot's number>:<letters>`: it becomes a part of the path.
        if !token.contains(':') || !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_-".contains(&byte)) {
            return Err(SettingError { setting: "token", reason: "is not the token of a bot".into() });
        }
        let number = chat_id.strip_prefix('-').unwrap_or(chat_id);
        let named = chat_id.strip_prefix('@').is_some_and(|name| !name.is_empty());
        if !named && (number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(SettingError {
                setting: "chat_id",
                reason: "is neither a number nor a channel's @name".into(),
            });
        }
        let server = match value("url") {
            "" => API,
            url => url.trim_end_matches('/'),
        };
        let url = format!("{server}/bot{token}/sendMessage");
        let target = DeliveryTarget::from_config(&url).map_err(|reason| SettingError { setting: "url", reason })?;
        Ok(Arc::new(Telegram { target, url, chat_id: chat_id.to_owned() }))
    },
};

struct Telegram {
    target: DeliveryTarget,
    url: String,
    chat_id: String,
}

impl Channel for Telegram {
    fn address(&self) -> String {
        format!("{} {}", self.url, self.chat_id)
    }

    fn delivery(&self, message: &NotificationMessage, context: &DeliveryContext) -> Result<Delivery, String> {
        let member = |member: &str| message.payload[member].as_str().unwrap_or_default();
        let link = context.link.as_deref().unwrap_or_default();
        let lines: Vec<&str> = [member("title"), member("body")].into_iter().filter(|text| !text.is_empty()).collect();
        // No `parse_mode`: an agent's text is plain text, even if it looks like markup. No preview: Telegram would open the link.
        let body = json!({
            "chat_id": self.chat_id,
            "text": text(&lines.join("\n"), link),
            "disable_notification": matches!(member("kind"), "withdrawn" | "ended"),
            "link_preview_options": { "is_disabled": true },
        });
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Delivery { target: self.target.clone(), headers, body: body.to_string().into_bytes() })
    }
}

/// Returns the text, shortened so that the link fits below it.
fn text(message: &str, link: &str) -> String {
    let below = if link.is_empty() { String::new() } else { format!("\n\n{link}") };
    let limit = TEXT_MAX.saturating_sub(below.encode_utf16().count());
    if message.encode_utf16().count() <= limit {
        return format!("{message}{below}");
    }
    let mut used = 1; // the ellipsis
    let shortened = message.chars().take_while(|c| {
        used += c.len_utf16();
        used <= limit
    });
    format!("{}…{below}", shortened.collect::<String>())
}

#[cfg(test)]
mod tests {
    use plexus_protocol::Timestamp;

    use super::super::super::HiddenText;
    use super::super::super::text::Urgency;
    use super::*;

    fn made(settings: &[(&'static str, &str)]) -> Result<Arc<dyn Channel>, SettingError> {
        (KIND.make)(&settings.iter().map(|(key, value)| (*key, HiddenText((*value).into()))).collect())
    }

    #[test]
    fn telegram_settings_are_a_bot_and_a_chat() {
        for chat in ["1", "-100123", "@channel"] {
            assert!(made(&[("token", "12:ab_C-d"), ("chat_id", chat)]).is_ok(), "{chat}");
        }
        for (token, chat, url, wrong) in [
            ("12", "1", "", "token"),
            ("12:a/../b", "1", "", "token"),
            ("12:a", "me", "", "chat_id"),
            ("12:a", "-", "", "chat_id"),
            ("12:a", "@", "", "chat_id"),
            ("12:a", "1", "ftp://x", "url"),
        ] {
            let error = made(&[("token", token), ("chat_id", chat), ("url", url)]).err().unwrap();
            assert_eq!(error.setting, wrong, "{token} {chat} {url}");
        }
    }

    #[test]
    fn telegram_messages_are_plain_text_of_bounded_length() {
        let channel = made(&[("token", "12:a"), ("chat_id", "7"), ("url", "http://127.0.0.1:9/")]).unwrap();
        let sent = |kind: &str, body: &str| {
            let payload = json!({ "kind": kind, "title": "demo asks", "body": body });
            let message = NotificationMessage { tag: "t".into(), payload, urgency: Urgency::High, ttl: 1 };
            let context =
                DeliveryContext { now: Timestamp::from_millis(0), link: Some("https://p.example/#/r/q_1".into()) };
            let delivery = channel.delivery(&message, &context).unwrap();
            assert_eq!(delivery.target.origin(), "http://127.0.0.1:9");
            serde_json::from_slice::<serde_json::Value>(&delivery.body).unwrap()
        };
        let asked = sent("request", "<b>rm</b> *x*");
        assert_eq!(asked["text"], "demo asks\n<b>rm</b> *x*\n\nhttps://p.example/#/r/q_1");
        assert!(asked["chat_id"] == "7" && asked["disable_notification"] == false && asked.get("parse_mode").is_none());
        assert_eq!(sent("withdrawn", "")["disable_notification"], true);
        let long = sent("request", &"𝄞".repeat(5000));
        let text = long["text"].as_str().unwrap();
        assert!(text.encode_utf16().count() <= TEXT_MAX && text.ends_with("…\n\nhttps://p.example/#/r/q_1"));
    }
}
