// The manifest of a folder that was staged, and its comparison with what is there.

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ground/base/document.h"
#include "ground/base/number_from.h"
#include "ground/base/parallel.h"
#include "ground/store/transfer.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;

Result<ManifestRow> read_row(const Node& node) {
  ManifestRow row;
  row.name = TRY(TRY(node.get("name"))->as_string());
  row.size = Bytes(TRY(TRY(node.get("bytes"))->as_int(0)));
  row.md5 = node.text_at("md5");
  row.generation = node.text_at("generation");
  if (const Node* checked = node.find("checked"); checked != nullptr) row.checked = TRY(checked->as_bool());
  if (const std::string sum = node.text_at("crc32c"); !sum.empty()) {
    std::uint32_t crc = 0;
    const auto [end, failed] = std::from_chars(sum.data(), sum.data() + sum.size(), crc, 16);
    if (failed != std::errc() || end != sum.data() + sum.size()) return node.wrong("a crc32c of 8 digits");
    row.crc32c = crc;
  }
  return row;
}

Result<FolderManifest> parse(const std::string& text, const std::string& shown) {
  const Node node = TRY(parse_json(text, shown));
  if (node.text_at("systole") != "manifest") return node.wrong("a manifest of `systole data stage`");
  if (const std::int64_t version = TRY(TRY(node.get("version"))->as_int(1)); version > kVersion) {
    return error(ErrorKind::unsupported, "'{}' has version {}, and this program reads {}", shown, version, kVersion)
        .hinted("install the version that staged it");
  }
  FolderManifest manifest{.from = node.text_at("from")};
  for (const Node& row : TRY(node.get("objects"))->items()) manifest.rows.push_back(TRY(read_row(row)));
  return manifest;
}

}  // namespace

std::string to_json(const FolderManifest& manifest) {
  Node rows = Node::sequence();
  for (const ManifestRow& row : manifest.rows) {
    Node node = Node::map({{"name", row.name}, {"bytes", row.size.count()}});
    if (row.crc32c) node.set("crc32c", fmt::format("{:08x}", *row.crc32c));
    if (!row.md5.empty()) node.set("md5", row.md5);
    if (!row.generation.empty()) node.set("generation", row.generation);
    rows.push(std::move(node.set("checked", row.checked)));
  }
  return to_json(Node::map({{"systole", "manifest"},
                            {"version", kVersion},
                            {"from", manifest.from},
                            {"objects", std::move(rows)}}),
                 2) +
         "\n";
}

Result<FolderManifest> read_manifest(const Place& place) {
  const Result<std::string> text = get_text(*place.objects, kManifest);
  if (!text.ok() && text.error().kind == ErrorKind::not_found) {
    return error(ErrorKind::not_found, "'{}' has no {}: it is not staged, or not whole", place.shown, kManifest)
        .hinted(fmt::format("systole data stage FROM {}", place.shown));
  }
  if (!text.ok()) return text.error();
  Result<FolderManifest> manifest = parse(*text, place.of(kManifest));
  if (manifest.ok()) return manifest;
  Error bad = std::move(manifest).error();
  if (bad.kind != ErrorKind::unsupported) bad.kind = ErrorKind::corrupt;
  return bad;
}

namespace {

// What is wrong with the object of a row, if anything is.
Status verify_row(const Place& place, const ManifestRow& row, std::atomic<std::int64_t>& read,
                  std::atomic<std::int64_t>& stated) {
  const std::string shown = place.of(row.name);
  const ObjectFacts there = TRY(describe_object(*place.objects, row.name));
  const ObjectFacts wanted{.size = row.size, .crc32c = row.crc32c, .md5 = row.md5};
  if (there.size != row.size) {
    return error(ErrorKind::corrupt, "'{}' has {} bytes, and {} in the manifest", shown,
                 with_commas(there.size.count()), with_commas(row.size.count()));
  }
  if (there.crc32c && row.crc32c) {
    ++stated;
    if (*there.crc32c == *row.crc32c) return {};
    return error(ErrorKind::corrupt, "'{}' has the CRC32C {:08x}, and {:08x} in the manifest", shown, *there.crc32c,
                 *row.crc32c);
  }
  ObjectFacts version = there;
  version.crc32c = wanted.crc32c;
  version.md5 = wanted.md5;
  ByteSums sums = sums_for(version);
  TRY(read_version(*place.objects, row.name, version, shown, sums,
                   [](std::span<const std::byte>) { return Status(); }));
  read += row.size.count();
  return {};
}

}  // namespace

Result<VerifiedFolder> verify_folder(const Place& place, const FolderManifest& manifest, int jobs) {
  VerifiedFolder verified;
  std::atomic<std::int64_t> read = 0, stated = 0;
  std::mutex mutex;
  TRY(for_each_in_parallel(manifest.rows.size(), jobs, [&](std::size_t i) -> Status {
    Status row = verify_row(place, manifest.rows[i], read, stated);
    if (row.ok()) return row;
    const ErrorKind kind = row.error().kind;
    if (kind != ErrorKind::corrupt && kind != ErrorKind::not_found && kind != ErrorKind::busy) return row;
    const std::lock_guard lock(mutex);
    verified.damaged.push_back(std::move(row).error());
    return {};
  }));
  std::ranges::sort(verified.damaged, {}, &Error::message);
  verified.read = Bytes(read.load());
  verified.stated = stated;
  return verified;
}

}  // namespace systole
