//! Tables filled over several connections at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::error::Error;
use crate::protocol::session::Session;

/// Most connections that fill tables: more only wait for the server.
const SESSIONS_MAX: usize = 64;

/// Does the pieces of work 0 to `pieces` over `sessions` connections: `session` and others like it, which `enter` makes
/// ready. Each does the next piece when it is done with one.
///
/// # Errors
/// The server refuses; all connections stop at the end of their pieces then.
pub fn share_out(
    session: &mut Session,
    sessions: usize,
    pieces: u64,
    enter: impl Fn(&mut Session) -> Result<(), Error>,
    work: impl Fn(&mut Session, u64, &AtomicBool) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let more = (1..sessions.min(SESSIONS_MAX)).map(|_| {
        let mut session = session.another()?;
        enter(&mut session)?;
        Ok(session)
    });
    let mut more = more.collect::<Result<Vec<Session>, Error>>()?;
    let (given_up, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let fill = |session: &mut Session| {
        while !given_up.load(Ordering::Relaxed) {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                break;
            }
            work(session, piece, &given_up).inspect_err(|_| given_up.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    let outcome = thread::scope(|scope| {
        let all = std::iter::once(session).chain(&mut more);
        let fillers: Vec<_> = all.map(|session| scope.spawn(|| fill(session))).collect();
        let ends = fillers.into_iter().map(|filler| filler.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        // All are waited for before the first error is looked at.
        ends.collect::<Vec<_>>().into_iter().collect()
    });
    more.into_iter().for_each(Session::quit);
    outcome
}
