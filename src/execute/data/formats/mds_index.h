#pragma once
// Internals of MDS (mds.h): its index.json.

#include <vector>

#include "execute/data/formats/mds_columns.h"
#include "execute/data/formats/record.h"

namespace systole {

struct MdsShard {
  std::string raw, zip;  // file names in the folder; `zip` is empty if there is none
  std::string compression;
  std::int64_t samples = 0, raw_bytes = 0, zip_bytes = 0;
  std::vector<MdsColumn> columns;
};

// Errors: not_found, io; invalid (not JSON, not an index); unsupported (another format or version).
Result<std::vector<MdsShard>> read_mds_index(const RecordFile& index);
// Of a shard by itself, which holds its columns too; `raw` or `zip` is its name without the folder. Errors: the same; corrupt.
Result<MdsShard> read_mds_shard(const RecordFile& shard);

}  // namespace systole
