//! Parts of a session's stored state: shared large values and message counts.

use super::*;

/// A large part of the state, copied on write.
#[derive(Clone, Debug, Default)]
pub(super) struct Large<T>(Arc<T>);

impl<T: Clone> Large<T> {
    pub(super) fn change(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> std::ops::Deref for Large<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize> Serialize for Large<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Large<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Arc::new(T::deserialize(deserializer)?)))
    }
}

/// Reads the outcome of a run from the session's row. An unknown status is an error, as it could not be written again.
pub(super) fn outcome<'de, D: serde::Deserializer<'de>>(row: D) -> Result<RunOutcome, D::Error> {
    let outcome = RunOutcome::deserialize(row)?;
    match outcome.status {
        RunStatus::Unknown => Err(serde::de::Error::custom("the status of the run is unknown")),
        _ => Ok(outcome),
    }
}

/// The messages of a session, counted when they are stored, so that lists do not read the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MessageCounts {
    pub(super) count: u64,
    /// The beginning of the last message of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<String>,
    /// The run of the unfinished message, and whether a user wrote it.
    #[serde(rename = "of", default, skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<(RunId, bool)>,
}

impl MessageCounts {
    /// Counts an event; returns whether anything changed. The agent's text between two tool calls is one message.
    pub(super) fn record(&mut self, run_id: &RunId, kind: Kind, body: &[u8]) -> bool {
        let person = match kind {
            Kind::UserMessageChunk => true,
            Kind::AgentMessageChunk => false,
            Kind::ToolCall => return self.author.take().is_some(),
            _ => return false,
        };
        let more = self.author.as_ref().is_some_and(|(run, from_person)| run == run_id && *from_person == person);
        if !more {
            self.count += 1;
            self.author = Some((run_id.clone(), person));
        }
        if !person {
            return !more;
        }
        let text = self.last.take().filter(|_| more).unwrap_or_default();
        let free = TEXT_SHOWN.saturating_sub(text.len());
        let more = if free > 0 { label(&text_of_body(body, free), free) } else { String::new() };
        self.last = Some(text + &more).filter(|text| !text.is_empty());
        true
    }
}
