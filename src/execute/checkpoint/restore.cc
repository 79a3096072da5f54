#include "execute/checkpoint/restore.h"

#include <algorithm>
#include <map>
#include <set>

#include "execute/checkpoint/names.h"
#include "execute/checkpoint/read_piece.h"
#include "ground/base/counted.h"
#include "ground/base/parallel.h"

namespace systole::checkpoint {

namespace {

constexpr Bytes kManifestLimit{std::int64_t{1} << 32};
constexpr std::int64_t kReadBytes = 512 << 10;  // a chunk is hashed in blocks of this size
}  // namespace

Checkpoint::Checkpoint(Folder folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::make_shared<const Manifest>(std::move(manifest))) {}

Status Checkpoint::read(const TensorEntry& tensor, const Box& box, std::span<std::byte> into) const {
  return read_into(tensor, box, box, into);
}

Status Checkpoint::read_into(const TensorEntry& tensor, const Box& box, const Box& held,
                             std::span<std::byte> into) const {
  TRY(check_target(tensor, box, held, into));
  for (const Piece& piece : tensor.pieces) {
    const auto part = intersect(piece.box, box);
    if (!part) continue;
    ChunkSource source(folder_, manifest_->chunks[static_cast<std::size_t>(piece.chunk)]);
    TRY(read_piece(source, piece, size_of(tensor.dtype), *part, held, into));
  }
  return {};
}

Status Checkpoint::read(std::string_view name, const Box& box, std::span<std::byte> into) const {
  return read(*TRY(find(name)), box, into);
}

Result<const TensorEntry*> Checkpoint::find(std::string_view name) const {
  const TensorEntry* tensor = manifest_->find(name);
  if (tensor) return tensor;
  return error(ErrorKind::not_found, "checkpoint {} has no tensor '{}'", manifest_->step, name)
      .hinted(nearest_hint(*manifest_, name));
}

Result<const TensorEntry*> Checkpoint::find(std::string_view name, DType dtype, const Shape& shape) const {
  const TensorEntry* tensor = TRY(find(name));
  if (tensor->dtype == dtype && tensor->shape == shape) return tensor;
  return error(ErrorKind::invalid, "tensor '{}' is {}{} in checkpoint {} and {}{} in the program", name,
               name_of(tensor->dtype), to_string(tensor->shape), manifest_->step, name_of(dtype), to_string(shape));
}

Status Checkpoint::read(std::string_view name, DType dtype, const Shape& shape, const Box& box,
                        std::span<std::byte> into) const {
  return read(*TRY(find(name, dtype, shape)), box, into);
}

Status Checkpoint::read_into(std::string_view name, DType dtype, const Shape& shape, const Box& box, const Box& held,
                             std::span<std::byte> into) const {
  return read_into(*TRY(find(name, dtype, shape)), box, held, into);
}

namespace {

// With keys, a text without their seals is not parsed.
Result<Manifest> read_manifest(const Folder& folder, std::int64_t step, const Keys* keys, std::string* text) {
  const std::string path = folder.manifest(step);
  Result<Manifest> manifest = Manifest();
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto read = get_text(*folder.store, path, kManifestLimit);
    if (!read) {
      Error refused = std::move(read).error();
      if (refused.kind == ErrorKind::corrupt)
        refused.kind = ErrorKind::io;  // it shrank during the read: its text is unknown
      return refused;
    }
    *text = std::move(read).value();
    const Status authentic = check_authentic(keys, *text, path);
    manifest = authentic.ok() ? parse_manifest(*text, path) : Result<Manifest>(authentic.error());
    if (manifest || manifest.error().kind != ErrorKind::corrupt) break;
  }
  if (manifest && manifest->step != step) {
    return error(ErrorKind::corrupt, "the manifest is of step {} by its text and {} by its name", manifest->step, step)
        .at({path});
  }
  return manifest;
}

}  // namespace

Result<Manifest> read_manifest(const Folder& folder, std::int64_t step, std::string* text) {
  return read_manifest(folder, step, nullptr, text);
}

