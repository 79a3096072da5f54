#include "operate/doctor/facts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace systole {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string first_word(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  return word;
}

// "always [madvise] never": the active choice is in brackets.
std::string chosen_of(const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']', open);
  return close == text.npos ? first_word(text) : text.substr(open + 1, close - open - 1);
}

// Reads the processors, and the flags of the first.
void read_cpuinfo(const std::string& path, MachineFacts& facts) {
  std::ifstream file(path);
  facts.machine_cores = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("processor")) ++facts.machine_cores;
    if (!line.starts_with("flags") || !facts.flags.empty()) continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    facts.flags.assign(std::istream_iterator<std::string>(words), {});
  }
}

}  // namespace

bool MachineFacts::has(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

MachineFacts read_facts(const MachineRoots& roots, System& system) {
  MachineFacts facts;
  const std::string& proc = roots.files.proc;
  facts.processor = processor_name(roots.files);
  read_cpuinfo(proc + "/cpuinfo", facts);
  facts.cores = allowed_cores(roots.files);
  facts.machine_cores = std::max(facts.machine_cores, facts.cores);
  facts.quota = cgroup_cores(roots.files);
  if (const auto load = read_file(proc + "/loadavg")) facts.load = std::strtod(load->c_str(), nullptr);
  facts.tiles_allowed = facts.has("amx_tile") && system.tiles_allowed();
  if (const auto governor = read_file(roots.sys + "/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    facts.governor = first_word(*governor);
  facts.memory = physical_memory(roots.files);
  facts.available = available_memory(roots.files);
  facts.memory_group = cgroup_memory(roots.files);
  facts.strict_overcommit = first_word(read_file(proc + "/sys/vm/overcommit_memory").value_or("0")) == "2";
  if (const auto pages = read_file(roots.sys + "/kernel/mm/transparent_hugepage/enabled"))
    facts.huge_pages = chosen_of(*pages);
  facts.disk = system.space(roots.folder);
  facts.shared_memory = system.space(roots.shared_memory);
  const Result<Seconds> sync = system.sync_time(roots.folder);
  if (sync.ok()) {
    facts.sync_time = *sync;
  } else {
    facts.sync_error = sync.error();
  }
  facts.clock = system.clock();
  facts.open_files = system.limit(Limit::open_files);
  facts.locked_memory = system.limit(Limit::locked_memory);
  facts.core_size = system.limit(Limit::core_size);
  facts.address_space = system.limit(Limit::address_space);
  return facts;
}

}  // namespace systole
