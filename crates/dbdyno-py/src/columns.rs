//! Columns of one length as one Parquet file, and back.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType as Converted, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescriptor, Type};

/// The values of one column, a row each.
pub enum Column {
    /// What is unknown is NaN.
    Number(Vec<f64>),
    Whole(Vec<i64>),
    Truth(Vec<bool>),
    Text(Vec<Option<String>>),
    /// Of a kind that is not read.
    Other,
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Number(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Truth(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Other => 0,
        }
    }
}

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it claims to have {0} rows")]
    Rows(i64),
    #[error("{NO_PARQUET}")]
    Parquet(#[from] ParquetError),
}

/// What is said of a file that the library can't read.
pub const NO_PARQUET: &str = "it is not a complete Parquet file";

const NOT_WHOLE: &str = "fewer rows than it claims";

/// The columns of a file that are `wanted`, numbers of every kind as `Number`. `E` is what `wanted` may fail by.
pub fn read<E: From<ReadError>>(
    file: impl ChunkReader + 'static,
    rows_max: i64,
    mut wanted: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<(String, Column)>, E> {
    let file = SerializedFileReader::new(file).map_err(ReadError::from)?;
    let metadata = file.metadata();
    let claimed = metadata.row_groups().iter().map(RowGroupMetaData::num_rows);
    if let Some(rows) = claimed.clone().find(|rows| !(0..=rows_max).contains(rows)) {
        return Err(ReadError::Rows(rows).into());
    }
    let rows = claimed.sum::<i64>();
    if rows > rows_max {
        return Err(ReadError::Rows(rows).into());
    }
    let schema = metadata.file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (place, column) in schema.columns().iter().enumerate() {
        let name = column.path().string();
        if wanted(&name)? {
            let values = if is_plain(column) { column_of(&file, place)? } else { Column::Other };
            columns.push((name, values));
        }
    }
    Ok(columns)
}

/// Whether a column holds a number or a text a row: no list, no part of a structure, no date.
fn is_plain(column: &ColumnDescriptor) -> bool {
    let alone = column.path().parts().len() == 1 && column.max_rep_level() == 0;
    let meaning = column.converted_type();
    alone && matches!(meaning, Converted::NONE | Converted::UTF8 | Converted::INT_32 | Converted::INT_64)
}

/// One column of all row groups.
fn column_of<R: ChunkReader + 'static>(file: &SerializedFileReader<R>, place: usize) -> Result<Column, ReadError> {
    let mut all: Option<Column> = None;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group)?;
        let next = values_of(&*group, place)?;
        all = Some(match (all, next) {
            (None, next) => next,
            (Some(Column::Number(mut all)), Column::Number(next)) => {
                all.extend(next);
                Column::Number(all)
            }
            (Some(Column::Text(mut all)), Column::Text(next)) => {
                all.extend(next);
                Column::Text(all)
            }
            _ => Column::Other,
        });
    }
    Ok(all.unwrap_or(Column::Number(Vec::new())))
}

fn values_of(group: &dyn RowGroupReader, place: usize) -> Result<Column, ReadError> {
    let rows = group.metadata().num_rows() as usize;
    Ok(match group.get_column_reader(place)? {
        ColumnReader::DoubleColumnReader(reader) => numbers::<DoubleType>(reader, rows, |value| value)?,
        ColumnReader::FloatColumnReader(reader) => numbers::<FloatType>(reader, rows, f64::from)?,
        ColumnReader::Int32ColumnReader(reader) => numbers::<Int32Type>(reader, rows, f64::from)?,
        ColumnReader::Int64ColumnReader(reader) => numbers::<Int64Type>(reader, rows, |value| value as f64)?,
        ColumnReader::ByteArrayColumnReader(reader) => texts(reader, rows)?,
        _ => Column::Other,
    })
}

fn numbers<T: DataType>(
    reader: ColumnReaderImpl<T>,
    rows: usize,
    as_number: impl Fn(T::T) -> f64,
) -> Result<Column, ReadError> {
    Ok(Column::Number(rows_of(reader, rows)?.into_iter().map(|value| value.map_or(f64::NAN, &as_number)).collect()))
}

fn texts(reader: ColumnReaderImpl<ByteArrayType>, rows: usize) -> Result<Column, ReadError> {
    let text = |value: ByteArray| value.as_utf8().map(str::to_owned);
    let values: Result<Vec<_>, _> =
        rows_of(reader, rows)?.into_iter().map(|value| value.map(text).transpose()).collect();
    Ok(Column::Text(values?))
}

/// One value for each row, or none where the file says that it is unknown.
fn rows_of<T: DataType>(mut reader: ColumnReaderImpl<T>, rows: usize) -> Result<Vec<Option<T::T>>, ReadError> {
    let (mut known, mut values) = (Vec::new(), Vec::new());
    let (records, ..) = reader.read_records(rows, Some(&mut known), None, &mut values)?;
    if records != rows {
        return Err(ParquetError::EOF(NOT_WHOLE.to_owned()).into());
    }
    if values.len() == rows {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(known.into_iter().map(|level| if level == 0 { None } else { values.next() }).collect())
}

/// The columns as a file; they are of one length.
pub fn write(columns: &[(String, Column)]) -> Result<Vec<u8>, ParquetError> {
    let fields: Result<Vec<_>, _> = columns.iter().map(|(name, values)| field(name, values).map(Arc::new)).collect();
    let schema = Arc::new(Type::group_type_builder("columns").with_fields(fields?).build()?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    if columns.first().is_some_and(|(_, values)| values.len() > 0) {
        let mut group = file.next_row_group()?;
        for (_, values) in columns {
            put(&mut group, values)?;
        }
        group.close()?;
    }
    file.into_inner()
}

fn field(name: &str, values: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match values {
        Column::Number(_) => (Physical::DOUBLE, None),
        Column::Whole(_) => (Physical::INT64, None),
        Column::Truth(_) => (Physical::BOOLEAN, None),
        Column::Text(_) | Column::Other => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if physical == Physical::BYTE_ARRAY { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical).build()
}

fn put(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &Column) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    match values {
        Column::Number(values) => column.typed::<DoubleType>().write_batch(values, None, None)?,
        Column::Whole(values) => column.typed::<Int64Type>().write_batch(values, None, None)?,
        Column::Truth(values) => column.typed::<BoolType>().write_batch(values, None, None)?,
        Column::Text(values) => {
            let known: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let texts: Vec<ByteArray> = values.iter().flatten().map(|value| value.as_str().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, Some(&known), None)?
        }
        Column::Other => 0,
    };
    column.close()
}
