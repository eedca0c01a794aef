//! A drive: what a drive file or a name describes, and the model it becomes.

use std::path::Path;

use dbdyno_common::random::Random;
use dbdyno_common::similar::did_you_mean;
use serde::Deserialize;
use toml::{Table, Value};

use crate::contract::DeviceModel;

use crate::catalogue;
use crate::cloud::{Cloud, CloudSpec};
use crate::drive_name::{DriveName, is_path};
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
        let misnamed = |reason| ModelError::Misnamed { given: name.to_owned(), reason };
        if depth > DEPTH_MAX {
            return Err(misnamed(format!("is an array within more than {DEPTH_MAX} others")));
        }
        let parsed = DriveName::parse(name).map_err(misnamed)?;
        if let Some(raid) = parsed.array() {
            let raid = Value::Table(raid.map_err(misnamed)?);
            let file = Table::from_iter([("title".to_owned(), name.into()), ("raid".to_owned(), raid)]);
            let file = DriveFile::deserialize(file).map_err(|error| misnamed(reason_of(&error)))?;
            return Self::of(name, file, None, (folder, depth), |reason| misnamed(format!("cannot be: {reason}")));
        }
        let path = folder.join(parsed.base);
        let text = if is_path(parsed.base) { read(&path)? } else { catalogue::text(parsed.base)?.to_owned() };
        let own_folder = path.parent().unwrap_or(folder);
        if !parsed.plain.is_empty() {
            return Err(misnamed(format!("has {:?} where key=value must stand", parsed.plain[0])));
        }
        let malformed = |reason| ModelError::Malformed { path: path.display().to_string(), reason };
        let whole: DriveFile = toml::from_str(&text).map_err(|error| malformed(place_and_reason(&text, &error)))?;
        let mut overrides = parsed.overrides;
        if overrides.is_empty() {
            return Self::of(name, whole, None, (own_folder, depth), |reason| malformed(with_line(&text, reason)));
        }
        let state = overrides.remove("state").map(DriveState::deserialize).transpose();
        let state = state.map_err(|error| misnamed(reason_of(&error)))?;
        let file = overridden(&text, overrides).map_err(misnamed)?;
        Self::of(name, file, state, (own_folder, depth), |reason| misnamed(format!("cannot be: {reason}")))
    }

    /// The drive of a drive file's text; paths in it are relative to where the program runs.
    pub(crate) fn of_text(text: &str) -> Result<Self, ModelError> {
        let malformed = |reason| ModelError::Malformed { path: "the drive file".into(), reason };
        let file: DriveFile = toml::from_str(text).map_err(|error| malformed(place_and_reason(text, &error)))?;
        Self::of("the drive file", file, None, (Path::new(""), 0), |reason| malformed(with_line(text, reason)))
    }

    /// Checks a drive file and loads what it is made of; `wrong` makes an error of a reason.
    fn of(
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
    pub(crate) fn check_size(&self, size_bytes: u64) -> Result<(), ModelError> {
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

fn read(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|source| ModelError::Unreadable { path: path.display().to_string(), source })
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

/// Replaces a value where the section has it: `flash.read_us` in the part of that name, which is made if need be, `read_us`
/// in the section itself or else in the first part that has one.
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
    format!("cannot be: {}", error.message())
}

/// What the parser says of a drive file on one line, with the line at fault and, of a field that is none, the nearest.
fn place_and_reason(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let said = error.message().replace('\n', "; ");
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let mut quoted = said.split('`').skip(1).step_by(2);
    let (Some(given), true) = (quoted.next(), said.starts_with("unknown field")) else { return place + &said };
    match did_you_mean(given, quoted) {
        hint if hint.is_empty() => place + &said,
        hint => format!("{place}unknown field `{given}`{hint}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_drive_file_is_one_line_with_its_place() {
        for (text, said) in [
            (
                "title = \"a\"\n[ideal]\nlatency_su = 1.0\n",
                "line 3: unknown field `latency_su`: did you mean latency_us?",
            ),
            ("title = \"a\"\n[ideal]\nx = 1.0\n", "line 3: unknown field `x`, expected `latency_us`"),
            ("title = \"a\"\n[ideal]\nlatency_us = \"no\"\n", "line 3: invalid type: string \"no\", expected f64"),
            ("title = \n", "line 1: string values must be quoted"),
        ] {
            let error = Drive::of_text(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}
