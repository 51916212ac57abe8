//! The same loads as bench/local_cache_bench.cc, through quick_cache. Prints millions of operations a second.
//! usage: quick-cache-peer flat|shared THREADS WRITES_OF_4 SECONDS
use quick_cache::sync::Cache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const KEYS: usize = 131_072;
const SEQUENCE: usize = 1 << 20;

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

fn run<V: Clone + Send + Sync + 'static>(threads: usize, writes: usize, seconds: f64, make: fn(u64) -> V) -> f64 {
    let cache = Arc::new(Cache::<u64, V>::new(2 * KEYS));
    for key in 0..KEYS as u64 {
        cache.insert(key, make(key));
    }
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
                            cache.insert(key, make(key));
                        } else {
                            found += cache.get(&key).is_some() as usize;
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

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (threads, writes, seconds) = (args[2].parse().unwrap(), args[3].parse().unwrap(), args[4].parse().unwrap());
    let rate = match args[1].as_str() {
        "flat" => run::<u64>(threads, writes, seconds, |key| key),
        "shared" => run::<Arc<str>>(threads, writes, seconds, |key| format!("value {key}").into()),
        other => panic!("no load {other}"),
    };
    println!("{rate}");
}
