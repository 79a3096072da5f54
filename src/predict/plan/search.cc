#include "predict/plan/search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

#include "ground/base/parallel.h"
#include "predict/plan/candidate_set.h"
#include "predict/plan/estimated.h"

namespace systole {
namespace {

// By what is best: the objective, of equals the other of time and dollars, and then the devices' step, which differs
// where all wait for their rows.
struct Rank {
  double score = 0, second = 0, step = 0;
  auto operator<=>(const Rank&) const = default;
};

// An entry of the queue: an offer, an offer's first remaining candidate by its bound, a candidate by its layers' bound,
// or a composed candidate by its time.
struct Waiting {
  enum class Kind { offer, bound, floor, composed } kind = Kind::offer;
  Rank rank;
  double step = 0;  // seconds
  std::size_t offer = 0;
  const CandidateSet::Entry* entry = nullptr;  // null for an offer
};
struct Later {
  bool operator()(const Waiting& a, const Waiting& b) const {
    const auto first = std::tie(a.rank, a.offer, a.kind) <=> std::tie(b.rank, b.offer, b.kind);
    if (first != 0 || a.entry == nullptr) return first > 0;
    return a.entry->candidate > b.entry->candidate;
  }
};

// The outcome of one step of a candidate.
struct Outcome {
  enum class Kind { waits, over_memory, impossible, estimated } kind = Kind::waits;
  Seconds step;
  Bytes memory;
  std::optional<Estimated> estimated;
};

class Search {
 public:
  Search(const Composer& composer, const SearchRequest& request, bool staged)
      : composer_(composer), request_(request), wish_(request.wish()), bounds_(composer), staged_(staged) {}

