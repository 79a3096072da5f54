// Builds a run's index row from its files.

#include "operate/observe/event_file_name.h"
#include "operate/observe/index.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

void take(RunRow& row, const RunRecord& record) {
  std::string run = std::move(row.summary.run);
  row.summary = summarize(record.processes, record.plan ? &*record.plan : nullptr);
  row.summary.run = std::move(run);
  for (const auto& process : record.processes) {
    ++row.processes;
    if (!process.empty()) row.seconds += process.back().t;
    for (const Event& event : process)
      if (const auto* opened = std::get_if<Opened>(&event.body)) row.opened_at = opened->at;
  }
  if (record.plan) row.parameters = record.plan->program.parameters;
}

// -1 if there is no such file.
Result<std::int64_t> bytes_if_there(Store& runs, const std::string& path) {
  const Result<Bytes> size = runs.size(path);
  if (size.ok()) return size->count();
  if (size.error().kind == ErrorKind::not_found) return std::int64_t{-1};
  return size.error();
}

}  // namespace

Result<RunExtent> run_extent(Store& runs, const std::string& folder) {
  RunExtent extent;
  const std::vector<std::string> files = TRY(list_event_files(runs, folder));
  if (!files.empty()) {
    extent.event_files = number_of_event_file(files.back()) + 1;
    extent.last_bytes = TRY(runs.size(files.back())).count();
  }
  extent.plan_bytes = TRY(bytes_if_there(runs, inside(folder, RunFiles::plan)));
  return extent;
}

Result<bool> has_events(Store& runs, const std::string& folder, const RunExtent& extent) {
  const auto numbered = [&](std::int64_t number) { return inside(folder, event_file_of(number)); };
  if (extent.event_files > 0 && TRY(bytes_if_there(runs, numbered(extent.event_files - 1))) != extent.last_bytes)
    return false;
  return !TRY(runs.exists(numbered(extent.event_files)));
}

Result<bool> has_extent(Store& runs, const std::string& folder, const RunExtent& extent) {
  return TRY(has_events(runs, folder, extent)) &&
         TRY(bytes_if_there(runs, inside(folder, RunFiles::plan))) == extent.plan_bytes;
}

Result<std::int64_t> run_file_bytes(Store& runs, const std::string& folder) {
  std::int64_t bytes = 0;
  for (const std::string& file : TRY(list_event_files(runs, folder))) bytes += TRY(runs.size(file)).count();
  const std::string plan = inside(folder, RunFiles::plan);
  if (TRY(runs.exists(plan))) bytes += TRY(runs.size(plan)).count();
  return bytes;
}

Result<RunRow> summarize_run(Store& runs, const std::string& folder) {
  RunRow row;
  row.summary.run = folder;
  row.extent = TRY(run_extent(runs, folder));
  const Result<RunRecord> record = read_run(runs, folder);
  if (record.ok()) {
    take(row, *record);
  } else if (record.error().kind == ErrorKind::io) {
    return record.error();
  } else {
    row.summary.state = RunState::damaged;
  }
  return row;
}

}  // namespace systole
