//! The drives that come with dbdyno: one name and one drive file each.

use dbdyno_common::similar::sort_nearest_first;

use crate::info::ModelError;

/// The drives that come with this crate: name and drive file.
pub(crate) const DRIVES: &[(&str, &str)] = &[
    ("hdd-7200", include_str!("../drives/hdd-7200.toml")),
    ("hdd-15k", include_str!("../drives/hdd-15k.toml")),
    ("hdd-10k", include_str!("../drives/hdd-10k.toml")),
    ("hdd-exos18", include_str!("../drives/hdd-exos18.toml")),
    ("ssd-sata", include_str!("../drives/ssd-sata.toml")),
    ("ssd-x25e", include_str!("../drives/ssd-x25e.toml")),
    ("ssd-s510", include_str!("../drives/ssd-s510.toml")),
    ("ssd-860pro", include_str!("../drives/ssd-860pro.toml")),
    ("ssd-870qvo", include_str!("../drives/ssd-870qvo.toml")),
    ("ssd-s4600", include_str!("../drives/ssd-s4600.toml")),
    ("nvme", include_str!("../drives/nvme.toml")),
    ("nvme-760p", include_str!("../drives/nvme-760p.toml")),
    ("nvme-980pro", include_str!("../drives/nvme-980pro.toml")),
    ("nvme-p4500", include_str!("../drives/nvme-p4500.toml")),
    ("nvme-pm9a3", include_str!("../drives/nvme-pm9a3.toml")),
    ("ebs-gp2", include_str!("../drives/ebs-gp2.toml")),
    ("ebs-gp3", include_str!("../drives/ebs-gp3.toml")),
    ("ebs-io1", include_str!("../drives/ebs-io1.toml")),
    ("ebs-io2", include_str!("../drives/ebs-io2.toml")),
    ("nvme-local", include_str!("../drives/nvme-local.toml")),
    ("raid1-hdd-15k", include_str!("../drives/raid1-hdd-15k.toml")),
    ("raid0-s510", include_str!("../drives/raid0-s510.toml")),
    ("ideal", include_str!("../drives/ideal.toml")),
];

/// The drive file of a name.
pub(crate) fn text(name: &str) -> Result<&'static str, ModelError> {
    let found = DRIVES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    found.ok_or_else(|| ModelError::Unknown { given: name.to_owned(), known: nearest_first(name) })
}

/// The names of the drives, those that differ least from `given` first.
fn nearest_first(given: &str) -> Vec<String> {
    let mut names: Vec<String> = DRIVES.iter().map(|(name, _)| (*name).to_owned()).collect();
    sort_nearest_first(given, &mut names);
    names
}
