#pragma once
// Where things lie in a checkpoint folder (the layout is documented in manifest.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole::checkpoint {

struct Keys;  // keys.h

// A checkpoint folder: a store and the folder's path in it, "" for the store's root. Borrows the store. With keys, what
// is written there is encrypted or signed as they say, and what is read must be.
struct Folder {
  Store* store = nullptr;
  std::string dir;
  std::shared_ptr<const Keys> keys = {};

  std::string at(std::string_view path) const;  // dir/path
  std::string chunks() const { return at("chunks"); }
  std::string manifests() const { return at("manifests"); }
  std::string chunk(std::string_view hash) const;
  std::string manifest(std::int64_t step) const;
  std::string blessing(std::int64_t step) const;
  std::string parts() const { return at("parts"); }  // this and the following: group.h
  std::string claim() const { return at("parts/claim.json"); }
  std::string parts_of(std::string_view save) const;
  std::string part(std::string_view save, int rank) const;
  std::string outcome(std::string_view save) const;
};

inline constexpr std::string_view kTemporary = ".tmp";  // suffix of a write that has not finished

bool is_hash(std::string_view text);                         // 32 lower-case hex digits
std::optional<std::int64_t> step_of(std::string_view leaf);  // "000000000100.json" → 100

// Steps that have a manifest, ascending, readable or not. Empty when the folder is absent or fresh. Errors: io.
Result<std::vector<std::int64_t>> list_steps(const Folder& folder);
Result<std::vector<std::int64_t>> list_blessed(const Folder& folder);

// A file made so that it is whole or absent, whoever else writes one of the same name at the same time. `writer`: as in
// write_chunks; it goes into the temporary file's name. Errors: io, no_space, and that of `before_rename`.
Status put_whole(const Folder& folder, const std::string& path, std::string_view writer, std::string_view text,
                 const std::function<Status()>& before_rename = {});

// Makes the folder's subfolders, durably. Errors: io, no_space.
Status prepare(const Folder& folder);

// Names in a folder; empty when it is absent. Errors: io.
Result<std::vector<std::string>> list_or_empty(Store& store, std::string_view dir);

}  // namespace systole::checkpoint
