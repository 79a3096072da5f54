#include "operate/runs/indexed_runs.h"

#include <cerrno>

#include "ground/base/counted.h"
#include "ground/base/os_error.h"
#include "ground/base/text_file.h"
#include "operate/observe/index_tables.h"
#include "operate/run/run_places.h"

namespace systole {
namespace {

Result<IndexedRuns> read_index(const std::string& file, Store& store, const IndexRequest& ask,
                               const FollowScene& scene) {
  RunIndex index = TRY(RunIndex::open(file));
  SubmittedIndex submitted = TRY(SubmittedIndex::open(file));
  std::vector<Error> refused;
  if (ask.rebuild) {
    const int count = TRY(index.rebuild(store, &refused));
    scene.messages.message(fmt::format("read {} out of their folders", counted(count, "run")));
  }
  std::vector<RunRow> runs = TRY(ask.rebuild ? index.list() : index.refreshed(store, &refused));
  std::vector<SubmittedRow> before = TRY(submitted.list(ask.with_jobs));
  if (ask.rebuild)  // runs that are over are queried again; keep the last sight of the others, which is only here
    for (SubmittedRow& row : before) row.over = false;
  return IndexedRuns{std::move(runs), std::move(submitted), std::move(before), std::move(refused)};
}

Error unwritten(Error why, const std::string& file) {
  const Status writable = check_writable(file);
  why.message += "; the runs are read without it";
  why.hint = why.kind == ErrorKind::no_space ? os_error(ENOSPC, "write", file).hint
             : writable.ok()                 ? std::string()
                                             : writable.error().hint;
  return why;
}

}  // namespace

IndexedRuns indexed_runs(Store& store, const IndexRequest& ask, const FollowScene& scene) {
  const std::string file = scene.folder + "/" + kIndexFile;
  Result<IndexedRuns> index = read_index(file, store, ask, scene);
  if (!index.ok() && index.error().kind == ErrorKind::corrupt) {
    scene.messages.message(fmt::format("'{}' is damaged and is made anew", file));
    const Status cleared = clear_index(file);
    index = cleared.ok() ? read_index(file, store, ask, scene) : Result<IndexedRuns>(cleared.error());
  }
  const bool refused =
      !index.ok() && (index.error().kind == ErrorKind::no_space || index.error().kind == ErrorKind::io);
  if (!refused) return std::move(index).value();
  scene.messages.warning(unwritten(index.error(), file));
  return read_index(":memory:", store, ask, scene).value();
}

std::optional<Error> damage_of(const RunRow& row, const std::string& folder) {
  if (row.summary.state != RunState::damaged) return std::nullopt;
  const std::string path = folder + "/" + row.summary.run;
  Result<std::unique_ptr<Store>> store = open_posix_store(path);
  if (!store.ok()) return store.error();
  const Result<RunRecord> record = record_of({path, std::move(*store)});
  return record.ok() ? std::nullopt : std::optional(record.error());
}

}  // namespace systole
