#include "execute/checkpoint/retention.h"

#include <algorithm>
#include <map>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

namespace {

constexpr Bytes kManifestSlack = kMiB;  // for manifests, folders and the file system's own

struct Known {
  std::int64_t step = 0;
  Manifest manifest;
  bool whole = false;  // every chunk's name is there
};

// Everything the manifests say, readable or not.
struct Marks {
  std::vector<Known> known;  // ascending by step
  std::vector<Unreadable> unreadable;
  std::set<std::string> named_by_unreadable;
  std::set<std::int64_t> blessed;
  std::set<std::string> chunks;  // names in the chunk folder, leftovers too
  bool unknown = false;          // the store refused to hand out a manifest
};

Status mark_one(const Folder& folder, std::int64_t step, Marks& marks) {
  std::string text;
  auto manifest = read_manifest(folder, step, &text);
  if (!manifest) {
    const ErrorKind kind = manifest.error().kind;
    if (kind == ErrorKind::not_found) return {};
    if (kind != ErrorKind::corrupt && kind != ErrorKind::unsupported) marks.unknown = true;
    for (std::string& hash : hashes_named_in(text)) marks.named_by_unreadable.insert(std::move(hash));
    marks.unreadable.push_back({folder.manifest(step), std::move(manifest).error()});
    return {};
  }
  const bool whole = std::all_of(manifest->chunks.begin(), manifest->chunks.end(),
                                 [&](const ChunkFile& chunk) { return marks.chunks.contains(chunk.hash); });
  marks.known.push_back({step, std::move(manifest).value(), whole});
  return {};
}

Result<Marks> mark(const Folder& folder) {
  Marks marks;
  for (std::string& name : TRY(list_or_empty(*folder.store, folder.chunks()))) marks.chunks.insert(std::move(name));
  for (std::int64_t step : TRY(list_blessed(folder))) marks.blessed.insert(step);
  for (std::int64_t step : TRY(list_steps(folder))) TRY(mark_one(folder, step, marks));
  return marks;
}

std::optional<std::int64_t> best_step(const Marks& marks) {
  std::optional<std::int64_t> step;
  double lowest = 0;
  for (const Known& known : marks.known) {
    if (!known.whole || !known.manifest.metric || (step && *known.manifest.metric > lowest)) continue;
    step = known.step;
    lowest = *known.manifest.metric;
  }
  return step;
}

// Damaged checkpoints do not count among the last; those newer than the oldest counted stay until they are older.
std::set<std::int64_t> steps_to_keep(const Marks& marks, const Retention& retention) {
  std::set<std::int64_t> keep = marks.blessed;
  int counted = 0;
  for (auto known = marks.known.rbegin(); known != marks.known.rend(); ++known) {
    const bool recent = retention.last == 0 || counted < retention.last;
    const bool periodic = retention.every > 0 && known->step % retention.every == 0;
    if (recent || periodic) keep.insert(known->step);
    if (known->whole) ++counted;
  }
  if (retention.best) {
    if (const auto best = best_step(marks)) keep.insert(*best);
  }
  return keep;
}

std::set<std::string> live_chunks(const Marks& marks, const std::set<std::int64_t>& keep) {
  std::set<std::string> live = marks.named_by_unreadable;
  for (const Known& known : marks.known) {
    if (!keep.contains(known.step)) continue;
    for (const ChunkFile& chunk : known.manifest.chunks) live.insert(chunk.hash);
  }
  return live;
}

// Removes files, as long as the folder is ours.
class Sweeper {
 public:
  Sweeper(const Folder& folder, const StillOurs& still_ours, SweepReport& report)
      : folder_(folder), still_ours_(still_ours), report_(report) {}

  Status remove_manifests(const Marks& marks, const std::set<std::int64_t>& keep) {
    for (const Known& known : marks.known) {
      if (keep.contains(known.step)) {
        report_.kept.push_back(known.step);
        continue;
      }
      TRY(remove(folder_.manifest(known.step)));
      report_.removed.push_back(known.step);
    }
    // No chunk may go before the names of the manifests that need it are gone for good.
    if (!report_.removed.empty()) TRY(folder_.store->sync_dir(folder_.manifests()));
    return {};
  }

  Status remove_chunks(const Marks& marks, const std::set<std::string>& live) {
    for (const std::string& name : marks.chunks) {
      const bool leftover = name.ends_with(kTemporary);
      if (!leftover && (!is_hash(name) || live.contains(name)))
        continue;  // a file of somebody else's is not ours to remove
      TRY(remove_counted(folder_.chunk(name)));
      if (!leftover) ++report_.chunks_removed;
    }
    for (const std::string& name : TRY(list_or_empty(*folder_.store, folder_.manifests()))) {
      if (name.ends_with(kTemporary)) TRY(remove_counted(fmt::format("{}/{}", folder_.manifests(), name)));
    }
    return {};
  }

