// Facts from system calls.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "ground/base/fd.h"
#include "ground/base/free_space.h"
#include "operate/doctor/facts.h"

namespace systole {
namespace {

using Steady = std::chrono::steady_clock;
using Calendar = std::chrono::system_clock;

double seconds_of(auto duration) { return std::chrono::duration<double>(duration).count(); }

Error lost(const std::string& folder) {
  return error(errno == ENOSPC ? ErrorKind::no_space : ErrorKind::io, "cannot write in '{}': {}", folder,
               std::strerror(errno));
}

class ThisSystem : public System {
 public:
  std::optional<SpaceFacts> space(const std::string& folder) override {
    struct statvfs of {};
    if (statvfs(folder.c_str(), &of) != 0) return std::nullopt;
    return SpaceFacts{free_in(of),
                      Bytes(static_cast<std::int64_t>(of.f_frsize) * static_cast<std::int64_t>(of.f_blocks))};
  }

  std::optional<std::int64_t> limit(Limit which) override {
    struct rlimit value {};
    const auto resource = which == Limit::open_files      ? RLIMIT_NOFILE
                          : which == Limit::locked_memory ? RLIMIT_MEMLOCK
                          : which == Limit::core_size     ? RLIMIT_CORE
                                                          : RLIMIT_AS;
    if (getrlimit(resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY) return std::nullopt;
    return static_cast<std::int64_t>(value.rlim_cur);
  }

  ClockFacts clock() override {
    ClockFacts facts;
    struct timex state {};  // modes 0: only reads
    if (const int said = adjtimex(&state); said >= 0)
      facts.synchronised = said != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
    const auto steady = Steady::now();
    const auto calendar = Calendar::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double steadily = seconds_of(Steady::now() - steady), by_calendar = seconds_of(Calendar::now() - calendar);
    facts.drift = (by_calendar - steadily) / steadily;
    return facts;
  }

  bool tiles_allowed() override {
    constexpr long kSupported = 0x1021, kTileData = 18;  // ARCH_GET_XCOMP_SUPP
    unsigned long bits = 0;
    return syscall(SYS_arch_prctl, kSupported, &bits) == 0 && (bits >> kTileData & 1) != 0;
  }

  Result<Seconds> sync_time(const std::string& folder) override {
    std::string name = folder + "/.systole-doctor-XXXXXX";
    const Fd file(mkostemp(name.data(), O_CLOEXEC));
    if (file.get() < 0) return lost(folder);
    unlink(name.c_str());
    constexpr int kTimes = 7;
    std::array<double, kTimes> seconds{};
    const std::string block(4096, 's');
    for (double& each : seconds) {
      const auto began = Steady::now();
      if (write(file.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size()) || fsync(file.get()) != 0)
        return lost(folder);
      each = seconds_of(Steady::now() - began);
    }
    std::sort(seconds.begin(), seconds.end());
    return Seconds(seconds[kTimes / 2]);
  }
};

}  // namespace

std::unique_ptr<System> this_system() { return std::make_unique<ThisSystem>(); }

}  // namespace systole
