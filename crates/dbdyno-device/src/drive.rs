//! A drive: its name, what its name or drive file describes, the model it becomes, and the drives that come with
//! dbdyno.
//!
//! Names are `hdd-15k`, `my-disk.toml`, `ebs-io1(iops=20000)`, `raid1(hdd-15k, 2)`. Commas separate what stands in
//! parentheses: `key=value` replaces a number of the drive file; the arrays `raid0`, `raid1`, `raid5`, `raid6` and
//! `raid10` take a member's name, the number of members, and optionally the stripe's size first. Names nest:
//! `raid0(ebs-gp2(volume_gib=500), 4, 256KiB)`.

use std::path::Path;

use dbdyno_common::bounded;
use dbdyno_common::random::Random;
use dbdyno_common::similar::{did_you_mean, sort_nearest_first};
use dbdyno_common::size::bytes;
use serde::Deserialize;
use toml::{Table, Value};

use crate::cloud::{Cloud, CloudSpec};
use crate::contract::DeviceModel;
use crate::hdd::{Hdd, HddSpec};
use crate::ideal::{Ideal, IdealSpec};
use crate::info::{DriveInfo, DriveState, FastCacheSize, ModelError, ModelOptions, Published};
use crate::raid::{Raid, RaidSpec};
use crate::ssd::{Ssd, SsdSpec};

/// Arrays of arrays go this deep; a drive file that names itself would go on for ever.
const DEPTH_MAX: usize = 2;

/// A drive file: a title, perhaps what is published of the drive, and exactly one of the other sections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveFile {
    title: String,
    published: Option<Published>,
    hdd: Option<HddSpec>,
    ssd: Option<SsdSpec>,
    cloud: Option<CloudSpec>,
    raid: Option<RaidSpec>,
    ideal: Option<IdealSpec>,
}

enum Spec {
    Hdd(HddSpec),
    Ssd(SsdSpec),
    Cloud(CloudSpec),
    /// With its members.
    Raid(RaidSpec, Vec<Drive>),
    Ideal(IdealSpec),
}

/// A drive that was found and checked.
pub(crate) struct Drive {
    name: String,
    title: String,
    published: Option<Published>,
    /// Asked for in the name, which goes before the options of the model.
    state: Option<DriveState>,
    spec: Spec,
}

impl Drive {
    /// The drive of a name; paths in it are relative to `folder`.
    pub(crate) fn load(name: &str, folder: &Path) -> Result<Self, ModelError> {
        Self::load_at(name, folder, 0)
    }

    fn load_at(name: &str, folder: &Path, depth: usize) -> Result<Self, ModelError> {
        let misnamed = |reason| ModelError::Misnamed { name: name.to_owned(), reason };
        if depth > DEPTH_MAX {
            return Err(misnamed(format!("is nested in more than {DEPTH_MAX} arrays")));
        }
        let parsed = DriveName::parse(name).map_err(misnamed)?;
        if let Some(raid) = parsed.array() {
            let raid = Value::Table(raid.map_err(misnamed)?);
            let file = Table::from_iter([("title".to_owned(), name.into()), ("raid".to_owned(), raid)]);
            let file = DriveFile::deserialize(file).map_err(|error| misnamed(reason_of(&error)))?;
            return Self::from_file(name, file, None, (folder, depth), |reason| {
                misnamed(format!("is not possible: {reason}"))
            });
        }
        let path = folder.join(parsed.base);
        let text = if is_path(parsed.base) { read(&path)? } else { catalogue_text(parsed.base)?.to_owned() };
        let own_folder = path.parent().unwrap_or(folder);
        if !parsed.plain.is_empty() {
            return Err(misnamed(format!("has {:?} where key=value is expected", parsed.plain[0])));
        }
        let malformed = |reason| ModelError::Malformed { path: path.display().to_string(), reason };
        let whole: DriveFile = toml::from_str(&text).map_err(|error| malformed(place_and_reason(&text, &error)))?;
        let mut overrides = parsed.overrides;
        if overrides.is_empty() {
            return Self::from_file(name, whole, None, (own_folder, depth), |reason| {
                malformed(with_line(&text, reason))
            });
        }
        let state = overrides.remove("state").map(DriveState::deserialize).transpose();
        let state = state.map_err(|error| misnamed(reason_of(&error)))?;
        let file = overridden(&text, overrides).map_err(misnamed)?;
        Self::from_file(name, file, state, (own_folder, depth), |reason| misnamed(format!("is not possible: {reason}")))
    }

