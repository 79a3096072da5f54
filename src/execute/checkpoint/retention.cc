#include "execute/checkpoint/retention.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

namespace {

constexpr Bytes kManifestSlack = kMiB;  // for manifests, folders and file system overhead

struct Known {
  std::int64_t step = 0;
  Manifest manifest;
  bool whole = false;  // every chunk it names exists
};

// The contents of all manifests, readable or not.
struct Marks {
  std::vector<Known> known;  // ascending by step
  std::vector<Unreadable> unreadable;
  std::set<std::string> named_by_unreadable;
  std::set<std::int64_t> blessed;
  std::map<std::string, Bytes> chunks;  // sizes by name in the chunk folder, including leftovers
  bool unknown = false;                 // the store failed to read a manifest
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
  const std::string prefix = folder.chunks() + "/";
  const ObjectList chunks = TRY(folder.store->list(prefix, ListDepth::one_level));
  for (const ObjectEntry& chunk : chunks.objects) marks.chunks.emplace(chunk.path.substr(prefix.size()), chunk.size);
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

// Damaged checkpoints do not count for `last`; those newer than the oldest counted one stay until they are older.
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

bool lists(const Marks& marks, const Folder& folder, std::int64_t step) {
  return std::ranges::find(marks.known, step, &Known::step) != marks.known.end() ||
         std::ranges::find(marks.unreadable, folder.manifest(step), &Unreadable::path) != marks.unreadable.end();
}

// Removes files as long as the folder is ours.
class Sweeper {
 public:
  Sweeper(const Folder& folder, const StillOurs& still_ours, SweepReport& report)
      : folder_(folder), still_ours_(still_ours), report_(report) {}

  // Runs before marking: a manifest that a writer of another generation is about to put is either seen or aborted.
  Status abort_manifests() { return abort_uploads(folder_.manifests()); }

  Status remove_manifests(const Marks& marks, const std::set<std::int64_t>& keep) {
    for (const Known& known : marks.known) {
      if (keep.contains(known.step)) {
        report_.kept.push_back(known.step);
        continue;
      }
      TRY(remove(folder_.manifest(known.step)));
      report_.removed.push_back(known.step);
    }
    // The removal of manifests must be durable before any of their chunks is removed.
    if (!report_.removed.empty()) TRY(folder_.store->settle(folder_.manifests()));
    return {};
  }

  Status remove_chunks(const Marks& marks, const std::set<std::string>& live) {
    for (const auto& [name, size] : marks.chunks) {
      const bool leftover = name.ends_with(kTemporary);
      if (!leftover && (!is_hash(name) || live.contains(name)))
        continue;  // another program's file is not ours to remove
      TRY(remove(folder_.chunk(name)));
      report_.freed += size;
      if (!leftover) ++report_.chunks_removed;
    }
    for (const std::string& name : TRY(names_under(folder_, folder_.manifests()))) {
      if (name.ends_with(kTemporary)) TRY(remove_counted(fmt::format("{}/{}", folder_.manifests(), name)));
    }
    return abort_uploads(folder_.chunks());
  }

  Status remove_parts() {
    for (std::string save : TRY(names_under(folder_, folder_.parts()))) {
      if (save.ends_with(kTemporary)) TRY(remove_counted(fmt::format("{}/{}", folder_.parts(), save)));
      if (!save.ends_with('/')) continue;
      save.pop_back();
      const std::string dir = folder_.parts_of(save);
      for (const std::string& name : TRY(names_under(folder_, dir)))
        TRY(remove_counted(fmt::format("{}/{}", dir, name)));
    }
    return abort_uploads(folder_.parts());
  }

