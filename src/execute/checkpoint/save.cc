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

// Merges the chunks and tensors of all writers into one manifest; a chunk of two writers is listed once.
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

// Adds which rank holds which boxes of the tensor that the error names.
Error with_owners(Error wrong, std::span<const Fragment> fragments) {
  std::string owners;
  for (std::size_t rank = 0; rank < fragments.size(); ++rank) {
    for (const TensorEntry& tensor : fragments[rank].tensors) {
      if (tensor.pieces.empty() || tensor.name != wrong.key) continue;
      owners += fmt::format("{}rank {} wrote", owners.empty() ? "" : "; ", rank);
      for (const Piece& piece : tensor.pieces) owners += " " + to_string(piece.box);
    }
  }
  wrong.hint = owners.empty() ? "no rank wrote any of it" : owners;
  return wrong;
}

// Uses an upload rather than a put: an upload that another generation's sweep has aborted is not retried. If a manifest
// exists already, an earlier save may have failed after putting it, or the run went back to an older step.
Status put_manifest(const Folder& folder, const std::string& path, const std::string& text, const SaveGroup& group) {
  const std::unique_ptr<Upload> upload = TRY(folder.store->start_upload(path));
  TRY(upload->append(std::as_bytes(std::span(text))));
  TRY(check_claim(folder, group));
  Status done = upload->complete(Precondition::absent());
  if (done.ok() || done.error().kind != ErrorKind::exists) return done;
  const Generation found = TRY(folder.store->get_whole(path)).generation;
  TRY(check_claim(folder, group));
  return upload->complete(Precondition::is(found));
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
  TRY(folder.store->settle(folder.chunks()));
  return put_manifest(folder, folder.manifest(request.step), to_text(manifest, folder.keys.get()), options.group);
}

namespace {

// One rank in one save.
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
    if (group().rank != 0) TRY(folder_.store->put(folder_.begun(save_, group().rank), "", {}, Durability::none));
    return {};
  }

  Result<Fragment> write() {
    const PhaseScope scope(options_.on_phase, SavePhase::write);
    return write_chunks(folder_, request_.tensors, options_);
  }

  Result<SweepReport> sweep_phase(const Retention& retention) {
    const PhaseScope scope(options_.on_phase, SavePhase::sweep);
    return sweep(folder_, retention, still_ours(), request_.step);
  }
  StillOurs still_ours() const {
    if (group().launch.empty()) return {};
    return [this] { return check_claim(folder_, group()); };
  }

  Result<SaveReport> follow(Result<Fragment> fragment) {
    const SaveReport report{request_.step, fragment ? fragment->stats : WriteStats(), {}, std::nullopt};
    WriterPart part{save_, group().rank, group().world, request_.step, std::nullopt, {}, {}};
    if (fragment) {
      auto settled = folder_.store->settle(folder_.chunks());
      if (!settled) fragment = std::move(settled).error();
    }
    if (fragment) {
      part.chunks = std::move(fragment->chunks);
      part.tensors = std::move(fragment->tensors);
    } else {
      part.failed = fragment.error();
    }
    TRY(check_claim(folder_, group()));
    auto told = tell_part(part);
    if (told && fragment) {
      TRY(await_outcome(folder_, save_, request_.step, group()));
      return report;
    }
    // Waits for rank 0's sweep all the same. This rank's own error is the more precise one.
    if (told) static_cast<void>(await_outcome(folder_, save_, request_.step, group()));
    return fragment ? std::move(told).error() : std::move(fragment).error();
  }

  // If the save is over, this rank is too late to report; its outcome may still exist.
  Status tell_part(const WriterPart& part) {
    if (TRY(has_object(*folder_.store, folder_.begun(save_, group().rank)))) return write_part(folder_, part);
    if (TRY(has_object(*folder_.store, folder_.outcome(save_)))) return {};
    return error(ErrorKind::busy, "rank {} is late: the save of step {} was given up meanwhile", group().rank,
                 request_.step);
  }

  Result<SaveReport> lead(Result<Fragment> own) {
    auto committed = own ? gather_and_commit(*own) : Status(own.error());
    if (!committed) {
      // Chunks may exist, perhaps the manifest too: remove only what no manifest names, if the store allows it.
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

  // The sweep removed the parts; the outcome is the only file left of the save, until the next save's sweep.
  void tell(const Result<SaveReport>& report) {
    if (!check_claim(folder_, group())) return;  // no answer to a new holder of the folder
    const std::optional<Error> failed = report ? std::nullopt : std::optional<Error>(report.error());
    // If this fails, the others time out.
    static_cast<void>(write_outcome(folder_, save_, request_.step, failed));
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
