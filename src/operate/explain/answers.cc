#include "operate/explain/answers.h"

#include <algorithm>

#include "describe/spec/state_bytes.h"
#include "ground/base/counted.h"
#include "ground/base/shell_quoted.h"

namespace systole::answers {
namespace {

std::int64_t axis(const Workload& w, std::string_view name) {
  for (const auto& [axis, size] : w.mesh)
    if (axis == name) return size;
  return 1;
}

// Optimizer moments per parameter that is trained.
std::int64_t moments(const Workload& w) { return moments_of(w.train.optimizer); }

const char* optimizer_name(const Workload& w) {
  return w.train.optimizer.kind == OptimizerSpec::Kind::adamw ? "adamw" : "sgd";
}

Bytes of_parameters(const TopicFacts& facts) {
  return Bytes(*facts.parameters * size_of(facts.workload->train.precision.parameter));
}

std::int64_t trained(const TopicFacts& facts) { return facts.trainable.value_or(*facts.parameters); }

Bytes of_gradients(const TopicFacts& facts) {
  return Bytes(trained(facts) * size_of(facts.workload->train.precision.parameter));
}

// Parameters and moments: the contents of a checkpoint.
Bytes of_state(const TopicFacts& facts) {
  return state_bytes(*facts.parameters, trained(facts), facts.workload->train);
}

bool has_model(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr) return false;
  if (facts.parameters) return true;
  lines.workload.emplace_back("it runs a program of its own, whose model is not known here");
  return false;
}

// Adds the reason if there is none.
bool has_plan(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.plan != nullptr) return true;
  if (facts.workload != nullptr && !facts.no_plan.empty())
    lines.workload.push_back("it has no plan on this machine: " + facts.no_plan);
  return false;
}

std::string share(double part) { return fmt::format("{:.0f}%", 100 * part); }

}  // namespace

Status mfu(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(peaks(facts, lines));
  if (!has_model(facts, lines) || !has_plan(facts, lines)) return {};
  const PlanFacts& plan = *facts.plan;
  lines.workload.push_back(fmt::format("model FLOPs of a step: {}; executed, with recomputation: {}",
                                       to_string(plan.model_flops), to_string(plan.executed_flops)));
  if (plan.step) lines.workload.push_back("a step is predicted to take " + to_string(*plan.step));
  if (plan.matmul_ratio)
    lines.workload.push_back(fmt::format("that is {} of the matmul rate of {}{}", share(*plan.matmul_ratio),
                                         plan.machine,
                                         plan.calibrated ? ", as measured" : ", which is estimated: calibrate it"));
  return {};
}

Status roofline(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines) || !has_plan(facts, lines) || !facts.plan->step) return {};
  for (const auto& [kind, time] : facts.plan->time)
    if (time.count() > 0)
      lines.workload.push_back(
          fmt::format("{}: {}, {} of a step", kind, to_string(time), share(time / *facts.plan->step)));
  return {};
}

Status memory(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines) || !has_plan(facts, lines)) return {};
  const PlanFacts& plan = *facts.plan;
  lines.workload.push_back(fmt::format("planned, without the tables of its text: {} of {}: it {}",
                                       to_string(plan.memory_total), to_string(plan.memory_limit),
                                       plan.fits() ? "fits" : "does not fit"));
  for (const auto& [owner, bytes] : plan.memory)
    lines.workload.push_back(fmt::format("{}: {}", owner, to_string(bytes)));
  return {};
}

Status recompute(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines) || !has_plan(facts, lines)) return {};
  for (const auto& [owner, bytes] : facts.plan->memory)
    if (owner == "residuals")
      lines.workload.push_back(fmt::format("kept for the backward pass: {} of {} in all", to_string(bytes),
                                           to_string(facts.plan->memory_total)));
  if (facts.plan->model_flops.count() > 0)
    lines.workload.push_back(fmt::format("executed FLOPs are {:.0f}% above model FLOPs",
                                         100 * (facts.plan->executed_flops / facts.plan->model_flops - 1)));
  return {};
}

Status batch(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines)) return {};
  const Workload& w = *facts.workload;
  const std::int64_t cut = axis(w, "data") * axis(w, "fsdp") * axis(w, "expert");
  lines.workload.push_back(fmt::format("a step has {}{}, in {}{}", counted(w.train.batch, "row"),
                                       w.model.context() > 0 ? " of " + counted(w.model.context(), "token") : "",
                                       counted(w.train.microbatches, "microbatch"),
                                       cut > 1 ? ", divided over " + counted(cut, "device") : ""));
  if (w.model.context() > 0)
    lines.workload.push_back("tokens a step: " + with_commas(w.train.batch * w.model.context()));
  return {};
}

