//! The flags of `tpcc` as one checked value: among them how often each transaction comes (clause 5.2.3), and how long a
//! terminal takes before and after it (5.2.5).

use dbdyno_common::random::Random;
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::schema::TABLES;
use crate::error::Error;
use crate::flags::Flag;
use crate::run_options::CLIENTS_MAX;
use crate::table_options;
use crate::tables::OwnTable;
use crate::values::Values;

/// Terminals of a warehouse (clause 4.2.1).
pub const TERMINALS: i64 = 10;

/// Most warehouses: some 10 TB.
const WAREHOUSES_MAX: i64 = 100_000;

/// Connections that fill the tables, at least.
const FILLERS_MIN: usize = 4;

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("warehouses", "warehouses, of about 100 MB each"),
    Flag::value("scale", "").same_as("warehouses"),
    Flag::value("mix", "weights of the transactions, or the name of one alone"),
    Flag::value("keying", "on or off: the standard's keying and think times, with 10 clients a warehouse"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the tables"),
];

/// All options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Schema of the tables.
    pub schema: String,
    /// In the order of [`TABLES`].
    pub tables: Vec<OwnTable>,
    /// How many.
    pub warehouses: i64,
    /// How often each transaction comes.
    pub mix: Mix,
    /// Terminals key and think.
    pub keying: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
    /// Connections that fill the tables.
    pub fillers: usize,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or flags that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let table = |columns: &super::schema::Columns| OwnTable::read(values, "tpcc", columns.name, "dbdyno_tpcc");
        let tables = TABLES.iter().map(table).collect::<Result<Vec<_>, _>>()?;
        let clients = values.list("clients", 1, 1, CLIENTS_MAX)?;
        let options = Self {
            schema: tables[0].schema.clone(),
            tables,
            warehouses: values.within("warehouses", 1, 1..=WAREHOUSES_MAX)?,
            mix: Mix::read(values)?,
            keying: values.choice("keying", &[("off", false), ("on", true)], false)?,
            seed: values.number("seed", 1)?,
            fillers: clients.iter().copied().max().unwrap_or(1).max(FILLERS_MIN),
        };
        if options.keying {
            options.check_keying(values, &clients)?;
        }
        Ok(options)
    }

    fn check_keying(&self, values: &Values<'_>, clients: &[usize]) -> Result<(), Error> {
        if let Some(flag) = ["rate", "think-time"].into_iter().find(|flag| values.has(flag)) {
            return Err(Error::Usage(format!("--{flag} and --keying=on: terminals have times of their own; give one")));
        }
        let terminals = self.warehouses * TERMINALS;
        if terminals > CLIENTS_MAX as i64 {
            return Err(Error::Usage(format!(
                "--keying=on with --warehouses={}: more than {CLIENTS_MAX} clients",
                self.warehouses
            )));
        }
        if values.has("clients") && clients.iter().any(|clients| *clients as i64 != terminals) {
            let text =
                format!("--clients with --keying=on: there are {terminals}, 10 for each warehouse; leave it out");
            return Err(Error::Usage(text));
        }
        Ok(())
    }

    /// How many clients there are where that follows from the warehouses.
    pub fn terminals(&self) -> Option<usize> {
        self.keying.then_some((self.warehouses * TERMINALS) as usize)
    }
}

/// The transactions, in the order of their kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum Type {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// All of them.
const TYPES: [Type; 5] = [Type::NewOrder, Type::Payment, Type::OrderStatus, Type::Delivery, Type::StockLevel];

impl Type {
    /// Seconds that keying its input takes.
    fn keying_s(self) -> f64 {
        match self {
            Self::NewOrder => 18.0,
            Self::Payment => 3.0,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 2.0,
        }
    }

    /// Mean seconds of thinking after it.
    fn think_s(self) -> f64 {
        match self {
            Self::NewOrder | Self::Payment => 12.0,
            Self::OrderStatus => 10.0,
            Self::Delivery | Self::StockLevel => 5.0,
        }
    }

    /// The pause of a terminal between two transactions, ns: thinking, exponential and cut at ten times its mean, and
    /// keying.
    pub fn pause_ns(self, next: Self, random: &mut Random) -> u64 {
        ((self.think_s() * random.exponential().min(10.0) + next.keying_s()) * 1e9) as u64
    }
}

/// Weights of the transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix {
    /// Sums of the weights up to each.
    ends: [u64; 5],
}

