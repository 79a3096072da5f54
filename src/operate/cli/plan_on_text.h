#pragma once
// A plan for offered hardware, for people: the choice first, where its time and memory go, why everything else lost.

#include <optional>
#include <string>

#include "operate/cli/plan_on.h"

namespace systole::cli {

std::string offered_plan_text(const OfferedPlan& plan, bool all, const Printer& out);

// The option of that number (as printed, from 1) or words of its name. Errors: not_found, with those that there are;
// invalid: no layout of it fits, which has nothing to explain.
Result<const LostOption*> lost_option(const OfferedPlan& plan, const std::string& words);
std::string explained_text(const OfferedPlan& plan, const LostOption* lost, const Printer& out);

// What goes through XLA runs no pipeline.
constexpr std::string_view kPipelineNeeds =
    "software that runs pipelines: `run --device tpu | gpu` and `prove` take a step as one program, and refuse pipe";

const char* words_of(StepShare share);      // "exposed: parameters (fsdp)"
const char* share_colour(StepShare share);  // "#0072B2"

// Of a choice that waits for messages for much of its step.
std::optional<std::string> exposed_warning(const OfferedPlan& plan);

std::string option_name(const OfferedPlan& plan, const LostOption& lost);  // of its layout, or its hardware
// "--set 'mesh={fsdp: 8}' --set train.microbatches=4".
std::string set_words(const OfferedPlan& plan, const Candidate& candidate);
// What makes an option win, as words of a command line.
std::string edit_words(const OfferedPlan& plan, const LostOption& lost);

}  // namespace systole::cli