Status mesh(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr) return {};
  const Workload& w = *facts.workload;
  if (w.mesh.empty())
    lines.workload.emplace_back("it names no mesh: one device does all of a step");
  else
    lines.workload.push_back("its mesh is of " + counted(w.num_devices(), "device"));
  return {};
}

Status fsdp(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines)) return {};
  const Workload& w = *facts.workload;
  const std::int64_t devices = axis(w, "fsdp");
  const Bytes parameters = of_parameters(facts), gradients = of_gradients(facts), all = of_state(facts) + gradients;
  const std::string of_trained =
      gradients == parameters ? "the same" : fmt::format("{} of those trained", to_string(gradients));
  lines.workload.push_back(fmt::format("{}: parameters {}, gradients {}, {} of {}: {} in all",
                                       counted(*facts.parameters, "parameter"), to_string(parameters), of_trained,
                                       counted(moments(w), "moment"), optimizer_name(w), to_string(all)));
  if (devices == 1) {
    lines.workload.emplace_back("its mesh has no axis fsdp, so each device holds all of that");
    return {};
  }
  const Bytes moments_of_it = of_state(facts) - parameters;
  Bytes each = all;
  switch (w.fully_sharded) {
    case ZeroStage::nothing: break;
    case ZeroStage::state: each = parameters + gradients + Bytes(moments_of_it.count() / devices); break;
    case ZeroStage::gradients: each = parameters + Bytes((all - parameters).count() / devices); break;
    case ZeroStage::parameters: each = Bytes(all.count() / devices); break;
  }
  lines.workload.push_back(
      fmt::format("over the {} of its axis fsdp, each holds {}", counted(devices, "device"), to_string(each)));
  return {};
}

Status precision(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(peaks(facts, lines));
  if (!has_model(facts, lines)) return {};
  const PrecisionSpec& p = facts.workload->train.precision;
  lines.workload.push_back(fmt::format("a parameter takes {} in storage and {} in computation",
                                       counted(size_of(p.parameter), "byte"), counted(size_of(p.compute), "byte")));
  return {};
}

Status checkpoint(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines)) return {};
  const Workload& w = *facts.workload;
  const Bytes each = of_state(facts);
  lines.workload.push_back(fmt::format("a checkpoint holds parameters and {}: {} before compression",
                                       moments(w) > 0 ? "the optimizer's moments" : "no moments", to_string(each)));
  const std::int64_t kept = w.checkpoint.keep + (w.checkpoint.best ? 1 : 0);
  lines.workload.push_back(fmt::format("with {} kept and one being written: up to {} of disk",
                                       counted(kept, "checkpoint"), to_string(each * (kept + 1))));
  if (w.checkpoint.keep_every > 0)
    lines.workload.push_back(fmt::format("each one whose step is a multiple of {} is kept, too: {} more",
                                         with_commas(w.checkpoint.keep_every), to_string(each)));
  if (w.checkpoint.every.never())
    lines.workload.emplace_back("nothing is saved before the end: a kill loses all of the run");
  return {};
}

Status exact(const TopicFacts& facts, TopicAnswer& lines) {
  if (!has_model(facts, lines)) return {};
  const TrainSpec& train = facts.workload->train;
  if (train.exact)
    lines.workload.push_back(fmt::format(
        "its numbers are the same bits on any number of workers up to {}, after any kill", train.logical_shards));
  else
    lines.workload.emplace_back("it is not exact: another number of workers rounds differently");
  return {};
}

Status slow(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(roofline(facts, lines));
  TRY(batch(facts, lines));
  if (facts.workload != nullptr)
    lines.workload.emplace_back("`systole why` shows the seconds of a run of it by category, beside the prediction");
  return {};
}

Status scaling(const TopicFacts& facts, TopicAnswer& lines) {
  TRY(mesh(facts, lines));
  TRY(batch(facts, lines));
  if (facts.workload != nullptr)
    lines.workload.push_back(fmt::format("`systole plan {} --on any` compares numbers of accelerators for it",
                                         shell_word(facts.workload_name)));
  return {};
}

Status secrets(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr) return {};
  for (const auto& [variable, reference] : facts.workload->secrets)
    lines.workload.push_back(fmt::format("{}: by reference, {}", variable, reference.substr(0, reference.find(':'))));
  if (facts.workload->secrets.empty()) lines.workload.emplace_back("it names no secret");
  return {};
}

Status target(const TopicFacts& facts, TopicAnswer& lines) {
  if (facts.workload == nullptr) return {};
  for (const std::string& each : facts.targets)
    lines.workload.push_back(fmt::format("its keys name {}: `systole render {} --on {}` writes its files", each,
                                         shell_word(facts.workload_name), each));
  if (facts.targets.empty())
    lines.workload.emplace_back("its keys name no cluster and no cloud: it runs where `systole run` is typed");
  return {};
}

}  // namespace systole::answers
