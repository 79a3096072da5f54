#pragma once
// The program's own flags that say how it loads its samples: by how many processes, in batches of how many.

#include <span>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// Sets resources.loader by flags in the usual spellings, such as --num-workers and --batch-size. Without a number of
// workers nothing is set: without processes /dev/shm is not used.
void read_loader(std::span<const ShellWord> words, Draft& draft);

}  // namespace systole
