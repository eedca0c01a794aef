//! The nine tables (clause 1.3), with whole numbers where the standard asks for so many digits.

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
