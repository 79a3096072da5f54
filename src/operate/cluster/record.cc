#include "operate/cluster/record.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/store/private_store.h"
#include "operate/cluster/allocation_ledger.h"

namespace systole {
namespace {

constexpr const char* kFolder = ".submitted";
constexpr const char* kRecord = "record.json";

// The record's text fields and their keys.
constexpr std::array<std::pair<const char*, std::string Record::*>, 13> kTexts = {
    {{"run", &Record::run},
     {"target", &Record::target},
     {"submission", &Record::submission},
     {"id", &Record::id},
     {"from", &Record::from},
     {"place", &Record::place},
     {"program", &Record::program},
     {"folder", &Record::folder},
     {"submitted_at", &Record::submitted_at},
     {"by", &Record::by},
     {"workload_sha256", &Record::workload_sha256},
     {"plan_sha256", &Record::plan_sha256},
     {"program_sha256", &Record::program_sha256}}};

constexpr std::array<std::pair<const char*, std::vector<std::string> Record::*>, 2> kLists = {
    {{"after", &Record::after}, {"earlier", &Record::earlier}}};

Error os(const std::error_code& code, const char* what, const std::string& path) {
  return error(ErrorKind::io, "cannot {} '{}': {}", what, path, code.message());
}

constexpr int kTries = 100;  // each lost to a failed submission of another process, which removes empty folders

Result<std::unique_ptr<Store>> made_store(const std::string& path) {
  for (int tries = 1;; ++tries) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) return os(failed, "make the folder", path);
    Result<std::unique_ptr<Store>> store = open_private_store(path);
    if (store.ok() || store.error().kind != ErrorKind::not_found || tries == kTries) return store;
  }
}

}  // namespace

Node to_node(const Record& record) {
  Node node = Node::map();
  for (const auto& [name, text] : kTexts) node.set(name, record.*text);
  node.set("audit", record.audit);
  if (record.usd_per_hour) node.set("usd_per_hour", record.usd_per_hour->count());
  if (record.budget) node.set("budget_usd", record.budget->count());
  node.set("array", record.array);
  for (const auto& [name, ids] : kLists) {
    Node list = Node::sequence();
    for (const std::string& id : record.*ids) list.push(id);
    node.set(name, list);
  }
  Node where = Node::map();
  for (const auto& [name, text] : record.where) where.set(name, text);
  return node.set("where", where);
}

Result<Record> record_of(const Node& node) {
  Record record;
  for (const auto& [name, text] : kTexts) record.*text = TRY(TRY(node.get(name))->as_string());
  record.audit = TRY(TRY(node.get("audit"))->as_string());
  if (const Node* price = node.find("usd_per_hour")) record.usd_per_hour = DollarsPerHour(TRY(price->as_double()));
  if (const Node* budget = node.find("budget_usd")) record.budget = Dollars(TRY(budget->as_double()));
  record.array = TRY(TRY(node.get("array"))->as_bool());
  for (const auto& [name, ids] : kLists)
    for (const Node& id : TRY(node.get(name))->items()) (record.*ids).push_back(TRY(id.as_string()));
  if (const Node* where = node.find("where"))
    for (const Node::Entry& entry : where->entries()) record.where[entry.key] = TRY(entry.value.as_string());
  return record;
}

Result<std::string> Submissions::path_below(const std::string& runs) {
  return TRY(absolute_path(runs)) + "/" + kFolder;
}

Result<Submissions> Submissions::open(const std::string& runs) {
  const std::string path = TRY(path_below(runs));
  return Submissions(path, TRY(made_store(path)));
}

Result<std::optional<Submissions>> Submissions::open_if_there(const std::string& runs) {
  std::error_code failed;
  if (!std::filesystem::is_directory(runs + "/" + kFolder, failed)) return std::optional<Submissions>();
  return std::optional<Submissions>(TRY(open(runs)));
}

Result<std::vector<std::string>> Submissions::names() {
  std::vector<std::string> names;
  for (const std::string& name : TRY(store_->list("")))
    if (name.ends_with('/') && !name.starts_with('.')) names.push_back(name.substr(0, name.size() - 1));
  return names;
}

