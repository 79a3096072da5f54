#pragma once
// NumPy's .npy (format version 1, 2 and 3) and .npz files. A record is a row: everything below an index of the first
// dim, as stored (C order, the dtype's own byte order). A .npz is a zip archive of .npy files, stored or deflated; its
// arrays have as many rows each and are the fields of a record.
//
// Both have an index. A .npy is read in place and has no checksum. A .npz is read whole when it is opened (at most
// `largest_archive`), and the CRC-32 of each member is checked.
//
// Refused by name: arrays of objects (pickles), in Fortran order, of structured dtypes; encrypted zips and other methods.

#include <memory>

#include "execute/data/formats/record.h"

namespace systole {

struct NpyHeader {
  std::string descr;  // as NumPy writes it: "<f4", "|S10", "<U5"
  std::vector<std::int64_t> shape;
  std::int64_t item_bytes = 0;
  std::int64_t data_at = 0;  // the first byte of the elements

  std::int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::int64_t row_bytes() const;
};

// The header of a .npy file that begins with `bytes`. Errors, without a place: corrupt (cut short, no header); unsupported.
Result<NpyHeader> parse_npy_header(std::string_view bytes);

struct NumpyOptions {
  RecordLimits limits;
  Bytes largest_archive{std::int64_t{4} << 30};  // of a .npz, decompressed
};

// field(): of a .npy only ".", the row; of a .npz an array's row by its name (without .npy). One text of dtype U is given
// as UTF-8, one of dtype S without the zeros behind it.
// Errors: not_found, io, invalid, corrupt, unsupported.
Result<std::unique_ptr<RecordReader>> open_npy(const RecordFile& file, const NumpyOptions& options = {});
Result<std::unique_ptr<RecordReader>> open_npz(const RecordFile& file, const NumpyOptions& options = {});

// Of either, by the end of the name.
Result<std::unique_ptr<RecordReader>> open_numpy(const RecordFile& file, const NumpyOptions& options = {});
bool is_numpy_name(std::string_view path);

}  // namespace systole
