#include "operate/run/program_sandbox.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/os_error.h"
#include "ground/base/shown_text.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

constexpr std::uint64_t kMostFile = 64 << 20, kMostOpen = 256;

// Namespaces of users, with the same user in it, of the network, of IPC and of processes, whose first one ends them all.
// That is a shell and not the program: the kernel keeps a program's own signals from the first process, and that one
// can undo --kill-child for itself.
const std::vector<std::string> kUnshare{
    "unshare", "-U", "-c", "-n", "-i", "-p", "-f", "--kill-child", "/bin/sh", "-c", R"("$@"; exit $?)", "sh"};

// A new folder that goes with the object.
class TrialFolder {
 public:
  static Result<std::unique_ptr<TrialFolder>> make() {
    std::string name = temporary_folder() + "/systole-program-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return os_error(errno, "make a folder in", temporary_folder());
    return std::unique_ptr<TrialFolder>(new TrialFolder(std::move(name)));
  }
  ~TrialFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TrialFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::string why_not(const Captured& ran, const ProgramSpec& spec) {
  if (ran.timed_out) return fmt::format("no end in {:g} s", spec.timeout.count());
  constexpr std::size_t kShown = 200;
  const std::string end = ran.err.size() > kShown ? ran.err.substr(ran.err.size() - kShown) : ran.err;
  return to_string(ran.exit) + (end.empty() ? "" : ": " + printable(end));
}

}  // namespace

Result<ProgramSandbox> ProgramSandbox::open(bool unsafe) {
  ProgramSandbox made;
  Command trial;
  trial.argv = kUnshare;
  trial.argv.push_back("true");
  const Result<Captured> ran = run_captured(std::move(trial), {.timeout = Seconds(10.0)});
  if (ran.ok() && ran->exit.ok()) {
    made.prefix_ = kUnshare;
    return made;
  }
  if (unsafe) return made;
  return error(ErrorKind::unsupported, "programs cannot be kept from the network here: {}",
               ran.ok() ? "unshare: " + to_string(ran->exit) : ran.error().message)
      .hinted("--unsafe-command runs them all the same: only on a machine that may be lost");
}

Result<ProgramTrial> ProgramSandbox::run(const ProgramSpec& spec, const std::string& text) const {
  (void)TRY(find_program(spec.command[0]));  // not as a program that fails
  const std::unique_ptr<TrialFolder> folder = TRY(TrialFolder::make());
  TRY(write_text_file(folder->path() + "/" + spec.file, text));
  Command command;
  command.argv = prefix_;
  command.argv.insert(command.argv.end(), spec.command.begin(), spec.command.end());
  command.cwd = folder->path();
  command.clean_env = true;
  const char* const path = ::getenv("PATH");
  command.env.emplace_back("PATH", std::string(path == nullptr ? "/usr/bin:/bin" : path));
  command.env.emplace_back("HOME", folder->path());
  command.env.emplace_back("TMPDIR", folder->path());
  command.env.emplace_back("LANG", std::string("C.UTF-8"));
  command.limits = {{RLIMIT_CPU, static_cast<std::uint64_t>(std::ceil(spec.timeout.count())) + 1},
                    {RLIMIT_AS, static_cast<std::uint64_t>(spec.memory.count())},
                    {RLIMIT_FSIZE, kMostFile},
                    {RLIMIT_NOFILE, kMostOpen},
                    {RLIMIT_CORE, 0}};
  CaptureOptions options;
  options.limit = Bytes(64 << 10);
  options.timeout = spec.timeout;
  const Captured ran = TRY(run_captured(std::move(command), options));
  ProgramTrial trial{.passed = !ran.timed_out && ran.exit.ok()};
  if (!trial.passed) trial.why = why_not(ran, spec);
  return trial;
}

}  // namespace systole
