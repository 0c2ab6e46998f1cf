//! The pages of the terminal UI, and the state that they share.

pub(crate) mod changes;
pub(crate) mod devices;
pub(crate) mod inbox;
pub(crate) mod message;
pub(crate) mod new_session;
pub(crate) mod runtimes;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod shared;

/// Defines the pages, each with its title and its state.
macro_rules! pages {
    ($($id:ident $title:literal $field:ident: $page:ty,)+) => {
        /// A page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum TuiPage {
            $($id,)+
            Session,
        }

        /// The pages, in the order of their keys.
        pub(crate) const PAGES: &[(TuiPage, &str)] = &[$((TuiPage::$id, $title)),+];

        /// The state of each page.
        #[derive(Default)]
        pub(crate) struct Pages {
            $(pub(crate) $field: $page,)+
            pub(crate) session: session::SessionPage,
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
    /// The list of a page, if it has one.
    pub(crate) fn list_mut(&mut self, page: TuiPage) -> Option<&mut shared::ListState> {
        match page {
            TuiPage::Inbox => Some(&mut self.inbox.list),
            TuiPage::Sessions => Some(&mut self.sessions.list),
            TuiPage::Search => Some(&mut self.search.list),
            TuiPage::Runtimes => Some(&mut self.runtimes.list),
            TuiPage::Devices => Some(&mut self.devices.list),
            TuiPage::Session => None,
        }
    }
}
