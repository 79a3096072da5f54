#include "predict/plan/search.h"

#include <algorithm>
#include <queue>

#include "describe/spec/schema.h"
#include "ground/base/parallel.h"
#include "predict/plan/bounds.h"
#include "predict/plan/estimated.h"

namespace systole {
namespace {

constexpr std::int64_t kMostStages = 64, kMostModel = 64;
constexpr std::int64_t kLeastTokens = 4096;      // of a row on a device; shorter rows are not cut
constexpr std::int64_t kMostMicrobatches = 512;  // more change the time of a step by less than anything else does

std::vector<std::int64_t> divisors_of(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) divisors.push_back(d);
  return divisors;
}

// What waits to be looked at: an offer, a candidate by its bound, by what its layers take at least, or a composed one
// by its time.
struct Waiting {
  enum class Kind { offer, bound, floor, composed } kind = Kind::offer;
  double score = 0;
  double step = 0;  // seconds
  std::size_t offer = 0;
  Candidate candidate;
};
struct Later {
  bool operator()(const Waiting& a, const Waiting& b) const {
    return std::tie(a.score, a.offer, a.kind, a.candidate) > std::tie(b.score, b.offer, b.kind, b.candidate);
  }
};

// What became of one.
struct Outcome {
  enum class Kind { waits, over_memory, impossible, estimated } kind = Kind::waits;
  Seconds step;
  Bytes memory;
  std::optional<Estimated> estimated;
};

class Search {
 public:
  Search(const Composer& composer, const SearchRequest& request)
      : composer_(composer), request_(request), bounds_(composer) {}

  SearchResult run() {
    for (std::size_t o = 0; o < request_.offered.size(); ++o) {
      const Offered& offer = request_.offered[o];
      wait(Waiting::Kind::offer, o, {},
           bounds_.time(offer.cluster.devices, offer.cluster.chip, offer.kernels, offer.stack));
    }
    while (result_.best.size() < wanted()) {
      const std::optional<std::size_t> group = first_group();
      if (!group) break;
      step(batch_of_all(queues_.at(*group).top().kind));
    }
    std::ranges::stable_sort(result_.best, {}, [&](const Estimated& e) { return score(e.offer, e.step.seconds); });
    if (result_.best.size() > request_.best) result_.best.resize(request_.best);
    if (request_.of_groups) find_others();
    for (auto& [group, queue] : queues_) {
      for (; !queue.empty(); queue.pop()) result_.counts.left += queue.top().kind != Waiting::Kind::offer;
    }
    find_front();
    return std::move(result_);
  }

 private:
  std::size_t wanted() const { return request_.exhaustive ? static_cast<std::size_t>(-1) : request_.best; }
  Bytes usable(std::size_t offer) const {
    return Bytes(static_cast<std::int64_t>(static_cast<double>(request_.offered[offer].cluster.chip.capacity.count()) *
                                           kUsableMemory));
  }
  std::optional<Dollars> dollars(std::size_t offer, double step_seconds) const {
    const std::optional<DollarsPerHour>& price = request_.offered[offer].price;
    if (!price) return std::nullopt;
    return *price * Seconds(step_seconds * request_.steps);
  }
  double score(std::size_t offer, double step_seconds) const {
    return request_.objective == Objective::cheapest ? dollars(offer, step_seconds)->count()
                                                     : step_seconds * request_.steps;
  }
  bool needs_price() const { return request_.objective == Objective::cheapest || request_.budget.has_value(); }

  bool over_limit(std::size_t offer, double step_seconds) const {
    if (request_.deadline && Seconds(step_seconds * request_.steps) > *request_.deadline) return true;
    return request_.budget && *dollars(offer, step_seconds) > *request_.budget;
  }

  // The queue that has what comes first of all; nothing: all are empty.
  std::optional<std::size_t> first_group() const {
    std::optional<std::size_t> first;
    for (const auto& [group, queue] : queues_)
      if (!queue.empty() && (!first || Later()(queues_.at(*first).top(), queue.top()))) first = group;
    return first;
  }

  // How many are looked at at once. Programs are not made of more than can be answers.
  std::size_t at_once(Waiting::Kind kind, std::size_t answers) const {
    switch (kind) {
      case Waiting::Kind::offer: return 1;
      case Waiting::Kind::bound: return 512;
      case Waiting::Kind::floor: return 64;
      case Waiting::Kind::composed: break;
    }
    return std::min<std::size_t>(8, answers);
  }

  Waiting pop(std::size_t group) {
    Waiting first = queues_.at(group).top();
    queues_.at(group).pop();
    return first;
  }

