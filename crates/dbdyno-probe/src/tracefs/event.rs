//! The few block events that show a request's way, taken out of their records. How the running kernel lays these out is
//! read from tracefs, never assumed.

/// Longest field of flags (`rwbs`) that any kernel has had, with room to spare.
const FLAGS_MAX: usize = 32;

/// Letters of them that are kept: no kernel writes more than six.
const LETTERS: usize = 8;

/// Length of a process's name in the kernel (`TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

/// Which step of a request's way an event marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A filesystem or program handed a bio to the block layer.
    Queue,
    /// It was joined to the end of a request,
    BackMerge,
    /// or to its front.
    FrontMerge,
    /// A request was handed to the driver.
    Issue,
    /// The driver handed it back undone: it waits again.
    Requeue,
    /// It was done.
    Complete,
    /// Not an event of the kernel: a processor's events are lost after this one.
    Blind,
    /// Not an event of the kernel: a processor's events are complete again after this one.
    Seeing,
}

impl Step {
    /// The kernel's, with its names; those of merges, which no figure needs, come last.
    pub const EVENTS: [(Self, &'static str); 6] = [
        (Self::Queue, "block_bio_queue"),
        (Self::Issue, "block_rq_issue"),
        (Self::Requeue, "block_rq_requeue"),
        (Self::Complete, "block_rq_complete"),
        (Self::BackMerge, "block_bio_backmerge"),
        (Self::FrontMerge, "block_bio_frontmerge"),
    ];

    /// The kernel's events of a trace, with or without those of merges.
    pub fn events(merges: bool) -> &'static [(Self, &'static str)] {
        &Self::EVENTS[..if merges { 6 } else { 4 }]
    }

    /// Whether it is of a bio, whose device is the partition that it was asked of.
    pub fn is_of_bio(self) -> bool {
        matches!(self, Self::Queue | Self::BackMerge | Self::FrontMerge)
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    /// Zeroing, zone commands, and what passes through to the driver.
    Other,
}

impl Kind {
    /// All of them, with the words of every output.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Flush, "flush"),
        (Self::Discard, "discard"),
        (Self::Other, "other"),
    ];

    /// The word of every output.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub at_ns: u64,
    pub step: Step,
    pub kind: Kind,
    /// The device's cache must be emptied first (`REQ_PREFLUSH`).
    pub flush_first: bool,
    /// First sector of 512 bytes.
    pub sector: u64,
    pub sectors: u32,
    /// The driver reported an error.
    pub failed: bool,
    /// The process that ran when it happened; at a completion, whichever was interrupted.
    pub process: u32,
    /// Its name, filled up with zeros; empty where the event has none.
    pub name: [u8; NAME_BYTES],
    /// The kernel's letters for what is asked, filled up with zeros.
    pub letters: [u8; LETTERS],
    /// The processor's number.
    pub processor: u16,
}

impl Event {
    /// Where events of a processor begin or cease to be lost.
    pub fn gap(at_ns: u64, step: Step) -> Self {
        Self {
            at_ns,
            step,
            kind: Kind::Other,
            flush_first: false,
            sector: 0,
            sectors: 0,
            failed: false,
            process: 0,
            name: [0; NAME_BYTES],
            letters: [0; LETTERS],
            processor: 0,
        }
    }
}

/// Reads the kernel's letters: perhaps `F` for a flush beforehand, then the operation.
fn flags(rwbs: &[u8]) -> (Kind, bool) {
    let letters = &rwbs[..rwbs.iter().position(|letter| *letter == 0).unwrap_or(rwbs.len())];
    let (first, rest) = match letters.split_first() {
        Some((b'F', rest)) => (true, rest),
        _ => (false, letters),
    };
    let (operation, rest) = rest.split_first().map_or((b'N', rest), |(letter, rest)| (*letter, rest));
    let kind = match operation {
        b'R' => Kind::Read,
        b'W' if rest.first() == Some(&b'Z') => Kind::Other,
        b'W' => Kind::Write,
        b'D' => Kind::Discard,
        b'F' => Kind::Flush,
        _ => Kind::Other,
    };
    (kind, first)
}

/// Where the fields of one of the events lie.
#[derive(Debug, Clone, Copy)]
struct Layout {
    step: Step,
    id: u16,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    error: Option<Field>,
    process: Option<Field>,
    name: Option<Field>,
}

/// Turns records into events.
#[derive(Debug, Default)]
pub struct Decoder {
    type_field: Option<Field>,
    layouts: Vec<Layout>,
}

impl Decoder {
    /// Learns the layout of an event from its `format` file.
    pub fn learn(&mut self, step: Step, format: &str) -> Result<(), String> {
        let fields = Fields::parse(format);
        self.type_field = Some(fields.field("common_type", 2)?);
        self.layouts.push(Layout {
            step,
            id: fields.id,
            sector: fields.field("sector", 8)?,
            sectors: fields.field("nr_sector", 4)?,
            rwbs: fields.field("rwbs", FLAGS_MAX)?,
            // Called `errors` before it held an error number.
            error: fields.field("error", 4).or_else(|_| fields.field("errors", 4)).ok(),
            process: fields.field("common_pid", 4).ok(),
            name: fields.field("comm", NAME_BYTES).ok(),
        });
        Ok(())
    }