 private:
  Status remove(const std::string& path) {
    if (still_ours_) TRY(still_ours_());
    return folder_.store->remove(path);
  }
  Status abort_uploads(const std::string& dir) {
    if (still_ours_) TRY(still_ours_());
    report_.freed += TRY(folder_.store->abort_uploads(dir + "/"));
    return {};
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

Result<SweepReport> sweep(const Folder& folder, const Retention& retention, const StillOurs& still_ours,
                          std::optional<std::int64_t> there) {
  SweepReport report;
  Sweeper sweeper(folder, still_ours, report);
  TRY(sweeper.abort_manifests());
  Marks marks = TRY(mark(folder));
  const auto keep = steps_to_keep(marks, retention);
  const auto live = live_chunks(marks, keep);
  report.postponed = marks.unknown || (there && !lists(marks, folder, *there));
  report.unreadable = std::move(marks.unreadable);
  if (report.postponed) {
    for (const Known& known : marks.known) report.kept.push_back(known.step);
    return report;
  }
  TRY(sweeper.remove_manifests(marks, keep));
  TRY(sweeper.remove_chunks(marks, live));
  TRY(sweeper.remove_parts());
  return report;
}

Status bless(const Folder& folder, std::int64_t step) {
  TRY(load_manifest(folder, step));
  const auto put = folder.store->put(folder.blessing(step), "", Precondition::absent());
  if (put) return {};
  if (put.error().kind != ErrorKind::exists) return put.error();
  return folder.store->settle(folder.manifests());  // its writer may have been killed before it was durable
}

Status unbless(const Folder& folder, std::int64_t step) {
  if (!TRY(has_object(*folder.store, folder.blessing(step)))) {
    return error(ErrorKind::not_found, "checkpoint {} is not blessed", step);
  }
  TRY(folder.store->remove(folder.blessing(step)));
  return folder.store->settle(folder.manifests());
}

namespace {

// How many of the saves, which are at multiples of `between`, are also at multiples of `every`: one if that is unknown.
std::int64_t saves_at(std::int64_t every, std::int64_t between, std::int64_t steps) {
  constexpr std::int64_t kMost = 1'000'000;  // so that their bytes stay countable
  if (between <= 0) return 1;
  return std::clamp<std::int64_t>(steps / every / (between / std::gcd(between, every)), 1, kMost);
}

std::int64_t checkpoints_kept(const Retention& retention, std::int64_t between, std::int64_t steps) {
  if (retention.last == 0) return saves_at(1, between, steps);
  const std::int64_t periodic = retention.every > 0 ? saves_at(retention.every, between, steps) : 0;
  return retention.last + (retention.best ? 1 : 0) + periodic;
}

// Free space, plus the space of checkpoints that the run's own will replace.
Result<Bytes> space_available(const Folder& folder) {
  Bytes available = TRY(folder.store->free_space());
  const Marks marks = TRY(mark(folder));
  const auto pinned = live_chunks(marks, marks.blessed);
  if (marks.unknown) return available;
  for (const auto& [name, size] : marks.chunks) {
    if (is_hash(name) && !pinned.contains(name)) available += size;
  }
  return available;
}

}  // namespace

Result<SpaceNeed> check_space(const Folder& folder, Bytes per_save, const Retention& retention,
                              std::int64_t steps_between, std::int64_t steps, std::string_view shown) {
  SpaceNeed need;
  need.checkpoints = checkpoints_kept(retention, steps_between, steps) + 1;
  need.needed = per_save * need.checkpoints + kManifestSlack;
  need.available = TRY(space_available(folder));
  if (need.needed <= need.available) return need;
  const std::int64_t room = (need.available - kManifestSlack).count() / std::max<std::int64_t>(1, per_save.count());
  const std::int64_t most = room - (need.checkpoints - retention.last);
  return error(
             ErrorKind::does_not_fit,
             "checkpoints do not fit: {} of {} bytes each ({} kept, one being written) and {} for their manifests are "
             "{} bytes, and '{}' has room for {} (short by {})",
             need.checkpoints, with_commas(per_save.count()), need.checkpoints - 1, with_commas(kManifestSlack.count()),
             with_commas(need.needed.count()), shown, with_commas(need.available.count()),
             with_commas((need.needed - need.available).count()))
      .hinted(most >= 1
                  ? fmt::format("keep {} at most (checkpoint.keep), free space, or put the run on another disk", most)
              : retention.every > 0 && room >= 3
                  ? std::string("a larger checkpoint.keep_every, free space, or put the run on another disk")
                  : std::string("free space, or put the run on another disk: two checkpoints, one kept and one being "
                                "written, are the least"));
}

}  // namespace systole::checkpoint
