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

// The threads of a team must sleep when they have nothing to do: spinning takes the core from whoever has work (the
// rows ahead, the checkpoint, another process) and made steps several times slower on a busy machine. But waking one
// costs 74 us, so they look for work some tens of microseconds long before they sleep, which bridges the time between
// kernels: 8% of a step of the quickstart, and no loss on a busy machine. libgomp reads this when it is loaded, before
// main, so a command that computes starts itself once more with it set; the others have no team and answer at once.
// Someone who set it keeps theirs.
bool computes(char** arguments) {
  constexpr std::string_view kComputing[] = {"run", "resume", "generate", "calibrate"};
  while (*++arguments != nullptr && **arguments == '-') continue;
  return *arguments != nullptr &&
         std::find(std::begin(kComputing), std::end(kComputing), *arguments) != std::end(kComputing);
}

void wait_passively(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "2000", 0);
  execv("/proc/self/exe", arguments);  // comes back only if it cannot: then they spin
}

}  // namespace

int main(int count, char** arguments) {
#ifdef SYSTOLE_HAS_CPU
  systole::undo_openmp_binding();  // what comes next inherits the cores
#endif
  if (computes(arguments)) wait_passively(arguments);
  return systole::cli::run_command_line(std::vector<std::string>(arguments + 1, arguments + count));
}