Result<Manifest> load_manifest(const Folder& folder, std::int64_t step) {
  std::string text;
  auto manifest = read_manifest(folder, step, folder.keys.get(), &text);
  if (manifest || manifest.error().kind != ErrorKind::not_found) return manifest;
  std::string known;
  for (std::int64_t other : TRY(list_steps(folder))) known += fmt::format("{}{}", known.empty() ? "" : ", ", other);
  return error(ErrorKind::not_found, "there is no checkpoint of step {}", step)
      .at({folder.manifest(step)})
      .hinted(known.empty() ? "the folder holds no checkpoint" : "there are: " + known);
}

Status verify_chunk(const Folder& folder, const ChunkFile& chunk, Verify verify) {
  const std::string path = folder.chunk(chunk.hash);
  const Bytes size = TRY(folder.store->size(path));
  if (size != chunk.bytes) {
    return error(ErrorKind::corrupt, "the chunk has {} bytes instead of {}", size.count(), chunk.bytes.count())
        .at({path});
  }
  if (verify == Verify::lengths) return {};
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kReadBytes, size.count())));
  ChunkHasher hasher(folder, chunk);
  for (std::int64_t at = 0; at < size.count(); at += kReadBytes) {
    const auto part = std::span(buffer).first(static_cast<std::size_t>(std::min(kReadBytes, size.count() - at)));
    TRY(folder.store->get(path, at, part));
    hasher.add(part);
  }
  return hasher.check();
}

Result<Checkpoint> open_step(const Folder& folder, std::int64_t step, Verify verify) {
  Manifest manifest = TRY(load_manifest(folder, step));
  for (const ChunkFile& chunk : manifest.chunks) TRY(verify_chunk(folder, chunk, verify));
  return Checkpoint(folder, std::move(manifest));
}

bool is_refused(const Error& unreadable) {
  return unreadable.kind == ErrorKind::invalid || unreadable.kind == ErrorKind::io;
}

Result<Restored> open_newest(const Folder& folder, Verify verify) {
  return newest_of(folder, [&](std::int64_t step) { return open_step(folder, step, verify); });
}

Result<Restored> newest_of(const Folder& folder, const std::function<Result<Checkpoint>(std::int64_t step)>& open) {
  std::vector<std::int64_t> steps = TRY(list_steps(folder));
  std::reverse(steps.begin(), steps.end());
  std::vector<Rejected> rejected;
  for (std::int64_t step : steps) {
    auto opened = open(step);
    if (opened) return Restored{std::move(opened).value(), std::move(rejected)};
    const ErrorKind kind = opened.error().kind;
    const bool damaged = kind == ErrorKind::corrupt || kind == ErrorKind::io || kind == ErrorKind::not_found;
    if (!damaged) return std::move(opened).error();
    rejected.push_back({step, folder.manifest(step), std::move(opened).error()});
  }
  if (rejected.empty()) return error(ErrorKind::not_found, "there is no checkpoint").at({folder.manifests()});
  Error none = error(ErrorKind::corrupt, "none of the {} verifies", counted(rejected.size(), "checkpoint"))
                   .at({folder.manifests()});
  for (Rejected& one : rejected) none.others.push_back(std::move(one.reason));
  return none;
}

Result<std::vector<Damage>> find_damage(const Folder& folder, const Manifest& manifest, Verify verify, int threads,
                                        VerifyShare share) {
  std::map<std::int64_t, std::set<std::string>> held;  // chunk → tensors in it
  for (const TensorEntry& tensor : manifest.tensors) {
    for (const Piece& piece : tensor.pieces) held[piece.chunk].insert(tensor.name);
  }
  std::vector<std::size_t> mine;
  for (std::size_t c = static_cast<std::size_t>(share.rank); c < manifest.chunks.size();
       c += static_cast<std::size_t>(share.world))
    mine.push_back(c);
  std::vector<std::optional<Error>> found(mine.size());
  TRY(for_each_in_parallel(mine.size(), threads, [&](std::size_t m) -> Status {
    auto verified = verify_chunk(folder, manifest.chunks[mine[m]], verify);
    if (!verified) found[m] = std::move(verified).error();
    return {};
  }));
  std::vector<Damage> damage;
  for (std::size_t m = 0; m < mine.size(); ++m) {
    if (!found[m]) continue;
    const auto& tensors = held[static_cast<std::int64_t>(mine[m])];
    damage.push_back({manifest.chunks[mine[m]].hash, *std::move(found[m]), {tensors.begin(), tensors.end()}});
  }
  return damage;
}

}  // namespace systole::checkpoint
