#pragma once
// Facts about one instruction of an optimised module.

#include "predict/prove/loop_trips.h"

namespace systole::prove {

// The compiler's own estimate, from the instruction's JSON; 0: none.
double estimated_cycles(const pjrt::HloInstruction& instruction);

// Takes no time: it names, binds or orders values, or ends what began before.
bool is_free(const pjrt::HloInstruction& instruction);

// "all_reduce" for "all-reduce" and "all-reduce-start"; "": no collective, or the end of one.
std::string collective_kind(const std::string& opcode);

// The op that an instruction came from, by its source as Systole's modules name it ("layer/attn.q: contract" and
// "call.1/layer/cast" are contract and cast); "": unnamed.
std::string op_of_source(const std::string& source);

// The whole value of a collective: its operands or its results, whichever are larger.
Bytes payload(const HloLookup& lookup, const pjrt::HloInstruction& collective);
// Devices that take part; 0: all of the program.
std::int64_t group_of(const pjrt::HloInstruction& collective);

// A TPU collective that overlaps with other work is split over several fusions, each of which contains it: one starts
// it, some continue it, one ends it.
enum class CollectivePart { whole, begins, goes_on, ends };
CollectivePart part_in(const pjrt::HloComputation& fused);
// The kind of a collective inside a fusion. Only the name of the computation shows that it is a reduce-scatter.
std::string collective_kind(const pjrt::HloComputation& fused, const pjrt::HloInstruction& inner);

// Limits on the depth of calls and on visits in total: a module may call what calls twice, and so on.
constexpr int kDeepestCall = 200;
constexpr std::int64_t kMostVisits = 2'000'000;

}  // namespace systole::prove
