//! AG-UI: the real `@ag-ui/client` and plain POSTs on sessions of the demo agent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::cast::Player;
use common::gateway::{Gateway, said};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_prompts_and_reads() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut page = Player::enter("ag-ui", &gateway, &session).await;
    page.prompt("stream 20 ;; think ;; plan ;; diff").await;
    assert_eq!(page.until("user").await["user"], "stream 20 ;; think ;; plan ;; diff");
    assert_eq!(page.until("ended").await["ended"], "end_turn");
    assert_eq!(page.text(), said(&gateway.events(&session).await, None));
    page.quit().await;
}
