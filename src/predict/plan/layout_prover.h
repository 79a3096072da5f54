#pragma once
// `systole plan --on … --prove`: vendors' compilers judge the best layouts of a plan.
//
// The first few layouts are compiled for their slices, as `systole prove` does. A layout that does not fit loses,
// whatever its prediction says. What is compiled is Systole's Program. Step time remains a prediction, whose error on
// published rows is known; the compiler's own count is shown where a proof has it.

#include "ground/pjrt/places.h"
#include "predict/plan/offers.h"
#include "predict/plan/plan_messages.h"
#include "predict/plan/search.h"
#include "predict/prove/proof_store.h"
#include "predict/prove/prove.h"

namespace systole {

// What a compiler said of a layout.
struct ProvedLayout {
  std::size_t offer = 0;
  Candidate candidate;
  Bytes predicted;
  std::optional<prove::Proof> proof;
  std::string why;  // why there is no proof
  bool cached = false;
};

class LayoutProver {
 public:
  // Checks that this machine has a compiler for some offer. Errors: unsupported, about the first offer.
  static Status check(const std::vector<ClusterOffer>& offers, const Catalog& catalog);

  // `shapes`: of data.buckets; the step of the longest rows is what is compiled. Borrows all arguments.
  LayoutProver(const Workload& asked, const std::vector<PlannedShape>& shapes, const std::vector<ClusterOffer>& offers,
               const Catalog& catalog, const PlanMessages& messages, Clock& clock);

  // Why the compiler rejects it; nothing: it fits, or cannot be proved. Failure: interrupted.
  std::optional<std::string> judge(const Estimated& estimated);
  std::vector<ProvedLayout> take() { return std::move(proved_); }

 private:
  Result<prove::Proved> proved(const Estimated& estimated);

  const Workload& asked_;
  const std::vector<PlannedShape>& shapes_;
  const std::vector<ClusterOffer>& offers_;
  const Catalog& catalog_;
  const PlanMessages& messages_;
  Clock& clock_;
  std::unique_ptr<Store> store_;
  std::optional<prove::ProofCache> cache_;
  std::vector<ProvedLayout> proved_;
  std::vector<std::string> told_;  // notes already shown
};

// "needs 17.1 GiB of 16 GiB", or the compiler's own words. REQUIRES: it does not fit.
std::string refusal_words(const prove::Proof& proof);

Node proved_node(const ProvedLayout* proved);  // null for null

}  // namespace systole
