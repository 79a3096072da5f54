#pragma once
// The rendered objects of a run, with the two labels that find them on the cluster: the run and the submission.

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
inline constexpr const char* kEndedNote = "systole/ended";  // annotation: "CODE SECONDS", the end after a stop

// A kind that creates pods, and the conditions of its end.
struct PodMaker {
  const char *api_version, *kind;
  const char *done, *failed;              // condition types
  std::vector<std::string_view> suspend;  // path of the field that suspends its pods
};
const std::vector<PodMaker>& pod_makers();
const PodMaker* pod_maker(const Node& object);  // null: not such a kind

// The documents of a YAML file. Errors: invalid, at their position.
Result<std::vector<Node>> read_documents(std::string_view text, const std::string& file);

// All objects of the rendered files below record.place, in order, with those that create pods last. Errors: io;
// invalid, not an object.
Result<std::vector<Node>> read_objects(const Record& record);
// Adds the submission's label beside every label of its run.
Node labelled(const Node& object, const std::string& run, const std::string& submission);

// A group of identical pods of an object.
struct PodGang {
  std::int64_t count = 0;
  Node pod;  // an object like one of them
};
std::vector<PodGang> gangs_of(const Node& object);
// Whether objects of this kind hold results of a run, or keep them reachable: they outlive the run. The rendered
// kubectl commands agree (made_kinds).
bool holds_data(std::string_view kind);
// Whether its pods mount a secret RUN-token that is not rendered.
bool wants_token(const std::vector<Node>& objects, const std::string& run);

// Requests of one pod by resource: the containers' sum, or the largest of its init containers if greater.
std::map<std::string, double> requests_of(const Node& pod);

}  // namespace systole
