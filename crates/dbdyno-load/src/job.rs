//! The work of an invocation: tables are made, runs measured and reported, tables dropped.

use crate::account::Confined;
use crate::dialect::is_session_lost;
use crate::drive::End;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags::Action;
use crate::output::files::Names;
use crate::output::result::{RunResult, write_json};
use crate::output::sinks::{Sinks, with_sinks};
use crate::output::{self, print};
use crate::protocol::session::Session;
use crate::run::run;
use crate::run_options::{Loop, Plan, RunOptions};
use crate::share::Share;
use crate::stop::Stop;
use crate::workload::Stepwise;

/// What is to be done, and by which login.
pub struct Job<'a> {
    /// Which part of it.
    pub action: Action,
    /// How the load is offered and measured.
    pub options: &'a RunOptions,
    /// The server.
    pub endpoint: &'a Endpoint,
    /// The verb's name.
    pub verb: &'static str,
    /// The load.
    pub workload: &'a dyn Stepwise,
    /// Ctrl-C.
    pub stop: &'a Stop,
}

impl Job<'_> {
    /// Does it and gives the exit code.
    ///
    /// # Errors
    /// What kept it from being done.
    pub fn work(&self) -> Result<u8, Error> {
        let mut session = Session::connect(self.endpoint, None, self.stop)?;
        // It sleeps through every run, however long.
        session.execute("SET SESSION wait_timeout = 31536000")?;
        let mut begun = false;
        let done = self.act(&mut session, &mut begun);
        let stays = match self.action {
            Action::All => self.workload.keeps_tables(),
            Action::Prepare => done.is_ok(),
            Action::Run | Action::Cleanup => true,
        };
        if stays || !begun {
            session.quit();
            return done;
        }
        let after_failure = !matches!(done, Ok(_) | Err(Error::Interrupted));
        match (done, self.clean_up(session, after_failure)) {
            (Ok(_), Err(error)) => Err(error),
            (done, cleaned) => {
                if let Err(error) = cleaned {
                    output::note(&format!("the tables could not be dropped: {error}"));
                }
                done
            }
        }
    }

    /// `begun` is whether there may be something to clean up.
    fn act(&self, session: &mut Session, begun: &mut bool) -> Result<u8, Error> {
        match self.action {
            Action::Cleanup => {
                self.say("cleanup");
                self.workload.cleanup(session).map(|()| 0)
            }
            Action::Prepare => self.prepare(session, begun).map(|()| 0),
            Action::All if !self.workload.is_made_anew() => {
                self.prepare(session, begun)?;
                *begun = true;
                self.run_all(session, begun)
            }
            Action::All | Action::Run => self.run_all(session, begun),
        }
    }

    fn say(&self, what: &str) {
        if self.options.verbose {
            output::say(what);
        }
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        self.say("prepare");
        self.workload.prepare(session, begun)
    }

    /// After a failure the server may be dead, and is not waited for as long.
    fn clean_up(&self, session: Session, after_failure: bool) -> Result<(), Error> {
        self.say("cleanup");
        let mut session = session.for_cleaning_up(self.endpoint)?;
        if after_failure {
            session.wait_at_most(self.endpoint.connect_timeout.min(self.endpoint.stall_timeout));
        }
        self.workload.cleanup(&mut session)?;
        session.quit();
        Ok(())
    }

    /// Measures all runs and writes their results.
    fn run_all(&self, session: &mut Session, begun: &mut bool) -> Result<u8, Error> {
        let names = Names { kinds: self.workload.kinds(), phases: self.workload.phases() };
        let mut runs = Vec::new();
        let outcome = with_sinks(self.options, &names, |sinks| self.run_each(session, begun, sinks, &mut runs));
        // What was measured is kept whatever happened.
        if let Some(path) = &self.options.json {
            write_json(path, self.verb, runs.iter().map(RunResult::to_load_run).collect())?;
        }
        let done = self.exit_code(&runs, outcome??);
        done.map_err(|error| match (error, self.workload.confined()) {
            (Error::Failed(cause), Some(confined)) => Error::Failed(cause + &remedy(confined, &runs)),
            (error, _) => error,
        })
    }

    /// Every engine with every loop and every number of clients.
    fn run_each(
        &self,
        session: &mut Session,
        begun: &mut bool,
        sinks: &mut Sinks<'_>,
        runs: &mut Vec<RunResult>,
    ) -> Result<End, Error> {
        loop {
            for pace in &self.options.loops {
                for clients in &self.options.clients {
                    let first = runs.len();
                    let end = self.iterate((*pace, *clients), session, begun, sinks, runs)?;
                    let text = self.workload.report(&runs[first..])?;
                    if !self.options.silent {
                        print(&text);
                    }
                    if end != End::Finished {
                        return Ok(end);
                    }
                }
            }
            if !self.workload.next_engine() {
                return Ok(End::Finished);
            }
        }
    }

    fn iterate(
        &self,
        (pace, clients): (Loop, usize),
        session: &mut Session,
        begun: &mut bool,
        sinks: &mut Sinks<'_>,
        runs: &mut Vec<RunResult>,
    ) -> Result<End, Error> {
        for iteration in 1..=self.workload.iterations() {
            if self.makes_anew() {
                self.prepare(session, begun)?;
            }
            let engine = self.workload.check(session)?.engine;
            let plan = self.plan(runs.len(), iteration, pace, clients, engine)?;
            self.say(&format!("run {}: {} clients", plan.number, plan.clients));
            sinks.starting(plan.clients);
            let (result, end) = run(self.options, self.endpoint, self.workload, &plan, sinks, self.stop)?;
            if let Some(note) = result.io_note.as_ref().filter(|_| runs.is_empty()) {
                output::note(note);
            }
            runs.push(result);
            if end != End::Finished {
                return Ok(end);
            }
            self.workload.after_run(session)?;
        }
        Ok(End::Finished)
    }

    fn makes_anew(&self) -> bool {
        self.action == Action::All && self.workload.is_made_anew()
    }

    fn plan(
        &self,
        number: usize,
        iteration: u32,
        pace: Loop,
        clients_of_all: usize,
        engine: Option<String>,
    ) -> Result<Plan, Error> {
        let share = self.options.share;
        let (first_client, clients) = share.part(clients_of_all);
        if clients == 0 {
            let (text, of) = (share.text(), share.of);
            return Err(Error::Usage(format!(
                "--share={text}: {clients_of_all} clients cannot be divided among {of} processes"
            )));
        }
        // What the clients of other processes send is not known here.
        let planned = |all| if share == Share::ALL { all } else { (None, 0) };
        let (queries_planned, queries_dropped) = planned(self.workload.planned(clients));
        Ok(Plan {
            verb: self.verb,
            number,
            iteration,
            step: if self.makes_anew() { 0 } else { number as u64 },
            clients,
            share,
            first_client,
            clients_of_all,
            pace,
            engine_asked: self.workload.engine_asked().map(str::to_owned),
            engine,
            duration: self.options.duration,
            events: self.options.events.map(|events| share.part(events as usize).1 as u64),
            queries_planned,
            queries_dropped,
        })
    }

    /// The exit code of finished runs: 1 if the server refused what was not to be ignored.
    fn exit_code(&self, runs: &[RunResult], end: End) -> Result<u8, Error> {
        match end {
            End::Interrupted => Err(Error::Interrupted),
            End::Aborted(cause) => Err(Error::Failed(cause)),
            End::Finished => {
                let RunOptions { ignore, reconnect, .. } = self.options;
                // A lost connection counts unless it was to be replaced, or to be lost.
                let may_be_lost = !reconnect.is_zero() || self.workload.expects_loss();
                let forgiven = |code| ignore.has(code) || may_be_lost && is_session_lost(code);
                let refused = runs.iter().flat_map(|run| &run.errors).any(|error| !forgiven(error.code));
                Ok(u8::from(refused))
            }
        }
    }
}

/// What to do about rights that the runs lacked, if they did.
fn remedy(confined: &Confined, runs: &[RunResult]) -> String {
    let mut remedies = runs.iter().flat_map(|run| &run.errors).map(|error| confined.remedy(error.code));
    remedies.find(|remedy| !remedy.is_empty()).unwrap_or_default()
}
