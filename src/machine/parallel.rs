//! Work that is shared among the processor's cores.
//!
//! Where the system gives no thread more (a limit of processes or of memory), the caller's own does the work.

use std::panic::resume_unwind;
use std::thread;

/// As many threads as this process may use at once.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What `of` gives for equal stretches of the items, in their order: one for each thread, none shorter than `fewest`.
pub(crate) fn in_stretches<T: Sync, R: Send>(
    threads: usize,
    fewest: usize,
    items: &[T],
    of: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let stretch = items.len().div_ceil(threads.max(1)).max(fewest).max(1);
    let Some((own, others)) = items.split_at_checked(stretch) else { return of(items) };
    let of = &of;
    thread::scope(|scope| {
        let start = |stretch| thread::Builder::new().spawn_scoped(scope, move || of(stretch));
        let started: Vec<_> = others.chunks(stretch).map(|stretch| start(stretch).map_err(|_| stretch)).collect();
        let mut all = of(own);
        for thread in started {
            all.extend(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(stretch) => of(stretch),
            });
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_however_many_threads_there_are() {
        let items: Vec<u32> = (0..17).collect();
        for threads in 0..20 {
            for fewest in [0, 1, 5, 40] {
                let doubled = in_stretches(threads, fewest, &items, |items| items.iter().map(|it| 2 * it).collect());
                assert_eq!(doubled, items.iter().map(|it| 2 * it).collect::<Vec<_>>());
            }
        }
        assert_eq!(in_stretches(4, 1, &[], |items: &[u32]| items.to_vec()), [] as [u32; 0]);
    }
}
