//! One run of slap as a workload.

use std::sync::Arc;

use crate::error::Error;
use crate::random::Random;
use crate::statements::Statements;
use crate::workload::{Kind, Portion, Workload};

use super::list::{PerClient, Walk};
use super::operation::Operation;
use super::options::{Options, Source};
use super::sql::Statement;

/// A run with one engine and number of clients.
pub struct Slap<'a> {
    /// All options.
    pub options: &'a Options,
    /// Keys to draw from.
    pub keys: Arc<[String]>,
    /// What each client says.
    pub per_client: PerClient,
}

/// The list that all clients walk.
pub fn statements(options: &Options) -> Vec<Statement> {
    match &options.source {
        Source::Generated { load, shape, unique_queries, .. } => {
            // Other literals than the initial rows have.
            let mut random = Random::new(options.run.seed ^ u64::MAX);
            shape.statements(*load, *unique_queries, &mut random)
        }
        Source::Given { query, .. } => query
            .iter()
            .map(|text| Statement { operation: Operation::of(text), text: text.clone(), keyed: false, rows: 0 })
            .collect(),
    }
}

impl Workload for Slap<'_> {
    fn verb(&self) -> &'static str {
        "slap"
    }

    fn load(&self) -> &str {
        self.options.load_name()
    }

    fn schema(&self) -> &str {
        &self.options.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        Operation::ALL.into_iter().map(Operation::kind).collect()
    }

    fn setup(&self) -> Vec<String> {
        self.per_client.commit_every.map(|_| "SET AUTOCOMMIT=0".to_owned()).into_iter().collect()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        let queries = self.per_client.queries.filter(|_| !portion.warmup);
        let per_client = PerClient { queries, ..self.per_client };
        let keys = Arc::clone(&self.keys);
        let walk = Walk::new(&statements(self.options), keys, portion.first, portion.clients, per_client, portion.seed);
        Ok(Box::new(walk))
    }
}
