//! quick_cache: S3-FIFO with clocks; the fastest peer. See lib.rs.
use std::sync::Arc;

struct Quick<V: Clone>(quick_cache::sync::Cache<u64, V>);

impl<V: Clone + Send + Sync + 'static> cache_peers::Peer<V> for Quick<V> {
    fn new(entries: usize) -> Self {
        Quick(quick_cache::sync::Cache::new(entries))
    }
    fn exact(entries: usize) -> Self {
        // Each shard rounds its part up.
        let one = quick_cache::OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(entries as u64)
            .shards(1)
            .build()
            .unwrap();
        Quick(quick_cache::sync::Cache::with_options(
            one,
            quick_cache::UnitWeighter,
            Default::default(),
            Default::default(),
        ))
    }
    fn get(&self, key: u64) -> Option<V> {
        self.0.get(&key)
    }
    fn put(&self, key: u64, value: V) {
        self.0.insert(key, value)
    }
    fn entries(&self) -> usize {
        self.0.len()
    }
}

fn main() {
    cache_peers::main::<Quick<u64>, Quick<Arc<str>>>()
}
