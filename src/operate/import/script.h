#pragma once
// A list of shell commands, of which one starts the program: a batch script, a pasted line, what a container runs.

#include <string>
#include <string_view>

#include "operate/import/draft.h"
#include "operate/import/launchers.h"

namespace systole {

void read_script(std::string_view text, const std::string& file, Draft& draft, const Setup& setup = {});
// The same with lines of #SBATCH. `beside` as in ImportSource: a script that Systole rendered has its workload there.
void read_batch_script(const ImportSource& source, Draft& draft);

}  // namespace systole
