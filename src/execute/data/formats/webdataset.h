#pragma once
// WebDataset: a tar file whose members are grouped into samples. Members that follow each other and have the same name up
// to the first dot are one sample; that name is its key, and what follows the dot, in lower case, names the field:
// a/0001.jpg and a/0001.cls.txt are the fields `jpg` and `cls.txt` of the sample `a/0001`. The field `__key__` is the key.
// Folders, names without a dot and names that begin with one are skipped, as webdataset's reader does.
//
// The file may be plain, .gz (.tgz) or .zst; ustar, pax or GNU's. Nothing is ever written under a member's name; names
// that lead out of the folder (`..`, absolute ones) and links are refused all the same, since no honest shard has them.
// Headers have a checksum, the bytes of members have none (a compressed file's do).
//
// A plain file has an index by offsets, 8 bytes a sample, made by one pass over the headers while it is opened.

#include <memory>

#include "execute/data/formats/record.h"

namespace systole {

struct WebDatasetOptions {
  bool index = true;  // false: read in order only, and nothing is read ahead of that
  RecordLimits limits;
};

// Errors: not_found, io; invalid if the file is empty or no tar file; those of next() while the index is made.
Result<std::unique_ptr<RecordReader>> open_webdataset(const RecordFile& file, const WebDatasetOptions& options = {});

// Compressed if the path ends in .gz, .tgz or .zst. A record is the fields of a sample; `__key__` names it, otherwise its
// number of nine digits does. Fields are written in the order of their names. The bytes are those of webdataset's
// TarWriter(mtime=0). Errors: as Store::create. add_fields: also invalid (a key or name that would not be read back).
Result<std::unique_ptr<RecordWriter>> create_webdataset(Store& store, const std::string& path);

// Whether a path is one of a tar file: .tar, .tar.gz, .tgz, .tar.zst.
bool is_tar_name(std::string_view path);

}  // namespace systole
