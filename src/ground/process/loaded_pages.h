#pragma once
// The pages of the program and its libraries that are mapped from their files: code and tables. What a process has used
// once, as planning, counts as its memory from then on, though the system could have it back at any time.

namespace systole {

// Lets go of those of them that hold what their file holds; what is used again comes from the system's cache of files,
// a page fault for up to 64 KiB each, of what is mapped now. A page that was written to (relocated, or with a
// debugger's breakpoint) stays. Any thread, at any time. Where the system does not tell which pages were written to,
// nothing is done.
void let_go_of_loaded_pages();

}  // namespace systole