  // What comes first, with what comes directly behind it and is of its kind.
  std::vector<Waiting> batch_of_all(Waiting::Kind kind) {
    std::vector<Waiting> batch;
    const std::size_t most = at_once(kind, wanted() - result_.best.size());
    while (batch.size() < most) {
      const std::optional<std::size_t> group = first_group();
      if (!group || queues_.at(*group).top().kind != kind) break;
      batch.push_back(pop(*group));
    }
    return batch;
  }

  // Of each group that has no answer yet, its best.
  void find_others() {
    const auto by_score = [&](const Estimated& e) { return score(e.offer, e.step.seconds); };
    std::vector<Estimated> best = std::move(result_.best);
    for (auto& [group, queue] : queues_) {
      const auto is_of_group = [&](const Estimated& e) { return request_.offered[e.offer].group == group; };
      if (std::ranges::any_of(best, is_of_group)) continue;
      result_.best.clear();
      while (result_.best.empty() && !queue.empty()) {
        const Waiting::Kind kind = queue.top().kind;
        std::vector<Waiting> batch;
        const std::size_t most = at_once(kind, static_cast<std::size_t>(request_.threads));
        while (!queue.empty() && queue.top().kind == kind && batch.size() < most) batch.push_back(pop(group));
        step(batch);
      }
      if (!result_.best.empty()) result_.others.push_back(*std::ranges::min_element(result_.best, {}, by_score));
    }
    result_.best = std::move(best);
  }

  // Puts it in its place, unless it can be no answer. `step`: what it takes at least.
  void wait(Waiting::Kind kind, std::size_t offer, const Candidate& candidate, Seconds step) {
    const bool counts = kind != Waiting::Kind::offer;
    if (needs_price() && !request_.offered[offer].price) {
      result_.counts.unpriced += counts;
      if (counts) return;
      queue_of(offer).push({kind, 0, step.count(), offer, candidate});  // its candidates are counted
      return;
    }
    if (over_limit(offer, step.count()) && counts) {
      ++result_.counts.over_limit;
      return;
    }
    queue_of(offer).push({kind, request_.exhaustive ? 0 : score(offer, step.count()), step.count(), offer, candidate});
  }

  // All of one kind.
  void step(const std::vector<Waiting>& batch) {
    const Waiting::Kind kind = batch[0].kind;
    if (kind == Waiting::Kind::offer) return enumerate(batch[0].offer);
    std::vector<Outcome> outcomes(batch.size());
    const auto look = [&](std::size_t i) -> Status {
      outcomes[i] = kind == Waiting::Kind::bound   ? floored(batch[i])
                    : kind == Waiting::Kind::floor ? composed(batch[i])
                                                   : made(batch[i]);
      return {};
    };
    CHECK(for_each_in_parallel(batch.size(), request_.threads, look).ok(), "looking fails by its outcome");
    for (std::size_t i = 0; i < batch.size(); ++i) settle(batch[i], outcomes[i]);
  }

  void enumerate(std::size_t o) {
    const Offered& offer = request_.offered[o];
    for (const Candidate& candidate : candidates_of(composer_, offer.cluster.devices)) {
      ++result_.counts.candidates;
      const Bytes memory = bounds_.memory(candidate, offer.kernels, offer.stack);
      if (!request_.exhaustive && memory > usable(o)) {
        ++result_.counts.over_memory_by_bound;
        note_memory(o, memory);
        continue;
      }
      wait(Waiting::Kind::bound, o, candidate, bounds_.time(candidate, offer.cluster.chip, offer.kernels, offer.stack));
    }
  }

  void note_memory(std::size_t offer, Bytes memory) {
    const auto [least, first] = result_.least_memory.try_emplace(request_.offered[offer].group, memory, offer);
    if (!first && memory < least->second.bytes) least->second = {memory, offer};
  }

  // What its layers take at least; where no layer tells, it waits as before.
  Outcome floored(const Waiting& waiting) const {
    const Offered& offer = request_.offered[waiting.offer];
    Outcome outcome;
    outcome.step = Seconds(waiting.step);
    const Result<Bounds::Floor> floor =
        bounds_.floor(waiting.candidate, waiting.offer, offer.cluster, offer.kernels, offer.stack);
    if (!floor.ok()) return outcome;
    outcome.step = std::max(outcome.step, floor->time);
    outcome.memory = floor->memory;
    if (!request_.exhaustive && outcome.memory > usable(waiting.offer)) outcome.kind = Outcome::Kind::over_memory;
    return outcome;
  }

