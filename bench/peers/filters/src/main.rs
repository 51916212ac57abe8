//! Two Bloom filter crates under the loop of bench/filter_bench.cc, which see. usage: filters sbbf-rs|fastbloom KEYS BITS
//! Prints {"insert", "present", "absent", "in turn"}: nanoseconds each, the best of some passes.
use std::hint::black_box;
use std::time::Instant;

const PASSES: usize = 3;

trait Filter {
    fn insert(&mut self, hash: u64);
    fn may_contain(&self, hash: u64) -> bool;
}

impl Filter for sbbf_rs_safe::Filter {
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }
    fn may_contain(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
}

impl Filter for fastbloom::BloomFilter {
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }
    fn may_contain(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
}

fn mix64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ceb9fe1a85ec53);
    x ^ (x >> 33)
}

fn best(passes: usize, keys: u64, mut pass: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..passes {
        let began = Instant::now();
        pass();
        least = least.min(began.elapsed().as_nanos() as f64 / keys as f64);
    }
    least
}

fn measure<F: Filter>(mut filter: F, keys: u64) {
    let insert = best(1, keys, || {
        for i in 0..keys {
            filter.insert(mix64(2 * i + 1));
        }
    });
    let of = |odd: u64| {
        best(PASSES, keys, || {
            let mut found = 0u64;
            for i in 0..keys {
                found += filter.may_contain(mix64(2 * i + odd)) as u64;
            }
            black_box(found);
        })
    };
    let (present, absent) = (of(1), of(0));
    let in_turn = best(PASSES, keys, || {
        let mut last = 0u64;
        for i in 0..keys {
            last = filter.may_contain(mix64(2 * i + 1 - last)) as u64;
        }
        black_box(last);
    });
    println!("{{\"insert\": {insert}, \"present\": {present}, \"absent\": {absent}, \"in turn\": {in_turn}}}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let keys: u64 = arguments[2].parse().expect("a number of keys");
    let bits: usize = arguments[3].parse().expect("bits per key");
    match arguments[1].as_str() {
        "sbbf-rs" => measure(sbbf_rs_safe::Filter::new(bits, keys as usize), keys),
        "fastbloom" => measure(
            fastbloom::BloomFilter::with_num_bits(bits * keys as usize).expected_items(keys as usize),
            keys,
        ),
        other => panic!("no filter {other}"),
    }
}
