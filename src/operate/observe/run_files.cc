#include "operate/observe/run_files.h"

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"
#include "ground/base/shell_quoted.h"
#include "ground/store/lock.h"
#include "operate/observe/event_file_name.h"

namespace systole {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  const std::optional<std::int64_t> number = number_from(text);
  return number && *number >= 0 ? number : std::nullopt;
}

Result<std::vector<std::string>> list_if_there(Store& store, const std::string& dir) {
  Result<std::vector<std::string>> names = store.list(dir);
  if (!names.ok() && names.error().kind == ErrorKind::not_found) return std::vector<std::string>();
  return names;
}

std::string head_of(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// The one run whose name ends in "-<number>".
Result<std::string> run_of_number(const std::vector<std::string>& names, const std::string& number) {
  std::vector<std::string> fitting;
  for (const std::string& name : names)
    if (name.ends_with("-" + number)) fitting.push_back(name);
  if (fitting.size() == 1) return fitting[0];
  if (fitting.empty()) return std::string();
  return error(ErrorKind::invalid, "{} runs have the number {}", fitting.size(), number)
      .hinted(fmt::format("'{}' and '{}' are two of them: say which", fitting[0], fitting[1]));
}

Result<std::string> newest_run(Store& store, const std::vector<std::string>& names) {
  std::string newest, at;
  for (const std::string& name : names) {
    const Result<std::string> opened = opened_at(store, name);
    if (!opened.ok() && opened.error().kind == ErrorKind::io) continue;
    const std::string when = TRY(opened);
    if (newest.empty() || when > at) newest = name, at = when;
  }
  return newest;
}

}  // namespace

std::string inside(const std::string& dir, const std::string& leaf) { return dir.empty() ? leaf : dir + "/" + leaf; }

std::string next_run_name(Store* runs, const std::string& name) {
  std::int64_t highest = 0;
  const Result<std::vector<std::string>> there = runs == nullptr ? std::vector<std::string>() : runs->list("");
  if (there.ok()) {
    for (std::string_view folder : *there) {
      if (!folder.ends_with('/') || !folder.starts_with(name + "-")) continue;
      folder = folder.substr(name.size() + 1, folder.size() - name.size() - 2);
      highest = std::max(highest, number_of(folder).value_or(0));
    }
  }
  return fmt::format("{}-{}", name, highest + 1);
}

