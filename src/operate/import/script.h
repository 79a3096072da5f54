#pragma once
// A list of shell commands, one of which starts the program: a batch script, a pasted line, a container's command.

#include <string>
#include <string_view>

#include "operate/import/draft.h"
#include "operate/import/launchers.h"

namespace systole {

void read_script(std::string_view text, const std::string& file, Draft& draft, const Setup& setup = {});
// The same with #SBATCH lines. `beside` as in ImportSource: a rendered script has its workload there.
void read_batch_script(const ImportSource& source, Draft& draft);

}  // namespace systole
