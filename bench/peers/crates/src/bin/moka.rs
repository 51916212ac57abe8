//! moka, the Rust port of Caffeine's ideas. See lib.rs.
use std::sync::Arc;

struct Moka<V>(moka::sync::Cache<u64, V>);

impl<V: Clone + Send + Sync + 'static> cache_peers::Peer<V> for Moka<V> {
    fn new(entries: usize) -> Self {
        Moka(moka::sync::Cache::new(entries as u64))
    }
    fn get(&self, key: u64) -> Option<V> {
        self.0.get(&key)
    }
    fn put(&self, key: u64, value: V) {
        self.0.insert(key, value)
    }
    fn settle(&self) {
        self.0.run_pending_tasks()
    }
    fn entries(&self) -> usize {
        self.0.entry_count() as usize
    }
}

fn main() {
    cache_peers::main::<Moka<u64>, Moka<Arc<str>>>()
}
