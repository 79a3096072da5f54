#include "operate/cli/xla_machine.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "execute/backends/xla/xla.h"
#include "ground/base/hash.h"
#include "ground/pjrt/places.h"
#include "ground/store/store.h"
#include "operate/cli/machine.h"
#include "operate/cli/rank_threads.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole::cli {
namespace {

constexpr Bytes kKept(std::int64_t{4} << 30);  // of executables; the oldest go first

// One file each, named by its key; its first line is the hash of the rest. A file that is not whole is as if it were
// not there, and one that cannot be written is compiled again next time.
class ExecutableFolder : public ExecutableCache {
 public:
  explicit ExecutableFolder(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> find(const std::string& key) override {
    const Result<std::unique_ptr<Store>> store = open_posix_store(folder_);
    if (!store.ok()) return std::nullopt;
    const Result<std::string> text = read_text(**store, key);
    if (!text.ok()) return std::nullopt;
    const std::size_t line = text->find('\n');
    if (line == text->npos || text->substr(0, line) != to_hex(hash128(std::string_view(*text).substr(line + 1))))
      return std::nullopt;
    std::error_code ignored;  // what is used stays longest
    std::filesystem::last_write_time(folder_ + "/" + key, std::filesystem::file_time_type::clock::now(), ignored);
    return text->substr(line + 1);
  }

  void keep(const std::string& key, std::string_view bytes) override {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    const Result<std::unique_ptr<Store>> store = open_posix_store(folder_);
    if (!store.ok() || static_cast<std::int64_t>(bytes.size()) > kKept.count()) return;
    make_room(kKept - Bytes(static_cast<std::int64_t>(bytes.size())));
    (void)write_whole(**store, key, to_hex(hash128(bytes)) + "\n" + std::string(bytes));
  }

 private:
  void make_room(Bytes most) const {
    std::error_code ignored;
    std::vector<std::filesystem::directory_entry> files;
    Bytes all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
      if (!entry.is_regular_file(ignored)) continue;
      files.push_back(entry);
      all += Bytes(static_cast<std::int64_t>(entry.file_size(ignored)));
    }
    std::ranges::sort(files, {}, [&](const auto& file) { return file.last_write_time(ignored); });
    for (const auto& file : files) {
      if (all <= most) return;
      all -= Bytes(static_cast<std::int64_t>(file.file_size(ignored)));
      std::filesystem::remove(file.path(), ignored);
    }
  }

  std::string folder_;
};

// The cache's; lives as long as the process, as plugins do.
ExecutableCache* executable_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((cache == nullptr || *cache == 0) && (home == nullptr || *home == 0)) return nullptr;
  static ExecutableFolder folder(
      (cache != nullptr && *cache != 0 ? std::string(cache) : std::string(home) + "/.cache") + "/systole/xla");
  return &folder;
}

// What a plugin calls a chip where that is not its usual name.
struct ChipName {
  const char* theirs;
  const char* entry;
};
constexpr ChipName kChips[] = {{"v5 lite", "v5e"}, {"v6 lite", "v6e"}, {"v5", "v5p"}};

}  // namespace

bool is_xla(const std::string& backend) { return backend == "gpu" || backend == "tpu" || backend == "xla-cpu"; }

Result<std::unique_ptr<Device>> open_xla_device(const std::string& backend) {
  const pjrt::PluginPlace place =
      TRY(pjrt::find_plugin(backend == "xla-cpu" ? "cpu" : backend, pjrt::plugins_folder()));
  pjrt::prepare_environment(place, false);
  const pjrt::Plugin plugin = TRY(pjrt::Plugin::load(place.path));
  XlaOptions options;
  options.cache = executable_folder();
  return std::unique_ptr<Device>(TRY(make_xla_device(plugin, options)));
}

Status check_xla(const Workload& workload, const WorkloadSource& source) {
  struct Refused {
    bool asked;
    const char* key;
    const char* what;
    const char* hint;
  };
  const Refused all[] = {
      {ranks_of(workload) > 1, "mesh", "several devices", "leave the mesh out, or run it on the cpu: --backend cpu"},
      {workload.train.exact, "train.exact", "exact training", "train.exact: false, or --backend cpu"},
      {!workload.probe.all().empty(), "probe", "showing values", "leave probe out, or --backend cpu"},
      {workload.observe.replay_check.has_value(), "observe.replay_check", "the check of gradients",
       "leave observe.replay_check out, or --backend cpu"},
      {!workload.model.weights.empty(), "model.weights", "beginning from other people's weights",
       "begin with --backend cpu, and resume with --backend gpu or tpu"},
  };
  for (const Refused& one : all) {
    if (!one.asked) continue;
    return source.placed(error(ErrorKind::unsupported, "{} is not done through XLA yet", one.what).hinted(one.hint),
                         one.key);
  }
  return {};
}

Bytes temporaries_of(const Device& device) {
  Bytes most;
  for (const XlaCompiled& one : static_cast<const XlaDevice&>(device).compiled())
    most = std::max(most, one.memory.temporaries);
  return most;
}

Result<std::string> catalog_entry_of_xla(const std::string& backend, const Target& target, const Catalog& catalog) {
  if (backend == "xla-cpu") {
#ifdef SYSTOLE_HAS_CPU
    return default_entry(TRY(make_cpu_device(CpuOptions()))->target().name);
#else
    return default_entry("");
#endif
  }
  std::string kind = target.name;
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const ChipName& chip : kChips) {
    if (kind.find(chip.theirs) != kind.npos) return chip.entry;
  }
  for (const auto& [name, entry] : catalog.entries()) {
    if (kind.find(name) != kind.npos) return name;
  }
  return error(ErrorKind::not_found, "the catalog has no chip '{}'", target.name)
      .hinted("enter its memory.bandwidth and matmul.bf16 in a file of your own: systole explain catalog");
}

}  // namespace systole::cli