  Status remove_parts() {
    for (std::string save : TRY(list_or_empty(*folder_.store, folder_.parts()))) {
      if (save.ends_with(kTemporary)) TRY(remove_counted(fmt::format("{}/{}", folder_.parts(), save)));
      if (!save.ends_with('/')) continue;
      save.pop_back();
      const std::string dir = folder_.parts_of(save);
      for (const std::string& name : TRY(list_or_empty(*folder_.store, dir)))
        TRY(remove_counted(fmt::format("{}/{}", dir, name)));
      // A late writer may have put one more file into it: then the folder stays for the next sweep.
      auto gone = folder_.store->remove(dir);
      if (!gone && gone.error().kind != ErrorKind::exists) return gone;
    }
    return {};
  }

 private:
  Status remove(const std::string& path) {
    if (still_ours_) TRY(still_ours_());
    return folder_.store->remove(path);
  }
  Status remove_counted(const std::string& path) {
    auto size = folder_.store->size(path);
    TRY(remove(path));
    if (size) report_.freed += *size;
    return {};
  }

  const Folder& folder_;
  const StillOurs& still_ours_;
  SweepReport& report_;
};

}  // namespace

Result<SweepReport> sweep(const Folder& folder, const Retention& retention, const StillOurs& still_ours) {
  Marks marks = TRY(mark(folder));
  const auto keep = steps_to_keep(marks, retention);
  const auto live = live_chunks(marks, keep);
  SweepReport report;
  report.unreadable = std::move(marks.unreadable);
  report.postponed = marks.unknown;
  if (report.postponed) {
    for (const Known& known : marks.known) report.kept.push_back(known.step);
    return report;
  }
  Sweeper sweeper(folder, still_ours, report);
  TRY(sweeper.remove_manifests(marks, keep));
  TRY(sweeper.remove_chunks(marks, live));
  TRY(sweeper.remove_parts());
  return report;
}

Status bless(const Folder& folder, std::int64_t step) {
  TRY(load_manifest(folder, step));
  return write_whole(*folder.store, folder.blessing(step), std::string_view());
}

Status unbless(const Folder& folder, std::int64_t step) {
  if (!TRY(folder.store->exists(folder.blessing(step)))) {
    return error(ErrorKind::not_found, "checkpoint {} is not blessed", step);
  }
  TRY(folder.store->remove(folder.blessing(step)));
  return folder.store->sync_dir(folder.manifests());
}

Status remove_after(const Folder& folder, std::int64_t step) {
  const auto blessed = TRY(list_blessed(folder));
  if (!blessed.empty() && blessed.back() > step) {
    return error(ErrorKind::exists, "checkpoint {} is blessed and comes after step {}", blessed.back(), step)
        .hinted(fmt::format("take the blessing away (systole ckpt unbless {}) or go on from there", blessed.back()));
  }
  bool removed = false;
  for (std::int64_t later : TRY(list_steps(folder))) {
    if (later <= step) continue;
    TRY(folder.store->remove(folder.manifest(later)));
    removed = true;
  }
  return removed ? folder.store->sync_dir(folder.manifests()) : Status();
}

namespace {

std::int64_t checkpoints_kept(const Retention& retention, std::int64_t steps_between, std::int64_t saves) {
  if (retention.last == 0) return std::max<std::int64_t>(saves, 1);
  std::int64_t kept = retention.last + (retention.best ? 1 : 0);
  if (retention.every > 0) kept += saves > 0 ? std::max<std::int64_t>(1, saves * steps_between / retention.every) : 1;
  return saves > 0 ? std::min(kept, saves) : kept;
}

// Free space, and what is held by checkpoints that the run's own will replace.
Result<Bytes> space_available(const Folder& folder) {
  Bytes available = TRY(folder.store->free_space());
  const Marks marks = TRY(mark(folder));
  const auto pinned = live_chunks(marks, marks.blessed);
  if (marks.unknown) return available;
  for (const std::string& name : marks.chunks) {
    if (is_hash(name) && !pinned.contains(name)) available += TRY(folder.store->size(folder.chunk(name)));
  }
  return available;
}

}  // namespace

Result<SpaceNeed> check_space(const Folder& folder, Bytes per_save, const Retention& retention,
                              std::int64_t steps_between, std::int64_t saves) {
  SpaceNeed need;
  need.checkpoints = checkpoints_kept(retention, steps_between, saves) + 1;
  need.needed = per_save * need.checkpoints + kManifestSlack;
  need.available = TRY(space_available(folder));
  if (need.needed <= need.available) return need;
  const std::int64_t room = (need.available - kManifestSlack).count() / std::max<std::int64_t>(1, per_save.count());
  return error(
             ErrorKind::does_not_fit,
             "checkpoints do not fit: {} of {} bytes each ({} kept, one being written) and {} for their manifests are "
             "{} bytes, {} are available (short by {})",
             need.checkpoints, with_commas(per_save.count()), need.checkpoints - 1, with_commas(kManifestSlack.count()),
             with_commas(need.needed.count()), with_commas(need.available.count()),
             with_commas((need.needed - need.available).count()))
      .hinted(room >= 2 ? fmt::format("keep {} at most (checkpoint.keep), free space, or put the run on another disk",
                                      room - 1)
                        : std::string("free space, or put the run on another disk: two checkpoints, one kept and one "
                                      "being written, are the least"));
}

}  // namespace systole::checkpoint
