#include "execute/train/least_of.h"

#include <span>
#include <string>
#include <vector>

namespace systole {

Result<std::int64_t> least_of(std::int64_t mine, Communicator& ranks, const Mesh& mesh) {
  CollectiveCall call;
  for (const Axis& axis : mesh.axes()) call.axis += (call.axis.empty() ? "" : ",") + axis.name;
  call.parts = ranks.num_ranks();
  call.dtype = DType::i64;
  call.shape = {1};
  call.maximum = true;
  std::int64_t below = ~mine, most = 0;  // ~ reverses the order and, unlike negation, has no overflow
  const auto bytes = [](std::int64_t& number) { return std::as_writable_bytes(std::span(&number, 1)).data(); };
  std::vector<std::byte> workspace(static_cast<std::size_t>(collective_workspace(call).count()));
  const auto reduce = TRY(ranks.prepare(call, bytes(below), bytes(most), workspace.data()));
  WorkCounters not_of_the_plan;
  TRY(ranks.run(*reduce, not_of_the_plan));
  return ~most;
}

}  // namespace systole
