//! The nine tables (clause 1.3), with whole numbers where the standard asks for so many digits; and
//! random values as the standard draws them (clauses 2.1.6, 4.3.2 and 4.3.3).

use dbdyno_common::random::Random;

/// A table: its name, its columns with their types, and its primary key.
pub struct Columns {
    /// Name of the table.
    pub name: &'static str,
    fields: &'static [(&'static str, &'static str)],
    primary_key: &'static str,
}

impl Columns {
    /// What CREATE TABLE lists.
    pub fn definition(&self) -> String {
        let mut parts: Vec<String> = self.fields.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        if !self.primary_key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", self.primary_key));
        }
        parts.join(", ")
    }

    /// The names of its columns, as INSERT lists them.
    pub fn names(&self) -> String {
        self.fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
    }

    /// Names and types as [`crate::tables::OwnTable::check`] compares them.
    pub fn to_compare(&self) -> Vec<String> {
        let shown = |kind: &str| {
            let plain = kind.strip_suffix(" NOT NULL").unwrap_or(kind).to_ascii_lowercase();
            match plain.split_once('(') {
                Some((number, _)) if number == "decimal" => number.to_owned(),
                _ => plain,
            }
        };
        self.fields.iter().map(|(name, kind)| format!("{name} {}", shown(kind))).collect()
    }
}

const ID: &str = "INT NOT NULL";
const SMALL: &str = "TINYINT NOT NULL";
const MONEY: &str = "DECIMAL(12,2) NOT NULL";
const RATE: &str = "DECIMAL(4,4) NOT NULL";
const STREET: &str = "VARCHAR(20) NOT NULL";
const DISTRICT_TEXT: &str = "CHAR(24) NOT NULL";