  // Its time and the least memory; of what cannot be composed out of Programs that are for counting alone.
  Outcome composed(const Waiting& waiting) const {
    const Offered& offer = request_.offered[waiting.offer];
    Outcome outcome;
    const Result<Composed> step = composer_.compose(waiting.candidate, composer_.asked().train.batch);
    if (step.ok()) {
      outcome.step = Seconds(step_time(step_parts(step->step, offer.cluster, offer.kernels), offer.stack).seconds);
      outcome.memory = step->memory_at_least(offer.kernels, offer.stack);
    } else {
      const Result<CandidatePrograms> programs =
          programs_of(composer_.asked(), waiting.candidate, composer_.target(), false);
      if (!programs.ok()) return {Outcome::Kind::impossible, {}, {}, {}};
      outcome.step = Seconds(step_time(step_parts(programs->step, offer.cluster, offer.kernels), offer.stack).seconds);
    }
    if (!request_.exhaustive && outcome.memory > usable(waiting.offer)) outcome.kind = Outcome::Kind::over_memory;
    return outcome;
  }

  Outcome made(const Waiting& waiting) const {
    const Offered& offer = request_.offered[waiting.offer];
    Result<Estimated> estimated =
        estimate_candidate(composer_.asked(), composer_.target(), waiting.candidate, offer, request_.steps);
    if (!estimated.ok()) return {Outcome::Kind::impossible, {}, {}, {}};
    estimated->offer = waiting.offer;
    Outcome outcome{Outcome::Kind::estimated, Seconds(estimated->step.seconds), estimated->memory.total(), {}};
    if (outcome.memory > usable(waiting.offer)) outcome.kind = Outcome::Kind::over_memory;
    outcome.estimated = std::move(*estimated);
    return outcome;
  }

  void settle(const Waiting& waiting, Outcome& outcome) {
    SearchCounts& counts = result_.counts;
    counts.composed += waiting.kind == Waiting::Kind::floor;
    switch (outcome.kind) {
      case Outcome::Kind::waits: {
        const bool by_bound = waiting.kind == Waiting::Kind::bound;
        return wait(by_bound ? Waiting::Kind::floor : Waiting::Kind::composed, waiting.offer, waiting.candidate,
                    outcome.step);
      }
      case Outcome::Kind::over_memory: {
        std::int64_t& over = waiting.kind == Waiting::Kind::bound   ? counts.over_memory_by_bound
                             : waiting.kind == Waiting::Kind::floor ? counts.over_memory_composed
                                                                    : counts.over_memory;
        ++over;
        return note_memory(waiting.offer, outcome.memory);
      }
      case Outcome::Kind::impossible: ++counts.impossible; return;
      case Outcome::Kind::estimated: ++counts.computed; result_.best.push_back(std::move(*outcome.estimated));
    }
  }

  void find_front() {
    for (std::size_t i = 0; i < result_.best.size(); ++i) {
      const Estimated& one = result_.best[i];
      if (!one.dollars) continue;
      const bool beaten = std::ranges::any_of(result_.best, [&](const Estimated& other) {
        return other.dollars && other.total <= one.total && *other.dollars <= *one.dollars &&
               (other.total < one.total || *other.dollars < *one.dollars);
      });
      if (!beaten) result_.front.push_back(i);
    }
  }

  const Composer& composer_;
  const SearchRequest& request_;
  const Bounds bounds_;
  using Queue = std::priority_queue<Waiting, std::vector<Waiting>, Later>;
  Queue& queue_of(std::size_t offer) { return queues_[request_.of_groups ? request_.offered[offer].group : 0]; }
  std::map<std::size_t, Queue> queues_;  // by group
  SearchResult result_;
};

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
  for (const auto stored : {StoredInParts::state, StoredInParts::gradients, StoredInParts::parameters}) {
    if (candidate.fsdp == 1 && stored != StoredInParts::parameters) continue;
    candidate.stored = stored;
    add_microbatches(composer, candidate, candidates);
  }
}

// Sizes of an axis that the workload may have, of those that divide `devices`.
std::vector<std::int64_t> sizes_of(const Composer& composer, std::int64_t Candidate::*axis, std::int64_t devices) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : divisors_of(devices, kMostModel)) {
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
  std::erase_if(contexts, [&](std::int64_t size) { return size > 1 && asked.context / size < kLeastTokens; });
  Candidate c;
  for (c.pipe = 1; c.pipe <= std::min({devices, kMostStages, composer.layers()}); ++c.pipe) {
    if (devices % c.pipe != 0) continue;
    for (c.model = 1; c.model <= std::min(devices, kMostModel); ++c.model) {
      if (devices % (c.pipe * c.model) != 0 || (asked.heads > 0 && asked.heads % c.model != 0)) continue;
      for (const std::int64_t context : contexts) {
        for (const std::int64_t expert : experts) {
          const std::int64_t inner = c.pipe * c.model * context * expert;
          if (devices % inner != 0) continue;
          c.context = context;
          c.expert = expert;
          for (const std::int64_t fsdp : divisors_of(devices / inner, devices)) {
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

SearchResult search(const Composer& composer, const SearchRequest& request) { return Search(composer, request).run(); }

}  // namespace systole
