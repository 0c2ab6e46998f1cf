/// A store in SQLite.
pub struct SqliteStore;
/// Durability.
pub enum Durability {
    Process,
    Power,
}
