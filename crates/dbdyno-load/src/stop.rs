//! The request to stop: Ctrl-C or SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::Error;

/// Set once by a signal, and checked by every wait.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The kernel refused the handler.
    pub fn on_signals() -> Result<Self, Error> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))
                .map_err(|error| Error::Failed(format!("cannot handle signal {signal}: {error}")))?;
        }
        Ok(stop)
    }

    /// From now on a signal ends the process at once, for when cleaning up after the first one
    /// takes too long. Not from the start: some senders signal twice (`timeout` does).
    pub fn next_ends_process() {
        for signal in [SIGINT, SIGTERM] {
            let always = Arc::new(AtomicBool::new(true));
            // Without it the process still ends, only later.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, always);
        }
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
