#include "execute/checkpoint/gather.h"

#include <optional>

#include "execute/checkpoint/part.h"
#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

Error of_rank(int rank, std::string_view what, Error failed) {
  failed.message = fmt::format("rank {} {}: {}", rank, what, failed.message);
  return failed;
}

Result<Fragment> accept(WriterPart part, std::int64_t step, const SaveGroup& group) {
  if (part.failed) return of_rank(part.rank, "could not write its part", *std::move(part.failed));
  if (part.step != step || part.world != group.world) {
    return error(ErrorKind::invalid, "rank {} writes step {} as one of {}, rank 0 writes step {} as one of {}",
                 part.rank, part.step, part.world, step, group.world);
  }
  return Fragment{std::move(part.chunks), std::move(part.tensors), {}};
}

class Gathering {
 public:
  Gathering(const Folder& folder, const std::string& save, std::int64_t step, const SaveGroup& group)
      : folder_(folder), save_(save), step_(step), group_(group), parts_(static_cast<std::size_t>(group.world)) {}

  // Looks once for the missing parts. True if all are there.
  Result<bool> look() {
    missing_.clear();
    for (int rank = 1; rank < group_.world; ++rank) {
      Slot& slot = parts_[static_cast<std::size_t>(rank)];
      if (slot.fragment) continue;
      auto part = read_part(folder_, save_, rank);
      if (!part && slot.refused) return of_rank(rank, "wrote a part that cannot be read", std::move(part).error());
      slot.refused = !part.ok();  // tolerates one bad read
      if (part && *part)
        slot.fragment = TRY(accept(*std::move(*part), step_, group_));
      else
        missing_.push_back(rank);
    }
    return missing_.empty();
  }

  Error late() const {
    return error(ErrorKind::io, "{} did not write {} part of the checkpoint of step {} within {}: gone or stuck",
                 ranks_text(missing_), missing_.size() == 1 ? "its" : "their", step_, to_string(group_.patience))
        .at({folder_.parts_of(save_)});
  }

  std::vector<Fragment> take() {
    std::vector<Fragment> fragments;
    for (std::size_t rank = 1; rank < parts_.size(); ++rank) fragments.push_back(*std::move(parts_[rank].fragment));
    return fragments;
  }

 private:
  struct Slot {
    std::optional<Fragment> fragment;
    bool refused = false;  // the last look failed
  };
  const Folder& folder_;
  const std::string& save_;
  std::int64_t step_;
  const SaveGroup& group_;
  std::vector<Slot> parts_;
  std::vector<int> missing_;
};

}  // namespace

Result<std::vector<Fragment>> gather_parts(const Folder& folder, const std::string& save, std::int64_t step,
                                           const SaveGroup& group) {
  Gathering gathering(folder, save, step, group);
  const Seconds deadline = group.clock->now() + group.patience;
  while (!TRY(gathering.look())) {
    if (group.clock->now() >= deadline) return gathering.late();
    TRY(check_claim(folder, group));
    group.clock->sleep(group.poll);
  }
  return gathering.take();
}

Status await_outcome(const Folder& folder, const std::string& save, std::int64_t step, const SaveGroup& group) {
  const Seconds patience = 2 * group.patience, deadline = group.clock->now() + patience;
  bool refused = false;
  while (true) {
    auto outcome = read_outcome(folder, save, step);
    if (!outcome && refused) return std::move(outcome).error();
    refused = !outcome.ok();
    if (outcome && *outcome) {
      if ((*outcome)->failed) return *std::move((*outcome)->failed);
      return {};
    }
    if (group.clock->now() >= deadline) {
      return error(ErrorKind::io, "rank 0 did not say within {} how the save of step {} ended: gone or stuck",
                   to_string(patience), step)
          .at({folder.parts_of(save)});
    }
    TRY(check_claim(folder, group));
    group.clock->sleep(group.poll);
  }
}

Status check_chunks(const Folder& folder, std::span<const Fragment> fragments) {
  for (std::size_t rank = 0; rank < fragments.size(); ++rank) {
    for (const ChunkFile& chunk : fragments[rank].chunks) {
      auto there = verify_chunk(folder, chunk, Verify::lengths);
      if (there) continue;
      Error lost = std::move(there).error();
      lost.message = fmt::format("a chunk that rank {} wrote is damaged before the commit: {}", rank, lost.message);
      return lost;
    }
  }
  return {};
}

}  // namespace systole::checkpoint
