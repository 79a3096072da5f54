#pragma once
// Paths in a checkpoint folder (its layout: manifest.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/store/object_store.h"

namespace systole::checkpoint {

struct Keys;  // keys.h

// A checkpoint folder: an object store and the folder's path in it, "" for the store's root. With keys, all data is
// encrypted or signed as they say when written, and must be when read.
struct Folder {
  std::shared_ptr<ObjectStore> store = {};
  std::string dir = {};
  std::shared_ptr<const Keys> keys = {};

  std::string at(std::string_view path) const;  // dir/path
  std::string chunks() const { return at("chunks"); }
  std::string manifests() const { return at("manifests"); }
  std::string chunk(std::string_view hash) const;
  std::string manifest(std::int64_t step) const;
  std::string blessing(std::int64_t step) const;
  std::string parts() const { return at("parts"); }  // this and the following: see group.h
  std::string claim() const { return at("parts/claim.json"); }
  std::string parts_of(std::string_view save) const;
  std::string begun(std::string_view save, int rank) const;
  std::string part(std::string_view save, int rank) const;
  std::string outcome(std::string_view save) const;
};

// Suffix of leftovers of an older Systole that was killed while writing. Today the store cleans up (abort_uploads).
inline constexpr std::string_view kTemporary = ".tmp";

bool is_hash(std::string_view text);  // 32 lower-case hex digits

// Steps that have a manifest, ascending, readable or not. Empty if the folder is absent or new. Errors: io.
Result<std::vector<std::int64_t>> list_steps(const Folder& folder);
Result<std::vector<std::int64_t>> list_blessed(const Folder& folder);

// Where the store has folders: creates those of the objects, durably, so that an unwritable one is detected before any
// work. Errors: invalid, io, no_space.
Status prepare(const Folder& folder);

// The last path components of the objects directly under `dir`, and, with a '/', of its subfolders. Errors: io.
Result<std::vector<std::string>> names_under(const Folder& folder, std::string_view dir);

}  // namespace systole::checkpoint
