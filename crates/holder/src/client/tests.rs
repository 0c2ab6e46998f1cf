use tokio::net::UnixListener;

use super::*;

fn welcome() -> Welcome {
    Welcome {
        version: VERSION,
        instance: Some("i_seven".into()),
        pid: 7,
        started_at: SystemTime::UNIX_EPOCH,
        acked: 10,
        end: 20,
        put: 5,
        taken: 5,
        full_since: None,
        stdin_closed: false,
        blobs: vec![(10, Bytes::from_static(b"blob"))],
        stderr: Bytes::from_static(b"err"),
    }
}

/// A fake holder.
struct Holder {
    _dir: tempfile::TempDir,
    stream: UnixStream,
    decoder: Decoder,
}

impl Holder {
    async fn new(welcome: Welcome) -> (Self, HolderClient) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("demo.abcdefgh.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let found = tokio::spawn(async move { HolderClient::find(&path).await });
        let (stream, _) = listener.accept().await.unwrap();
        let mut holder = Self { _dir: dir, stream, decoder: Decoder::default() };
        assert_eq!(holder.hear().await, Some(ToHolder::Hello { version: OLDEST, newest: VERSION }));
        holder.say(&FromHolder::Welcome(welcome.clone())).await;
        let (held, said) = found.await.unwrap().unwrap();
        assert_eq!((said, held.pid()), (welcome, 7));
        (holder, held)
    }