Result<std::vector<std::string>> list_event_files(Store& run, const std::string& dir) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  const std::string folder = inside(dir, RunFiles::events);
  for (const std::string& name : TRY(list_if_there(run, folder))) {
    if (!name.ends_with(".jsonl")) continue;
    if (const auto number = number_of(std::string_view(name).substr(0, name.size() - 6))) {
      found.emplace_back(*number, folder + "/" + name);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  for (auto& [number, path] : found) files.push_back(std::move(path));
  return files;
}

Result<std::string> next_event_file(Store& run) {
  TRY(make_dirs_synced(run, RunFiles::events));
  const std::vector<std::string> files = TRY(list_event_files(run));
  return event_file_of(files.empty() ? 0 : number_of_event_file(files.back()) + 1);
}

std::string event_file_of(std::int64_t number) { return fmt::format("{}/{:03}.jsonl", RunFiles::events, number); }

std::int64_t number_of_event_file(std::string_view path) {
  const std::size_t slash = path.rfind('/') + 1;
  return number_of(path.substr(slash, path.size() - slash - 6)).value_or(0);
}

Result<bool> is_run(Store& store, const std::string& dir) {
  for (const char* sign : {RunFiles::plan, RunFiles::workload})
    if (TRY(store.exists(inside(dir, sign)))) return true;
  return !TRY(list_event_files(store, dir)).empty();
}

Result<std::vector<std::string>> list_runs(Store& runs, std::vector<Error>* refused) {
  std::vector<std::string> found;
  for (std::string name : TRY(runs.list(""))) {
    if (!name.ends_with('/')) continue;
    name.pop_back();
    const Result<bool> is_one = is_run(runs, name);
    if (!is_one.ok() && is_one.error().kind == ErrorKind::io) {
      if (refused != nullptr) refused->push_back(is_one.error());
    } else if (TRY(is_one)) {
      found.push_back(name);
    }
  }
  return found;
}

std::vector<Event> RunRecord::all() const {
  std::vector<Event> events;
  for (const auto& process : processes) events.insert(events.end(), process.begin(), process.end());
  return events;
}

std::string span_file_of(const std::string& event_file) {
  const std::size_t slash = event_file.rfind('/');
  const std::string number = event_file.substr(slash + 1, event_file.rfind('.') - slash - 1);
  return fmt::format("{}/{}.ring", RunFiles::spans, number);
}

Result<RunRecord> read_run(Store& store, const std::string& dir) {
  if (!TRY(is_run(store, dir))) return error(ErrorKind::not_found, "'{}' holds no run", dir.empty() ? "." : dir);
  RunRecord record;
  const std::string plan = inside(dir, RunFiles::plan);
  if (TRY(store.exists(plan))) record.plan = TRY(read_plan(TRY(read_text(store, plan)), plan));
  for (const std::string& file : TRY(list_event_files(store, dir))) {
    record.processes.push_back(TRY(parse_events(TRY(read_text(store, file)), file)));
    const std::string ring = inside(dir, span_file_of(file.substr(dir.empty() ? 0 : dir.size() + 1)));
    record.spans.emplace_back();
    if (TRY(store.exists(ring))) record.spans.back() = TRY(parse_ring(TRY(read_all(store, ring)), ring)).spans;
  }
  return record;
}

RunState state_now(RunState told, const std::string& folder) {
  if (told != RunState::running) return told;
  const Result<bool> held = is_locked(folder);
  return state_with(told, held.ok() ? std::optional(*held) : std::nullopt);
}

Result<std::string> opened_at(Store& store, const std::string& dir) {
  const std::vector<std::string> files = TRY(list_event_files(store, dir));
  if (files.empty()) return std::string();
  const Bytes size = TRY(store.size(files.back()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::int64_t>(size.count(), 1 << 16)));
  TRY(store.read(files.back(), 0, bytes));
  const std::string line = head_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Result<Event> event = parse_event(line, {files.back(), 1, 0});
  if (!event.ok() || !std::holds_alternative<Opened>(event->body)) return std::string();
  return std::get<Opened>(event->body).at;
}

Result<std::string> find_run(const std::string& runs, const std::string& asked) {
  if (!asked.empty()) {
    const Result<std::unique_ptr<Store>> folder = open_posix_store(asked);
    if (folder.ok() && TRY(is_run(**folder, ""))) return asked;
    if (!folder.ok() && folder.error().kind == ErrorKind::io) return folder.error();
  }
  const Result<std::unique_ptr<Store>> store = open_posix_store(runs);
  if (!store.ok() && store.error().kind == ErrorKind::io) return store.error();
  const std::vector<std::string> names = store.ok() ? TRY(list_runs(**store)) : std::vector<std::string>();
  std::string name;
  if (asked.empty()) {
    if (!names.empty()) name = TRY(newest_run(**store, names));
  } else if (std::find(names.begin(), names.end(), asked) != names.end()) {
    name = asked;
  } else if (number_of(asked)) {
    name = TRY(run_of_number(names, asked));
  }
  if (!name.empty()) return runs + "/" + name;
  if (store.ok() && !asked.empty()) {
    const Result<bool> is_one = is_run(**store, asked);
    if (!is_one.ok() && is_one.error().kind == ErrorKind::io) return is_one.error();
  }
  if (asked.empty()) {
    return error(ErrorKind::not_found, "there is no run in '{}'", runs)
        .coded(ErrorCode::no_such_run)
        .hinted("systole run WORKLOAD, or name the folder of a run");
  }
  std::string hint = "'systole runs' lists those there are";
  const std::string before = asked.substr(0, asked.rfind('@'));
  if (std::ranges::find(names, before) != names.end()) {
    hint = fmt::format("'{}' names a checkpoint; the run is '{}'", asked, before);
  } else if (!nearest(asked, names).empty()) {
    hint = nearest_hint(asked, names);
  } else if (asked.ends_with(".yaml") || asked.ends_with(".yml")) {
    hint = fmt::format("it looks like a workload: systole run {} begins a run", shell_word(asked));
  }
  return error(ErrorKind::not_found, "there is no run '{}': neither a run's folder nor a run in '{}'", asked, runs)
      .coded(ErrorCode::no_such_run)
      .hinted(hint);
}

}  // namespace systole
