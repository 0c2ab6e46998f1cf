//! Topics of ntfy (<https://docs.ntfy.sh/publish/>), which has apps for phones.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::super::sender::DeliveryTarget;
use super::super::text::NotificationMessage;
use super::super::{HiddenText, topic};
use super::{Channel, ChannelKind, ChannelSetting, Delivery, DeliveryContext, put, target};

/// Channels in `[[push.ntfy]]`.
pub(super) const KIND: ChannelKind = ChannelKind {
    name: "ntfy",
    settings: &[
        ChannelSetting { name: "url", example: "https://ntfy.sh/my-topic", needed: Some("an address") },
        ChannelSetting { name: "token", example: "${NTFY_TOKEN}", needed: None },
    ],
    make: |settings| {
        let target = target(settings, "url")?;
        let url = settings.get("url").map_or_else(String::new, |url| url.0.clone());
        Ok(Arc::new(Ntfy { target, url, token: settings.get("token").cloned() }))
    },
};

struct Ntfy {
    target: DeliveryTarget,
    url: String,
    token: Option<HiddenText>,
}

impl Channel for Ntfy {
    fn address(&self) -> String {
        self.url.clone()
    }

    fn delivery(&self, message: &NotificationMessage, context: &DeliveryContext) -> Result<Delivery, String> {
        let text = |member: &str| message.payload[member].as_str().unwrap_or_default();
        let priority = match (text("kind"), text("risk")) {
            ("withdrawn", _) => "1",
            (_, "danger") => "5",
            ("request", _) => "4",
            ("ended", _) => "2",
            _ => "3",
        };
        let mut headers = HeaderMap::new();
        put(&mut headers, "title", &encoded_word(text("title")));
        put(&mut headers, "priority", priority);
        put(&mut headers, "tags", text("kind"));
        // Servers from 2.16 on replace the message with the same id; older ones ignore it.
        put(&mut headers, "x-sequence-id", &topic(&message.tag));
        if let Some(link) = &context.link {
            put(&mut headers, "click", link);
        }
        if let Some(HiddenText(token)) = &self.token {
            put(&mut headers, "authorization", &format!("Bearer {token}"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        Ok(Delivery { target: self.target.clone(), headers, body: text("body").as_bytes().to_vec() })
    }
}

/// Returns text for a header, encoded (RFC 2047) if it is not ASCII.
fn encoded_word(text: &str) -> String {
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    format!("=?UTF-8?B?{}?=", data_encoding::BASE64.encode(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntfy_titles_are_plain_or_encoded() {
        assert_eq!(encoded_word("demo asks"), "demo asks");
        assert_eq!(encoded_word("Allowed by Zoë"), "=?UTF-8?B?QWxsb3dlZCBieSBab8Or?=");
    }
}