    /// The drive of a drive file's text; paths in it are relative to where the program runs.
    fn parse(text: &str) -> Result<Self, ModelError> {
        let malformed = |reason| ModelError::Malformed { path: "the drive file".into(), reason };
        let file: DriveFile = toml::from_str(text).map_err(|error| malformed(place_and_reason(text, &error)))?;
        Self::from_file("the drive file", file, None, (Path::new(""), 0), |reason| malformed(with_line(text, reason)))
    }

    /// Checks a drive file and loads what it is made of; `wrong` makes an error of a reason.
    fn from_file(
        name: &str,
        file: DriveFile,
        state: Option<DriveState>,
        (folder, depth): (&Path, usize),
        wrong: impl Fn(String) -> ModelError,
    ) -> Result<Self, ModelError> {
        let spec = match (file.hdd, file.ssd, file.cloud, file.raid, file.ideal) {
            (Some(hdd), None, None, None, None) => hdd.check().map(|()| Spec::Hdd(hdd)),
            (None, Some(ssd), None, None, None) => ssd.check().map(|()| Spec::Ssd(ssd)),
            (None, None, Some(cloud), None, None) => cloud.check().map(|()| Spec::Cloud(cloud)),
            (None, None, None, Some(raid), None) => raid.check().map(|()| Spec::Raid(raid, Vec::new())),
            (None, None, None, None, Some(ideal)) => ideal.check().map(|()| Spec::Ideal(ideal)),
            _ => Err("it must have exactly one of the sections [hdd], [ssd], [cloud], [raid], [ideal]".into()),
        };
        let mut spec = spec.map_err(wrong)?;
        if let Spec::Raid(raid, members) = &mut spec {
            for member in &raid.members {
                members.push(Self::load_at(member, folder, depth + 1)?);
            }
        }
        Ok(Self { name: name.to_owned(), title: file.title, published: file.published, state, spec })
    }

    /// What it is as a disk of `size_bytes`, or as large as it is.
    pub(crate) fn info(&self, size_bytes: Option<u64>) -> DriveInfo {
        let kind = match &self.spec {
            Spec::Hdd(_) => "hdd",
            Spec::Ssd(_) => "ssd",
            Spec::Cloud(_) => "cloud",
            Spec::Raid(..) => "raid",
            Spec::Ideal(_) => "ideal",
        };
        DriveInfo {
            name: self.name.clone(),
            kind,
            title: self.title.clone(),
            rotational: self.rotational(),
            capacity_bytes: self.capacity_bytes(),
            fast_cache: self.fast_cache(size_bytes.unwrap_or_else(|| self.capacity_bytes())),
            published: self.published.clone(),
        }
    }

    fn rotational(&self) -> bool {
        match &self.spec {
            Spec::Hdd(_) => true,
            Spec::Raid(_, members) => members.iter().any(Self::rotational),
            Spec::Ssd(_) | Spec::Cloud(_) | Spec::Ideal(_) => false,
        }
    }

    /// Of an array, what its members' caches take of its data.
    fn fast_cache(&self, size_bytes: u64) -> Option<FastCacheSize> {
        match &self.spec {
            Spec::Ssd(ssd) => ssd.slc.as_ref().map(|slc| {
                let disk_bytes = slc.bytes_on(size_bytes, ssd.capacity_bytes);
                FastCacheSize { disk_bytes, drive_bytes: slc.static_bytes + slc.dynamic_bytes }
            }),
            Spec::Raid(raid, members) => {
                let of = |member: &Self| member.fast_cache(raid.member_bytes(size_bytes));
                let least = members.iter().filter_map(of).min_by_key(|cache| cache.disk_bytes)?;
                let (disk_bytes, drive_bytes) =
                    (raid.capacity_bytes(least.disk_bytes), raid.capacity_bytes(least.drive_bytes));
                Some(FastCacheSize { disk_bytes, drive_bytes })
            }
            Spec::Hdd(_) | Spec::Cloud(_) | Spec::Ideal(_) => None,
        }
    }

