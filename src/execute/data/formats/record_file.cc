#include "execute/data/formats/record_file.h"

#include "execute/data/formats/array_record.h"
#include "execute/data/formats/csv_records.h"
#include "execute/data/formats/mds.h"
#include "execute/data/formats/numpy.h"
#include "execute/data/formats/parquet/records.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/formats/webdataset.h"

namespace systole {

const char* name_of(RecordFormat format) {
  switch (format) {
    case RecordFormat::tfrecord: return "tfrecord";
    case RecordFormat::array_record: return "array_record";
    case RecordFormat::webdataset: return "webdataset";
    case RecordFormat::mds: return "mds";
    case RecordFormat::csv: return "csv";
    case RecordFormat::numpy: return "numpy";
    case RecordFormat::parquet: return "parquet";
  }
  return "?";
}

std::optional<RecordFormat> record_format_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  // What TensorFlow's datasets are named like: x.array_record-00000-of-00016.
  const auto has = [&](std::string_view ending) {
    const std::size_t at = path.rfind(ending);
    if (at == path.npos) return false;
    const std::string_view rest = path.substr(at + ending.size());
    return rest.empty() || rest == "s" || rest[0] == '-' || rest == ".gz" || rest == "s.gz" || rest.starts_with("s-");
  };
  if (has(".tfrecord")) return RecordFormat::tfrecord;
  if (has(".array_record") || has(".arrayrecord")) return RecordFormat::array_record;
  if (is_tar_name(path)) return RecordFormat::webdataset;
  if (is_mds_name(path)) return RecordFormat::mds;
  if (is_csv_name(path)) return RecordFormat::csv;
  if (is_numpy_name(path)) return RecordFormat::numpy;
  if (path.ends_with(".parquet")) return RecordFormat::parquet;
  return std::nullopt;
}

Result<std::unique_ptr<RecordReader>> open_records(const RecordFile& file, RecordFormat format,
                                                   const RecordLimits& limits) {
  switch (format) {
    case RecordFormat::tfrecord: return open_tfrecord(file, limits);
    case RecordFormat::array_record: return open_array_record(file, limits);
    case RecordFormat::webdataset: return open_webdataset(file, {.index = false, .limits = limits});
    case RecordFormat::mds: return open_mds(file, limits);
    case RecordFormat::csv: return open_csv(file, limits);
    case RecordFormat::numpy: return open_numpy(file, {.limits = limits});
    case RecordFormat::parquet: return parquet::open_records(file, limits);
  }
  return error(ErrorKind::internal, "no such format of records");
}

}  // namespace systole
