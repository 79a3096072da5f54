#pragma once
// What a text names in a folder of this machine or in a bucket: "gs://bucket/shards/*.tfrecord", "s3://bucket/a",
// "texts", "a.txt". A pattern (*, ?, [a-z]) is matched name by name; an object or file of exactly that name takes
// precedence.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/bucket_uri.h"
#include "ground/store/store_access.h"
#include "ground/store/transfer.h"

namespace systole {

// What a text names; a path of this machine ("a", "file:///a") is absolute. Errors: those of read_store_uri;
// unsupported for memory:.
Result<StoreUri> lasting_uri(const std::string& text);

// Errors: those of read_store_uri and open_store; unsupported for memory:. A folder of this machine is made if `made`,
// and is otherwise not_found.
Result<Place> open_place(const std::string& text, const StoreAccess& access, bool made = false);

struct NamedObjects {
  Place place;
  std::vector<ObjectEntry> objects;        // paths below the place, ascending; none only of an empty folder
  bool is_folder = false;                  // it names all that is below the place
  std::vector<std::string> prefixes = {};  // as ObjectList's, of a folder
  std::int64_t left_out = 0;               // as ObjectList's, of a folder
  std::string left_out_name = {};
};
// `depth`: of what is listed of a folder. Errors: those of open_place; not_found, it names nothing.
Result<NamedObjects> find_objects(const std::string& text, const StoreAccess& access, ListDepth depth = ListDepth::all);

}  // namespace systole
