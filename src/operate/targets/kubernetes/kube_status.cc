#include "operate/targets/kubernetes/kube_status.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>

#include "ground/base/clock.h"
#include "ground/base/exit_code.h"
#include "ground/base/iso_time.h"
#include "operate/targets/kubernetes/kube_api.h"
#include "operate/targets/kubernetes/kube_objects.h"

namespace systole {
namespace {

// No retry helps: a Job fails at once with this code (its podFailurePolicy).
bool is_final(std::int64_t code) { return (code >= 1 && code <= 3) || code == kExitOverBudget; }

std::int64_t seconds_of(const std::string& text) {  // 0 if empty
  const auto time = from_iso8601(text);
  return text.empty() || !time.ok() ? 0 : std::chrono::system_clock::to_time_t(*time);
}

// The condition if it has this status, or null.
const Node* condition(const Node& object, std::string_view type, std::string_view status = "True") {
  const Node* all = at(object, {"status", "conditions"});
  if (all == nullptr) return nullptr;
  for (const Node& one : all->items())
    if (text_at(one, {"type"}) == type && text_at(one, {"status"}) == status) return &one;
  return nullptr;
}

// The states of all containers, including init containers.
std::vector<const Node*> statuses(const Node& pod) {
  std::vector<const Node*> all;
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    if (const Node* some = at(pod, {"status", list}))
      for (const Node& one : some->items()) all.push_back(&one);
  return all;
}

struct PodState {
  enum class Kind { waits, starts, runs, ends, succeeded, failed } kind = Kind::waits;
  std::string reason;
  bool disrupted = false;
};

// Why a container with a node does not run, in Kubernetes' words; empty during an ordinary start.
std::string wait_reason(const Node& pod) {
  for (const Node* one : statuses(pod)) {
    const std::string reason = text_at(*one, {"state", "waiting", "reason"});
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
    const std::string message = text_at(*one, {"state", "waiting", "message"});
    return reason + (message.empty() ? "" : ": " + message);
  }
  return "";
}

PodState state_of(const Node& pod) {
  using Kind = PodState::Kind;
  PodState state;
  const std::string phase = text_at(pod, {"status", "phase"});
  if (const Node* disrupted = condition(pod, "DisruptionTarget")) {
    state.disrupted = true;
    state.reason = text_at(*disrupted, {"reason"}) + ": " + text_at(*disrupted, {"message"});
  }
  if (phase == "Succeeded") return state.kind = Kind::succeeded, state;
  if (phase == "Failed") return state.kind = Kind::failed, state;
  if (at(pod, {"metadata", "deletionTimestamp"}) != nullptr) return state.kind = Kind::ends, state;
  const auto main = at(pod, {"status", "containerStatuses"});
  if (main != nullptr && std::ranges::any_of(main->items(), [](const Node& one) {
        return at(one, {"state", "running"}) != nullptr;
      }))
    return state.kind = Kind::runs, state;
  if (const Node* not_placed = condition(pod, "PodScheduled", "False")) {
    state.reason = text_at(*not_placed, {"reason"}) + ": " + text_at(*not_placed, {"message"});
    return state;
  }
  if (!text_at(pod, {"spec", "nodeName"}).empty()) {
    state.kind = Kind::starts;
    state.reason = wait_reason(pod);
  }
  return state;
}

std::string index_of(const Node& pod) {
  for (const char* key : {"batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index"})
    for (const char* where : {"labels", "annotations"})
      if (std::string index = text_at(pod, {"metadata", where, key}); !index.empty())
        return text_at(pod, {"metadata", "labels", "jobset.sigs.k8s.io/job-key"}) + index;
  return text_at(pod, {"metadata", "name"});
}

struct Tally {
  std::int64_t waiting = 0, starting = 0, running = 0, ending = 0, succeeded = 0, failed = 0;
  std::string wait_reason, start_reason, disruption;
  std::int64_t restarts = 0;
  std::vector<std::int64_t> codes;  // of failed pods
  std::set<std::string> nodes;
  std::int64_t alive() const { return waiting + starting + running + ending; }
};

Tally tally_of(const KubeRunObjects& objects) {
  Tally tally;
  std::map<std::string, std::int64_t> failures;
  for (const Node& pod : objects.pods) {
    const PodState state = state_of(pod);
    const std::string node = text_at(pod, {"spec", "nodeName"});
    const auto first = [](std::string& to, const std::string& from) {
      if (to.empty()) to = from;
    };
    if (state.disrupted) first(tally.disruption, state.reason);
    switch (state.kind) {
      case PodState::Kind::waits: ++tally.waiting, first(tally.wait_reason, state.reason); break;
      case PodState::Kind::starts: ++tally.starting, first(tally.start_reason, state.reason); break;
      case PodState::Kind::runs: ++tally.running; break;
      case PodState::Kind::ends: ++tally.ending; break;
      case PodState::Kind::succeeded: ++tally.succeeded; break;
      case PodState::Kind::failed:
        ++tally.failed;
        ++failures[index_of(pod)];
        if (!state.disrupted) tally.codes.push_back(exit_code_of(pod).value_or(1));
        break;
    }
    const bool over = state.kind == PodState::Kind::succeeded || state.kind == PodState::Kind::failed;
    if (!node.empty() && !over) tally.nodes.insert(node);
    for (const Node* one : statuses(pod)) tally.restarts = std::max(tally.restarts, number_at(*one, {"restartCount"}));
  }
  for (const auto& [index, count] : failures) tally.restarts = std::max(tally.restarts, count);
  tally.restarts = std::max(tally.restarts, number_at(objects.maker, {"status", "restarts"}));
  return tally;
}

std::string joined(const std::set<std::string>& nodes) {
  constexpr std::size_t kShown = 4;
  std::string text;
  std::size_t n = 0;
  for (const std::string& node : nodes)
    if (n++ < kShown) text += (text.empty() ? "" : ",") + node;
  return nodes.size() > kShown ? fmt::format("{},+{}", text, nodes.size() - kShown) : text;
}

bool is_suspended(const Node& maker) {
  const PodMaker* kind = pod_maker(maker);
  const Node* node = &maker;
  for (const std::string_view key : kind->suspend)
    if (node = node->find(key); node == nullptr) return false;
  return node->text() == "true";
}

// It is suspended and has no pods: by Kueue, until there is quota, or by a user.
void tell_suspended(const KubeRunObjects& objects, JobStatus& status) {
  status.state = RunState::queued;
  if (!objects.workload) {
    status.reason = "suspended: nobody has let it begin";
    return;
  }
  if (const Node* evicted = condition(*objects.workload, "Evicted")) {
    status.state = RunState::preempted;
    status.reason = fmt::format("Kueue: {}", text_at(*evicted, {"message"}));
  } else if (const Node* waits = condition(*objects.workload, "QuotaReserved", "False")) {
    status.reason = fmt::format("Kueue: {}", text_at(*waits, {"message"}));
  } else if (condition(*objects.workload, "Admitted") != nullptr) {
    status.state = RunState::starting;
  } else {
    status.reason = "Kueue: waits for its checks";
  }
}

struct Ended {
  std::int64_t code = 0, at = 0;
};
// "75 1767225600": written when the last pod was gone.
std::optional<Ended> noted_end(const Node& maker) {
  const std::string note = text_at(maker, {"metadata", "annotations", kEndedNote});
  Ended ended;
  if (std::sscanf(note.c_str(), "%" SCNd64 " %" SCNd64, &ended.code, &ended.at) != 2) return {};
  return ended;
}

void tell_stopping(const KubeRunObjects& objects, const Tally& tally, JobStatus& status) {
  if (tally.running + tally.ending + tally.starting > 0) {
    status.state = RunState::saving;
    return;
  }
  status.state = RunState::stopped;
  status.restarts = std::max<std::int64_t>(0, status.restarts - 1);  // pods that ended to save were not restarted
  if (const std::optional<Ended> ended = noted_end(objects.maker)) {
    end_with(status, ended->code, true);
    status.ended_at = ended->at;
  }
}

void tell_going(const KubeRunObjects& objects, const Tally& tally, std::int64_t expected, JobStatus& status) {
  const bool again = tally.restarts > 0 || !tally.disruption.empty();
  const bool fails = std::ranges::any_of(tally.codes, is_final);
  if (fails) {
    status.state = RunState::saving;
  } else if (tally.running > 0 && tally.running + tally.succeeded >= expected) {
    status.state = RunState::running;
  } else if (tally.waiting > 0) {
    status.state = again ? RunState::preempted : RunState::queued;
    status.reason = tally.wait_reason.empty() && again ? tally.disruption : tally.wait_reason;
  } else if (tally.running + tally.starting > 0) {
    status.state = RunState::starting;
    status.reason = tally.start_reason;
  } else if (tally.ending > 0 || (tally.succeeded > 0 && tally.alive() == 0)) {  // records the last one
    status.state = RunState::saving;
    status.reason = tally.disruption;
  } else {
    status.state = again ? RunState::preempted : RunState::queued;
    status.reason = !objects.event.empty() ? objects.event : again ? tally.disruption : "";
  }
}

struct Span {
  std::int64_t begin, end;  // 0: still running
};

// The intervals in which at least one pod ran, in order.
std::vector<Span> spans_of(const std::vector<Node>& pods) {
  std::vector<Span> spans;
  const auto add = [&](const Node* state) {
    if (state == nullptr) return;
    if (const std::int64_t begin = seconds_of(text_at(*state, {"startedAt"})); begin > 0)
      spans.push_back({begin, seconds_of(text_at(*state, {"finishedAt"}))});
  };
  for (const Node& pod : pods)
    if (const Node* all = at(pod, {"status", "containerStatuses"}))
      for (const Node& one : all->items()) {
        add(at(one, {"state", "running"}));
        add(at(one, {"state", "terminated"}));
        add(at(one, {"lastState", "terminated"}));
      }
  std::ranges::sort(spans, {}, &Span::begin);
  std::vector<Span> joined_spans;
  for (const Span& span : spans) {
    if (joined_spans.empty() || (joined_spans.back().end != 0 && joined_spans.back().end < span.begin)) {
      joined_spans.push_back(span);
    } else if (joined_spans.back().end != 0) {
      joined_spans.back().end = span.end == 0 ? 0 : std::max(span.end, joined_spans.back().end);
    }
  }
  return joined_spans;
}

std::int64_t expected_pods(const KubeRunObjects& objects) {
  std::int64_t count = 0;
  for (const PodGang& gang : gangs_of(objects.maker)) count += gang.count;
  return count > 0 ? count : static_cast<std::int64_t>(objects.pods.size());
}

std::vector<std::int64_t> codes_of(const std::vector<Node>& pods) {
  std::vector<std::int64_t> codes;
  for (const Node& pod : pods)
    if (const std::optional<std::int64_t> code = exit_code_of(pod)) codes.push_back(*code);
  return codes;
}

// An interval is a time in which one or more of its pods ran. The job gives the end of the last one.
std::vector<AllocationInterval> allocations_of(const std::string& id, const KubeRunObjects& objects) {
  std::vector<AllocationInterval> intervals;
  for (const Span& span : spans_of(objects.pods)) {
    if (!intervals.empty()) intervals.back().code = kExitSaved;
    const auto number = static_cast<std::int64_t>(intervals.size());
    intervals.push_back({id, number, span.begin, expected_pods(objects), {}, {}});
    if (span.end != 0) intervals.back().ended_at = span.end;
  }
  if (!intervals.empty()) intervals.back().ended_at.reset();
  return intervals;
}

}  // namespace

std::optional<std::int64_t> exit_code_of(const Node& pod) {
  if (const Node* all = at(pod, {"status", "containerStatuses"}))
    for (const Node& one : all->items())
      for (const char* state : {"state", "lastState"})
        if (at(one, {state, "terminated", "exitCode"}) != nullptr)
          return number_at(one, {state, "terminated", "exitCode"});
  return {};
}

std::int64_t seconds_of_end(const Node& pod) {
  std::int64_t last = 0;
  if (const Node* all = at(pod, {"status", "containerStatuses"}))
    for (const Node& one : all->items())
      last = std::max(last, seconds_of(text_at(one, {"state", "terminated", "finishedAt"})));
  return last;
}

std::optional<std::int64_t> exit_code_of(const std::vector<std::int64_t>& codes) {
  if (codes.empty()) return {};
  if (const auto final_code = std::ranges::find_if(codes, is_final); final_code != codes.end()) return *final_code;
  for (const std::int64_t code : codes)
    if (code != kExitSaved && code != 0) return code;
  return std::ranges::count(codes, kExitSaved) > 0 ? kExitSaved : 0;
}

JobStatus status_of(const KubeRunObjects& objects) {
  const PodMaker* kind = pod_maker(objects.maker);
  const auto about = [&](std::string_view key) { return text_at(objects.maker, {"metadata", key}); };
  JobStatus status{.id = fmt::format("{}/{:.8}", about("name"), about("uid"))};
  status.run = text_at(objects.maker, {"metadata", "labels", kRunLabel});
  status.submission = text_at(objects.maker, {"metadata", "labels", kSubmissionLabel});
  status.sure = true;
  const Tally tally = tally_of(objects);
  status.restarts = tally.restarts;
  status.nodes = joined(tally.nodes);
  if (const std::vector<Span> spans = spans_of(objects.pods); !spans.empty()) {
    status.began_at = spans.front().begin;
    status.ended_at = spans.back().end;
  }
  const bool asked = !text_at(objects.maker, {"metadata", "annotations", kStopNote}).empty();
  if (const Node* done = condition(objects.maker, kind->done)) {
    end_with(status, 0, asked);
    if (status.ended_at == 0) status.ended_at = seconds_of(text_at(*done, {"lastTransitionTime"}));
  } else if (const Node* failed = condition(objects.maker, kind->failed)) {
    const std::optional<std::int64_t> code = exit_code_of(tally.codes);
    end_with(status, code.value_or(1), asked);
    if (!code) status.exit_code.reset();
    if (!code) status.reason = text_at(*failed, {"reason"}) + ": " + text_at(*failed, {"message"});
    status.restarts = std::max<std::int64_t>(0, status.restarts - 1);  // the last one was not restarted
    if (status.ended_at == 0) status.ended_at = seconds_of(text_at(*failed, {"lastTransitionTime"}));
  } else if (asked) {
    tell_stopping(objects, tally, status);
  } else if (is_suspended(objects.maker) && tally.alive() == 0) {
    tell_suspended(objects, status);
  } else {
    tell_going(objects, tally, expected_pods(objects), status);
  }
  if (!is_over(status.state)) status.ended_at = 0;
  if (is_over(status.state) && !status.exit_code) status.exit_code = exit_code_of(codes_of(objects.pods));
  status.allocations = allocations_of(status.id, objects);
  return status;
}

}  // namespace systole
