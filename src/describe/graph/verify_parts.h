#pragma once
// The parts of verify(Program): each proves one thing, without the planner's help. Errors of all: Failure(invalid).

#include "describe/graph/program.h"

namespace systole {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(Error{ErrorKind::invalid, fmt::format(format, std::forward<Args>(args)...), {}, {}, {}});
}

// Ports, aliases and donations of one function: verify_program.cc.
void verify_function(const Program& program, const Function& function);
// Places inside a function, against the lives of its values: verify_scratch.cc.
void verify_scratch(const Program& program, const Function& function);
// What actions read, write and donate, in the order that streams and waits give: verify_schedule.cc.
void verify_schedule(const Program& program, const Schedule& schedule);
// No two blocks that live at the same time share a byte: verify_arena.cc.
void verify_arena(const Program& program);

}  // namespace systole
