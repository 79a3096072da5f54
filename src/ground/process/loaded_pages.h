#pragma once
// The pages of the program and its libraries that are mapped from their files: code and tables. Once used, for example
// by planning, they count as memory of the process, although the system could reclaim them at any time.

namespace systole {

// Unmaps those pages that equal their file. On reuse a page fault brings them back from the page cache, up to 64 KiB at
// a time (libraries loaded after this call may come in larger pieces). A page that was written to (relocations, a
// debugger's breakpoint) stays. Any thread, at any time. Does nothing if the system does not tell which pages were
// written to.
void let_go_of_loaded_pages();

}  // namespace systole
