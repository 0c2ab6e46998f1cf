//! Shared terminals (`plexus term`): any program in a pseudo-terminal that outlives its first window, and that several
//! screens can show at once.
//!
//! [`host`] is the process that holds the pseudo-terminal (`plexus term-hold`), [`model`] its state of the screen,
//! [`wire`] the messages between it and its attachments, [`folder`] the place of its socket. [`attach`] is an
//! attachment of the user's own terminal, [`attachment`] one of the gateway.
//!
//! The *owner* is the attachment that sets the size: the terminal that started the program or attached last. The
//! owner's terminal gets the program's output byte for byte. All others get only complete sequences, and none that
//! makes a terminal answer, write to a clipboard or notify: see [`filter`].

pub mod attach;
pub mod attachment;
mod crop;
mod detach;
pub mod filter;
pub mod folder;
pub mod host;
pub mod model;
pub mod modes;
mod outer;
pub mod screen_match;
pub mod segment;
mod sequence;
pub mod wire;