impl Mix {
    /// The standard's, as the flag writes it.
    pub const STANDARD: &str = "new_order=45,payment=43,order_status=4,delivery=4,stock_level=4";

    /// Reads `--mix`: `new_order=45,payment=43`, or one name alone.
    ///
    /// # Errors
    /// A name that is none, or twice, or all weights 0.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        const MOST: u64 = 1_000_000;
        let text = values.text_or("mix", Self::STANDARD);
        let wrong = |why: &str| {
            let names = Type::VARIANTS.join(", ");
            Error::Usage(format!("--mix={text}: {why}: write --mix=new_order=45,payment=43, of {names}"))
        };
        let mut weights = [None; 5];
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let kind: Type = name.trim().parse().map_err(|_| wrong(&format!("{name:?} is not a transaction")))?;
            let weight = weight.trim().parse().ok().filter(|weight| *weight <= MOST);
            let weight: u64 =
                weight.ok_or_else(|| wrong(&format!("the weight of {name} is not between 0 and {MOST}")))?;
            if weights[kind as usize].replace(weight).is_some() {
                return Err(wrong(&format!("{name} comes twice")));
            }
        }
        let mut sum = 0;
        let ends = weights.map(|weight| {
            sum += weight.unwrap_or(0);
            sum
        });
        if sum == 0 { Err(wrong("all weights are 0")) } else { Ok(Self { ends }) }
    }

    /// The next transaction.
    pub fn draw(&self, random: &mut Random) -> Type {
        let at = random.below(self.ends[4]);
        TYPES[self.ends.iter().position(|end| at < *end).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn terminals_come_with_warehouses() {
        assert_eq!(read(&[("warehouses", "3")]).unwrap().terminals(), None);
        let keying = [("warehouses", "3"), ("keying", "on")];
        assert_eq!(read(&keying).unwrap().terminals(), Some(30));
        assert!(read(&[("keying", "on"), ("clients", "10")]).is_ok());
        assert!(read(&[("keying", "on"), ("clients", "8")]).unwrap_err().contains("there are 10"));
        assert!(read(&[("keying", "on"), ("rate", "8")]).unwrap_err().contains("--rate and --keying=on"));
        assert!(read(&[("keying", "on"), ("warehouses", "20000")]).unwrap_err().contains("more than 100000"));
    }

    #[test]
    fn mistakes_name_their_flag() {
        assert!(read(&[("warehouses", "0")]).unwrap_err().contains("--warehouses=0: give 1 to"));
        assert!(read(&[("keying", "yes")]).unwrap_err().contains("--keying=yes: use one of off, on"));
        assert!(read(&[("schema", "mysql")]).unwrap_err().contains("belongs to the server"));
    }

    fn read_mix(text: &'static str) -> Result<Mix, String> {
        Mix::read(&Values::of(&[("mix", text)])).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standards_mix_comes_in_its_proportions() {
        let mix = Mix::read(&Values::of(&[])).unwrap();
        let mut random = Random::new(5);
        let mut counts = [0_i32; 5];
        for _ in 0..100_000 {
            counts[mix.draw(&mut random) as usize] += 1;
        }
        for (count, percent) in counts.into_iter().zip([45, 43, 4, 4, 4]) {
            assert!((count - percent * 1000).abs() < 800, "{counts:?}");
        }
    }

    #[test]
    fn one_name_alone_is_all() {
        let mix = read_mix("new_order").unwrap();
        let mut random = Random::new(5);
        assert!((0..1000).all(|_| mix.draw(&mut random) == Type::NewOrder));
        let two = read_mix("payment=1, delivery=0").unwrap();
        assert!((0..1000).all(|_| two.draw(&mut random) == Type::Payment));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("new-order", "\"new-order\" is not a transaction"),
            ("payment=x", "the weight of payment"),
            ("payment=0", "all weights are 0"),
            ("payment=1,payment=2", "payment comes twice"),
        ] {
            let message = read_mix(text).unwrap_err();
            assert!(message.contains(why) && message.contains("stock_level"), "{message}");
        }
    }

    #[test]
    fn a_terminal_takes_its_time() {
        let mut random = Random::new(5);
        let pauses =
            |random: &mut Random| (0..10_000).map(|_| Type::Payment.pause_ns(Type::NewOrder, random)).sum::<u64>();
        let mean_s = pauses(&mut random) as f64 / 1e13;
        assert!((29.0..31.0).contains(&mean_s), "{mean_s}");
    }
}
