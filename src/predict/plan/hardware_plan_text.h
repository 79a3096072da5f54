#pragma once
// A plan for offered hardware as text: the choice first, where its time and memory go, and why every other option lost.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/draw/folded_text.h"
#include "predict/plan/hardware_plan.h"

namespace systole {

// How the plan is shown, and parts of the text that come from other modules.
struct PlanTextOptions {
  int width = kUnfolded;
  bool all = false;                                   // every option that lost
  bool drawings = true;                               // charts of characters
  std::function<std::string(std::string_view)> bold;  // the names of options, as the terminal shows them
  std::vector<std::string> quotas;                    // a line each, of a project that creates the choice's nodes
  std::string this_machine;                           // its lines; "": not asked for
  std::string feed;                                   // its lines; "": not rows of text
};
std::string offered_plan_text(const HardwarePlan& plan, const PlanTextOptions& options);

// The choice compared with an option that lost.
std::string explained_text(const HardwarePlan& plan, const LostOption* lost, const PlanTextOptions& options);

// "$88.49/h on-demand in us-central1-a (price of 2026-07-30)", or why there is no price.
std::string price_text(const ClusterOffer& offer, const std::string& today);

// Of a million tokens: "$0.35"; nothing: "unknown".
std::string million_tokens_text(const std::optional<Dollars>& dollars);

// Programs for XLA cannot run a pipeline.
constexpr std::string_view kPipelineNeeds =
    "software that runs pipelines: `run --device tpu | gpu` and `prove` take a step as one program, and refuse pipe";

}  // namespace systole
