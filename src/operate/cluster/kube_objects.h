#pragma once
// The objects of a run as they were rendered, with what finds them again on the cluster: two labels, the run and the
// submission.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"
#include "operate/cluster/record.h"

namespace systole {

inline constexpr const char* kRunLabel = "systole/run";
inline constexpr const char* kSubmissionLabel = "systole/submission";
inline constexpr const char* kManagedBy = "app.kubernetes.io/managed-by=systole";
inline constexpr const char* kStopNote = "systole/stop";    // annotation: "save" or "now"
inline constexpr const char* kEndedNote = "systole/ended";  // annotation: "CODE SECONDS", how it was stopped

// A kind that makes pods, and what says how it ended.
struct PodMaker {
  const char *api_version, *kind;
  const char *done, *failed;              // its conditions
  std::vector<std::string_view> suspend;  // where it is told to have no pods
};
const std::vector<PodMaker>& pod_makers();
const PodMaker* pod_maker(const Node& object);  // null: it is none

// The documents of a YAML file. Errors: invalid, at their place.
Result<std::vector<Node>> read_documents(std::string_view text, const std::string& file);

// All objects of the rendered files below record.place, as they are rendered, those that make pods last. Errors: io;
// invalid, what is no object.
Result<std::vector<Node>> read_objects(const Record& record);
// With the submission's label beside every label of its run.
Node labelled(const Node& object, const std::string& run, const std::string& submission);

// Pods that an object will have.
struct PodGang {
  std::int64_t count = 0;
  Node pod;  // an object that could be one of them
};
std::vector<PodGang> gangs_of(const Node& object);
// Whether objects of this kind hold what a run came to, or keep it reachable: they outlive the run. Rendering says the
// same to kubectl (made_kinds).
bool holds_data(std::string_view kind);
// Secrets named RUN-token that its pods mount and that nobody rendered.
bool wants_token(const std::vector<Node>& objects, const std::string& run);

// Of one pod, by resource: the containers' sum, or the largest of those that come before them.
std::map<std::string, double> requests_of(const Node& pod);

}  // namespace systole
