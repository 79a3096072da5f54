#pragma once
// The formats of files of records, by name.

#include <optional>
#include <string_view>

#include "execute/data/formats/record.h"

namespace systole {

enum class RecordFormat { tfrecord, array_record, webdataset, mds, csv, numpy, parquet };

const char* name_of(RecordFormat format);
// By the end of a file's name, which may be followed by a number: `a.tfrecord-00000-of-00008`. Nothing for a file of
// another format.
std::optional<RecordFormat> record_format_of(std::string_view path);

// To be read in order: the index of a tar file is made by open_webdataset only. Errors: as the format's own open.
Result<std::unique_ptr<RecordReader>> open_records(const RecordFile& file, RecordFormat format,
                                                   const RecordLimits& limits = {});

}  // namespace systole
