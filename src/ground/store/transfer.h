#pragma once
// Moves objects between two places: a folder of this machine, gs:// or s3://, in any direction. What the destination
// has already, by size and checksum, is not sent again; so the same call after a kill goes on to the same end.
//
//   every object   is read of one version, and its bytes are compared with the checksum that its store states; it
//                  appears at the destination whole, where a bucket compares a checksum of what it received, too
//   in a folder    the bytes come in a hidden file beside the object, which a later call goes on with where the source
//                  states a checksum
//   a manifest     kManifest, written last, removed before anything changes: a folder with one is whole
//
// One thread at a time; the work is done on several.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/store/object_facts.h"
#include "ground/store/store.h"

namespace systole {

struct Place {
  std::unique_ptr<ObjectStore> objects;
  std::string shown;                  // "gs://bucket/a" or "/data/a", without a '/' at its end
  std::string scheme;                 // as StoreUri's
  std::string folder = {};            // of this machine, absolute; empty: a bucket
  std::unique_ptr<Store> files = {};  // of that folder
  bool is_local() const { return !folder.empty(); }
  std::string of(std::string_view path) const { return path.empty() ? shown : fmt::format("{}/{}", shown, path); }
};

inline constexpr std::string_view kManifest = "systole-manifest.json";

struct ManifestRow {
  std::string name;
  Bytes size{};
  std::optional<std::uint32_t> crc32c;
  std::string md5;         // only where there is no crc32c
  std::string generation;  // of what was read; empty: a file's
  bool checked = false;    // false: its source is a bucket that states no checksum of it
  bool operator==(const ManifestRow&) const = default;
};
struct FolderManifest {
  std::string from;
  std::vector<ManifestRow> rows;  // by name
  bool operator==(const FolderManifest&) const = default;
};
std::string to_json(const FolderManifest& manifest);
// Errors: not_found, there is none; io; corrupt.
Result<FolderManifest> read_manifest(const Place& place);

struct TransferItem {
  const Place* from = nullptr;  // borrowed
  std::string path, to;
  Bytes size{};
};

struct TransferPlan {
  std::vector<TransferItem> send;
  std::vector<ManifestRow> kept;       // at the destination already
  std::vector<std::string> remove;     // at the destination, and not among the items; nothing behind links to folders
  Bytes bytes{};                       // of `send`
  std::int64_t reads = 0, writes = 0;  // requests of buckets that sending takes, about
};

// Requests that reading an object of a bucket takes, about.
std::int64_t reads_of_object(Bytes size);

struct TransferOptions {
  bool remove_others = false;
  bool manifest = false;
  std::string from;  // for the manifest
  int jobs = 8;      // objects at a time
  // Done so far. Called by several threads; what it throws ends the transfer.
  std::function<void(std::int64_t objects, Bytes bytes)> progress = {};
};

struct Transferred {
  std::int64_t sent = 0, removed = 0;
  Bytes bytes{};
  std::vector<std::string> unchecked;  // names: ManifestRow::checked is false
};

// Keeps other transfers out of a folder of this machine, from before the plan until after the transfer; null: a
// bucket, or a file system without locks. Errors: busy, another process transfers into the folder; io.
Result<std::unique_ptr<FileLock>> lock_destination(const Place& to);
// Compares the items with what is at the destination; reads files of this machine for that, and changes nothing.
// Errors: io and those of the stores; invalid, two items have one name; does_not_fit, an object of a bucket is
// never so large.
Result<TransferPlan> plan_transfer(std::vector<TransferItem> items, const Place& to, const TransferOptions& options);
// Does it. What was done before an error stays. REQUIRES: lock_destination was called before the plan was made.
// Errors: those of the stores; does_not_fit before anything is sent.
Result<Transferred> transfer(const TransferPlan& plan, const Place& to, const TransferOptions& options);

struct VerifiedFolder {
  Bytes read{};             // of objects whose store states no checksum that the manifest has
  std::int64_t stated = 0;  // objects compared by what their store states
  std::vector<Error> damaged;
};
// Compares every object of the manifest with it. Errors: as read_manifest; io.
Result<VerifiedFolder> verify_folder(const Place& place, const FolderManifest& manifest, int jobs = 8);

}  // namespace systole