  SearchResult run() {
    list();
    for (std::size_t o = 0; o < request_.offered.size(); ++o) {
      const HardwareOption& offer = request_.offered[o];
      const Seconds step = bounds_.time(offer.cluster.devices, offer.cluster.chip, offer.kernels, offer.stack);
      // An offer without a price comes first, so that its candidates are counted.
      queue_of(o).push({Waiting::Kind::offer, unpriced(o) ? Rank() : rank(o, step.count()), step.count(), o, nullptr});
    }
    while (result_.best.size() < wanted()) {
      const std::optional<std::size_t> group = first_group();
      if (!group) break;
      step(batch_of_all(queues_.at(*group).top().kind));
    }
    std::ranges::stable_sort(result_.best, std::less(),
                             [&](const Estimated& e) { return rank(e.offer, e.step.seconds); });
    if (result_.best.size() > request_.best) result_.best.resize(request_.best);
    if (request_.of_groups) find_others();
    for (auto& [group, queue] : queues_)
      for (; !queue.empty(); queue.pop()) {
        if (queue.top().kind == Waiting::Kind::offer) result_.counts.candidates += in_place_of(queue.top());
        result_.counts.left += in_place_of(queue.top());
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
  WithStorage stored(std::size_t offer, double step_seconds) const {
    const HardwareOption& option = request_.offered[offer];
    return with_best_storage(option.storages, Seconds(step_seconds), option.price, wish_);
  }
  Rank rank(std::size_t offer, double step_seconds) const {
    const WithStorage with = stored(offer, step_seconds);
    const double time = with.step.count() * request_.steps;
    const bool counts = !request_.offered[offer].storages.empty();  // otherwise equal times are one offer's
    const double dollars = !counts ? 0 : with.dollars ? with.dollars->count() : std::numeric_limits<double>::infinity();
    if (request_.objective == PlanObjective::cheapest) return {with.dollars->count(), counts ? time : 0, step_seconds};
    return {time, dollars, step_seconds};
  }
  bool unpriced(std::size_t offer) const {
    const HardwareOption& option = request_.offered[offer];
    return (request_.objective == PlanObjective::cheapest || request_.budget) && !option.price;
  }

  bool over_limit(std::size_t offer, double step_seconds) const { return !stored(offer, step_seconds).within; }

  // The group whose queue has the best entry of all; nothing: all are empty.
  std::optional<std::size_t> first_group() const {
    std::optional<std::size_t> first;
    for (const auto& [group, queue] : queues_)
      if (!queue.empty() && (!first || Later()(queues_.at(*first).top(), queue.top()))) first = group;
    return first;
  }

  // The batch size. No more Programs are built than can be answers.
  std::size_t at_once(Waiting::Kind kind, std::size_t answers) const {
    switch (kind) {
      case Waiting::Kind::offer: return 1;
      case Waiting::Kind::bound: return 512;
      case Waiting::Kind::floor: return 64;
      case Waiting::Kind::composed: break;
    }
    return std::min<std::size_t>(8, answers);
  }

  // After a candidate that waits by its first bound, the next one of its offer enters the queue.
  Waiting pop(std::size_t group) {
    const Waiting first = queues_.at(group).top();
    queues_.at(group).pop();
    if (first.kind == Waiting::Kind::bound) wait_by_bound(first.offer, first.entry + 1);
    return first;
  }

  // The number of candidates that an entry represents.
  std::int64_t in_place_of(const Waiting& waiting) const {
    if (waiting.kind == Waiting::Kind::offer)
      return static_cast<std::int64_t>(listing_of_offer(waiting.offer).entries.size());
    if (waiting.kind != Waiting::Kind::bound) return 1;
    return fitting(waiting.offer, waiting.entry);
  }

  // The number of an offer's candidates from `first` on that fit by their bounds.
  std::int64_t fitting(std::size_t offer, const CandidateSet::Entry* first) const {
    const Open& open = open_.at(offer);
    return std::count_if(first, open.end(),
                         [&](const CandidateSet::Entry& entry) { return entry.arena <= open.most_arena; });
  }

  // Queues the first of an offer's candidates from `first` on that fits by its bound.
  void wait_by_bound(std::size_t o, const CandidateSet::Entry* first) {
    const Open& open = open_.at(o);
    first = std::find_if(first, open.end(),
                         [&](const CandidateSet::Entry& entry) { return entry.arena <= open.most_arena; });
    if (first == open.end()) return;
    const HardwareOption& offer = request_.offered[o];
    const Seconds step = bounds_.time(first->flops, offer.cluster.chip, offer.kernels, offer.stack);
    if (over_limit(o, step.count())) {
      result_.counts.over_limit += fitting(o, first);
      return;
    }
    queue_of(o).push(
        {Waiting::Kind::bound, request_.exhaustive ? Rank() : rank(o, step.count()), step.count(), o, first});
  }

  // The best entry and those directly behind it of the same kind.
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

  // Finds the best of each group that has no answer yet.
  void find_others() {
    const auto by_rank = [&](const Estimated& e) { return rank(e.offer, e.step.seconds); };
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
      if (!result_.best.empty())
        result_.others.push_back(*std::ranges::min_element(result_.best, std::less(), by_rank));
    }
    result_.best = std::move(best);
  }

  // Queues an entry again, unless it cannot be an answer. `step`: lower bound on its step time.
  void wait(Waiting::Kind kind, const Waiting& before, Seconds step) {
    if (over_limit(before.offer, step.count())) {
      ++result_.counts.over_limit;
      return;
    }
    queue_of(before.offer)
        .push({kind, request_.exhaustive ? Rank() : rank(before.offer, step.count()), step.count(), before.offer,
               before.entry});
  }

  // Takes one step for a batch of one kind.
  void step(const std::vector<Waiting>& batch) {
    const Waiting::Kind kind = batch[0].kind;
    if (kind == Waiting::Kind::offer) return enumerate(batch[0].offer);
    std::vector<Outcome> outcomes(batch.size());
    if (kind == Waiting::Kind::bound) {  // a microsecond each, but for the first with its layers
      in_parallel(first_of_their_layers(batch), [&](std::size_t i) { outcomes[i] = floored(batch[i]); });
      for (std::size_t i = 0; i < batch.size(); ++i) outcomes[i] = floored(batch[i]);
    } else {
      std::vector<std::size_t> all(batch.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      in_parallel(all, [&](std::size_t i) {
        outcomes[i] = kind == Waiting::Kind::floor ? composed(batch[i]) : made(batch[i]);
      });
    }
    for (std::size_t i = 0; i < batch.size(); ++i) settle(batch[i], outcomes[i]);
  }

  template <typename Item, typename Look>
  void in_parallel(const std::vector<Item>& which, const Look& look) const {
    const auto one = [&](std::size_t i) -> Status {
      look(which[i]);
      return {};
    };
    CHECK(for_each_in_parallel(which.size(), request_.threads, one).ok(), "looking fails by its outcome");
  }

  std::vector<std::size_t> first_of_their_layers(const std::vector<Waiting>& batch) const {
    std::vector<std::size_t> first;
    std::set<Bounds::LayerKey> seen;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Bounds::LayerKey layer = bounds_.layer_key(batch[i].entry->candidate, batch[i].offer);
      if (!bounds_.is_known(layer) && seen.insert(layer).second) first.push_back(i);
    }
    return first;
  }

  // Lists the candidates of all offered sizes, in parallel.
  void list() {
    for (const HardwareOption& offer : request_.offered)
      listings_.try_emplace({offer.cluster.devices, offer.kernels.half_copies});
    std::vector<decltype(listings_)::pointer> lists;
    for (auto& list : listings_) lists.push_back(&list);
    in_parallel(lists, [&](auto* list) {
      list->second = candidate_set_of(composer_, bounds_, list->first.first, list->first.second, staged_);
    });
  }

  const CandidateSet& listing_of_offer(std::size_t o) const {
    const HardwareOption& offer = request_.offered[o];
    return listings_.at({offer.cluster.devices, offer.kernels.half_copies});
  }

  void enumerate(std::size_t o) {
    const HardwareOption& offer = request_.offered[o];
    const CandidateSet& listing = listing_of_offer(o);
    SearchCounts& counts = result_.counts;
    counts.candidates += static_cast<std::int64_t>(listing.entries.size());
    const auto memory = [&](Bytes arena) {
      MemoryParts parts;
      parts.arena = arena;
      return device_memory(parts, offer.stack).total();
    };
    const std::vector<Bytes>& arenas = listing.arenas;
    const auto over = request_.exhaustive
                          ? arenas.end()
                          : std::ranges::partition_point(arenas, [&](Bytes a) { return memory(a) <= usable(o); });
    counts.over_memory_by_bound += arenas.end() - over;
    if (over != arenas.end()) note_memory(o, memory(*over));
    if (over == arenas.begin()) return;
    if (unpriced(o)) {
      counts.unpriced += over - arenas.begin();
      return;
    }
    open_.emplace(o, Open{&listing, *(over - 1)});
    wait_by_bound(o, listing.entries.data());
  }

  void note_memory(std::size_t offer, Bytes memory) {
    const auto [least, first] = result_.least_memory.try_emplace(request_.offered[offer].group, memory, offer);
    if (!first && memory < least->second.bytes) least->second = {memory, offer};
  }

  // The bound from its layers; without one, the candidate keeps its bound.
  Outcome floored(const Waiting& waiting) const {
    const HardwareOption& offer = request_.offered[waiting.offer];
    Outcome outcome;
    outcome.step = Seconds(waiting.step);
    const Result<Bounds::Floor> floor =
        bounds_.floor(waiting.entry->candidate, waiting.offer, offer.cluster, offer.kernels, offer.stack);
    if (!floor.ok()) return outcome;
    outcome.step = std::max(outcome.step, floor->time);
    outcome.memory = floor->memory;
    if (!request_.exhaustive && outcome.memory > usable(waiting.offer)) outcome.kind = Outcome::Kind::over_memory;
    return outcome;
  }

  Outcome composed(const Waiting& waiting) const {
    const HardwareOption& offer = request_.offered[waiting.offer];
    const Result<ComposedTotals> made = composed_totals(composer_, waiting.entry->candidate, offer);
    if (!made.ok()) return {Outcome::Kind::impossible, {}, {}, {}};
    Outcome outcome{Outcome::Kind::waits, made->step, made->memory, {}};
    if (!request_.exhaustive && outcome.memory > usable(waiting.offer)) outcome.kind = Outcome::Kind::over_memory;
    return outcome;
  }

  Outcome made(const Waiting& waiting) const {
    const HardwareOption& offer = request_.offered[waiting.offer];
    Result<Estimated> estimated =
        estimate_candidate(composer_.asked(), composer_, waiting.entry->candidate, offer, wish_);
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
        return wait(by_bound ? Waiting::Kind::floor : Waiting::Kind::composed, waiting, outcome.step);
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
  const StorageWish wish_;
  const Bounds bounds_;
  const bool staged_;  // pipelines are searched
  using Queue = std::priority_queue<Waiting, std::vector<Waiting>, Later>;
  Queue& queue_of(std::size_t offer) { return queues_[request_.of_groups ? request_.offered[offer].group : 0]; }
  std::map<std::size_t, Queue> queues_;  // by group
  // An offer whose candidates are in the queue.
  struct Open {
    const CandidateSet* listing;
    Bytes most_arena;  // the most of those that fit by their bounds
    const CandidateSet::Entry* end() const { return listing->entries.data() + listing->entries.size(); }
  };
  std::map<std::size_t, Open> open_;
  std::map<std::pair<std::int64_t, bool>, CandidateSet> listings_;  // by devices, and whether 16-bit copies are kept
  SearchResult result_;
};

}  // namespace

SearchResult search(const Composer& composer, const SearchRequest& request) {
  if (!composer.one_stack()) {
    SearchResult found = Search(composer, request, false).run();
    found.counts.without_pipelines = true;
    if (!found.best.empty() || !request.staged_stacks || !request.pipelines) return found;
  }
  return Search(composer, request, request.pipelines && composer.shapes().empty()).run();
}

}  // namespace systole
