#pragma once
// What to train on, of all that is offered, and why everything else is not it: each option that lost has its reason and
// the edit of the command that would make it win.

#include <functional>

#include "predict/plan/offers.h"
#include "predict/plan/search.h"

namespace systole {

// cheapest and per_token have one order, for all options train as many tokens; front: fastest, and all that nothing
// else is both faster and cheaper than.
enum class Wanted { fastest, cheapest, per_token, front };

struct ChoiceRequest {
  std::vector<PlannedOffer> offers;
  Wanted wanted = Wanted::fastest;
  double steps = 1;
  std::optional<Seconds> deadline;
  std::optional<Dollars> budget;
  std::size_t best = 5;    // layouts of the whole search
  std::size_t alone = 24;  // more offers than these are not looked at one by one, but the best of each accelerator
  bool exhaustive = false;
  int threads = 2;
  // Asked of so many layouts of the whole search, the best first, and of more until one passes: why it cannot be after
  // all, by somebody who knows better. Such a one loses.
  std::size_t judged = 0;
  std::function<std::optional<std::string>(const Estimated&)> judge;
};

struct LostOption {
  std::size_t offer = 0;
  std::optional<Estimated> estimated;  // its best; nothing where no layout of it fits
  std::string reason;                  // "12% slower, 5% cheaper"
  std::string edit;                    // "--budget 41230"; "": none would
  bool layout = false;                 // of the offer that was chosen: `edit` stands for --set (layout_edit.h)
  bool refused = false;                // by the judge: nothing would make it win
};

struct OfferChoice {
  std::optional<Estimated> chosen;  // nothing: none fits, or none meets deadline and budget
  std::vector<LostOption>
      lost;  // the best of each other offer, what was refused, other layouts of the chosen one; best first
  std::vector<Estimated> front;   // of the best of each offer, the fastest first
  SearchCounts counts;            // of the search that chose
  std::size_t not_looked_at = 0;  // offers that others of their accelerator stand for
};

OfferChoice choose(const Composer& composer, const ChoiceRequest& request);
// The best layout of all that is offered, whoever judges it; nothing: none fits, or none meets deadline and budget.
std::optional<Estimated> best_of_all(const Composer& composer, const ChoiceRequest& request);

// "412d5h": what --deadline takes, rounded up to whole hours (seconds below an hour).
std::string deadline_words(Seconds seconds);
std::string budget_words(Dollars dollars);  // "41230", rounded up

// Collectives that nothing hides and handing on between stages, of the step.
constexpr StepShare kExposedShares[] = {StepShare::tensor,     StepShare::context,   StepShare::expert,
                                        StepShare::parameters, StepShare::gradients, StepShare::handing_on};
double exposed_share(const StepTime& step);
constexpr double kMuchExposed = 0.2;  // of a step: communication that is told of

// The best layout of one offer by itself, whatever deadline and budget say, or the least memory that it would take.
struct AloneResult {
  std::optional<Estimated> best;  // its offer is 0
  std::optional<Bytes> least_memory;
  std::int64_t candidates = 0;
};
AloneResult search_alone(const Composer& composer, const ChoiceRequest& request, const PlannedOffer& offer,
                         bool pipelines = true);

}  // namespace systole
