#pragma once
// The parts of verify(Program). Each checks one property, independently of the planners. Errors of all:
// Failure(invalid).

#include "describe/program/program.h"

namespace systole {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(Error{ErrorKind::invalid, fmt::format(format, std::forward<Args>(args)...), {}, {}, {}});
}

// Ports, aliases and donations of one function: verify_program.cc.
void verify_function(const Program& program, const Function& function);
// Locations inside a function, against the lifetimes of its values: verify_scratch.cc.
void verify_scratch(const Program& program, const Function& function);
// Reads, writes and donations of actions, in the order that streams and waits give: verify_schedule.cc.
void verify_schedule(const Program& program, const Schedule& schedule);
// Blocks with overlapping lifetimes share no byte: verify_arena.cc.
void verify_arena(const Program& program);

}  // namespace systole