Result<std::vector<Record>> Submissions::list() {
  std::vector<Record> records;
  for (const std::string& name : TRY(names()))
    if (std::optional<Record> record = TRY(find(name))) records.push_back(std::move(*record));
  return records;
}

Result<std::optional<Record>> Submissions::find(const std::string& run) {
  const std::string file = run + "/" + kRecord;
  Result<std::string> text = read_text(*store_, file);
  if (!text.ok() && text.error().kind == ErrorKind::not_found) return std::optional<Record>();
  if (!text.ok()) return std::move(text).error();
  const std::string path = path_ + "/" + file;
  const Result<Node> node = parse_json(*text, path);
  if (node.ok()) {
    Result<Record> record = record_of(*node);
    if (record.ok() && record->run == run) return std::optional<Record>(std::move(*record));
  }
  return error(ErrorKind::corrupt, "this is no record of the run '{}'", run)
      .at({path, 0, 0})
      .hinted("copy it back, or take its folder away: what runs of it is found again by its name");
}

Status Submissions::write(const Record& record) {
  TRY(make_dirs_synced(*store_, record.run));
  return write_whole(*store_, record.run + "/" + kRecord, to_json(to_node(record), 2) + "\n");
}

Status Submissions::forget(const std::string& run) { return store_->remove(run + "/" + kRecord); }

Status Submissions::remove(const std::string& run) {
  TRY(forget(run));  // first: a partial folder is not a run
  std::error_code failed;
  std::filesystem::remove_all(place(run), failed);
  if (failed) return os(failed, "take away", place(run));
  return {};
}

Result<std::unique_ptr<FileLock>> Submissions::lock(const std::string& run) {
  return locked(run, [&] { return lock_folder(place(run)); });
}

Result<std::unique_ptr<FileLock>> Submissions::lock_programs(Clock& clock) {
  constexpr Seconds kPatience(60.0);  // the holder copies a program
  return locked(kProgramsFolder, [&] { return lock_folder(place(kProgramsFolder), kPatience, clock); });
}

// Another process whose submission failed may remove the folder, and the one around it, after it is made and before it
// is locked.
Result<std::unique_ptr<FileLock>> Submissions::locked(const std::string& folder,
                                                      const std::function<Result<std::unique_ptr<FileLock>>()>& lock) {
  for (int tries = 1;; ++tries) {
    const Status made = store_->make_dirs(folder);
    Result<std::unique_ptr<FileLock>> taken = made.ok() ? lock() : Result<std::unique_ptr<FileLock>>(made.error());
    if (taken.ok() || taken.error().kind != ErrorKind::not_found || tries == kTries) return taken;
    if (!made.ok()) store_ = TRY(made_store(path_));
  }
}

Status Submissions::remove_program(const std::string& sha256, Clock& clock) {
  if (!TRY(store_->exists(kProgramsFolder))) return {};
  const std::unique_ptr<FileLock> lock = TRY(lock_programs(clock));
  for (const Record& record : TRY(list()))
    if (record.program_sha256 == sha256) return {};
  TRY(store_->remove(fmt::format("{}/{}", kProgramsFolder, sha256)));
  if (TRY(store_->list(kProgramsFolder)).size() > 1) return {};  // the remaining one is the lock file
  std::error_code failed;
  std::filesystem::remove_all(place(kProgramsFolder), failed);
  if (failed) return os(failed, "take away", place(kProgramsFolder));
  return {};
}

void Submissions::remove_if_empty() {
  if (::rmdir(path_.c_str()) == 0) ::rmdir(std::filesystem::path(path_).parent_path().c_str());
}

std::string who_and_where() {
  const passwd* user = ::getpwuid(::getuid());
  utsname machine{};
  ::uname(&machine);
  return fmt::format("{}@{}", user == nullptr ? std::to_string(::getuid()) : user->pw_name, machine.nodename);
}

}  // namespace systole
