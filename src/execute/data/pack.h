#pragma once
// Turns documents or loose files into one file of records: what opens a million small files a epoch reads one instead.

#include <functional>

#include "execute/data/formats/array_record.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/text_source.h"

namespace systole {

struct PackOptions {
  RecordFormat to = RecordFormat::tfrecord;
  TextOptions text;          // how documents are read; `text.field` is the name of the field they are written to, too
  bool whole_files = false;  // a record for each file, with its name and bytes, instead of one for each document
  bool plain = false;        // the bytes alone, not a tf.train.Example
  TfrecordCompression compression = TfrecordCompression::none;  // of a TFRecord
  bool zipped = false;                                          // shards of MDS by zstd
  ArrayRecordOptions array;                                     // of an ArrayRecord
  std::function<void(Bytes)> progress;                          // the bytes of documents written so far
};

struct Packed {
  std::int64_t files = 0, records = 0, skipped = 0;
  Bytes bytes{0}, written{0};  // of the documents; of the file made
};

// The fields of a record that stands for a file.
inline constexpr const char* kNameField = "name";
inline constexpr const char* kDataField = "data";

// Writes `out`, whole or not at all. Errors: exists, if there is such a file; those of TextReader and of the writers;
// invalid: no record at all.
Result<Packed> pack_records(const TextFiles& files, Store& out_store, const std::string& out,
                            const PackOptions& options);

}  // namespace systole
