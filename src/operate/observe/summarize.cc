// A run's row of the index, out of its files.

#include "operate/observe/event_file_name.h"
#include "operate/observe/index.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

std::string state_of(const std::vector<Event>& process) {
  for (const Event& event : process) {
    if (const auto* stopped = std::get_if<Stopped>(&event.body))
      return stopped->reason == "signal" ? "stopped" : stopped->reason;
  }
  return "open";
}

void take(RunRow& row, const RunRecord& record) {
  for (const auto& process : record.processes) {
    ++row.processes;
    row.state = state_of(process);
    if (!process.empty()) row.seconds += process.back().t;
    for (const Event& event : process) {
      if (const auto* opened = std::get_if<Opened>(&event.body)) {
        if (row.started_at.empty()) row.started_at = opened->at;
        row.opened_at = opened->at;
        if (row.name.empty()) row.name = opened->run;
      } else if (const auto* evaluated = std::get_if<Evaluated>(&event.body)) {
        row.bits_per_byte = evaluated->bits_per_byte;
      }
    }
  }
  const std::vector<StepEnded> steps = canonical_steps(record.all());
  if (!steps.empty()) {
    row.steps = steps.back().step;
    row.tokens = steps.back().tokens;
    row.loss = steps.back().loss;
  }
  if (record.plan) {
    row.name = record.plan->workload.name;
    row.parameters = record.plan->program.parameters;
  }
}

// -1 where there is no such file.
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
  row.folder = folder;
  row.state = "open";
  row.extent = TRY(run_extent(runs, folder));
  const Result<RunRecord> record = read_run(runs, folder);
  if (record.ok()) {
    take(row, *record);
  } else if (record.error().kind == ErrorKind::io) {
    return record.error();
  } else {
    row.state = "damaged";
  }
  return row;
}

}  // namespace systole
