//! Queues of the kind G/G/c: when queries arrive, how long each waits, and how long a run has to be (method 7.3).
//!
//! Input: arrivals and service times. Output: the time of each query from its arrival to its answer.
//! Deliberately absent: distributions of service times; those that were measured are replayed.

use super::random::Xoshiro256PlusPlus;

/// Relaxation times after which a queue that began empty is taken for steady.
const DISCARDED: f64 = 5.0;

/// Arrivals of a Poisson process of rate 1, the first at 0. They are left as drawn: a thousand gaps miss their mean by 3 %, but
/// gaps that are scaled to it wait for each other less, and the rates that they show are up to 2 % too high.
pub fn poisson_arrivals(queries: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut now = 0.0;
    let next = |_| {
        let at = now;
        now += random.exponential(1.0);
        at
    };
    (0..queries).map(next).collect()
}

/// Time from arrival to answer of each query, served first come, first served by so many servers; arrivals are multiplied
/// by `gap` before (Lindley 1952 for one server, Kiefer and Wolfowitz 1955 for several).
pub(crate) fn sojourn_times<'a>(
    arrivals: &'a [f64],
    gap: f64,
    services: &'a [f64],
    servers: usize,
) -> impl Iterator<Item = f64> + 'a {
    let mut free = vec![f64::NEG_INFINITY; servers.max(1)];
    arrivals.iter().zip(services).map(move |(at, service)| {
        let at = at * gap;
        let next = (1..free.len()).fold(0, |least, server| if free[server] < free[least] { server } else { least });
        free[next] = free[next].max(at) + service;
        free[next] - at
    })
}

/// Queries in one relaxation time of a queue of this utilisation: 1 / (1 - sqrt(utilisation))^2, that of M/M/1; of one that
/// is never steady that of .98.
pub fn relaxation_queries(utilisation: f64) -> f64 {
    (1.0 - utilisation.clamp(0.0, 0.98).sqrt()).powi(-2)
}

/// Queries to leave out at the beginning.
pub fn discarded_queries(utilisation: f64) -> usize {
    (DISCARDED * relaxation_queries(utilisation)).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_has_the_rate_that_is_asked_for() {
        let arrivals = poisson_arrivals(100_001, &mut Xoshiro256PlusPlus::seed_from_u64(1));
        assert_eq!((arrivals.len(), arrivals[0]), (100_001, 0.0));
        assert!((arrivals[100_000] / 100_000.0 - 1.0).abs() < 0.01);
        assert!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(poisson_arrivals(0, &mut Xoshiro256PlusPlus::seed_from_u64(1)).is_empty());
    }

    #[test]
    fn who_comes_first_is_served_first() {
        let times = |servers| sojourn_times(&[0.0, 1.0, 2.0, 10.0], 1.0, &[4.0; 4], servers).collect::<Vec<_>>();
        assert_eq!(times(1), [4.0, 7.0, 10.0, 6.0]);
        assert_eq!(times(2), [4.0, 4.0, 6.0, 4.0]);
        assert_eq!(times(9), [4.0; 4]);
        assert_eq!(sojourn_times(&[0.0, 1.0], 4.0, &[4.0; 2], 1).collect::<Vec<_>>(), [4.0, 4.0]);
    }

    /// M/M/1: the time in the system is exponential with rate mu - lambda. M/D/1: its mean is
    /// 1 + rho / (2 (1 - rho)) (Pollaczek and Khinchine).
    #[test]
    fn queues_of_known_answers() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (queries, rho) = (400_000, 0.8);
        let discarded = discarded_queries(rho);
        let arrivals = poisson_arrivals(queries, &mut random);
        let mean = |services: &[f64]| {
            let counted: Vec<f64> = sojourn_times(&arrivals, 1.0 / rho, services, 1).skip(discarded).collect();
            counted.iter().sum::<f64>() / counted.len() as f64
        };
        let exponential: Vec<f64> = (0..queries).map(|_| random.exponential(1.0)).collect();
        assert!((mean(&vec![1.0; queries]) / 3.0 - 1.0).abs() < 0.03);
        assert!((mean(&exponential) / 5.0 - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_busy_queue_forgets_slowly() {
        assert_eq!(relaxation_queries(0.0), 1.0);
        assert!((relaxation_queries(0.81) - 100.0).abs() < 1e-9);
        assert!(relaxation_queries(f64::INFINITY).is_finite());
        assert_eq!(discarded_queries(0.25), 20);
    }
}
