#include "operate/cli/run_places.h"

#include <charconv>

#include "operate/cli/command.h"
#include "operate/observe/run_files.h"

namespace systole::cli {

Result<RunPlace> open_run(const std::string& asked) {
  RunPlace place;
  place.path = TRY(find_run(kRunsFolder, asked));
  place.store = TRY(open_posix_store(place.path));
  return place;
}

Result<RunRecord> record_of(const RunPlace& run) {
  Result<RunRecord> record = read_run(*run.store, "");
  if (record.ok()) return record;
  Error e = std::move(record).error();
  if (!e.where.file.empty()) e.where.file = run.path + "/" + e.where.file;
  if (e.kind == ErrorKind::corrupt && e.hint.empty())
    e.hint = "copy the file back; without that line, or without the file, the rest can be read";
  return e;
}

Result<Workload> workload_of(const RunPlace& run) {
  return read_workload(TRY(read_text(*run.store, RunFiles::workload)), run.path + "/" + RunFiles::workload);
}

Result<CheckpointPlace> find_checkpoints(const std::string& asked) {
  CheckpointPlace place;
  std::string name = asked;
  if (const std::size_t at = asked.rfind('@'); at != asked.npos) {
    name = asked.substr(0, at);
    const std::string_view step = std::string_view(asked).substr(at + 1);
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(step.data(), step.data() + step.size(), number);
    if (failed != std::errc() || end != step.data() + step.size() || number < 0) {
      return error(ErrorKind::invalid, "'{}' names no step after the @", asked).hinted("as in quickstart-1@500");
    }
    place.step = number;
  }
  Result<std::unique_ptr<Store>> folder = name.empty() ? error(ErrorKind::not_found, "") : open_posix_store(name);
  if (folder.ok() && TRY((*folder)->exists("manifests"))) {
    place.path = name;
    place.store = std::move(*folder);
    place.folder = {place.store.get(), ""};
    return place;
  }
  RunPlace run = TRY(open_run(name));
  const std::string dir = TRY(workload_of(run)).checkpoint.folder;
  place.path = run.path + "/" + dir;
  place.store = std::move(run.store);
  place.folder = {place.store.get(), dir};
  return place;
}

Result<checkpoint::Checkpoint> open_checkpoint(const CheckpointPlace& place) {
  if (place.step) return checkpoint::open_step(place.folder, *place.step);
  return TRY(checkpoint::open_newest(place.folder)).checkpoint;
}

}  // namespace systole::cli
