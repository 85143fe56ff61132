//! Random numbers that are the same on every machine and in every version (method 4.5).
//!
//! Input: an explicit 64-bit seed. Output: integers, variates, orders. Streams are numbered, so results do not depend
//! on the number of threads or on who draws first. Deliberately absent: the clock, the operating system's entropy, and
//! `rand`, whose distributions change between releases.

/// The increment of SplitMix64: 2^64 over the golden ratio, odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64: a bijection that spreads every input bit over all output bits (Steele, Lea and Flood
/// 2014).
pub(crate) fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The 64-bit FNV-1a hash.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// The seed of stream `k`: the k-th output of SplitMix64 started at `seed`, in constant time.
pub fn stream_seed(seed: u64, k: u64) -> u64 {
    mix64(seed.wrapping_add(k.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
}

/// The seed of a purpose named by a text, such as `order/<group>` or `calibrate/<cell>/<round>`.
pub fn key_seed(master: u64, text: &str) -> u64 {
    mix64(master ^ fnv1a64(text.as_bytes()))
}

/// xoshiro256++ 1.0 of Blackman and Vigna.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256PlusPlus {
    state: [u64; 4],
}

impl Xoshiro256PlusPlus {
    /// Seeded with four outputs of SplitMix64, as `rand_xoshiro` does.
    pub fn seed_from_u64(seed: u64) -> Self {
        Xoshiro256PlusPlus { state: [0, 1, 2, 3].map(|k| stream_seed(seed, k)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A whole number below `n`, without bias: Lemire 2019, multiply and reject. Zero for `n` of zero.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            // 2^64 mod n low halves are one too many for an even spread.
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in [0, 1): the upper 53 bits of one draw.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// An exponential number with this rate, from one [`unit`](Self::unit): -ln(1 - u) / rate.
    pub fn exponential(&mut self, rate: f64) -> f64 {
        -(-self.unit()).ln_1p() / rate
    }

    /// A standard normal number by Box and Muller, from exactly two [`unit`](Self::unit)s: the first gives the radius
    /// sqrt(-2 ln(1 - u)), the second the angle 2 pi u; the cosine is returned and the sine dropped, so that the n-th
    /// number does not depend on how the ones before were asked for.
    pub fn normal(&mut self) -> f64 {
        // 1 - u lies in (0, 1], so that the logarithm is finite.
        let radius = (-2.0 * (-self.unit()).ln_1p()).sqrt();
        let angle = std::f64::consts::TAU * self.unit();
        radius * angle.cos()
    }

    /// Puts the items in a random order: Fisher and Yates, from the last item down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }
}

/// The order of `n` variants in a block: even blocks are shuffled, odd ones reverse the block before, so that a linear
/// drift cancels over each pair of blocks (method 4.2).
pub fn counterbalanced_order(n: usize, block: u64, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, block / 2)).shuffle(&mut order);
    if block % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::moments::{mean, variance};
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::Value;

    /// 64-bit numbers are texts in the vectors, because JSON readers round them.
    fn integer(value: &Value) -> u64 {
        value.as_str().unwrap().parse().unwrap()
    }

    fn integers(value: &Value) -> Vec<u64> {
        value.as_array().unwrap().iter().map(integer).collect()
    }

    #[test]
    fn reference_streams_hold() {
        let vectors = &load()["prng"];
        let seed = integer(&vectors["seed"]);
        let streams: Vec<u64> = (0..4).map(|k| stream_seed(seed, k)).collect();
        assert_eq!(streams, integers(&vectors["splitmix64_first4"]));
        assert_eq!(streams[..3], integers(&vectors["stream_seed_0_1_2"]));

        let fresh = || Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut generator = fresh();
        let words: Vec<u64> = (0..6).map(|_| generator.next_u64()).collect();
        assert_eq!(words, integers(&vectors["xoshiro256pp_first6"]));
        let mut generator = fresh();
        for expected in vectors["below_7_first12"].as_array().unwrap() {
            assert_eq!(generator.below(7), expected.as_u64().unwrap());
        }
        let mut generator = fresh();
        for expected in numbers(&vectors["unit_first4"]) {
            assert_eq!(generator.unit(), expected);
        }
        let mut items: Vec<u64> = (0..10).collect();
        fresh().shuffle(&mut items);
        assert_eq!(serde_json::json!(items), vectors["shuffle_0_9"]);
    }

    #[test]
    fn reference_keys_hold() {
        let vectors = &load()["prng"];
        let text = vectors["fnv1a64"]["text"].as_str().unwrap();
        assert_eq!(fnv1a64(text.as_bytes()), integer(&vectors["fnv1a64"]["value"]));
        assert_eq!(key_seed(integer(&vectors["seed"]), text), integer(&vectors["key_seed"]));
        assert_eq!(fnv1a64(b""), 0xCBF2_9CE4_8422_2325);
    }

    #[test]
    fn reference_orders_hold() {
        let vectors = &load()["prng"];
        for key in ["block_orders", "block_orders_2"] {
            let case = &vectors[key];
            for (block, expected) in case["orders"].as_array().unwrap().iter().enumerate() {
                let order = counterbalanced_order(count(&case["variants"]), block as u64, integer(&case["seed"]));
                assert_eq!(serde_json::json!(order), *expected);
            }
        }
    }

    #[test]
    fn poisson_schedule_of_the_vectors_holds() {
        let case = &load()["poisson_schedule"];
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(case["seed"].as_u64().unwrap(), 0));
        let mut arrival = 0.0;
        for expected in numbers(&case["arrivals_s"]) {
            assert_close(arrival, expected, 1e-10);
            arrival += generator.exponential(number(&case["rate_qps"]));
        }
    }

    #[test]
    fn normal_numbers_are_normal() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<f64> = (0..20_000).map(|_| generator.normal()).collect();
        // Five standard errors each.
        assert!(mean(&values).unwrap().abs() < 5.0 / 20_000_f64.sqrt());
        assert!((variance(&values).unwrap() - 1.0).abs() < 5.0 * (2.0 / 20_000_f64).sqrt());
        let beyond = values.iter().filter(|value| value.abs() > 1.96).count() as f64 / 20_000.0;
        assert!((beyond - 0.05).abs() < 0.008);
        assert!(values.iter().all(|value| value.is_finite()));
    }

    #[test]
    fn nothing_to_draw_from_does_not_panic() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(0);
        assert_eq!(generator.below(0), 0);
        assert_eq!(generator.below(1), 0);
        generator.shuffle::<u8>(&mut []);
        assert_eq!(counterbalanced_order(0, 3, 42), Vec::<usize>::new());
        assert_eq!(counterbalanced_order(1, 3, 42), vec![0]);
    }

    proptest! {
        #[test]
        fn draws_stay_below(seed: u64, n in 1_u64..) {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            prop_assert!((0..20).all(|_| generator.below(n) < n));
            prop_assert!((0..20).map(|_| generator.unit()).all(|unit| (0.0..1.0).contains(&unit)));
        }

        #[test]
        fn orders_are_permutations_and_mirror_in_pairs(n in 0_usize..50, pair in 0_u64..1000, seed: u64) {
            let mut order = counterbalanced_order(n, 2 * pair, seed);
            let mut mirrored = counterbalanced_order(n, 2 * pair + 1, seed);
            mirrored.reverse();
            prop_assert_eq!(&order, &mirrored);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..n));
        }
    }
}
