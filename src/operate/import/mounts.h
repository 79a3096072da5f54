#pragma once
// Lines that mount a file system before the program starts: `mount SERVER:/PATH /data`, `gcsfuse BUCKET /data`.

#include <span>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// With or without sudo in front.
bool is_mount(std::span<const ShellWord> words);
// As a volume of the workload; told where it is of one machine alone.
void read_mount(std::span<const ShellWord> words, Draft& draft);

}  // namespace systole
