//! Which client does for an agent what it asks its client: the editor whose session it is has the open files and the
//! terminals that the agent means. One client at most is asked, never all of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::dialects::Fault;
use crate::model::{NativeId, RuntimeId, SessionId, SessionInfo};

/// Errands that wait for one client; one more is refused.
const ERRANDS: usize = 64;
/// JSON-RPC: what was asked for failed.
const INTERNAL: i64 = -32603;

/// What a client offers to do for the agent of its session (ACP `clientCapabilities`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// `fs/read_text_file`.
    pub read: bool,
    /// `fs/write_text_file`.
    pub write: bool,
    /// `terminal/*`.
    pub terminal: bool,
}

impl Offers {
    /// Whether a method is among them.
    pub fn cover(self, method: &str) -> bool {
        match method {
            "fs/read_text_file" => self.read,
            "fs/write_text_file" => self.write,
            _ => self.terminal && method.starts_with("terminal/"),
        }
    }
}

/// Something that an agent asks of the client whose session it is.
#[derive(Debug)]
pub struct Errand {
    /// The ACP method.
    pub method: String,
    /// Its parameters as the agent wrote them: the session in them is the runtime's own.
    pub params: Box<RawValue>,
    /// Takes the client's result or error, untouched. Dropped, it tells the agent that the client left.
    pub reply: oneshot::Sender<Result<Box<RawValue>, Fault>>,
}

/// How a session stands now; `None` if it is gone.
type View = Box<dyn Fn(&SessionId) -> Option<Arc<SessionInfo>> + Send>;

/// The clients that stand in for sessions. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Owners {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// In the order in which they came: of one session's, the first is asked.
    standing: Mutex<BTreeMap<u64, Standing>>,
    next: AtomicU64,
}

struct Standing {
    session: SessionId,
    view: View,
    offers: Offers,
    errands: mpsc::Sender<Errand>,
}

/// A client's place in the line for a session; leaving the line is dropping it, and the next in line is asked from then on.
pub struct Ownership {
    /// What the agent asks for, while this client is the first in line.
    pub errands: mpsc::Receiver<Errand>,
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.shared.standing().remove(&self.number);
    }
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owners").field("standing", &self.shared.standing().len()).finish()
    }
}

impl Shared {
    fn standing(&self) -> MutexGuard<'_, BTreeMap<u64, Standing>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owners {
    /// Puts a client in the line for a session.
    pub(super) fn join(&self, session: SessionId, offers: Offers, view: View) -> Ownership {
        let (tx, errands) = mpsc::channel(ERRANDS);
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.standing().insert(number, Standing { session, view, offers, errands: tx });
        Ownership { errands, shared: Arc::clone(&self.shared), number }
    }

    /// Has an agent's wish done by the client whose session it is. `None`: it has none that offered to. Waits as long as
    /// that client takes.
    pub async fn run(
        &self,
        runtime: &RuntimeId,
        native: &NativeId,
        method: String,
        params: Box<RawValue>,
    ) -> Option<Result<Box<RawValue>, Fault>> {
        let errands = {
            let standing = self.shared.standing();
            let mut line = standing.values();
            let first = line.find(|one| {
                (one.view)(&one.session)
                    .is_some_and(|info| info.runtime_id == *runtime && info.native_id.as_ref() == Some(native))
            })?;
            first.offers.cover(&method).then(|| first.errands.clone())?
        };
        let (reply, done) = oneshot::channel();
        let fault = |message: String| Fault { code: INTERNAL, message, data: None };
        if let Err(refused) = errands.try_send(Errand { method, params, reply }) {
            return match refused {
                // It left this moment.
                mpsc::error::TrySendError::Closed(_) => None,
                mpsc::error::TrySendError::Full(_) => {
                    Some(Err(fault(format!("the client has {ERRANDS} requests of this agent to do already"))))
                }
            };
        }
        let left = || fault("the client that was asked left before it was done".into());
        Some(done.await.unwrap_or_else(|_| Err(left())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::model::{SessionState, Timestamp};

    fn view(native: &'static str) -> View {
        Box::new(move |id| {
            Some(Arc::new(SessionInfo {
                session_id: id.clone(),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
                native_id: Some(native.into()),
                title: None,
                cwd: "/".into(),
                state: SessionState::Idle,
                run_id: None,
                open_requests: 0,
                requests: Vec::new(),
                queue: Vec::new(),
                created_at: Timestamp::default(),
                prompted_at: None,
                updated_at: Timestamp::default(),
            }))
        })
    }

    const ALL: Offers = Offers { read: true, write: true, terminal: true };

    async fn ask(owners: &Owners, native: &str, method: &str) -> Option<Result<String, String>> {
        let params = RawValue::from_string("{}".into()).unwrap();
        let done = owners.run(&RuntimeId::trusted("demo"), &native.into(), method.into(), params).await?;
        Some(done.map(|result| result.get().to_owned()).map_err(|fault| fault.message))
    }

    #[tokio::test]
    async fn one_client_is_asked_and_the_next_when_it_leaves() {
        let owners = Owners::default();
        assert_eq!(ask(&owners, "n", "fs/read_text_file").await, None, "nobody is there");
        let first = owners.join(SessionId::trusted("s_1"), Offers { read: true, ..Offers::default() }, view("n"));
        let second = owners.join(SessionId::trusted("s_1"), ALL, view("n"));
        let serve = |mut ownership: Ownership, says: &'static str| {
            tokio::spawn(async move {
                while let Some(errand) = ownership.errands.recv().await {
                    if errand.method == "terminal/kill" {
                        // It leaves without an answer.
                        return;
                    }
                    errand.reply.send(Ok(RawValue::from_string(says.into()).unwrap())).unwrap();
                }
            })
        };
        let first = serve(first, "1");
        let second = serve(second, "2");
        assert_eq!(ask(&owners, "n", "fs/read_text_file").await, Some(Ok("1".into())));
        assert_eq!(ask(&owners, "n", "fs/write_text_file").await, None, "the one whose session it is did not offer it");
        assert_eq!(ask(&owners, "other", "fs/read_text_file").await, None, "another session");
        first.abort();
        let _ = first.await;
        assert_eq!(ask(&owners, "n", "fs/write_text_file").await, Some(Ok("2".into())));
        assert!(ask(&owners, "n", "terminal/kill").await.unwrap().unwrap_err().contains("left"));
        second.await.unwrap();
        assert_eq!(ask(&owners, "n", "fs/read_text_file").await, None);
    }

    #[tokio::test]
    async fn a_client_that_does_nothing_is_asked_so_much_and_no_more() {
        let owners = Owners::default();
        let ownership = owners.join(SessionId::trusted("s_1"), ALL, view("n"));
        let mut asked: Vec<_> = (0..=ERRANDS).map(|_| Box::pin(ask(&owners, "n", "terminal/output"))).collect();
        let last = asked.pop().unwrap();
        for one in &mut asked {
            assert!(futures_util::FutureExt::now_or_never(one).is_none());
        }
        assert!(last.await.unwrap().unwrap_err().contains("64"));
        drop(asked);
        drop(ownership);
    }
}
