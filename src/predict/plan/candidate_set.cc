#include "predict/plan/candidate_set.h"

#include <algorithm>

#include "describe/spec/rules_layout.h"

namespace systole {
namespace {

constexpr std::int64_t kMostStages = 64, kMostModel = 64;
constexpr std::int64_t kLeastTokens = 4096;      // of a row on a device; shorter rows are not sharded
constexpr std::int64_t kMostMicrobatches = 512;  // more of them change step time less than anything else does

void add_microbatches(const Composer& composer, Candidate candidate, std::vector<Candidate>& candidates) {
  const std::int64_t parts = candidate.row_parts(), batch = composer.asked().train.batch;
  if (batch % parts != 0) return;
  const std::int64_t rows = batch / parts;
  for (std::int64_t each = 1; each <= rows; each *= 2) {
    candidate.microbatches = rows / each;
    if (rows % each != 0 || candidate.microbatches > kMostMicrobatches) continue;
    for (const std::int64_t chunks : {1, 2, 4}) {
      candidate.chunks = chunks;
      const bool interleaves = candidate.pipe > 1 && candidate.microbatches % candidate.pipe == 0;
      if (chunks > 1 && (!interleaves || candidate.pipe * chunks > composer.layers())) continue;
      for (const auto recompute :
           {RecomputeSpec::Kind::none, RecomputeSpec::Kind::attention, RecomputeSpec::Kind::block}) {
        candidate.recompute = recompute;
        candidates.push_back(candidate);
      }
    }
  }
}

void add_stored(const Composer& composer, Candidate candidate, std::vector<Candidate>& candidates) {
  for (const auto stored : {ZeroStage::state, ZeroStage::gradients, ZeroStage::parameters}) {
    if (candidate.fsdp == 1 && stored != ZeroStage::parameters) continue;
    candidate.stored = stored;
    add_microbatches(composer, candidate, candidates);
  }
}

// Sizes of an axis that divide `devices` and that the workload allows.
std::vector<std::int64_t> sizes_of(const Composer& composer, std::int64_t Candidate::*axis, std::int64_t devices) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : divisors_up_to(kMostModel, devices)) {
    Candidate alone;
    alone.*axis = size;
    Workload workload = workload_of(composer.asked(), alone);
    workload.train.batch = std::max(workload.train.batch, size);
    if (size == 1 || broken_rules(workload).empty()) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

std::vector<Candidate> candidates_of(const Composer& composer, std::int64_t devices) {
  std::vector<Candidate> candidates;
  const ModelSpec& asked = composer.asked().model;
  const std::vector<std::int64_t> experts = sizes_of(composer, &Candidate::expert, devices);
  std::vector<std::int64_t> contexts = sizes_of(composer, &Candidate::context, devices);
  const bool lengths = !composer.shapes().empty();  // a row is then whole (check_shapes)
  std::erase_if(contexts,
                [&](std::int64_t size) { return size > 1 && (lengths || asked.context() / size < kLeastTokens); });
  const std::int64_t stages = std::min({devices, kMostStages, std::max<std::int64_t>(1, composer.layers())});
  Candidate c;
  for (const std::int64_t pipe : divisors_up_to(stages, devices)) {
    c.pipe = pipe;
    for (const std::int64_t model : divisors_up_to(kMostModel, devices / pipe)) {
      if (!divides(model, asked.heads())) continue;
      c.model = model;
      for (const std::int64_t context : contexts) {
        for (const std::int64_t expert : experts) {
          const std::int64_t inner = pipe * model * context * expert;
          if (devices % inner != 0) continue;
          c.context = context;
          c.expert = expert;
          for (const std::int64_t fsdp : divisors_up_to(devices, devices / inner)) {
            c.fsdp = fsdp;
            c.data = devices / inner / fsdp;
            add_stored(composer, c, candidates);
          }
        }
      }
    }
  }
  return candidates;
}

CandidateSet candidate_set_of(const Composer& composer, const Bounds& bounds, std::int64_t devices, bool half_copies,
                              bool staged) {
  CandidateSet listing;
  for (Candidate& candidate : candidates_of(composer, devices)) {
    if (candidate.staged() && !staged) continue;
    const double flops = bounds.flops(candidate);
    const Bytes arena = bounds.arena(candidate, half_copies);
    listing.entries.push_back({std::move(candidate), flops, arena});
    listing.arenas.push_back(arena);
  }
  std::ranges::stable_sort(listing.entries, {}, &CandidateSet::Entry::flops);
  std::ranges::sort(listing.arenas);
  return listing;
}

}  // namespace systole
