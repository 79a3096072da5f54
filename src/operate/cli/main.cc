#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "operate/cli/command.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace {

// Idle threads of a team must sleep: spinning takes the core from other work (reading rows ahead, the checkpoint,
// another process) and made steps several times slower on a busy machine. But waking a thread costs 74 us. So threads
// spin for some tens of microseconds before they sleep, which bridges the gap between kernels: this saves 8% of a step
// of the quickstart, and costs nothing on a busy machine. libgomp reads the setting when it is loaded, before main, so
// a command that computes re-executes itself with it set; other commands have no team and start at once. A setting of
// the user's is kept.
bool computes(char** arguments) {
  constexpr std::string_view kComputing[] = {"run",   "resume", "generate", "serve",
                                             "embed", "batch",  "eval",     "calibrate"};
  while (*++arguments != nullptr && **arguments == '-') continue;
  return *arguments != nullptr &&
         std::find(std::begin(kComputing), std::end(kComputing), *arguments) != std::end(kComputing);
}

void wait_passively(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "2000", 0);
  execv("/proc/self/exe", arguments);  // returns only on failure: then threads spin
}

}  // namespace

int main(int count, char** arguments) {
#ifdef SYSTOLE_HAS_CPU
  systole::undo_openmp_binding();  // child processes and threads inherit the cores
#endif
  if (computes(arguments)) wait_passively(arguments);
  return systole::cli::run_command_line(std::vector<std::string>(arguments + 1, arguments + count));
}
