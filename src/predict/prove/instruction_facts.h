#pragma once
// What an instruction of an optimised module says of itself.

#include "predict/prove/loop_trips.h"

namespace systole::prove {

// The compiler's own estimate, which stands in its JSON; 0 where it says nothing.
double estimated_cycles(const pjrt::HloInstruction& instruction);

// Nothing runs for it: it names, binds, orders, or ends what began before.
bool is_free(const pjrt::HloInstruction& instruction);

// "all_reduce" of "all-reduce", "all-reduce-start"; "" of what is no collective, and of what ends one.
std::string collective_kind(const std::string& opcode);

// The op that an instruction was made of, of its place as Systole's modules name it ("layer/attn.q: contract" and
// "call.1/layer/cast" are contract and cast); "" where it says none.
std::string op_of_source(const std::string& source);

// Of a collective: the whole value, what comes in or what goes out, whichever is more.
Bytes payload(const HloLookup& lookup, const pjrt::HloInstruction& collective);
// Devices that take part; 0: all of the program's.
std::int64_t group_of(const pjrt::HloInstruction& collective);

// A collective of TPUs' that others run beside is cut over several fusions, each of which holds it: one that starts it,
// those in which it goes on, one that ends it.
enum class CollectivePart { whole, begins, goes_on, ends };
CollectivePart part_in(const pjrt::HloComputation& fused);
// As the collectives in it are: of one that scatters what it reduces the compiler names the computation.
std::string collective_kind(const pjrt::HloComputation& fused, const pjrt::HloInstruction& inner);

// How deep computations call computations, and how much of them is looked at: a module may call what calls twice, and
// so on.
constexpr int kDeepestCall = 200;
constexpr std::int64_t kMostVisits = 2'000'000;

}  // namespace systole::prove
