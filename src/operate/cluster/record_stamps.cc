#include "operate/cluster/record_stamps.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "ground/base/fd.h"
#include "ground/base/hash.h"
#include "ground/base/os_error.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

constexpr std::size_t kShare = 256;  // runs per thread at a time

using Told = std::array<std::int64_t, 3>;  // of one file; all 0: absent

bool tell(int folder, const std::string& file, Told& told) {
  struct stat info {};
  if (::fstatat(folder, file.c_str(), &info, 0) != 0) return errno == ENOENT;
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  told = {static_cast<std::int64_t>(info.st_size), info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec,
          static_cast<std::int64_t>(info.st_ino)};
  return true;
}

std::optional<std::uint64_t> stamp_of(int folder, const std::string& run) {
  std::array<Told, 2> told{};
  if (!tell(folder, run + "/record.json", told[0]) || !tell(folder, run + "/ledger", told[1])) return {};
  return hash64(std::as_bytes(std::span(told)));
}

}  // namespace

Result<std::vector<RecordStamp>> record_stamps(Submissions& submissions) {
  std::vector<RecordStamp> stamps;
  for (std::string& name : TRY(submissions.names())) stamps.push_back({std::move(name), {}});
  const Fd folder(::open(submissions.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return os_read_error(errno, "look at", submissions.path());
  TRY(for_each_in_parallel((stamps.size() + kShare - 1) / kShare, io_threads(), [&](std::size_t share) -> Status {
    for (std::size_t i = share * kShare; i < std::min((share + 1) * kShare, stamps.size()); ++i)
      stamps[i].files = stamp_of(folder.get(), stamps[i].run);
    return {};
  }));
  return stamps;
}

}  // namespace systole
