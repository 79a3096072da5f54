#include "execute/checkpoint/save.h"

#include <cmath>
#include <map>

#include "execute/checkpoint/gather.h"
#include "execute/checkpoint/part.h"

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
        if (piece.chunk < 0 || piece.chunk >= static_cast<std::int64_t>(renumbered.size())) {
          return error(ErrorKind::invalid, "tensor '{}': a piece lies in chunk {} of {}", tensor.name, piece.chunk,
                       renumbered.size());
        }
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

// Which rank holds which boxes of the tensor that the error names.
Error with_owners(Error wrong, std::span<const Fragment> fragments) {
  std::string owners;
  for (std::size_t rank = 0; rank < fragments.size(); ++rank) {
    for (const TensorEntry& tensor : fragments[rank].tensors) {
      if (tensor.pieces.empty() || wrong.message.find(fmt::format("'{}'", tensor.name)) == std::string::npos) continue;
      owners += fmt::format("{}rank {} wrote", owners.empty() ? "" : "; ", rank);
      for (const Piece& piece : tensor.pieces) owners += " " + to_string(piece.box);
    }
  }
  wrong.hint = owners.empty() ? "no rank wrote any of it" : owners;
  return wrong;
}

Result<Manifest> make_manifest(const SaveRequest& request, std::span<const Fragment> fragments) {
  Manifest manifest{request.step, request.date, request.identity, request.metric, request.extra, {}, {}};
  if (manifest.metric && !std::isfinite(*manifest.metric)) manifest.metric.reset();
  Merger merger(manifest);
  for (const Fragment& fragment : fragments) TRY(merger.add(fragment));
  auto whole = check(manifest);
  if (!whole) return fragments.size() > 1 ? with_owners(std::move(whole).error(), fragments) : std::move(whole).error();
  return manifest;
}

}  // namespace

Status commit(const Folder& folder, const SaveRequest& request, std::span<const Fragment> fragments,
              const SaveOptions& options) {
  const PhaseScope scope(options.on_phase, SavePhase::commit);
  const Manifest manifest = TRY(make_manifest(request, fragments));
  TRY(check_chunks(folder, fragments));
  TRY(folder.store->sync_dir(folder.chunks()));
  const SaveGroup& group = options.group;
  const std::string writer = group.launch.empty() ? "0" : save_name(group, request.number);
  return put_whole(folder, folder.manifest(request.step), writer, to_text(manifest, folder.keys.get()),
                   [&] { return check_claim(folder, group); });
}

namespace {

// One rank's side of one save.
class Saving {
 public:
  Saving(const Folder& folder, const SaveRequest& request, const SaveOptions& options)
      : folder_(folder),
        request_(request),
        options_(options),
        group_(options.group),
        save_(save_name(options.group, request.number)) {
    if (request.patience) group_.patience = *request.patience;
  }

  Result<SaveReport> run() {
    TRY(check(group()));
    TRY(begin());
    auto fragment = write();
    if (group().rank != 0) return follow(std::move(fragment));
    auto report = lead(std::move(fragment));
    if (!group().alone()) tell(report);
    return report;
  }

 private:
  const SaveGroup& group() const { return group_; }

  Status begin() {
    if (group().launch.empty()) return {};
    TRY(check_claim(folder_, group()));
    return group().alone() ? Status() : folder_.store->make_dirs(folder_.parts_of(save_));
  }

  Result<Fragment> write() {
    const PhaseScope scope(options_.on_phase, SavePhase::write);
    if (group().launch.empty()) return write_chunks(folder_, request_.tensors, options_);
    return write_chunks(folder_, request_.tensors, options_, fmt::format("{}-{}", save_, group().rank));
  }

  Result<SweepReport> sweep_phase(const Retention& retention) {
    const PhaseScope scope(options_.on_phase, SavePhase::sweep);
    return sweep(folder_, retention, still_ours());
  }
  StillOurs still_ours() const {
    if (group().launch.empty()) return {};
    return [this] { return check_claim(folder_, group()); };
  }

  Result<SaveReport> follow(Result<Fragment> fragment) {
    const SaveReport report{request_.step, fragment ? fragment->stats : WriteStats(), {}, std::nullopt};
    WriterPart part{save_, group().rank, group().world, request_.step, std::nullopt, {}, {}};
    if (fragment) {
      TRY(folder_.store->sync_dir(folder_.chunks()));
      part.chunks = std::move(fragment->chunks);
      part.tensors = std::move(fragment->tensors);
    } else {
      part.failed = fragment.error();
    }
    TRY(check_claim(folder_, group()));
    auto told = write_part(folder_, part);
    if (!told && told.error().kind == ErrorKind::not_found) {
      told = error(ErrorKind::busy, "rank {} is late: the save of step {} was given up meanwhile", group().rank,
                   request_.step);
    }
    if (told && fragment) {
      TRY(await_outcome(folder_, save_, request_.step, group()));
      return report;
    }
    // Even so not before rank 0 has swept: nobody else knows as well as we do why there is no checkpoint.
    if (told) static_cast<void>(await_outcome(folder_, save_, request_.step, group()));
    return fragment ? std::move(told).error() : std::move(fragment).error();
  }

  Result<SaveReport> lead(Result<Fragment> own) {
    auto committed = own ? gather_and_commit(*own) : Status(own.error());
    if (!committed) {
      // Chunks may be there and perhaps the manifest too: remove only what no manifest names, if the store lets us.
      if (own || !group().alone()) static_cast<void>(sweep(folder_, Retention{.last = 0}, still_ours()));
      return std::move(committed).error();
    }
    SaveReport report{request_.step, own->stats, {}, std::nullopt};
    auto swept = sweep_phase(options_.retention);
    if (swept) {
      report.swept = std::move(swept).value();
    } else {
      report.sweep_error = std::move(swept).error();
    }
    return report;
  }

  Status gather_and_commit(const Fragment& own) {
    std::vector<Fragment> fragments{own};
    if (!group().alone()) {
      for (Fragment& other : TRY(gather_parts(folder_, save_, request_.step, group())))
        fragments.push_back(std::move(other));
    }
    return commit(folder_, request_, fragments, options_);
  }

  // The sweep took the parts with all else; the outcome is the one file left of the save, until the next one's sweep.
  void tell(const Result<SaveReport>& report) {
    if (!check_claim(folder_, group())) return;  // whoever has the folder now is told nothing by us
    const std::optional<Error> failed = report ? std::nullopt : std::optional<Error>(report.error());
    if (folder_.store->make_dirs(folder_.parts_of(save_)))
      static_cast<void>(
          write_outcome(folder_, save_, request_.step, failed));  // if it fails, the others find out by waiting
  }

  const Folder& folder_;
  const SaveRequest& request_;
  const SaveOptions& options_;
  SaveGroup group_;
  const std::string save_;
};

}  // namespace

Result<SaveReport> save(const Folder& folder, const SaveRequest& request, const SaveOptions& options) {
  return Saving(folder, request, options).run();
}

}  // namespace systole::checkpoint
