#pragma once
// Lines that mount a file system before the program starts: `mount SERVER:/PATH /data`, `gcsfuse BUCKET /data`.

#include <span>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// For words without wrappers.
bool is_mount(std::span<const ShellWord> words);
// Becomes a volume of the workload; reported if it belongs to one machine only.
void read_mount(std::span<const ShellWord> line, Draft& draft);

}  // namespace systole