    fn capacity_bytes(&self) -> u64 {
        match &self.spec {
            Spec::Hdd(hdd) => hdd.capacity_bytes,
            Spec::Ssd(ssd) => ssd.capacity_bytes,
            Spec::Cloud(cloud) => cloud.capacity_bytes,
            Spec::Raid(raid, members) => {
                raid.capacity_bytes(members.iter().map(Self::capacity_bytes).min().unwrap_or(0))
            }
            Spec::Ideal(_) => u64::MAX,
        }
    }

    /// Refuses a disk that is larger than the drive.
    fn check_size(&self, size_bytes: u64) -> Result<(), ModelError> {
        let capacity_bytes = self.capacity_bytes();
        if size_bytes > capacity_bytes {
            return Err(ModelError::TooLarge { name: self.name.clone(), size_bytes, capacity_bytes });
        }
        Ok(())
    }

    /// The model of a disk of `size_bytes`, which must fit.
    pub(crate) fn model(self, size_bytes: u64, seed: u64, options: &ModelOptions) -> Box<dyn DeviceModel + Send> {
        let options = ModelOptions { state: self.state.unwrap_or(options.state) };
        match self.spec {
            Spec::Hdd(hdd) => Box::new(Hdd::new(hdd, size_bytes, seed)),
            Spec::Ssd(ssd) => Box::new(Ssd::new(&ssd, size_bytes, seed, options.state)),
            Spec::Cloud(cloud) => Box::new(Cloud::new(cloud, size_bytes, seed)),
            Spec::Raid(raid, members) => {
                let member_bytes = raid.member_bytes(size_bytes);
                // Mirrors turn out of step.
                let mut seeds = Random::new(seed);
                let models = members.into_iter().map(|member| member.model(member_bytes, seeds.bits(), &options));
                let models = models.collect();
                Box::new(Raid::new(raid, models, size_bytes))
            }
            Spec::Ideal(ideal) => Box::new(Ideal::new(&ideal)),
        }
    }
}

/// A drive file is a few KB, but the path may be anything.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn read(path: &Path) -> Result<String, ModelError> {
    bounded::read_text(path, FILE_BYTES_MAX)
        .map_err(|source| ModelError::Unreadable { path: path.display().to_string(), source })
}

/// A drive file with some values of its section replaced. What is published is not of the drive with other values.
fn overridden(text: &str, overrides: Table) -> Result<DriveFile, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| reason_of(&error))?;
    table.remove("published");
    if let Some(section) = table.iter_mut().find_map(|(_, value)| value.as_table_mut()) {
        for (key, value) in overrides {
            replace(section, &key, value);
        }
    }
    DriveFile::deserialize(table).map_err(|error| reason_of(&error))
}

/// Replaces a value where the section has it: `flash.read_us` in the part of that name, which is made if need be,
/// `read_us` in the section itself or else in the first part that has one.
fn replace(section: &mut Table, key: &str, value: Value) {
    let (part, field) = match key.split_once('.') {
        Some((part, field)) => {
            section.entry(part).or_insert_with(|| Table::new().into());
            (Some(part.to_owned()), field)
        }
        None if section.contains_key(key) => (None, key),
        None => {
            let has = |part: &Value| part.as_table().is_some_and(|part| part.contains_key(key));
            (section.iter().find(|(_, part)| has(part)).map(|(name, _)| name.clone()), key)
        }
    };
    match part.and_then(|part| section.get_mut(&part)?.as_table_mut()) {
        Some(part) => part.insert(field.to_owned(), value),
        None => section.insert(key.to_owned(), value),
    };
}

