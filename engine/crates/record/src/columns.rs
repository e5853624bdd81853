//! Writes the columns of a row group, one after the other in the order of the schema.

use std::fs::File;

use parquet::data_type::DataType;
use parquet::errors::Result;
use parquet::file::writer::SerializedRowGroupWriter;

/// A column in which every row has a value.
pub(crate) fn required<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = T::T>,
) -> Result<()> {
    let values: Vec<T::T> = values.collect();
    write_column::<T>(group, &values, None)
}

/// A column in which rows may have none.
pub(crate) fn optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    write_column::<T>(group, &present, Some(&levels))
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()?;
    }
    Ok(())
}