    async fn say(&mut self, message: &FromHolder) {
        use tokio::io::AsyncWriteExt;
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn hear(&mut self) -> Option<ToHolder> {
        loop {
            if let Some(frame) = self.decoder.frame().unwrap() {
                return Some(ToHolder::parse(frame).unwrap());
            }
            if self.stream.read_buf(self.decoder.buffer()).await.unwrap() == 0 {
                return None;
            }
        }
    }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn holder_client_reads_output_in_order_and_the_end_last() {
    let (mut holder, mut held) = Holder::new(welcome()).await;
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(5);
    for message in [
        FromHolder::Out { offset: 10, bytes: text("ab") },
        FromHolder::Err { bytes: text("oh") },
        FromHolder::Taken { total: 5 },
        FromHolder::Out { offset: 12, bytes: text("cd") },
        FromHolder::Full { since },
        FromHolder::HasSpace,
        FromHolder::Exited { code: Some(3), signal: None },
    ] {
        holder.say(&message).await;
    }
    for news in [
        HolderMessage::Out { offset: 10, bytes: text("ab") },
        HolderMessage::Err(text("oh")),
        HolderMessage::Out { offset: 12, bytes: text("cd") },
        HolderMessage::Full(since),
        HolderMessage::HasSpace,
        HolderMessage::Exited { code: Some(3), signal: None },
    ] {
        assert_eq!(held.next().await, news);
    }
    assert_eq!(held.put(14, text("s"), text("f")), Err(WriteError::Closed));
    held.bye();
    assert_eq!(holder.hear().await, Some(ToHolder::Bye));
    drop(holder);
    assert!(futures_util::FutureExt::now_or_never(held.next()).is_none());
}

#[tokio::test]
async fn holder_client_ends_on_a_gap_or_an_unrequested_repeat() {
    for (offset, bytes) in [(9, "x"), (11, "x"), (10, "")] {
        let (mut holder, mut held) = Holder::new(welcome()).await;
        holder.say(&FromHolder::Out { offset, bytes: text(bytes) }).await;
        let HolderMessage::Lost(why) = held.next().await else { panic!("{offset}") };
        assert!(why.contains("10 comes next"), "{why}");
    }
    let (mut holder, mut held) = Holder::new(welcome()).await;
    held.ack(15);
    assert_eq!(holder.hear().await, Some(ToHolder::Ack { offset: 15 }));
    holder.say(&FromHolder::Out { offset: 15, bytes: text("x") }).await;
    assert_eq!(held.next().await, HolderMessage::Out { offset: 15, bytes: text("x") });
}

#[tokio::test]
async fn holder_client_queues_input_until_some_is_written() {
    let (mut holder, mut held) = Holder::new(welcome()).await;
    held.set_write_max(4);
    assert_eq!(held.put(10, text("a"), text("123")), Ok(()));
    assert_eq!(held.put(10, text("b"), text("any length")), Ok(()));
    assert!(held.stalled().is_none());
    assert_eq!(held.put(10, text("c"), text("1")), Ok(()));
    assert!(held.stalled().is_some());
    // Later messages wait for it.
    held.state(11, text("later"));
    held.ack(11);
    assert_eq!(held.step(11, text("d"), text("2")), Ok(()));
    for (offset, state, bytes) in [(10, "a", "123"), (10, "b", "any length")] {
        let stdin = ToHolder::Stdin { offset, state: text(state), bytes: text(bytes) };
        assert_eq!(holder.hear().await, Some(stdin));
    }
    holder.say(&FromHolder::Taken { total: 5 + 13 - 2 }).await;
    holder.say(&FromHolder::HasSpace).await;
    assert_eq!(held.next().await, HolderMessage::HasSpace);
    assert!(held.stalled().is_none());
    for message in [
        ToHolder::Stdin { offset: 10, state: text("c"), bytes: text("1") },
        ToHolder::State { offset: 11, state: text("later") },
        ToHolder::Ack { offset: 11 },
        ToHolder::Step { offset: 11, entry: text("d"), bytes: text("2") },
    ] {
        assert_eq!(holder.hear().await, Some(message));
    }
    holder.say(&FromHolder::StdinBroken).await;
    assert_eq!(held.next().await, HolderMessage::StdinBroken);
    assert_eq!(held.put(11, text("e"), text("1")), Err(WriteError::Closed));
}

#[tokio::test]
async fn holder_client_resends_after_a_reconnect_without_duplicates() {
    let (mut holder, mut old) = Holder::new(welcome()).await;
    assert_eq!(old.put(10, text("a"), text("heard ")), Ok(()));
    assert_eq!(old.put(10, text("b"), text("lost ")), Ok(()));
    holder.say(&FromHolder::Out { offset: 10, bytes: text("abcd") }).await;
    assert_eq!(old.next().await, HolderMessage::Out { offset: 10, bytes: text("abcd") });
    drop(holder);
    assert!(matches!(old.next().await, HolderMessage::Lost(_)));
    // Input put meanwhile is lost as well.
    assert_eq!(old.put(10, text("c"), text("late")), Ok(()));
    let again = Welcome { put: 5 + 6, ..welcome() };
    let (mut holder, mut held) = Holder::new(again.clone()).await;
    assert_eq!(held.continue_from(&old, &again), text("lost late"));
    holder.say(&FromHolder::Out { offset: 10, bytes: text("abc") }).await;
    holder.say(&FromHolder::Out { offset: 13, bytes: text("def") }).await;
    assert_eq!(held.next().await, HolderMessage::Out { offset: 14, bytes: text("ef") });
}

#[tokio::test]
async fn holder_client_releases_superseded_state() {
    let (_holder, held) = Holder::new(welcome()).await;
    let half = Bytes::from(vec![0; DEPOSITS_MAX / 2 + 1]);
    held.state(11, half.clone());
    held.state(12, half.clone());
    assert!(!held.has_much_state(), "the newest does not count");
    held.state(13, half.clone());
    assert!(held.has_much_state());
    held.ack(13);
    assert!(!held.has_much_state());
    assert_eq!(held.step(13, half.clone(), text("")), Ok(()));
    assert_eq!(held.step(13, half, text("")), Ok(()));
    assert!(held.has_much_state(), "steps are kept with their state");
}

#[tokio::test]
async fn holder_client_sends_everything_in_order_to_a_slow_holder() {
    let (mut holder, held) = Holder::new(welcome()).await;
    // More than a socket buffer holds.
    let big = Bytes::from(vec![7; 3 * 1024 * 1024]);
    held.state(10, big.clone());
    held.ack(11);
    held.ack(12);
    held.ack(12);
    held.state(13, text("small"));
    held.ack(14);
    held.ack(13);
    held.close_stdin();
    assert_eq!(held.put(14, text(""), text("late")), Err(WriteError::Closed));
    // Queued messages are sent although the client was dropped.
    drop(held);
    for message in [
        ToHolder::State { offset: 10, state: big },
        ToHolder::Ack { offset: 12 },
        ToHolder::State { offset: 13, state: text("small") },
        ToHolder::Ack { offset: 14 },
        ToHolder::CloseStdin,
    ] {
        assert!(holder.hear().await == Some(message));
    }
    assert_eq!(holder.hear().await, None);
}

#[tokio::test]
async fn holder_client_gives_up_on_a_holder_that_does_not_read() {
    let (_holder, mut held) = Holder::new(welcome()).await;
    let big = Bytes::from(vec![7; QUEUE_MAX / 4]);
    for _ in 0..5 {
        held.state(10, big.clone());
    }
    let HolderMessage::Lost(why) = held.next().await else { panic!() };
    assert!(why.contains("does not listen"), "{why}");
}

#[tokio::test]
async fn holder_client_reports_a_dead_holder() {
    let (holder, mut held) = Holder::new(welcome()).await;
    drop(holder);
    assert!(matches!(held.next().await, HolderMessage::Lost(_)));
}

#[tokio::test]
async fn holder_client_reads_and_removes_leftovers_of_a_dead_holder() {
    let dir = tempfile::tempdir().unwrap();
    let (socket, left) = (dir.path().join("demo.abcdefgh.sock"), dir.path().join("demo.abcdefgh.end"));
    let mut bytes = Vec::new();
    FromHolder::Welcome(welcome()).encode(&mut bytes);
    FromHolder::Out { offset: 10, bytes: text("abc") }.encode(&mut bytes);
    std::fs::write(&left, &bytes).unwrap();
    // The path of the socket leads to the file, too.
    let (mut held, said) = HolderClient::find(&socket).await.unwrap();
    assert_eq!((said, held.path()), (welcome(), &*left));
    assert_eq!(held.next().await, HolderMessage::Out { offset: 10, bytes: text("abc") });
    let HolderMessage::Lost(why) = held.next().await else { panic!() };
    assert!(why.ends_with("is incomplete"), "{why}");
    FromHolder::Exited { code: None, signal: Some(9) }.encode(&mut bytes);
    std::fs::write(&left, &bytes).unwrap();
    assert_eq!(HolderClient::all(dir.path()).await, [("demo".to_owned(), left.clone())]);
    let (mut held, _) = HolderClient::find(&left).await.unwrap();
    held.next().await;
    assert_eq!(held.next().await, HolderMessage::Exited { code: None, signal: Some(9) });
    assert!(left.exists());
    held.bye();
    assert!(!left.exists());
    assert!(HolderClient::find(&left).await.is_err_and(|why| why.to_string().contains("No such file")));
}

#[test]
fn holder_client_explains_an_overlong_path() {
    let runtime = RuntimeId::trusted("demo");
    let path = socket(Path::new("/x"), &runtime).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("demo.") && name.ends_with(".sock") && name.len() == 18, "{name}");
    let long = format!("/{}", "x".repeat(100));
    let why = socket(Path::new(&long), &runtime).unwrap_err();
    assert!(why.contains("120 bytes long") && why.contains("PLEXUS_HOME"), "{why}");
}
