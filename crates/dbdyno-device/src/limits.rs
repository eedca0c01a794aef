//! Limits on the numbers of a drive file. A message begins with the field at fault.

use std::ops::RangeInclusive;

/// The names and values of fields: `fields! { self; rpm, flash.planes }`.
macro_rules! fields {
    ($spec:expr; $($($field:ident).+),+ $(,)?) => {
        [$((stringify!($($field).+), $spec.$($field).+ as f64)),+]
    };
}
pub(crate) use fields;

/// Refuses the first of `fields` that is not a number above 0.
pub(crate) fn above_zero(fields: &[(&str, f64)]) -> Result<(), String> {
    match fields.iter().find(|(_, value)| !(*value > 0.0 && value.is_finite())) {
        Some((field, value)) => Err(format!("{field} = {value} is not above 0")),
        None => Ok(()),
    }
}

/// Refuses the first of `fields` outside of `range`.
pub(crate) fn within(range: &RangeInclusive<f64>, fields: &[(&str, f64)]) -> Result<(), String> {
    match fields.iter().find(|(_, value)| !range.contains(value)) {
        Some((field, value)) => {
            Err(format!("{field} = {value} is not between {:?} and {:?}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}
