#pragma once
// `systole plan --on … --prove`: the vendors' compilers judge the layouts that a plan would choose among.
//
// Each of the first few is compiled for its slice, as `systole prove` does: one that does not fit loses, whatever its
// prediction says. What is compiled is a Program of this house; how long a step takes stays a prediction, of which
// published rows say how good it is, while the compiler's own count is shown where a proof has it.

#include "ground/pjrt/places.h"
#include "operate/cli/plan_on.h"
#include "operate/cli/proof_store.h"
#include "predict/prove/prove.h"

namespace systole::cli {

// The slice that an offer is. Errors: unsupported: several slices, a chip of which no compiler is known; as
// parse_slice.
Result<prove::Slice> slice_of(const PlannedOffer& offer, const Catalog& catalog);

class LayoutProver {
 public:
  // Of what --on names there is a compiler here. Errors: unsupported, of the first offer.
  static Status check(const std::vector<PlannedOffer>& offers, const Catalog& catalog);

  // Borrows all.
  LayoutProver(const Workload& asked, const std::vector<PlannedOffer>& offers, const Catalog& catalog,
               Context& context);

  // Why the compiler does not take it; nothing: it fits, or cannot be proved. Failure: interrupted.
  std::optional<std::string> judge(const Estimated& estimated);
  std::vector<ProvedLayout> take() { return std::move(proved_); }

 private:
  Result<prove::Proved> proved(const Estimated& estimated);

  const Workload& asked_;
  const std::vector<PlannedOffer>& offers_;
  const Catalog& catalog_;
  Context& context_;
  std::unique_ptr<Store> store_;
  std::optional<prove::ProofCache> cache_;
  std::vector<ProvedLayout> proved_;
  std::vector<std::string> told_;  // notes
};

// Null: it was not looked at.
const ProvedLayout* proof_of_layout(const OfferedPlan& plan, const Estimated& estimated);
std::string proved_text(const OfferedPlan& plan, int width);
Node proved_node(const ProvedLayout* proved);

}  // namespace systole::cli