/// What the parser says, to stand after the name of a drive.
fn reason_of(error: &toml::de::Error) -> String {
    format!("is not possible: {}", error.message())
}

/// What the parser says of a drive file on one line, with the line at fault and, of a field that is none, the nearest.
fn place_and_reason(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message().replace('\n', "; ");
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let mut quoted = message.split('`').skip(1).step_by(2);
    let (Some(field), true) = (quoted.next(), message.starts_with("unknown field")) else { return place + &message };
    match did_you_mean(field, quoted) {
        hint if hint.is_empty() => place + &message,
        hint => format!("{place}unknown field `{field}`{hint}"),
    }
}

/// A reason begins with the field at fault; names the line that has it.
fn with_line(text: &str, reason: String) -> String {
    let field = reason.split(' ').next().unwrap_or_default();
    let of_field =
        |line: &str| line.trim_start().strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='));
    match text.lines().position(of_field) {
        Some(index) => format!("line {}: {reason}", index + 1),
        None => reason,
    }
}

/// Every drive that comes with dbdyno.
#[must_use]
pub fn catalogue() -> Vec<DriveInfo> {
    // One that does not load would be missing here; the tests of this crate rule that out.
    DRIVES.iter().filter_map(|(name, _)| Drive::load(name, Path::new("")).ok()).map(|drive| drive.info(None)).collect()
}

/// What a drive is, by any name that [`model`] takes, if a disk of `size_bytes` fits it.
///
/// # Errors
/// As [`model`].
pub fn drive(name: &str, size_bytes: u64) -> Result<DriveInfo, ModelError> {
    let drive = Drive::load(name, Path::new(""))?;
    drive.check_size(size_bytes)?;
    Ok(drive.info(Some(size_bytes)))
}

/// The model of a drive as a disk of `size_bytes`, idle and with empty caches. `seed` decides what a real drive leaves
/// to chance, such as the angle of the platters at time 0.
///
/// The name is one of the [`catalogue`], or the path of a drive file (ending in `.toml`). Numbers of the drive file can
/// be replaced, as in `ebs-io1(iops=20000)`, and drives combined, as in `raid1(hdd-15k, 2)`; a solid-state drive can
/// start `(state=steady)`.
///
/// # Errors
/// [`ModelError`] names what was given and what is possible.
pub fn model(name: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    model_with(name, size_bytes, seed, &ModelOptions::default())
}

/// As [`model`], with options. What the name itself says goes first.
///
/// # Errors
/// As [`model`].
pub fn model_with(
    name: &str,
    size_bytes: u64,
    seed: u64,
    options: &ModelOptions,
) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    let drive = Drive::load(name, Path::new(""))?;
    drive.check_size(size_bytes)?;
    Ok(drive.model(size_bytes, seed, options))
}

/// As [`model`], of a drive file's text.
///
/// # Errors
/// As [`model`].
pub fn model_of_text(text: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    let drive = Drive::parse(text)?;
    drive.check_size(size_bytes)?;
    Ok(drive.model(size_bytes, seed, &ModelOptions::default()))
}

/// A name taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct DriveName<'a> {
    pub base: &'a str,
    /// Arguments without a key.
    pub plain: Vec<&'a str>,
    pub overrides: Table,
}

impl<'a> DriveName<'a> {
    /// Takes a name apart; the error goes on after "the drive name ...".
    pub(crate) fn parse(name: &'a str) -> Result<Self, String> {
        let name = name.trim();
        // A folder may be called anything.
        if is_path(name) {
            return Ok(Self { base: name, plain: Vec::new(), overrides: Table::new() });
        }
        let Some((base, rest)) = name.split_once('(') else {
            return match name.find(')') {
                Some(_) => Err("has a ) without a (".into()),
                None => Ok(Self { base: name, plain: Vec::new(), overrides: Table::new() }),
            };
        };
        let Some(inside) = rest.strip_suffix(')') else { return Err("does not end with a )".into()) };
        let (mut plain, mut overrides) = (Vec::new(), Table::new());
        for argument in arguments(inside)? {
            let key_ends = argument.find(['=', '(']).filter(|at| argument.as_bytes()[*at] == b'=');
            if let Some(at) = key_ends {
                let (key, text) = (argument[..at].trim(), argument[at + 1..].trim());
                if overrides.insert(key.to_owned(), value(text)).is_some() {
                    return Err(format!("gives {key} twice"));
                }
            } else {
                plain.push(argument);
            }
        }
        Ok(Self { base: base.trim(), plain, overrides })
    }

