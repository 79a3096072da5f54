#include "ground/process/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "ground/base/error.h"

namespace systole {
namespace {

// Reads a small kernel file; "" if absent.
std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// This process's cgroup folder of a controller and all its parents, innermost first. In a container the folder that the
// kernel names may not be mounted, but its parents are.
std::vector<std::string> groups_of(const MachineFiles& files, std::string_view controller) {
  std::vector<std::string> folders;
  std::istringstream lines(read_file(files.proc + "/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = names == ",,";
    if (!unified && names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    std::string mount = files.cgroup;
    if (!unified) mount += "/" + std::string(controller);
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      folders.push_back(mount + (path == "/" ? "" : path));
      if (path.empty() || path == "/" || path.rfind('/') == std::string::npos) break;
    }
  }
  return folders;
}

// Version 2: cpu.max is "quota period" or "max period". Version 1: two files, and -1 means no quota.
std::optional<double> quota_in(const std::string& folder) {
  std::istringstream unified(read_file(folder + "/cpu.max"));
  std::string quota, period;
  if (!(unified >> quota >> period)) {
    quota = read_file(folder + "/cpu.cfs_quota_us");
    period = read_file(folder + "/cpu.cfs_period_us");
  }
  const std::optional<std::int64_t> used = to_number(quota), of = to_number(period);
  if (!used || !of || *used <= 0 || *of <= 0) return std::nullopt;
  return static_cast<double>(*used) / static_cast<double>(*of);
}

// The bytes after "key:" in a file of lines like "MemTotal:       16318480 kB".
std::optional<std::int64_t> bytes_after(const std::string& path, std::string_view key) {
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const std::size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos) return std::nullopt;
    if (const auto kib = to_number(std::string_view(line).substr(digit))) return *kib * 1024;
  }
  return std::nullopt;
}

int cores_by_affinity() {
  for (int most = 1024; most <= 1 << 20; most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most), [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t size = CPU_ALLOC_SIZE(most);
    if (::sched_getaffinity(0, size, set.get()) == 0) return CPU_COUNT_S(size, set.get());
  }
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

std::optional<double> cgroup_cores(const MachineFiles& files) {
  std::optional<double> least;
  for (const std::string& folder : groups_of(files, "cpu")) {
    if (const std::optional<double> quota = quota_in(folder)) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

int allowed_cores(const MachineFiles& files) {
  const int cores = cores_by_affinity();
  const std::optional<double> quota = cgroup_cores(files);
  if (!quota || *quota >= cores) return std::max(cores, 1);
  return std::max(static_cast<int>(std::ceil(*quota)), 1);
}

Bytes physical_memory(const MachineFiles& files) {
  if (const auto total = bytes_after(files.proc + "/meminfo", "MemTotal")) return Bytes(*total);
  return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES))) * page_size().count();
}

std::optional<Bytes> cgroup_memory(const MachineFiles& files) {
  std::optional<Bytes> least;
  for (const std::string& folder : groups_of(files, "memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const std::optional<std::int64_t> limit = to_number(read_file(folder + name));
      // Version 1 writes "no limit" as the largest multiple of a page below 2^63.
      if (!limit || *limit <= 0 || *limit >= std::numeric_limits<std::int64_t>::max() / 2) continue;
      least = std::min(least.value_or(Bytes(*limit)), Bytes(*limit));
    }
  }
  return least;
}

Bytes memory_limit(const MachineFiles& files) {
  const Bytes physical = physical_memory(files);
  return std::min(cgroup_memory(files).value_or(physical), physical);
}

Bytes available_memory(const MachineFiles& files) {
  return Bytes(bytes_after(files.proc + "/meminfo", "MemAvailable").value_or(physical_memory(files).count()));
}

Bytes page_size() { return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE))); }

Bytes resident_memory() {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);  // "size resident shared ..." in pages
  CHECK(fd >= 0, "/proc/self/statm cannot be opened");
  std::array<char, 128> text;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  CHECK(got > 0, "/proc/self/statm cannot be read");
  const std::string_view fields(text.data(), static_cast<std::size_t>(got));
  const std::optional<std::int64_t> pages = to_number(fields.substr(fields.find(' ') + 1));
  CHECK(pages.has_value(), "/proc/self/statm says '{}'", fields);
  return page_size() * *pages;
}

// Not from getrusage: after exec it still includes the peak of the parent program.
Bytes peak_resident_memory() {
  const std::optional<std::int64_t> peak = bytes_after("/proc/self/status", "VmHWM");
  CHECK(peak.has_value(), "/proc/self/status does not tell VmHWM");
  return Bytes(*peak);
}

// The 22nd field of proc(5)'s stat, in ticks of CLOCK_BOOTTIME, which the kernel rounds down: the process was started
// half a tick later on average.
Seconds process_age() {
  constexpr int kFieldsBetween = 19;  // the name, the 2nd, may contain any character, so they are counted from its end
  const std::string stat = read_file("/proc/self/stat");
  const std::size_t name_ends = stat.rfind(')');
  timespec now{};
  if (name_ends == stat.npos || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return Seconds(0.0);
  std::istringstream fields(stat.substr(name_ends + 1));
  std::string field;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> field;
  std::int64_t ticks = 0;
  if (!(fields >> ticks)) return Seconds(0.0);
  const double started = (static_cast<double>(ticks) + 0.5) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds(std::max(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started, 0.0));
}

// After the name, in parentheses, which may contain any character: the state, T stopped, t traced (proc(5)).
bool is_stopped_process(std::int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_ends = stat.rfind(')');
  if (name_ends == stat.npos || name_ends + 2 >= stat.size()) return false;
  return stat[name_ends + 2] == 'T' || stat[name_ends + 2] == 't';
}

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string processor_name(const MachineFiles& files) {
  std::ifstream file(files.proc + "/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t from = line.find_first_not_of(" \t:", std::string_view("model name").size());
    if (from != line.npos) return line.substr(from);
  }
  return "unknown processor";
}

}  // namespace systole