    /// The event of a record; `None` where it is none of those learnt, or too short.
    pub fn event(&self, at_ns: u64, processor: u16, record: &[u8]) -> Option<Event> {
        let id = self.type_field?.number(record)?;
        let layout = self.layouts.iter().find(|layout| u64::from(layout.id) == id)?;
        let letters = layout.rwbs.bytes(record)?;
        let (kind, flush_first) = flags(letters);
        let number = |field: Option<Field>| field.and_then(|field| field.number(record));
        Some(Event {
            at_ns,
            step: layout.step,
            kind,
            flush_first,
            sector: layout.sector.number(record)?,
            sectors: layout.sectors.number(record)? as u32,
            failed: number(layout.error).is_some_and(|error| error != 0),
            process: number(layout.process).unwrap_or(0) as u32,
            name: layout.name.and_then(|field| field.bytes(record)).map_or([0; _], padded),
            letters: padded(letters),
            processor,
        })
    }
}

/// As much of some bytes as has room, and zeros.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    let length = bytes.len().min(N);
    array[..length].copy_from_slice(&bytes[..length]);
    array
}

/// Where a field lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub size: usize,
}

impl Field {
    /// The field as an unsigned number; `None` where the record is too short. Only the low 64 bits of larger fields.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut wide = [0; 8];
        let size = bytes.len().min(8);
        wide[..size].copy_from_slice(&bytes[..size]);
        Some(u64::from_le_bytes(wide))
    }

    /// The field's bytes; `None` where the record is too short.
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// The fields of a `format` file or of `header_page`, by name.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The number that records of this event begin with; 0 where the file has none.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Fields {
    /// Reads lines such as `field:sector_t sector; offset:16; size:8; signed:0;`; other lines are passed over.
    pub fn parse(text: &str) -> Self {
        let mut fields = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                fields.id = id.trim().parse().unwrap_or(0);
            }
            if let Some(field) = line.strip_prefix("field:").and_then(parse_field) {
                fields.fields.push(field);
            }
        }
        fields
    }

    /// A field; an error that names it where this kernel has none, or none of `size` bytes at most.
    pub fn field(&self, name: &str, size_max: usize) -> Result<Field, String> {
        let field = self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field);
        let field = field.ok_or_else(|| format!("no field {name}"))?;
        if field.size == 0 || field.size > size_max {
            return Err(format!("field {name} has {} bytes, not 1 to {size_max}", field.size));
        }
        Ok(field)
    }
}

fn parse_field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    // What lies elsewhere in the record is no field of a fixed place.
    if declaration.starts_with("__data_loc") || declaration.starts_with("__rel_loc") {
        return None;
    }
    let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            _ => {}
        }
    }
    Some((name.to_owned(), Field { offset: offset?, size: size? }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: &str = "ID: 7\n\
    field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    field:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n\
    field:unsigned int nr_sector;\toffset:16;\tsize:4;\tsigned:0;\n\
    field:int error;\toffset:20;\tsize:4;\tsigned:1;\n\
    field:char rwbs[8];\toffset:24;\tsize:8;\tsigned:0;\n";

    fn decoder() -> Decoder {
        let mut decoder = Decoder::default();
        decoder.learn(Step::Complete, FORMAT).unwrap();
        decoder
    }

    #[test]
    fn a_record_becomes_an_event() {
        let mut record = vec![7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0xfb, 0xff, 0xff, 0xff];
        record.extend(b"WFS\0\0\0\0\0");
        let event = decoder().event(5, 3, &record).unwrap();
        assert_eq!((event.at_ns, event.sector, event.sectors, event.kind), (5, 8, 16, Kind::Write));
        assert!(event.failed && !event.flush_first);
        record[0] = 8;
        assert_eq!(decoder().event(5, 3, &record), None);
    }

    #[test]
    fn letters_are_those_of_the_kernel() {
        for (letters, kind, first) in [
            ("R", Kind::Read, false),
            ("RAM", Kind::Read, false),
            ("WS", Kind::Write, false),
            ("FWS", Kind::Write, true),
            ("FWFSM", Kind::Write, true),
            ("FF", Kind::Flush, true),
            ("DS", Kind::Discard, false),
            ("WZS", Kind::Other, false),
            ("N", Kind::Other, false),
            ("", Kind::Other, false),
        ] {
            assert_eq!(flags(letters.as_bytes()), (kind, first), "{letters}");
        }
    }

    #[test]
    fn a_kernel_that_lays_out_otherwise_is_refused_by_the_field() {
        let message = Decoder::default().learn(Step::Issue, &FORMAT.replace("nr_sector", "length")).unwrap_err();
        assert_eq!(message, "no field nr_sector");
    }

    proptest! {
        #[test]
        fn garbled_records_never_panic(record in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decoder().event(0, 0, &record);
            let _ = flags(&record);
        }
    }

    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
    \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%d,%d\", REC->dev\n";

    #[test]
    fn a_format_file_is_understood() {
        let fields = Fields::parse(ISSUE);
        assert_eq!(fields.id, 2104);
        assert_eq!(fields.field("sector", 8), Ok(Field { offset: 16, size: 8 }));
        assert_eq!(fields.field("rwbs", 16), Ok(Field { offset: 34, size: 10 }));
        assert_eq!(fields.field("bytes", 4), Err("no field bytes".into()));
        assert_eq!(fields.field("cmd", 4), Err("no field cmd".into()));
        assert_eq!(fields.field("sector", 4), Err("field sector has 8 bytes, not 1 to 4".into()));
    }

    #[test]
    fn a_number_is_little_endian_and_a_short_record_has_none() {
        let field = Field { offset: 2, size: 2 };
        assert_eq!(field.number(&[9, 9, 0x34, 0x12, 9]), Some(0x1234));
        assert_eq!(field.number(&[9, 9, 0x34]), None);
        assert_eq!(Field { offset: usize::MAX, size: 2 }.number(&[1]), None);
    }

    proptest! {
        #[test]
        fn garbled_formats_never_panic(text in ".{0,400}") {
            let _ = Fields::parse(&text);
            let _ = Fields::parse(&format!("field:{text}"));
        }
    }
}
