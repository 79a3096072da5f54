#pragma once
// TFRecord (tensorflow/core/lib/io/record_writer.h), records one after another and nothing else:
//
//   8  length of the data, little-endian
//   4  masked CRC-32C of the length
//      data
//   4  masked CRC-32C of the data
//
// masked: rotated right by 15 bits, plus 0xa282ead8. The file may be compressed as a whole, by gzip or zlib
// (TensorFlow's own two) or zstd; how is found from its first bytes. There is no index: records are read in order.
// Every byte is checked by a checksum.

#include <memory>

#include "execute/data/formats/record.h"

namespace systole {

// Errors: not_found, io; invalid if the file is empty; corrupt if it begins with no record.
// After a record with a damaged checksum or over the limit the reader goes on; after a damaged length it cannot.
// field(): as bytes_of_example (example.h).
Result<std::unique_ptr<RecordReader>> open_tfrecord(const RecordFile& file, const RecordLimits& limits = {});

enum class TfrecordCompression { none, gzip, zlib };

// add_fields() writes a tf.train.Example. Errors: as Store::create.
Result<std::unique_ptr<RecordWriter>> create_tfrecord(Store& store, const std::string& path,
                                                      TfrecordCompression compression = TfrecordCompression::none);

// The CRC-32C as the format stores it.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace systole