    /// The `[raid]` section that an array's name stands for, or `None` if it is not the name of an array.
    pub(crate) fn array(&self) -> Option<Result<Table, String>> {
        let level = match self.base {
            "raid0" => 0,
            "raid1" => 1,
            "raid5" => 5,
            "raid6" => 6,
            "raid10" => 10,
            other => {
                let level = other.strip_prefix("raid").filter(|level| level.parse::<u32>().is_ok());
                return level
                    .map(|_| Err("is not an array: the arrays are raid0, raid1, raid5, raid6 and raid10".into()));
            }
        };
        Some(self.array_of(level))
    }

    fn array_of(&self, level: i64) -> Result<Table, String> {
        let form =
            || format!("is not of the form {}(MEMBER, COUNT) or {}(MEMBER, COUNT, STRIPE)", self.base, self.base);
        let (member, count, stripe) = match self.plain[..] {
            [member, count] => (member, count, None),
            [member, count, stripe] => (member, count, Some(stripe)),
            _ => return Err(form()),
        };
        let count = count.parse::<usize>().ok().filter(|count| *count <= 64).ok_or_else(form)?;
        let mut raid = Table::new();
        raid.insert("level".into(), level.into());
        raid.insert("members".into(), vec![member; count].into());
        if let Some(stripe) = stripe {
            raid.insert("stripe_bytes".into(), size(stripe).ok_or_else(form)?.into());
        }
        raid.extend(self.overrides.clone());
        Ok(raid)
    }
}

