#pragma once
// Files of records: the interface that each format's reader and writer implement. A record is a run of bytes
// (TFRecord, ArrayRecord, JSON Lines) or named fields (the members of a tar's sample, the columns of a row), or both:
// the features of a tf.train.Example inside a TFRecord.
//
// Every error says where: the file, the record (from 0), the byte of the file. A record that cannot be used is an
// error, or is skipped and counted (`on_bad_record`, bad_records.h): a format only says whether it knows where the next
// one begins.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/field_value.h"
#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/store.h"

namespace systole {

// A file to open, and what errors call it.
struct RecordFile {
  Store* store = nullptr;  // borrowed
  std::string path, shown;
};

// A longer record is an error, whatever a file says of itself; it bounds the memory of a reader.
struct RecordLimits {
  Bytes largest_record{std::int64_t{64} << 20};
};

// In the place of a field's name: the record as it is.
inline constexpr std::string_view kWholeRecord = ".";

struct RecordField {
  std::string_view name, bytes;
};

// What next() and read() fill. Views are valid until the reader's next call.
struct DataRecord {
  std::int64_t index = 0;  // in the file
  std::int64_t byte = 0;   // of the file, or of the decompressed file, where it or its group begins
  std::string_view bytes;  // as stored; empty in a format that stores fields only
};

// One file (or folder) of records, open. One thread at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record in the file's order, or false at the end. Errors: io; corrupt, invalid (of one record, or of the
  // rest of the file: goes_on); unsupported.
  virtual Result<bool> next(DataRecord& record) = 0;
  // After an error of next(): the next record's place is known, and next() may be called for it. Where it is not,
  // nothing but destruction is allowed.
  virtual bool goes_on() const { return false; }

  // Random access, where the format has an index or makes one while it is opened. Independent of next().
  virtual bool has_index() const { return false; }
  // REQUIRES: has_index().
  virtual std::int64_t count() const { return 0; }
  // Record `index`. REQUIRES: has_index(), 0 <= index < count(). Errors: as next(); after one, others may be read.
  virtual Status read(std::int64_t index, DataRecord& record);
  // Calls `each(position in indices, record)` once for every index, in the file's order, so that what is stored together
  // is read once. REQUIRES: as read(). Errors: the first of read() or of `each`.
  using Each = std::function<Status(std::size_t, const DataRecord&)>;
  virtual Status read_group(std::span<const std::int64_t> indices, const Each& each);

  // The bytes of field `name` of the record that the last call gave; the whole record for the name ".". Valid until the
  // next call. Errors: invalid (no such field, with the names there are; not one of bytes), corrupt.
  virtual Result<std::string_view> field(const DataRecord& record, std::string_view name);
  // The same as a value of JSON: by default a text (bytes_node). Errors: as field().
  virtual Result<Node> value(const DataRecord& record, std::string_view name);
  // The names of its fields, in the record's order; none where records are bytes.
  virtual std::vector<std::string> field_names() { return {}; }
  // The fields that are not read, each with why: "column 'a' is a struct".
  virtual std::vector<std::string> left_out() const { return {}; }

  // Records that fail one of the comparisons may be passed over by next(), and are counted. By default none is.
  // REQUIRES: before the first next().
  virtual Status pass_over(std::span<const FieldComparison>) { return {}; }
  virtual std::int64_t passed_over() const { return 0; }
};

// Bytes in JSON: a text, or {"base64": "..."} if they are not UTF-8.
Node bytes_node(std::string_view bytes);

// Writes one file. One thread at a time. Nothing of the name exists before finish(), unless said otherwise.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // A record of bytes. Errors: io, no_space; unsupported in a format of fields only.
  virtual Status add(std::string_view record) = 0;
  // A record of fields. Errors: as add; unsupported in a format of bytes only.
  virtual Status add_fields(std::span<const RecordField> fields) = 0;
  // Writes the rest and makes the file durable under its name.
  virtual Status finish() = 0;
};

// Where in a file a record is, for messages: "a.tfrecord: record 17, byte 24,680: " before what is wrong.
struct RecordPlace {
  std::string file;
  std::int64_t record = -1, byte = -1;  // negative: of the whole file
};

// An error about a record: its message begins with the place, `where` is the file.
Error record_error(ErrorKind kind, const RecordPlace& place, std::string_view what, std::string hint = {});
// The same error, with the place before its message.
Error at_record(Error error, const RecordPlace& place);

}  // namespace systole
