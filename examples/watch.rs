//! Prints the events of all sessions of a running gateway, and the number of open requests:
//! `cargo run --example watch -- http://127.0.0.1:7420 TOKEN`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plexus_client::{Client, ClientEvent, Error, FollowStart, Requests};
use plexus_protocol::transcript::{Content, EntryBody};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(token)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: watch URL TOKEN");
        return Ok(());
    };
    let mut all = Client::new(&url, &token).attach(None, FollowStart::Start);
    let mut requests = Requests::default();
    while let Some(message) = all.next().await {
        let message = message?;
        if requests.apply(&message) {
            println!("{} open requests", requests.open().len());
        }
        match message {
            ClientEvent::Event(event) => {
                let text = match event.envelope.entry() {
                    Some(EntryBody::Message { content: Content::Text(text), .. }) => text,
                    _ => String::new(),
                };
                println!("{} {} {text}", event.envelope.session_id, event.envelope.kind);
            }
            ClientEvent::Lost(why) => println!("lost ({why}); reconnecting"),
            _ => {}
        }
    }
    Ok(())
}
