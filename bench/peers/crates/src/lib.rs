//! What the peers' programs share: the loads of bench/local_cache_bench.cc, and what each program is asked for.
//!
//! usage of each: flat|shared THREADS WRITES_OF_4 SECONDS    millions of operations a second, keys by Zipf's law
//!                memory ENTRIES                             bytes an entry of 8 + 8 bytes, by what is resident
//!                replay ENTRIES                             the hit ratio in percent of get-else-put; keys on stdin
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const KEYS: usize = 131_072;
const SEQUENCE: usize = 1 << 20;

/// A cache under test. `settle` ends what it has put off, so that its bound holds.
pub trait Peer<V>: Send + Sync + 'static {
    fn new(entries: usize) -> Self;
    /// One that never holds more, where that isn't what `new` makes.
    fn exact(entries: usize) -> Self
    where
        Self: Sized,
    {
        Self::new(entries)
    }
    fn get(&self, key: u64) -> Option<V>;
    fn put(&self, key: u64, value: V);
    fn settle(&self) {}
    fn entries(&self) -> usize;
}

struct SplitMix(u64);

impl SplitMix {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Keys by Zipf's law with the exponent 0.99.
fn zipf(seed: u64) -> Vec<u32> {
    let mut sums = Vec::with_capacity(KEYS);
    let mut sum = 0.0;
    for rank in 1..=KEYS {
        sum += 1.0 / (rank as f64).powf(0.99);
        sums.push(sum);
    }
    let mut random = SplitMix(seed);
    (0..SEQUENCE)
        .map(|_| {
            let at = random.unit() * sum;
            sums.partition_point(|&s| s < at).min(KEYS - 1) as u32
        })
        .collect()
}

fn throughput<V: Clone + 'static, P: Peer<V>>(
    threads: usize,
    writes: usize,
    seconds: f64,
    make: fn(u64) -> V,
) -> f64 {
    let cache = Arc::new(P::new(2 * KEYS));
    for key in 0..KEYS as u64 {
        cache.put(key, make(key));
    }
    cache.settle();
    let stop = Arc::new(AtomicBool::new(false));
    let start = Arc::new(Barrier::new(threads + 1));
    let workers: Vec<_> = (0..threads)
        .map(|t| {
            let (cache, stop, start) = (cache.clone(), stop.clone(), start.clone());
            std::thread::spawn(move || {
                let keys = zipf(100 + t as u64);
                let (mut done, mut found) = (0usize, 0usize);
                start.wait();
                let began = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..1024 {
                        let key = keys[done % SEQUENCE] as u64;
                        if done % 4 < writes {
                            cache.put(key, make(key));
                        } else {
                            found += cache.get(key).is_some() as usize;
                        }
                        done += 1;
                    }
                }
                assert!(found > done / 2, "the keys are all in the cache");
                done as f64 / began.elapsed().as_secs_f64() / 1e6
            })
        })
        .collect();
    start.wait();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stop.store(true, Ordering::Relaxed);
    workers.into_iter().map(|w| w.join().unwrap()).sum()
}

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

/// Twice as many come as there is room for, every second one is asked for, as in guarded_read_bench.cc.
fn memory<P: Peer<u64>>(entries: usize) -> f64 {
    let before = resident();
    let cache = P::new(entries);
    for key in 0..2 * entries as u64 {
        cache.put(key, key);
        if key % 2 == 0 {
            cache.get(key);
        }
    }
    cache.settle();
    (resident() - before) / cache.entries() as f64
}

fn replay<P: Peer<u64>>(entries: usize) -> f64 {
    let cache = P::exact(entries);
    let (mut hits, mut asked) = (0u64, 0u64);
    for line in std::io::stdin().lock().lines() {
        let key = line.unwrap().parse().unwrap();
        asked += 1;
        if cache.get(key).is_some() {
            hits += 1;
        } else {
            cache.put(key, key);
        }
        cache.settle();
        assert!(cache.entries() <= entries, "the bound is hard");
    }
    100.0 * hits as f64 / asked as f64
}

pub fn main<Flat: Peer<u64>, Shared: Peer<Arc<str>>>() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args[at].parse::<usize>().unwrap();
    let seconds = || args[4].parse::<f64>().unwrap();
    let result = match args[1].as_str() {
        "flat" => throughput::<u64, Flat>(number(2), number(3), seconds(), |key| key),
        "shared" => throughput::<Arc<str>, Shared>(number(2), number(3), seconds(), |key| {
            format!("value {key}").into()
        }),
        "memory" => memory::<Flat>(number(2)),
        "replay" => replay::<Flat>(number(2)),
        other => panic!("no load {other}"),
    };
    println!("{result}");
}
