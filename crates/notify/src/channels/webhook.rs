//! Webhooks: the message as JSON, signed if a secret is configured.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use ring::hmac;

use super::super::HiddenText;
use super::super::sender::DeliveryTarget;
use super::super::text::NotificationMessage;
use super::{Channel, ChannelKind, ChannelSetting, Delivery, DeliveryContext, put, target};

/// Channels in `[[push.webhook]]`.
pub(super) const KIND: ChannelKind = ChannelKind {
    name: "webhook",
    settings: &[
        ChannelSetting { name: "url", example: "https://example.org/plexus", needed: Some("an address") },
        ChannelSetting { name: "secret", example: "${PLEXUS_WEBHOOK_SECRET}", needed: None },
    ],
    make: |settings| {
        let target = target(settings, "url")?;
        let url = settings.get("url").map_or_else(String::new, |url| url.0.clone());
        Ok(Arc::new(Webhook { target, url, secret: settings.get("secret").cloned() }))
    },
};

struct Webhook {
    target: DeliveryTarget,
    url: String,
    secret: Option<HiddenText>,
}

impl Channel for Webhook {
    fn address(&self) -> String {
        self.url.clone()
    }

    fn delivery(&self, message: &NotificationMessage, context: &DeliveryContext) -> Result<Delivery, String> {
        let mut payload = message.payload.clone();
        payload["at"] = serde_json::json!(context.now);
        if let Some(link) = &context.link {
            payload["url"] = link.as_str().into();
        }
        let body = payload.to_string().into_bytes();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let at = (context.now.as_millis() / 1000).to_string();
        put(&mut headers, "plexus-event", message.payload["kind"].as_str().unwrap_or_default());
        put(&mut headers, "plexus-timestamp", &at);
        if let Some(HiddenText(secret)) = &self.secret {
            put(&mut headers, "plexus-signature", &signature(secret, &at, &body));
        }
        Ok(Delivery { target: self.target.clone(), headers, body })
    }
}

/// Returns the signature of a POST: HMAC-SHA256 of the time, a dot, and the body.
fn signature(secret: &str, at: &str, body: &[u8]) -> String {
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
    signing.update(at.as_bytes());
    signing.update(b".");
    signing.update(body);
    format!("v1={}", HEXLOWER.encode(signing.sign().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_signature_is_as_documented() {
        // printf '%s' '1700000000.{"kind":"test"}' | openssl dgst -sha256 -hmac s3cret
        let signed = "v1=7b2aff8eab4012eb239d2b0b89ccb83d5c195cb2849de7f44bd0271591f2a87b";
        assert_eq!(signature("s3cret", "1700000000", br#"{"kind":"test"}"#), signed);
    }
}
