//! The access to the gateway: devices and pairing, the listeners for other machines, and the certificate of the private CA.

pub mod ca;
pub mod devices;
pub mod listeners;
