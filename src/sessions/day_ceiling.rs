//! The exchange between sessions and the book of ceilings about today's ceiling.

use super::ceilings::CeilingBook;
use super::state::SessionStateMachine;
use plexus_protocol::Timestamp;

/// Synchronizes a session and the book: an answer given in the session reaches the book, and the facts of the book reach the session.
/// Returns `true` if the session is the one that asks about today.
pub(super) fn synchronize(book: &CeilingBook, state: &mut SessionStateMachine, now: Timestamp) -> bool {
    state.update_ceilings(book.facts(now));
    if let Some(answer) = state.day_answer() {
        book.answered(answer);
        state.update_ceilings(book.facts(now));
    }
    let id = &state.origin.session_id;
    let asks = state.needs_day_ask() && book.claim(id);
    if !asks && !state.asks_about_day() {
        book.release(id);
    }
    asks
}

/// Copies into the book what a session of an earlier gateway stored about today's ceiling: an answer given there, and an open question.
pub(super) fn restore_day_answer(book: &CeilingBook, state: &SessionStateMachine) {
    if let Some(answer) = state.day_answer() {
        book.answered(answer);
    }
    if state.asks_about_day() {
        book.claim(&state.origin.session_id);
    }
}
