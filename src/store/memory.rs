/// A store in memory.
pub struct MemoryStore;
