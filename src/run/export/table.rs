//! A table in a file of Parquet: columns with their types, rows that are gathered and written some ten thousand at a time.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::basic::GzipLevel;
use parquet::basic::LogicalType;
use parquet::basic::Repetition;
use parquet::basic::TimeUnit;
use parquet::basic::Type as Physical;
use parquet::data_type::BoolType;
use parquet::data_type::ByteArray;
use parquet::data_type::ByteArrayType;
use parquet::data_type::DataType;
use parquet::data_type::DoubleType;
use parquet::data_type::Int64Type;
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::Type;

/// Rows that are gathered before they are written: what is in memory at a time.
const GATHERED: usize = 16_384;
/// Half the time of the default, for a few per cent more bytes.
const LEVEL: u32 = 3;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number from 0 to 2^64 - 1.
    Number,
    /// A number that may be below zero.
    Signed,
    /// A fraction, or seconds.
    Real,
    /// A name.
    Text,
    /// Yes or no.
    Flag,
    /// Microseconds since 1970, universal time: what most programs have a type for.
    Time,
}

/// A value. What is not known is [`Cell::Null`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Number(u64),
    Signed(i64),
    Real(f64),
    Text(String),
    Flag(bool),
    Time(i64),
}

impl From<Option<u64>> for Cell {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Cell::Null, Cell::Number)
    }
}

/// The values of a column that are gathered.
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
    Flag(Vec<bool>),
}

struct Column {
    values: Values,
    /// Whether each row has one: 1, or 0.
    there: Vec<i16>,
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Number | Kind::Signed | Kind::Time => Values::Whole(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Self { values, there: Vec::new() }
    }

    /// A cell of another kind than the column's is not known.
    fn push(&mut self, cell: Cell) {
        let there = match (&mut self.values, cell) {
            // As its bits are: the column's type says that there is no sign.
            (Values::Whole(all), Cell::Number(n)) => {
                all.push(i64::from_ne_bytes(n.to_ne_bytes()));
                true
            }
            (Values::Whole(all), Cell::Signed(n) | Cell::Time(n)) => {
                all.push(n);
                true
            }
            (Values::Real(all), Cell::Real(x)) => {
                all.push(x);
                true
            }
            (Values::Text(all), Cell::Text(text)) => {
                all.push(ByteArray::from(text.into_bytes()));
                true
            }
            (Values::Flag(all), Cell::Flag(flag)) => {
                all.push(flag);
                true
            }
            _ => false,
        };
        self.there.push(i16::from(there));
    }

    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<()> {
        match &mut self.values {
            Values::Whole(all) => put::<Int64Type>(group, all, &self.there)?,
            Values::Real(all) => put::<DoubleType>(group, all, &self.there)?,
            Values::Text(all) => put::<ByteArrayType>(group, all, &self.there)?,
            Values::Flag(all) => put::<BoolType>(group, all, &self.there)?,
        }
        self.there.clear();
        Ok(())
    }
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &mut Vec<T::T>,
    there: &[i16],
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(there), None)?;
        column.close()?;
    }
    values.clear();
    Ok(())
}

/// A table that is written.
pub(super) struct Table {
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    gathered: usize,
    /// Rows so far.
    pub rows: u64,
}

impl Table {
    /// One with these columns.
    pub fn new(file: File, columns: &[(String, Kind)]) -> Result<Self> {
        let fields = columns.iter().map(|(name, kind)| {
            let (physical, logical) = match kind {
                Kind::Number => {
                    (Physical::INT64, Some(LogicalType::Integer { bit_width: 64, is_signed: false }))
                }
                Kind::Signed => (Physical::INT64, None),
                Kind::Real => (Physical::DOUBLE, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Flag => (Physical::BOOLEAN, None),
                Kind::Time => {
                    let unit = TimeUnit::MICROS;
                    (Physical::INT64, Some(LogicalType::Timestamp { is_adjusted_to_u_t_c: true, unit }))
                }
            };
            let column = Type::primitive_type_builder(name, physical);
            let column = column.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
            column.build().map(Arc::new)
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("cachestat").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::try_new(LEVEL)?))
            .set_created_by(concat!("cachestat version ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(vec![KeyValue::new("schema".into(), super::SCHEMA.to_owned())]))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Self { writer, columns, gathered: 0, rows: 0 })
    }

    /// Adds a row, which must have a cell for each column.
    pub fn push(&mut self, cells: Vec<Cell>) -> Result<()> {
        debug_assert_eq!(cells.len(), self.columns.len());
        let cells = cells.into_iter().chain(std::iter::repeat(Cell::Null));
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        self.gathered += 1;
        self.rows += 1;
        if self.gathered == GATHERED { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.gathered > 0 {
            let mut group = self.writer.next_row_group()?;
            for column in &mut self.columns {
                column.write(&mut group)?;
            }
            group.close()?;
            self.gathered = 0;
        }
        Ok(())
    }

    /// Writes what is left, and what the table says of itself.
    pub fn close(mut self) -> Result<File> {
        self.flush()?;
        self.writer.into_inner()
    }
}