/// Whether a name is the path of a drive file.
fn is_path(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The arguments between the commas that stand in no inner parentheses.
fn arguments(inside: &str) -> Result<Vec<&str>, String> {
    let (mut depth, mut start, mut arguments) = (0_usize, 0, Vec::new());
    for (at, character) in inside.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("has a ) without a (")?,
            ',' if depth == 0 => {
                arguments.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a ( without a )".into());
    }
    arguments.push(&inside[start..]);
    let arguments: Vec<&str> = arguments.into_iter().map(str::trim).collect();
    if arguments.iter().any(|argument| argument.is_empty()) {
        return Err("has an empty argument".into());
    }
    Ok(arguments)
}

/// A number, true or false, a size such as 256KiB, or else a word.
fn value(text: &str) -> Value {
    let as_toml = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    as_toml.or_else(|| size(text).map(Value::from)).unwrap_or_else(|| text.into())
}

/// Bytes of a size such as `64KiB`, `1 MB` or `4096`.
fn size(text: &str) -> Option<i64> {
    i64::try_from(bytes(text)?).ok()
}

/// The drives that come with this crate: name and drive file.
const DRIVES: &[(&str, &str)] = &[
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
fn catalogue_text(name: &str) -> Result<&'static str, ModelError> {
    let text = DRIVES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    text.ok_or_else(|| ModelError::Unknown { name: name.to_owned(), hint: hint(name), known: nearest_first(name) })
}

fn hint(name: &str) -> String {
    did_you_mean(name, DRIVES.iter().map(|(known, _)| *known))
}

/// The names of the drives, those that differ least from `name` first.
fn nearest_first(name: &str) -> Vec<String> {
    let mut names: Vec<String> = DRIVES.iter().map(|(name, _)| (*name).to_owned()).collect();
    sort_nearest_first(name, &mut names);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_drive_file_is_one_line_with_its_place() {
        for (text, reason) in [
            (
                "title = \"a\"\n[ideal]\nlatency_su = 1.0\n",
                "line 3: unknown field `latency_su`. Did you mean \"latency_us\"?",
            ),
            ("title = \"a\"\n[ideal]\nx = 1.0\n", "line 3: unknown field `x`, expected `latency_us`"),
            ("title = \"a\"\n[ideal]\nlatency_us = \"no\"\n", "line 3: invalid type: string \"no\", expected f64"),
            ("title = \n", "line 1: string values must be quoted"),
        ] {
            let error = Drive::parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn every_drive_file_parses_and_is_listed() {
        let listed = catalogue();
        assert_eq!(listed.len(), DRIVES.len());
        for drive in listed {
            model(&drive.name, 1 << 30, 1).map(|_| ()).unwrap();
        }
    }

    #[test]
    fn an_unknown_name_lists_the_nearest_first() {
        let message = model("hdd-7300", 1 << 30, 1).err().unwrap().to_string();
        assert!(message.contains("\"hdd-7300\"; the models are hdd-7200, "), "{message}");
        assert!(message.ends_with(". Did you mean \"hdd-7200\"?"), "{message}");
    }

    #[test]
    fn a_disk_larger_than_the_drive_is_refused() {
        let message = model("hdd-15k", 1 << 50, 1).err().unwrap().to_string();
        assert!(message.contains("larger than the drive hdd-15k"), "{message}");
    }

    #[test]
    fn a_malformed_drive_file_names_the_field() {
        let path = std::env::temp_dir().join(format!("dbdyno-drive-{}.toml", std::process::id()));
        std::fs::write(&path, "title = 'x'\n[ideal]\nlatency_us = -1.0\n").unwrap();
        let message = model(path.to_str().unwrap(), 1 << 30, 1).err().unwrap().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(message.contains("latency_us = -1"), "{message}");
    }

    #[test]
    fn a_drive_file_without_an_end_is_refused() {
        let path = std::env::temp_dir().join(format!("dbdyno-endless-{}.toml", std::process::id()));
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let message = model(path.to_str().unwrap(), 1 << 30, 1).err().unwrap().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(message.ends_with("it is longer than 16 MiB"), "{message}");
    }

    #[test]
    fn names_come_apart() {
        let name = DriveName::parse("ebs-io1(iops=20000, merge=false,span = whole)").unwrap();
        assert_eq!(name.base, "ebs-io1");
        assert_eq!(name.overrides["iops"], 20000.into());
        assert_eq!(name.overrides["merge"], false.into());
        assert_eq!(name.overrides["span"], "whole".into());
        assert_eq!(DriveName::parse("a (b).toml").unwrap().base, "a (b).toml");
    }

    #[test]
    fn an_array_is_a_section() {
        let name = DriveName::parse("raid0(ebs-gp2(volume_gib=500,iops_min=1), 4, 256KiB, write_cache_bytes=1GiB)");
        let raid = name.unwrap().array().unwrap().unwrap();
        assert_eq!(raid["members"], vec!["ebs-gp2(volume_gib=500,iops_min=1)"; 4].into());
        assert_eq!(raid["stripe_bytes"], (256 << 10).into());
        assert_eq!(raid["write_cache_bytes"], (1 << 30).into());
    }

    #[test]
    fn what_does_not_come_apart_is_refused() {
        for (name, reason) in [
            ("a(b", "does not end"),
            ("a)", "without a ("),
            ("a((b)", "without a )"),
            ("a(b,)", "empty"),
            ("a(x=1,x=2)", "x twice"),
        ] {
            let error = DriveName::parse(name).unwrap_err();
            assert!(error.contains(reason), "{name}: {error}");
        }
        for name in ["raid1(hdd-15k)", "raid1(hdd-15k,two)", "raid0(hdd-15k,2,huge)", "raid1"] {
            let error = DriveName::parse(name).unwrap().array().unwrap().unwrap_err();
            assert!(error.contains("(MEMBER, COUNT"), "{name}: {error}");
        }
    }
}
