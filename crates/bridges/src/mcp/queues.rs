//! Queues that execute the calls for one surface in the order of their arrival; calls for different surfaces do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// The queues of the surfaces that have calls.
#[derive(Debug, Default)]
pub(super) struct Queues {
    surfaces: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Queues {
    /// Waits until all earlier calls for the surface have completed. The place in the queue is taken when this is first polled.
    pub(super) async fn enter(&self, surface: &str) -> OwnedMutexGuard<()> {
        let queue = {
            let mut surfaces = self.surfaces.lock().unwrap_or_else(PoisonError::into_inner);
            // Unused queues are removed, so that there are no more queues than calls.
            surfaces.retain(|_, queue| queue.strong_count() > 0);
            match surfaces.get(surface).and_then(Weak::upgrade) {
                Some(queue) => queue,
                None => {
                    let queue = Arc::default();
                    surfaces.insert(surface.to_owned(), Arc::downgrade(&queue));
                    queue
                }
            }
        };
        queue.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_for_a_surface_wait_for_earlier_ones() {
        let queues = Arc::new(Queues::default());
        let (first, other) = (queues.enter("a").await, queues.enter("b").await);
        let order = Arc::new(Mutex::new(Vec::new()));
        let later: Vec<_> = (0..20)
            .map(|at| {
                let (queues, order) = (Arc::clone(&queues), Arc::clone(&order));
                tokio::spawn(async move {
                    let _turn = queues.enter("a").await;
                    order.lock().unwrap().push(at);
                    tokio::task::yield_now().await;
                })
            })
            .collect();
        tokio::task::yield_now().await;
        later[7].abort();
        drop(other);
        assert!(order.lock().unwrap().is_empty());
        drop(first);
        for task in later {
            let _ = task.await;
        }
        assert_eq!(*order.lock().unwrap(), (0..20).filter(|at| *at != 7).collect::<Vec<_>>());
        drop(queues.enter("c").await);
        assert_eq!(queues.surfaces.lock().unwrap().len(), 1);
    }
}
