#pragma once
// Chooses the hardware to train on among all offers. Each option that lost has its reason and the edit of the command
// that would make it win.

#include <functional>

#include "predict/plan/offers.h"
#include "predict/plan/search.h"

namespace systole {

// cheapest and per_token rank alike, since all options train on as many tokens. front: fastest, and also every option
// that no other beats in both time and cost.
enum class OfferRanking { fastest, cheapest, per_token, front };
inline bool by_dollars(OfferRanking wanted) {
  return wanted == OfferRanking::cheapest || wanted == OfferRanking::per_token;
}

struct ChoiceRequest {
  std::vector<ClusterOffer> offers;
  OfferRanking wanted = OfferRanking::fastest;
  double steps = 1;
  std::optional<Seconds> deadline;
  std::optional<Dollars> budget;
  std::size_t best = 5;    // layouts of the whole search
  std::size_t alone = 24;  // up to this many offers are searched one by one; of more, each accelerator's best
  bool exhaustive = false;
  int threads = 2;
  // A check of layouts from outside, such as a compiler. It judges this many of the best layouts of the whole search,
  // and more until one passes. It returns why a layout fails; that layout then loses.
  std::size_t judged = 0;
  std::function<std::optional<std::string>(const Estimated&)> judge;
  // Sets the storages of an offer (offer_storages.h); null: there are none. `offers` have theirs already.
  std::function<void(ClusterOffer&)> add_storages;
};

StorageWish wish_of(const ChoiceRequest& request);

struct LostOption {
  std::size_t offer = 0;
  std::optional<Estimated> estimated;  // its best layout; nothing: none fits
  std::string reason;                  // "12% slower, 5% cheaper"
  std::string edit;                    // "--budget 41230"; "": no edit would
  bool layout = false;                 // a layout of the chosen offer: `edit` stands for --set (layout_edit.h)
  bool refused = false;                // by the judge: no edit would make it win
};

struct OfferChoice {
  std::optional<Estimated> chosen;  // nothing: none fits, or none meets deadline and budget
  std::vector<LostOption>
      lost;  // the best of each other offer, refused layouts, other layouts of the chosen offer; best first
  std::vector<Estimated> front;   // Pareto front of each offer's best; fastest first
  SearchCounts counts;            // of the search that chose
  std::size_t not_looked_at = 0;  // offers that another one of their accelerator represents
};

OfferChoice choose(const Composer& composer, const ChoiceRequest& request);
// The best layout of all offers, without a judge. Nothing: none fits, or none meets deadline and budget.
std::optional<Estimated> best_of_all(const Composer& composer, const ChoiceRequest& request);

// "412d5h": what --deadline takes, rounded up to whole hours (seconds below an hour).
std::string deadline_words(Seconds seconds);
std::string budget_words(Dollars dollars);  // "41230", rounded up

// Shares of a step in exposed communication: collectives that nothing hides, and transfers between stages.
constexpr StepShare kExposedShares[] = {StepShare::tensor,     StepShare::context,   StepShare::expert,
                                        StepShare::parameters, StepShare::gradients, StepShare::handing_on};
double exposed_share(const StepTime& step);
constexpr double kMuchExposed = 0.2;  // share of a step from which exposed communication is reported

// The best layout of one offer, regardless of deadline and budget, or the least memory that one needs.
struct AloneResult {
  std::optional<Estimated> best;  // its offer is 0
  std::optional<Bytes> least_memory;
  std::int64_t candidates = 0;
};
AloneResult search_alone(const Composer& composer, const ChoiceRequest& request, const ClusterOffer& offer,
                         bool pipelines = true);

}  // namespace systole