/// All of them; the first is made first and dropped last.
pub const TABLES: &[Columns] = &[
    Columns {
        name: "warehouse",
        fields: &[
            ("w_id", ID),
            ("w_name", "VARCHAR(10) NOT NULL"),
            ("w_street_1", STREET),
            ("w_street_2", STREET),
            ("w_city", STREET),
            ("w_state", "CHAR(2) NOT NULL"),
            ("w_zip", "CHAR(9) NOT NULL"),
            ("w_tax", RATE),
            ("w_ytd", MONEY),
        ],
        primary_key: "w_id",
    },
    Columns {
        name: "district",
        fields: &[
            ("d_w_id", ID),
            ("d_id", SMALL),
            ("d_name", "VARCHAR(10) NOT NULL"),
            ("d_street_1", STREET),
            ("d_street_2", STREET),
            ("d_city", STREET),
            ("d_state", "CHAR(2) NOT NULL"),
            ("d_zip", "CHAR(9) NOT NULL"),
            ("d_tax", RATE),
            ("d_ytd", MONEY),
            ("d_next_o_id", ID),
        ],
        primary_key: "d_w_id, d_id",
    },
    Columns {
        name: "customer",
        fields: &[
            ("c_w_id", ID),
            ("c_d_id", SMALL),
            ("c_id", ID),
            ("c_first", "VARCHAR(16) NOT NULL"),
            ("c_middle", "CHAR(2) NOT NULL"),
            ("c_last", "VARCHAR(16) NOT NULL"),
            ("c_street_1", STREET),
            ("c_street_2", STREET),
            ("c_city", STREET),
            ("c_state", "CHAR(2) NOT NULL"),
            ("c_zip", "CHAR(9) NOT NULL"),
            ("c_phone", "CHAR(16) NOT NULL"),
            ("c_since", "DATETIME NOT NULL"),
            ("c_credit", "CHAR(2) NOT NULL"),
            ("c_credit_lim", MONEY),
            ("c_discount", RATE),
            ("c_balance", MONEY),
            ("c_ytd_payment", MONEY),
            ("c_payment_cnt", ID),
            ("c_delivery_cnt", ID),
            ("c_data", "VARCHAR(500) NOT NULL"),
        ],
        primary_key: "c_w_id, c_d_id, c_id",
    },
    Columns {
        name: "history",
        fields: &[
            ("h_c_id", ID),
            ("h_c_d_id", SMALL),
            ("h_c_w_id", ID),
            ("h_d_id", SMALL),
            ("h_w_id", ID),
            ("h_date", "DATETIME NOT NULL"),
            ("h_amount", "DECIMAL(6,2) NOT NULL"),
            ("h_data", "VARCHAR(24) NOT NULL"),
        ],
        primary_key: "",
    },
    Columns {
        name: "orders",
        fields: &[
            ("o_w_id", ID),
            ("o_d_id", SMALL),
            ("o_id", ID),
            ("o_c_id", ID),
            ("o_entry_d", "DATETIME NOT NULL"),
            ("o_carrier_id", "TINYINT"),
            ("o_ol_cnt", SMALL),
            ("o_all_local", SMALL),
        ],
        primary_key: "o_w_id, o_d_id, o_id",
    },
    Columns {
        name: "new_order",
        fields: &[("no_w_id", ID), ("no_d_id", SMALL), ("no_o_id", ID)],
        primary_key: "no_w_id, no_d_id, no_o_id",
    },
    Columns {
        name: "order_line",
        fields: &[
            ("ol_w_id", ID),
            ("ol_d_id", SMALL),
            ("ol_o_id", ID),
            ("ol_number", SMALL),
            ("ol_i_id", ID),
            ("ol_supply_w_id", ID),
            ("ol_delivery_d", "DATETIME"),
            ("ol_quantity", SMALL),
            ("ol_amount", "DECIMAL(6,2) NOT NULL"),
            ("ol_dist_info", DISTRICT_TEXT),
        ],
        primary_key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
    },
    Columns {
        name: "item",
        fields: &[
            ("i_id", ID),
            ("i_im_id", ID),
            ("i_name", "VARCHAR(24) NOT NULL"),
            ("i_price", "DECIMAL(5,2) NOT NULL"),
            ("i_data", "VARCHAR(50) NOT NULL"),
        ],
        primary_key: "i_id",
    },
    Columns {
        name: "stock",
        fields: &[
            ("s_w_id", ID),
            ("s_i_id", ID),
            ("s_quantity", ID),
            ("s_dist_01", DISTRICT_TEXT),
            ("s_dist_02", DISTRICT_TEXT),
            ("s_dist_03", DISTRICT_TEXT),
            ("s_dist_04", DISTRICT_TEXT),
            ("s_dist_05", DISTRICT_TEXT),
            ("s_dist_06", DISTRICT_TEXT),
            ("s_dist_07", DISTRICT_TEXT),
            ("s_dist_08", DISTRICT_TEXT),
            ("s_dist_09", DISTRICT_TEXT),
            ("s_dist_10", DISTRICT_TEXT),
            ("s_ytd", ID),
            ("s_order_cnt", ID),
            ("s_remote_cnt", ID),
            ("s_data", "VARCHAR(50) NOT NULL"),
        ],
        primary_key: "s_w_id, s_i_id",
    },
];

/// Secondary indexes, made when all rows are there: customers by name, a customer's last order.
pub const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

/// Rows of one warehouse (clause 1.2.1).
pub const DISTRICTS: i64 = 10;
/// See [`DISTRICTS`]; of a district.
pub const CUSTOMERS: i64 = 3000;
/// Of all warehouses together, and stock of each.
pub const ITEMS: i64 = 100_000;
/// The first order of a district that is not delivered yet (clause 4.3.3.1).
pub const UNDELIVERED: i64 = 2101;

/// The constant by which the last names of prepared customers were drawn. A run's must be at some distance from it.
pub const LOAD_CONSTANT: i64 = 157;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Uniform in `low..=high`.
#[inline]
pub fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as u64) as i64
}

