#include "execute/checkpoint/save.h"

#include <cmath>
#include <map>

namespace systole::checkpoint {

const char* name_of(SavePhase phase) {
  switch (phase) {
    case SavePhase::snapshot: return "snapshot";
    case SavePhase::write: return "write";
    case SavePhase::commit: return "commit";
    case SavePhase::sweep: return "sweep";
  }
  return "?";
}

namespace {

class PhaseScope {
 public:
  PhaseScope(const PhaseHook& hook, SavePhase phase) : hook_(hook), phase_(phase) {
    if (hook_) hook_(phase_, true);
  }
  ~PhaseScope() {
    if (hook_) hook_(phase_, false);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  const PhaseHook& hook_;
  SavePhase phase_;
};

// Chunks and tensors of all writers in one manifest; a chunk that two of them hold is listed once.
class Merger {
 public:
  explicit Merger(Manifest& manifest) : manifest_(manifest) {}

  Status add(const Fragment& fragment) {
    std::vector<std::int64_t> renumbered;
    for (const ChunkFile& chunk : fragment.chunks) renumbered.push_back(number_of(chunk));
    for (const TensorEntry& tensor : fragment.tensors) {
      TensorEntry& entry = manifest_.tensors[TRY(entry_of(tensor))];
      for (Piece piece : tensor.pieces) {
        piece.chunk = renumbered[static_cast<std::size_t>(piece.chunk)];
        entry.pieces.push_back(std::move(piece));
      }
    }
    return {};
  }

 private:
  std::int64_t number_of(const ChunkFile& chunk) {
    const auto [slot, fresh] = chunks_.emplace(chunk.hash, static_cast<std::int64_t>(manifest_.chunks.size()));
    if (fresh) manifest_.chunks.push_back(chunk);
    return slot->second;
  }

  Result<std::size_t> entry_of(const TensorEntry& tensor) {
    const auto [slot, fresh] = tensors_.emplace(tensor.name, manifest_.tensors.size());
    if (fresh) manifest_.tensors.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, {}});
    const TensorEntry& entry = manifest_.tensors[slot->second];
    if (entry.dtype != tensor.dtype || entry.shape != tensor.shape || entry.role != tensor.role) {
      return error(ErrorKind::invalid, "tensor '{}' is {}{} for one writer and {}{} for another", tensor.name,
                   name_of(entry.dtype), to_string(entry.shape), name_of(tensor.dtype), to_string(tensor.shape));
    }
    return slot->second;
  }

  Manifest& manifest_;
  std::map<std::string, std::int64_t> chunks_;
  std::map<std::string, std::size_t> tensors_;
};

Result<Manifest> make_manifest(const SaveRequest& request, std::span<const Fragment> fragments) {
  Manifest manifest{request.step, request.date, request.identity, request.metric, request.extra, {}, {}};
  if (manifest.metric && !std::isfinite(*manifest.metric)) manifest.metric.reset();
  Merger merger(manifest);
  for (const Fragment& fragment : fragments) TRY(merger.add(fragment));
  TRY(check(manifest));
  return manifest;
}

Status write_manifest(const Folder& folder, std::int64_t step, std::string_view text) {
  const std::string path = folder.manifest(step), temporary = path + std::string(kTemporary);
  TRY(folder.store->remove(temporary));  // a fresh file: see write_chunks.cc
  auto file = TRY(folder.store->create(temporary));
  TRY(file->append(std::as_bytes(std::span(text))));
  TRY(file->sync());
  TRY(file->close());
  TRY(folder.store->rename(temporary, path));
  return folder.store->sync_dir(folder.manifests());
}

}  // namespace

Status commit(const Folder& folder, const SaveRequest& request, std::span<const Fragment> fragments,
              const SaveOptions& options) {
  const PhaseScope scope(options.on_phase, SavePhase::commit);
  const Manifest manifest = TRY(make_manifest(request, fragments));
  TRY(folder.store->sync_dir(folder.chunks()));
  return write_manifest(folder, request.step, to_text(manifest));
}

namespace {

Result<Fragment> write_phase(const Folder& folder, const SaveRequest& request, const SaveOptions& options) {
  const PhaseScope scope(options.on_phase, SavePhase::write);
  return write_chunks(folder, request.tensors, options);
}

Result<SweepReport> sweep_phase(const Folder& folder, const SaveOptions& options) {
  const PhaseScope scope(options.on_phase, SavePhase::sweep);
  return sweep(folder, options.retention);
}

}  // namespace

Result<SaveReport> save(const Folder& folder, const SaveRequest& request, const SaveOptions& options) {
  const Fragment fragment = TRY(write_phase(folder, request, options));
  auto committed = commit(folder, request, std::span(&fragment, 1), options);
  if (!committed) {
    // The chunks are there and perhaps the manifest too: remove only what no manifest names, if the store lets us.
    static_cast<void>(sweep(folder, Retention{.last = 0}));
    return std::move(committed).error();
  }
  SaveReport report{request.step, fragment.stats, {}, std::nullopt};
  auto swept = sweep_phase(folder, options);
  if (swept) {
    report.swept = std::move(swept).value();
  } else {
    report.sweep_error = std::move(swept).error();
  }
  return report;
}

}  // namespace systole::checkpoint
