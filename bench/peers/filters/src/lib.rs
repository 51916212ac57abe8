//! Bloom filter crates for bench/filter_bench.cc, which loads this library and runs its own passes and these in turn.
//! A pass is a whole loop over all keys, so that nothing but the crate is inside it.

trait Filter {
    fn insert_pass(&mut self, keys: u64);
    fn look_pass(&self, keys: u64, odd: u64) -> u64;
}

fn mix64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ceb9fe1a85ec53);
    x ^ (x >> 33)
}

macro_rules! passes {
    ($filter:ty) => {
        impl Filter for $filter {
            fn insert_pass(&mut self, keys: u64) {
                for i in 0..keys {
                    self.insert_hash(mix64(2 * i + 1));
                }
            }
            fn look_pass(&self, keys: u64, odd: u64) -> u64 {
                let mut found = 0;
                for i in 0..keys {
                    found += self.contains_hash(mix64(2 * i + odd)) as u64;
                }
                found
            }
        }
    };
}
passes!(sbbf_rs_safe::Filter);
passes!(fastbloom::BloomFilter);

pub struct Peer(Box<dyn Filter>);

/// Kind 0 is sbbf-rs, 1 is fastbloom.
#[no_mangle]
pub extern "C" fn peer_new(kind: u32, keys: u64, bits: u64) -> *mut Peer {
    let (keys, bits) = (keys as usize, bits as usize);
    let filter: Box<dyn Filter> = match kind {
        0 => Box::new(sbbf_rs_safe::Filter::new(bits, keys)),
        _ => Box::new(fastbloom::BloomFilter::with_num_bits(bits * keys).expected_items(keys)),
    };
    Box::into_raw(Box::new(Peer(filter)))
}

/// # Safety
/// `peer` comes from `peer_new` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn peer_free(peer: *mut Peer) {
    drop(Box::from_raw(peer));
}

/// Inserts mix64(2 * i + 1) for each i below `keys`.
///
/// # Safety
/// `peer` comes from `peer_new`.
#[no_mangle]
pub unsafe extern "C" fn peer_insert_pass(peer: *mut Peer, keys: u64) {
    (*peer).0.insert_pass(keys)
}

/// Looks for mix64(2 * i + odd) for each i below `keys`: how many may be there.
///
/// # Safety
/// `peer` comes from `peer_new`.
#[no_mangle]
pub unsafe extern "C" fn peer_look_pass(peer: *const Peer, keys: u64, odd: u64) -> u64 {
    (*peer).0.look_pass(keys, odd)
}