/// NURand: not uniform in `low..=high`.
fn uneven(random: &mut Random, a: i64, constant: i64, low: i64, high: i64) -> i64 {
    let mixed = between(random, 0, a) | between(random, low, high);
    (mixed + constant) % (high - low + 1) + low
}

/// The number of a last name, 0 to 999, drawn with a constant.
pub fn last_name_number(random: &mut Random, constant: i64) -> i64 {
    uneven(random, 255, constant, 0, 999)
}

/// The last name with a number from 0 to 999.
pub fn last_name(number: i64) -> String {
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// The constants of a run, the same for all its terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// Those of a seed. That of last names differs from [`LOAD_CONSTANT`] by 65 to 119, but not by 96 or 112 (2.1.6.1).
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let allowed = |constant: &i64| {
            let distance = (constant - LOAD_CONSTANT).abs();
            (65..=119).contains(&distance) && distance != 96 && distance != 112
        };
        let allowed: Vec<i64> = (0..=255).filter(allowed).collect();
        let last_name = allowed[random.below(allowed.len() as u64) as usize];
        Self { last_name, customer: between(&mut random, 0, 1023), item: between(&mut random, 0, 8191) }
    }

    /// A customer's last name.
    pub fn last_name(&self, random: &mut Random) -> String {
        last_name(last_name_number(random, self.last_name))
    }

    /// A customer's number.
    pub fn customer(&self, random: &mut Random) -> i64 {
        uneven(random, 1023, self.customer, 1, CUSTOMERS)
    }

    /// An item's number.
    pub fn item(&self, random: &mut Random) -> i64 {
        uneven(random, 8191, self.item, 1, ITEMS)
    }
}

/// Appends `low` to `high` random letters and digits.
pub fn put_text(random: &mut Random, low: usize, high: usize, out: &mut String) {
    const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-";
    const BITS: usize = 6;
    let mut left = between(random, low as i64, high as i64) as usize;
    while left > 0 {
        let mut bits = random.bits();
        for _ in 0..left.min(64 / BITS) {
            out.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= BITS;
        }
        left -= left.min(64 / BITS);
    }
}

/// Appends random digits.
pub fn put_digits(random: &mut Random, count: usize, out: &mut String) {
    (0..count).for_each(|_| out.push(char::from(b'0' + random.below(10) as u8)));
}

/// 1 to `count` in random order (Fisher and Yates).
pub fn shuffled(random: &mut Random, count: i64) -> Vec<i64> {
    let mut all: Vec<i64> = (1..=count).collect();
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
    all
}

/// Hundredths as a DECIMAL.
pub fn money(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_standards() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!((money(5), money(123_456)), ("0.05".into(), "1234.56".into()));
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance() {
        for seed in 0..1000 {
            let distance = (Constants::new(seed).last_name - LOAD_CONSTANT).abs();
            assert!((65..=119).contains(&distance) && ![96, 112].contains(&distance), "{distance}");
        }
    }

    #[test]
    fn uneven_draws_stay_in_range_and_prefer_some() {
        let constants = Constants::new(3);
        let mut random = Random::new(1);
        let mut counts = vec![0_u32; CUSTOMERS as usize + 1];
        for _ in 0..300_000 {
            counts[constants.customer(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        // Of a uniform draw each would come 100 times, give or take 10.
        assert!(*counts.last().unwrap() > 300, "{:?}", counts.last());
        assert!((0..100_000).all(|_| (1..=ITEMS).contains(&constants.item(&mut random))));
    }

    #[test]
    fn an_order_is_shuffled_and_whole() {
        let mut all = shuffled(&mut Random::new(1), 3000);
        assert_ne!(all[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=3000));
    }

    #[test]
    fn texts_have_their_length() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let mut text = String::new();
            put_text(&mut random, 26, 50, &mut text);
            assert!((26..=50).contains(&text.len()) && text.is_ascii() && !text.contains(['\'', '\\']));
        }
    }
}
