//! The pages of the terminal UI. A page is a struct with its state that implements [`Page`]: a module here, and a line of the table below.
//! Pages do not know each other: [`Shared`] has their common state, and a [`context::Step`] requests actions that concern another page.

mod card;
pub(crate) mod changes;
pub(crate) mod context;
mod devices;
pub(crate) mod draw;
pub(crate) mod inbox;
pub(crate) mod layout;
pub(crate) mod message;
pub(crate) mod new_session;
mod runtimes;
mod search;
pub(crate) mod session;
mod sessions;
pub(crate) mod shared;

pub(crate) use card::option_at;
use plexus_client::ClientEvent;

use super::input::Key;
use super::reply::CallReply;
use context::{Context, MouseInput};
use draw::Draw;
use shared::Shared;

/// A key and its meaning, for the last line.
pub(crate) type Hint = (&'static str, &'static str);

/// A page of the terminal UI.
pub(crate) trait Page {
    /// Handles a key before the card of a request and the keys of all pages; returns whether the page took it.
    fn early_key(&mut self, _key: &Key, _cx: &mut Context<'_>) -> bool {
        false
    }

    /// Handles a key that neither a card nor the keys of all pages took.
    fn key(&mut self, key: &Key, cx: &mut Context<'_>);

    /// Pastes text, whose lines end with `\n`.
    fn paste(&mut self, _text: &str, _cx: &mut Context<'_>) {}

    /// Handles the mouse on the page.
    fn mouse(&mut self, _mouse: MouseInput, _cx: &mut Context<'_>) {}

    /// Applies an event of the gateway, after the shared state has changed by it.
    fn event(&mut self, _event: &ClientEvent, _cx: &mut Context<'_>) {}

    /// Applies the reply to a [`message::CallTag::Page`].
    fn reply(&mut self, _call: String, _reply: &CallReply, _cx: &mut Context<'_>) {}

    /// Reads again what the page lists.
    fn refresh(&mut self, _cx: &mut Context<'_>) {}

    /// Prepares the page, which is on the screen now.
    fn enter(&mut self) {}

    /// Returns whether letters go into a text field of the page.
    fn takes_text(&self, _shared: &Shared) -> bool {
        false
    }

    /// Returns the request whose card the page shows.
    fn request(&self, _shared: &Shared) -> Option<String> {
        None
    }

    /// Returns the session of the selected row.
    fn selected_session(&self, _shared: &Shared) -> Option<String> {
        None
    }

    /// Returns the keys that matter now, for the last line.
    fn hints(&self, shared: &Shared) -> Vec<Hint>;

    /// Draws the page.
    fn draw(&self, draw: &mut Draw<'_>);
}

/// Defines the pages: the name, the title and the state of each.
macro_rules! pages {
    ($($name:ident $title:literal $field:ident: $page:ty,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum TuiPage {
            $($name,)+
            Session,
        }

        /// The pages of the first line, in the order of their keys.
        pub(crate) const PAGES: &[(TuiPage, &str)] = &[$((TuiPage::$name, $title)),+];

        /// The state of each page.
        #[derive(Default)]
        pub(crate) struct Pages {
            $(pub(crate) $field: $page,)+
            pub(crate) session: session::SessionPage,
            /// The changes of the open session, over its page.
            pub(crate) changes: changes::ChangesPage,
            /// The form of a new session, over any page.
            pub(crate) new_session: new_session::NewSessionPage,
        }

        impl Pages {
            /// The page with this name.
            pub(crate) fn get(&self, page: TuiPage) -> &dyn Page {
                match page {
                    $(TuiPage::$name => &self.$field,)+
                    TuiPage::Session => &self.session,
                }
            }

            /// The page with this name.
            pub(crate) fn get_mut(&mut self, page: TuiPage) -> &mut dyn Page {
                match page {
                    $(TuiPage::$name => &mut self.$field,)+
                    TuiPage::Session => &mut self.session,
                }
            }

            /// Passes an event of the gateway to all pages.
            pub(crate) fn event(&mut self, event: &ClientEvent, cx: &mut Context<'_>) {
                $(self.$field.event(event, cx);)+
                self.session.event(event, cx);
                self.changes.event(event, cx);
                self.new_session.event(event, cx);
            }
        }
    };
}

pages! {
    Inbox "Inbox" inbox: inbox::InboxPage,
    Sessions "Sessions" sessions: sessions::SessionsPage,
    Search "Search" search: search::SearchPage,
    Runtimes "Runtimes" runtimes: runtimes::RuntimesPage,
    Devices "Devices" devices: devices::DevicesPage,
}

impl Pages {
    /// Returns whether the changes of the open session are on the screen.
    pub(crate) fn shows_changes(&self, shared: &Shared) -> bool {
        self.changes.screen.is_some() && shared.page == TuiPage::Session && self.new_session.form.is_none()
    }

    /// The page on the screen: the form of a new session or the changes, if they cover the others.
    pub(crate) fn top(&self, shared: &Shared) -> &dyn Page {
        match shared.page {
            _ if self.new_session.form.is_some() => &self.new_session,
            TuiPage::Session if self.changes.screen.is_some() => &self.changes,
            page => self.get(page),
        }
    }

    /// The page on the screen.
    pub(crate) fn top_mut(&mut self, shared: &Shared) -> &mut dyn Page {
        match shared.page {
            _ if self.new_session.form.is_some() => &mut self.new_session,
            TuiPage::Session if self.changes.screen.is_some() => &mut self.changes,
            page => self.get_mut(page),
        }
    }
}
